/* tests/unit/raw_origin.h - an origin that does, connection by connection, exactly what a list of
 * steps says, in a thread of its own. */
#ifndef WEIR_TESTS_UNIT_RAW_ORIGIN_H
#define WEIR_TESTS_UNIT_RAW_ORIGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum raw_what {
        RAW_ACCEPT,      /* the next connection; the steps below are about the latest one */
        RAW_READ,        /* one request, head and body, kept in the log */
        RAW_READ_HEAD,   /* only its head */
        RAW_TAKE,        /* n bytes, kept in the log */
        RAW_SEND,        /* text, or n bytes of it */
        RAW_FLOOD,       /* n bytes, or as many as are taken */
        RAW_CLOSE,       /* half of it: nothing more will be sent */
        RAW_RESET,       /* at once, with RST */
        RAW_AWAIT_CLOSE, /* until the peer closes */
        RAW_HOLD,        /* until raw_origin_release */
};

struct raw_step {
        enum raw_what what;
        const char *text;
        size_t n;
};

#define RAW_MAX_CONNECTIONS 16

struct raw_origin {
        const struct raw_step *steps;
        size_t count;
        int listener;
        unsigned port;
        pthread_t thread;
        int fds[RAW_MAX_CONNECTIONS];
        _Atomic unsigned connections, reads; /* accepted; requests read */
        _Atomic bool stalled, released;
        _Atomic size_t flooded, step; /* bytes; the index of the step under way */
        unsigned pending;             /* connections never accepted, known after the stop */
        size_t pending_bytes;         /* what was sent on them */
        _Atomic bool closed_by_peer;  /* what the last RAW_AWAIT_CLOSE saw */
        char log[256 * 1024];
        size_t log_len;
};

/* Listens on a free port of 127.0.0.1 and starts the thread. Steps that wait give up after 5 s. */
void raw_origin_start(struct raw_origin *o, const struct raw_step *steps, size_t count);
void raw_origin_release(struct raw_origin *o);

/* Waits for the last step, closes all. Returns the requests, one after the other. */
const char *raw_origin_stop(struct raw_origin *o);

#endif
