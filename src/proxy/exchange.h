/* proxy/exchange.h - one request's life, from its first byte to the last byte of its answer. */
#ifndef WEIR_PROXY_EXCHANGE_H
#define WEIR_PROXY_EXCHANGE_H

#include <event2/http.h>

#include "core/outcome.h"
#include "core/governor.h"
#include "proxy/worker.h"

struct exchange;

/* A whole request was read: the callback for evhttp_set_gencb, with the worker as its argument. */
void exchange_receive(struct evhttp_request *req, void *worker);

/* The governor has decided about a waiting exchange's ticket. */
void exchange_turn(struct ticket *ticket, enum ticket_reply reply);

/* The client's connection is being closed; there is nobody left to answer. */
void exchange_client_gone(struct exchange *ex);

/* For a worker that stops before its exchanges have ended. */
void exchange_abort(struct list *link);

#endif
