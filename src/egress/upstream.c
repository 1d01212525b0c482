#include "egress/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "egress/attempt.h"
#include "runtime/clock.h"

/* Handles put aside; each holds about 8 KiB. */
#define MAX_IDLE_ATTEMPTS 128

/* Open connections that no request uses. */
#define MAX_IDLE_CONNECTIONS 512L

/*
 * A socket that libcurl works with. libcurl asks for the events of a socket anew with every
 * transfer and drops them at its end, which would be two epoll_ctl calls for each request. So the
 * event of a socket that we opened stays in place until the socket is closed, or until it fires
 * when nobody wants it.
 */
struct watch {
        struct upstream *upstream;
        struct event *event;
        curl_socket_t fd;
        short wanted, armed; /* EV_READ | EV_WRITE */
        bool ours;           /* opened by us */
        bool connected;      /* then we see it being closed too, if it is ours */
};

struct upstream {
        struct event_base *base;
        CURLM *multi;
        struct upstream
            *bound; /* for what goes out from a local address; NULL: not needed as yet */
        struct exit_memory exits;
        const char *proxy_cas; /* a file; NULL: the system's */
        CURLSH *share;         /* TLS sessions, so that any handle can take one up again */
        unsigned stalled;      /* attempts that hold up a connection which others use */
        struct list active, idle, deferred;
        unsigned active_count, idle_count;
        unsigned inside; /* calls into libcurl on the stack */

        struct event *timer;    /* libcurl's; moved only to an earlier moment */
        usec_t timer_due;       /* when libcurl wants to be called; USEC_MAX: not */
        usec_t timer_at;        /* what `timer` is armed for */
        struct event *kick;     /* something is to be done in the loop's next round */
        struct watch **watches; /* by file descriptor; owned */
        size_t watches_room;
};

struct event_base *upstream_base(const struct upstream *u)
{
        return u->base;
}

CURLSH *upstream_share(const struct upstream *u)
{
        return u->share;
}

void upstream_stall(struct attempt *a, bool stalls)
{
        if (a->stalls == stalls)
                return;
        a->stalls = stalls;
        a->upstream->stalled += stalls ? 1 : -1u;
}

bool upstream_is_stalled(const struct upstream *u, struct span host, unsigned port)
{
        if (u->stalled == 0)
                return false;
        list_foreach (it, &u->active) {
                const struct attempt *a = LIST_ENTRY_OF(it, struct attempt, link);
                if (a->stalls && a->set.port == port && span_equal(span_of(a->set.host), host))
                        return true;
        }
        return false;
}

bool upstream_inside(const struct upstream *u)
{
        return u->inside > 0;
}

void upstream_enter(struct upstream *u)
{
        u->inside++;
}

void upstream_leave(struct upstream *u)
{
        u->inside--;
}

static void kick(struct upstream *u)
{
        event_active(u->kick, EV_TIMEOUT, 0);
}

void upstream_defer(struct attempt *a)
{
        if (list_empty(&a->todo))
                list_append(&a->upstream->deferred, &a->todo);
        kick(a->upstream);
}

int upstream_add(struct attempt *a)
{
        struct upstream *u = a->upstream;

        upstream_enter(u);
        CURLMcode rc = curl_multi_add_handle(u->multi, a->easy);
        upstream_leave(u);
        a->added = rc == CURLM_OK;
        return a->added ? 0 : -ENOMEM;
}

void upstream_remove(struct attempt *a)
{
        struct upstream *u = a->upstream;

        if (!a->added)
                return;
        a->added = false;
        upstream_enter(u);
        curl_multi_remove_handle(u->multi, a->easy);
        upstream_leave(u);
}

/* --- handles --- */

struct attempt *upstream_take(struct upstream *u)
{
        struct attempt *a;

        if (list_empty(&u->idle)) {
                a = attempt_new(u);
        } else {
                a = LIST_ENTRY_OF(u->idle.prev, struct attempt, link);
                list_remove(&a->link);
                u->idle_count--;
        }
        list_append(&u->active, &a->link);
        u->active_count++;
        return a;
}

void upstream_put(struct attempt *a, bool reusable)
{
        struct upstream *u = a->upstream;

        list_remove(&a->link);
        list_remove(&a->todo);
        u->active_count--;
        if (!reusable || u->idle_count == MAX_IDLE_ATTEMPTS) {
                attempt_free(a);
                return;
        }
        list_append(&u->idle, &a->link);
        u->idle_count++;
}

