/* tests/unit/upstream_client.h - a client of the upstream layer that writes down what it is told,
 * and names that need no resolver. */
#ifndef WEIR_TESTS_UNIT_UPSTREAM_CLIENT_H
#define WEIR_TESTS_UNIT_UPSTREAM_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "egress/upstream.h"
#include "tests/unit/raw_origin.h"

enum then { GO_ON, CANCEL, DISCARD, PAUSE };

/* What one attempt brought, and what to do meanwhile. Zeroed before use. */
struct seen {
        struct attempt *attempt;
        enum then on_head, on_body; /* PAUSE: once */
        void (*after_end)(struct seen *s);
        int status;
        char head[8192];  /* "reason\nname: value\n…" */
        char body[65536]; /* its beginning */
        size_t body_len;
        unsigned heads, ends;
        bool body_first; /* there was body before the head */
        bool finished;   /* no handler may be called any more, or not yet again (PAUSE) */
        struct upstream_end end;
        char detail[256];
};

extern struct event_base *base;
extern struct upstream *upstream;
extern struct cidr_set deny, allow;
extern struct raw_origin origin;

/* getaddrinfo of "slow.test" answers when this is free; "two.test" is 127.0.0.2 and 127.0.0.1,
 * "one.test" is 127.0.0.1; there are no others. */
extern pthread_mutex_t slow_lock;

unsigned open_files(void); /* of this process */

/* For cmocka; the latter finds out whether all sockets were closed. */
int set_up(void **state);
int tear_down(void **state);

/* To the origin, with generous timeouts; lines: "Name: value\n…". Replayable but for POST. Its
 * fields stay valid until the next call. */
struct upstream_request request(const char *method, const char *target, const char *lines);

void start(struct seen *s, const struct upstream_request *r);
void run(struct seen *s, const struct upstream_request *r); /* to its end */

/* A body of several pieces. */
struct evbuffer *body_of(const char *text);

/* Turns the loop as long as the condition holds, at most 10 s. */
#define TURN_WHILE(condition)     \
        do {                      \
                turn_begin();     \
                while (condition) \
                        turn();   \
                turn_end();       \
        } while (0)
void turn_begin(void);
void turn(void);
void turn_end(void);

#define ORIGIN(...)                                                                  \
        do {                                                                         \
                static const struct raw_step steps_[] = {__VA_ARGS__};               \
                raw_origin_start(&origin, steps_, sizeof steps_ / sizeof steps_[0]); \
        } while (0)

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

#endif
