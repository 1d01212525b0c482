#include "tests/unit/upstream_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/unit.h"

/* --- names, without a resolver --- */

pthread_mutex_t slow_lock = PTHREAD_MUTEX_INITIALIZER;

static struct addrinfo *address(const char *ip, unsigned port, struct addrinfo *next)
{
        struct addrinfo *ai = calloc(1, sizeof *ai + sizeof(struct sockaddr_in6));
        struct sockaddr_in *in = (struct sockaddr_in *)(ai + 1);

        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)port);
        in->sin_addr.s_addr = 0;
        for (unsigned i = 0, n = 0; i < 4; i++, ip += n) {
                unsigned byte = (unsigned)strtoul(ip, NULL, 10);
                in->sin_addr.s_addr = htonl(ntohl(in->sin_addr.s_addr) << 8 | byte);
                n = (unsigned)strcspn(ip, ".") + 1;
        }
        *ai = (struct addrinfo){.ai_family = AF_INET,
                                .ai_socktype = SOCK_STREAM,
                                .ai_addrlen = sizeof *in,
                                .ai_addr = (struct sockaddr *)in,
                                .ai_next = next};
        return ai;
}

/* In place of libc's. NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
        unsigned port = service ? (unsigned)strtoul(service, NULL, 10) : 0;

        (void)hints;
        if (strcmp(name, "slow.test") == 0) {
                pthread_mutex_lock(&slow_lock);
                pthread_mutex_unlock(&slow_lock);
        } else if (strcmp(name, "two.test") == 0) {
                *ret = address("127.0.0.2", port, address("127.0.0.1", port, NULL));
                return 0;
        } else if (strcmp(name, "one.test") == 0) {
                *ret = address("127.0.0.1", port, NULL);
                return 0;
        }
        return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *ai)
{
        while (ai) {
                struct addrinfo *next = ai->ai_next;
                free(ai);
                ai = next;
        }
}

/* --- a client that writes down what it is told --- */

struct event_base *base;
struct upstream *upstream;
static struct fields fields;
struct cidr_set deny, allow;
struct raw_origin origin;

static void act(struct seen *s, enum then what)
{
        if (what == CANCEL || what == DISCARD)
                s->finished = true;
        if (what == CANCEL)
                attempt_cancel(s->attempt);
        if (what == DISCARD)
                attempt_discard(s->attempt);
}

static void on_head(void *arg, const struct upstream_answer *answer)
{
        struct seen *s = arg;
        int n = snprintf(s->head, sizeof s->head, "%.*s\n", (int)answer->reason.len,
                         answer->reason.ptr ? answer->reason.ptr : "");

        assert_false(s->finished);
        s->heads++;
        s->status = answer->status;
        for (size_t i = 0; i < answer->fields->count; i++) {
                struct field f = fields_at(answer->fields, i);
                n += snprintf(s->head + n, sizeof s->head - (size_t)n, "%.*s: %.*s\n",
                              (int)f.name.len, f.name.ptr, (int)f.value.len, f.value.ptr);
                assert_in_range(n, 0, sizeof s->head - 1);
        }
        act(s, s->on_head);
}

static enum upstream_flow on_body(void *arg, const void *data, size_t len)
{
        struct seen *s = arg;

        assert_false(s->finished);
        s->body_first |= s->heads == 0;
        if (s->on_body == PAUSE) {
                s->on_body = GO_ON;
                s->finished = true; /* until resumed */
                return UPSTREAM_PAUSE;
        }
        if (s->body_len + len < sizeof s->body)
                memcpy(s->body + s->body_len, data, len);
        s->body_len += len;
        act(s, s->on_body);
        return UPSTREAM_MORE;
}

static void on_end(void *arg, const struct upstream_end *end)
{
        struct seen *s = arg;

        assert_false(s->finished);
        s->finished = true;
        s->ends++;
        s->end = *end;
        snprintf(s->detail, sizeof s->detail, "%s", end->detail);
        if (s->after_end)
                s->after_end(s);
}

static const struct upstream_handlers handlers = {on_head, on_body, on_end};

struct upstream_request request(const char *method, const char *target, const char *lines)
{
        struct upstream_request r = {.host = span_of("127.0.0.1"),
                                     .port = origin.port,
                                     .method = span_of(method),
                                     .target = span_of(target),
                                     .fields = &fields,
                                     .replayable = strcmp(method, "POST") != 0,
                                     .deny = &deny,
                                     .allow = &allow,
                                     .timeouts = {.connect = 5 * USEC_PER_SEC,
                                                  .first_byte = 5 * USEC_PER_SEC,
                                                  .read = 5 * USEC_PER_SEC}};
        struct span rest = span_of(lines), line;

        fields_clear(&fields);
        while (rest.len && span_next(&rest, '\n', &line)) {
                const char *colon = memchr(line.ptr, ':', line.len);
                size_t n = (size_t)(colon - line.ptr);
                fields_add(&fields, (struct span){line.ptr, n},
                           span_trim((struct span){colon + 1, line.len - n - 1}));
        }
        return r;
}

static struct event *patience, *tick;
static bool gone;

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        (void)arg;
        gone = true;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        (void)arg;
}

void turn_begin(void)
{
        struct timeval long_time = {10, 0}, often = {0, 2000};

        gone = false;
        patience = evtimer_new(base, on_patience, NULL);
        tick = event_new(base, -1, EV_PERSIST, on_tick, NULL);
        event_add(patience, &long_time);
        event_add(tick, &often);
}

void turn(void)
{
        event_base_loop(base, EVLOOP_ONCE);
        assert_false(gone);
}

void turn_end(void)
{
        event_free(patience);
        event_free(tick);
}

void start(struct seen *s, const struct upstream_request *r)
{
        s->attempt = upstream_start(upstream, r, &handlers, s);
        assert_int_equal(s->heads + s->ends, 0); /* not from within the call */
}

void run(struct seen *s, const struct upstream_request *r)
{
        start(s, r);
        TURN_WHILE(s->ends == 0);
}

struct evbuffer *body_of(const char *text)
{
        struct evbuffer *b = evbuffer_new();

        /* In pieces, since a body that came in pieces is kept in pieces. */
        size_t len = strlen(text), piece = 7 + len / 100;
        for (size_t i = 0; i < len; i += piece)
                evbuffer_add_reference(b, text + i, len - i < piece ? len - i : piece, NULL, NULL);
        return b;
}

unsigned open_files(void)
{
        unsigned n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static unsigned files_before;

int set_up(void **state)
{
        (void)state;
        files_before = open_files();
        base = event_base_new();
        upstream = upstream_new(base);
        return 0;
}

int tear_down(void **state)
{
        (void)state;
        upstream_free(upstream);
        event_base_loop(base, EVLOOP_NONBLOCK); /* what bufferevents have put off holds memory */
        event_base_free(base);
        fields_done(&fields);
        cidr_set_done(&deny);
        cidr_set_done(&allow);
        assert_int_equal(open_files(), files_before);
        return 0;
}