size_t upstream_active(const struct upstream *u)
{
        return u->active_count + (u->bound ? upstream_active(u->bound) : 0);
}

/* libcurl lets a request that may go out from any address use a connection that goes out from a
 * certain one. So these have a pool of their own. */
struct upstream *upstream_for(struct upstream *u, const struct egress_endpoint *egress)
{
        if (!egress || egress->kind != EGRESS_SOURCE)
                return u;
        if (!u->bound)
                u->bound = upstream_new(u->base);
        if (!u->bound)
                abort(); /* out of memory: there is one of them already */
        return u->bound;
}

const char *upstream_proxy_cas(const struct upstream *u)
{
        return u->proxy_cas && *u->proxy_cas ? u->proxy_cas : NULL;
}

struct exit_memory *upstream_exits(struct upstream *u)
{
        return &u->exits;
}

/* --- what has to be done outside libcurl --- */

static void settle(struct upstream *u)
{
        struct list todo;
        CURLMsg *msg;
        int left;

        while ((msg = curl_multi_info_read(u->multi, &left))) {
                void *a = NULL;
                if (msg->msg != CURLMSG_DONE)
                        continue;
                CURLcode code = msg->data.result; /* msg does not outlive the handle's removal */
                curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &a);
                attempt_done(a, code);
        }

        /* What is deferred from now on waits for the next round, so that a caller who starts anew
         * whatever fails cannot keep the loop here. */
        list_init(&todo);
        list_splice(&todo, &u->deferred);
        while (!list_empty(&todo)) {
                struct attempt *a = LIST_ENTRY_OF(todo.next, struct attempt, todo);
                list_remove(&a->todo);
                attempt_do_deferred(a);
        }
}

static void act(struct upstream *u, curl_socket_t fd, int what)
{
        int running;

        upstream_enter(u);
        curl_multi_socket_action(u->multi, fd, what, &running);
        upstream_leave(u);
        settle(u);
}

static void on_kick(evutil_socket_t fd, short what, void *arg)
{
        struct upstream *u = arg;

        (void)fd;
        (void)what;
        if (!list_empty(&u->deferred))
                settle(u);
        if (u->timer_due == 0) {
                u->timer_due = USEC_MAX;
                act(u, CURL_SOCKET_TIMEOUT, 0);
        }
}

/* --- libcurl's timer --- */

static void arm_timer(struct upstream *u, usec_t now)
{
        if (u->timer_at <= u->timer_due)
                return;
        struct timeval tv = usec_timeval(usec_sub(u->timer_due, now));
        u->timer_at = u->timer_due;
        event_add(u->timer, &tv);
}

/* It may fire earlier than libcurl wants by now: moving it with every request would cost more. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct upstream *u = arg;
        usec_t now = clock_now();

        (void)fd;
        (void)what;
        u->timer_at = USEC_MAX;
        if (u->timer_due > now) {
                arm_timer(u, now);
                return;
        }
        u->timer_due = USEC_MAX;
        act(u, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_wanted(CURLM *multi, long timeout_ms, void *arg)
{
        struct upstream *u = arg;

        (void)multi;
        if (timeout_ms < 0) {
                u->timer_due = USEC_MAX;
        } else if (timeout_ms == 0) {
                u->timer_due = 0;
                kick(u);
        } else {
                usec_t now = clock_now();
                u->timer_due = usec_add(now, (usec_t)timeout_ms * USEC_PER_MSEC);
                arm_timer(u, now);
        }
        return 0;
}

/* --- libcurl's sockets --- */

static void on_socket(evutil_socket_t fd, short what, void *arg);

static struct watch *watch_of(const struct upstream *u, curl_socket_t fd)
{
        return (size_t)fd < u->watches_room ? u->watches[fd] : NULL;
}

static void watch_arm(struct watch *w, short flags)
{
        if (flags == w->armed)
                return;
        if (w->armed)
                event_del(w->event);
        w->armed = flags;
        if (!flags)
                return;
        event_assign(w->event, w->upstream->base, w->fd, (short)(flags | EV_PERSIST), on_socket, w);
        event_add(w->event, NULL);
}

static struct watch *watch_new(struct upstream *u, curl_socket_t fd, bool ours)
{
        if ((size_t)fd >= u->watches_room) {
                size_t room = 2 * (size_t)fd + 64;
                u->watches = xrealloc(u->watches, room * sizeof *u->watches);
                for (size_t i = u->watches_room; i < room; i++)
                        u->watches[i] = NULL;
                u->watches_room = room;
        }
        struct watch *w = xcalloc(1, sizeof *w);
        w->upstream = u;
        w->fd = fd;
        w->ours = ours;
        w->event = event_new(u->base, fd, EV_PERSIST, on_socket, w);
        u->watches[fd] = w;
        return w;
}

