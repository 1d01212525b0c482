/* Sessions: their endpoints, and the order of their requests. */
#include "core/governor_state.h"

void governor_enter_session(struct governor *g, struct lane *l, struct ticket *t,
                            const struct ticket_wish *wish, usec_t now)
{
        struct egress_pool *pool = l->egress ? l->egress->pool : NULL;
        bool sticky = pool && pool->policy->sticky;
        usec_t ttl = sticky ? pool->policy->sticky_ttl : 0;
        if (pool)
                t->host = quarantine_enter(&pool->quarantine, governor_not_null(wish->host));
        if (pool && wish->by) {
                t->session = sessions_enter(&pool->sessions, wish->session, 0, now);
                t->session->pinned = true;
                session_bind(t->session, egress_pool_find(pool, wish->by));
                return;
        }
        if (wish->session.len > 0 && (sticky || l->policy.session_order))
                t->session =
                    sessions_enter(pool ? &pool->sessions : &g->sessions, wish->session, ttl, now);
}

/* The next of those held may go. */
static void pass_on(struct governor *g, struct session *one, usec_t now)
{
        one->owner = NULL;
        if (list_empty(&one->held))
                return;
        struct ticket *next = LIST_ENTRY_OF(one->held.next, struct ticket, link);
        usec_t since = next->queued_at;
        one->owner = next;
        lane_unqueue(next->lane, next);
        lane_queue(next->lane, next, now);
        next->queued_at = since;
        governor_touch(g, next->lane);
}

void governor_leave_session(struct governor *g, struct ticket *t, usec_t now)
{
        if (t->host)
                quarantine_leave(t->host, now);
        t->host = NULL;
        if (!t->session)
                return;
        if (t->session->owner == t)
                pass_on(g, t->session, now);
        session_leave(t->session, now);
        t->session = NULL;
}

bool governor_session_admits(const struct lane *l, struct ticket *t)
{
        struct session *one = t->session;
        if (!one || !l->policy.session_order)
                return true;
        if (!one->owner)
                one->owner = t;
        return one->owner == t;
}

void governor_session_hold(struct lane *l, struct ticket *t, usec_t now)
{
        list_append(&t->session->held, &t->link);
        l->held++;
        t->place = TICKET_HELD;
        t->queued_at = now;
        t->state = TICKET_QUEUED;
}
