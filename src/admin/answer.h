/* admin/answer.h - answers of the admin listener: JSON, text, and faults as JSON. */
#ifndef WEIR_ADMIN_ANSWER_H
#define WEIR_ADMIN_ANSWER_H

#include <event2/http.h>
#include <jansson.h>

#include "base/usec.h"

/* Each ends the request. */
void answer_json(struct evhttp_request *req, int status, json_t *body);      /* takes `body` over */
void answer_fault(struct evhttp_request *req, int status, const char *text); /* {"error": TEXT} */
void answer_buffer(struct evhttp_request *req, int status, const char *type, struct evbuffer *body);

/* Values for JSON: wall-clock times as in the logs, null for 0; seconds; a real in sensible digits.
 */
json_t *answer_time(usec_t real);
json_t *answer_seconds(usec_t t);
json_t *answer_real(double value);

/* A moment of clock_now as wall-clock time; 0 stays 0. */
usec_t answer_real_time(usec_t moment);

#endif
