#include "proxy/peek.h"

#include <event2/buffer.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

#include "base/fields.h"
#include "base/xalloc.h"
#include "core/classify.h"

/* Windows of zlib, as inflateInit2 wants them. */
#define WINDOW_ZLIB 15
#define WINDOW_GZIP (15 + 16)
#define WINDOW_RAW (-15)

struct peek {
        struct upstream_answer head;
        struct evbuffer *body;
        struct event *clock;
        void (*on_late)(void *arg);
        void *arg;
        char text[CLASSIFY_BODY_MAX];
};

enum coding { CODING_NONE, CODING_GZIP, CODING_DEFLATE, CODING_OTHER };

static enum coding coding_named(struct span name)
{
        if (name.len == 0 || span_equal_nocase(name, span_of("identity")))
                return CODING_NONE;
        if (span_equal_nocase(name, span_of("gzip")) || span_equal_nocase(name, span_of("x-gzip")))
                return CODING_GZIP;
        if (span_equal_nocase(name, span_of("deflate")))
                return CODING_DEFLATE;
        return CODING_OTHER;
}

static enum coding coding_of(const struct fields *fields)
{
        enum coding all = CODING_NONE;
        struct span list, name;
        for (size_t i = 0; fields_find(fields, i, span_of("Content-Encoding"), &list, &i); i++)
                while (span_next(&list, ',', &name)) {
                        enum coding one = coding_named(name);
                        if (one != CODING_NONE)
                                all = all == CODING_NONE ? one : CODING_OTHER;
                }
        return all;
}

bool peek_can_read(const struct fields *fields)
{
        return coding_of(fields) != CODING_OTHER;
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct peek *p = arg;
        p->on_late(p->arg);
}

struct peek *peek_new(struct event_base *base, const struct upstream_answer *head,
                      void (*on_late)(void *arg), void *arg)
{
        const struct timeval late = usec_timeval(PEEK_TIME);
        struct peek *p = xmalloc(sizeof *p);
        p->head = *head;
        p->on_late = on_late;
        p->arg = arg;
        p->body = evbuffer_new();
        p->clock = evtimer_new(base, on_clock, p);
        if (!p->body || !p->clock)
                abort(); /* out of memory */
        evtimer_add(p->clock, &late);
        return p;
}

void peek_free(struct peek *p)
{
        if (!p)
                return;
        event_free(p->clock);
        evbuffer_free(p->body);
        free(p);
}

bool peek_take(struct peek *p, const void *data, size_t len)
{
        evbuffer_add(p->body, data, len);
        return evbuffer_get_length(p->body) >= CLASSIFY_BODY_MAX;
}

/* Undoes as much as fits into p->text; what is damaged or cut ends it. */
static size_t undo(struct peek *p, int window)
{
        size_t len = evbuffer_get_length(p->body);
        z_stream z = {
            .next_in = evbuffer_pullup(p->body, -1),
            .avail_in = (uInt)len,
            .next_out = (Bytef *)p->text,
            .avail_out = sizeof p->text,
        };
        if (inflateInit2(&z, window) != Z_OK)
                return 0;
        (void)inflate(&z, Z_SYNC_FLUSH);
        inflateEnd(&z);
        return sizeof p->text - z.avail_out;
}

struct span peek_text(struct peek *p)
{
        size_t len = 0;
        ev_ssize_t copied;
        switch (coding_of(p->head.fields)) {
        case CODING_NONE:
                copied = evbuffer_copyout(p->body, p->text, sizeof p->text);
                len = copied > 0 ? (size_t)copied : 0;
                break;
        case CODING_GZIP:
                len = undo(p, WINDOW_GZIP);
                break;
        case CODING_DEFLATE: /* zlib's by the standard, without its frame by those who misread it */
                len = undo(p, WINDOW_ZLIB);
                if (len == 0)
                        len = undo(p, WINDOW_RAW);
                break;
        case CODING_OTHER:
                break;
        }
        return (struct span){p->text, len};
}

const struct upstream_answer *peek_head(const struct peek *p)
{
        return &p->head;
}

struct evbuffer *peek_body(struct peek *p)
{
        return p->body;
}