static void watch_free(struct watch *w)
{
        if (!w)
                return;
        watch_arm(w, 0);
        event_free(w->event);
        w->upstream->watches[w->fd] = NULL;
        free(w);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
        struct watch *w = arg;
        int flags = 0;

        what = (short)(what & w->wanted);
        if (!what) {
                watch_arm(w, w->wanted);
                return;
        }
        if (what & EV_READ)
                flags |= CURL_CSELECT_IN;
        if (what & EV_WRITE)
                flags |= CURL_CSELECT_OUT;
        act(w->upstream, fd, flags);
}

static int on_socket_wanted(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
        struct upstream *u = arg;
        struct watch *w = watch_of(u, fd);
        struct attempt *a = NULL;

        (void)socket_arg;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &a);
        attempt_stream_watch(a, fd, what);
        if (what == CURL_POLL_REMOVE && !w)
                return 0;
        if (!w)
                w = watch_new(u, fd, false);
        w->wanted = 0;
        if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                w->wanted |= EV_READ;
        if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
                w->wanted |= EV_WRITE;
        /* What is connecting waits to be able to write. libcurl's own time of that is known later,
         * when a proxy has done its part too. */
        if ((w->wanted & EV_READ) && w->ours && a)
                a->reached = true;
        w->connected = w->connected || (w->ours && (w->wanted & EV_READ));
        if (what == CURL_POLL_REMOVE && !w->connected)
                watch_free(w); /* closed behind our back: the resolver's, or it never connected */
        else if (w->wanted || (w->armed & EV_WRITE))
                watch_arm(w, w->wanted);
        return 0;
}

curl_socket_t upstream_open_socket(struct upstream *u, const struct curl_sockaddr *address)
{
        curl_socket_t fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                  address->protocol);

        if (fd < 0)
                return CURL_SOCKET_BAD;
        watch_free(watch_of(u, fd));
        watch_new(u, fd, true);
        return fd;
}

int upstream_close_socket(void *upstream, curl_socket_t fd)
{
        struct upstream *u = upstream;

        watch_free(watch_of(u, fd));
        return close(fd);
}

/* --- the pool --- */

struct upstream *upstream_new(struct event_base *base)
{
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return NULL;

        struct upstream *u = xcalloc(1, sizeof *u);
        u->base = base;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this process sets any */
        u->proxy_cas = getenv("SSL_CERT_FILE");
        list_init(&u->active);
        list_init(&u->idle);
        list_init(&u->deferred);
        u->timer_due = u->timer_at = USEC_MAX;
        u->timer = evtimer_new(base, on_timer, u);
        u->kick = event_new(base, -1, 0, on_kick, u);
        u->multi = curl_multi_init();
        u->share = curl_share_init();
        if (!u->timer || !u->kick || !u->multi || !u->share) {
                upstream_free(u);
                return NULL;
        }
        curl_multi_setopt(u->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
        curl_multi_setopt(u->multi, CURLMOPT_SOCKETDATA, u);
        curl_multi_setopt(u->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
        curl_multi_setopt(u->multi, CURLMOPT_TIMERDATA, u);
        curl_multi_setopt(u->multi, CURLMOPT_MAXCONNECTS, MAX_IDLE_CONNECTIONS);
        curl_share_setopt(u->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
        return u;
}

static void free_all(struct list *attempts)
{
        list_foreach_safe (it, attempts) {
                struct attempt *a = LIST_ENTRY_OF(it, struct attempt, link);
                bridge_free(a->bridge);
                a->bridge = NULL;
                upstream_remove(a);
                list_remove(&a->link);
                list_remove(&a->todo);
                attempt_free(a);
        }
}

void upstream_free(struct upstream *u)
{
        if (!u)
                return;
        upstream_free(u->bound);
        exit_memory_done(&u->exits);
        free_all(&u->active);
        free_all(&u->idle);
        if (u->multi)
                curl_multi_cleanup(u->multi);
        curl_share_cleanup(u->share);
        for (size_t i = 0; i < u->watches_room; i++)
                watch_free(u->watches[i]);
        free(u->watches);
        if (u->timer)
                event_free(u->timer);
        if (u->kick)
                event_free(u->kick);
        free(u);
        curl_global_cleanup();
}
