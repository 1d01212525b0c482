/* tests/sim/origin.h - models of hosts with a hidden limit, in virtual time. */
#ifndef WEIR_TESTS_SIM_ORIGIN_H
#define WEIR_TESTS_SIM_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/usec.h"
#include "core/quota.h"

enum origin_kind {
        ORIGIN_FIXED_WINDOW, /* rate * period in each period */
        ORIGIN_SLIDING,      /* rate * period in any period */
        ORIGIN_TOKEN_BUCKET, /* rate, up to burst at once */
        ORIGIN_GCRA,         /* the same, kept as a theoretical arrival time */
        ORIGIN_CONCURRENCY,  /* `servers` at work, the rest refused */
        ORIGIN_OVERLOADED,   /* `servers` at work, `burst` queued, the rest refused */
        ORIGIN_WINDOW_AND_CONCURRENCY,
        ORIGIN_PENALTY_BOX, /* fixed window; `violations` of it within 60 s ban for 30 s; what
                               comes in during the ban restarts it */
        ORIGIN_UNLIMITED
};

struct origin_config {
        enum origin_kind kind;
        double rate; /* requests/s; with servers alone what they manage, for the record */
        usec_t period;
        double burst;
        double servers;
        double thrash; /* service takes 1 + thrash * queued / servers times as long */
        unsigned violations;
        bool from_first; /* windows begin with a request, not by the clock */
};

struct origin {
        struct origin_config config;
        double scale;  /* of rate and servers, for steps */
        usec_t window; /* when it began */
        double count;  /* accepted in it */
        double tokens;
        usec_t filled;  /* when the tokens were counted last */
        usec_t arrival; /* GCRA's theoretical one */
        usec_t *log;    /* sliding: the last accepted ones, a ring; owned */
        size_t log_room, log_next;
        unsigned busy, queued;
        usec_t *violated; /* the last `violations` times, a ring; owned */
        size_t violated_next;
        usec_t banned_until;
};

/* `start` is the beginning of the first window by the clock. */
void origin_init(struct origin *o, const struct origin_config *config, usec_t start);
void origin_done(struct origin *o);

enum origin_verdict { ORIGIN_SERVES, ORIGIN_QUEUES, ORIGIN_REFUSES };

/* A request comes in. ret_wait  with a refusal: when the next would be accepted, from now; 0 = the
 * host cannot tell */
enum origin_verdict origin_arrive(struct origin *o, usec_t now, usec_t *ret_wait);

/* One that was served leaves. True: the first queued one is served now. */
bool origin_leave(struct origin *o);

/* How much longer than usual service takes that begins now. */
double origin_stretch(const struct origin *o);

/* What is left of the present window; false where there are none. */
bool origin_quota(const struct origin *o, usec_t now, struct quota_window *ret);

/* What the host bears, requests/s; serving one takes it `service` on average. */
double origin_tolerates(const struct origin *o, usec_t service);

#endif
