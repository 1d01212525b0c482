/* egress/request_lines.h - the header fields of a request in the form that libcurl wants, so that
 * exactly they are sent. */
#ifndef WEIR_EGRESS_REQUEST_LINES_H
#define WEIR_EGRESS_REQUEST_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fields.h"

struct curl_slist;

/* One block holds all nodes and texts; it is kept for the next request. All zeroes are a fine
 * start. */
struct request_lines {
        struct curl_slist *list; /* for CURLOPT_HTTPHEADER; in the block */
        void *block;
        size_t room;
};

/*
 * Fills the list with the fields, in their order and spelling.
 *
 * body_len  bytes of the body; a Content-Length field must name just that
 * has_body  adds Content-Length where there is none
 * stream    an upload without a length and without chunks follows: what goes out after an upgrade
 *
 * False, with the list unusable, when something could not be sent as it is: a name that is empty or
 * holds a separator, control characters in a value, a Transfer-Encoding, a wrong Content-Length.
 */
bool request_lines_fill(struct request_lines *r, const struct fields *fields, bool has_body,
                        size_t body_len, bool stream);

/* Frees a block that has become large: to be called before a handle is put aside. */
void request_lines_trim(struct request_lines *r);
void request_lines_done(struct request_lines *r);

#endif
