#include "tests/unit/unit.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/fields.h"
#include "core/classify.h"
#include "proxy/peek.h"

static const char text[] = "Please slow down, you are too fast.";

/* One peek at an answer of a coding. */
struct world {
        struct event_base *base;
        struct fields fields;
        struct peek *peek;
        unsigned late;
};

static void on_late(void *arg)
{
        struct world *w = arg;
        w->late++;
        event_base_loopbreak(w->base);
}

static void begin(struct world *w, const char *coding)
{
        *w = (struct world){.base = event_base_new()};
        if (coding)
                fields_add(&w->fields, span_of("Content-Encoding"), span_of(coding));
        struct upstream_answer head = {.status = 403, .fields = &w->fields};
        w->peek = peek_new(w->base, &head, on_late, w);
        assert_int_equal(peek_head(w->peek)->status, 403);
}

static void end(struct world *w)
{
        peek_free(w->peek);
        fields_done(&w->fields);
        event_base_free(w->base);
}

/* Compresses; window as deflateInit2 has it. The caller frees it. */
static unsigned char *code(const void *data, size_t len, int window, size_t *ret_len)
{
        size_t room = len + 1000;
        unsigned char *out = malloc(room);
        assert_non_null(out);
        z_stream z = {0};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
        z.next_in = (Bytef *)data;
        z.avail_in = (uInt)len;
        z.next_out = out;
        z.avail_out = (uInt)room;
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        *ret_len = room - z.avail_out;
        deflateEnd(&z);
        return out;
}

static const struct {
        const char *name;
        int window; /* 0: not coded */
        bool can_read;
} codings[] = {
    {NULL, 0, true},
    {"", 0, true},
    {"identity", 0, true},
    {"gzip", 15 + 16, true},
    {"X-GZip", 15 + 16, true},
    {"identity, gzip", 15 + 16, true},
    {"deflate", 15, true},
    {"Deflate", -15, true}, /* without its frame */
    {"br", 15, false},
    {"zstd", 15, false},
    {"gzip, gzip", 15 + 16, false},
    {"gzip, br", 15 + 16, false},
};

static void undoes_codings(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(codings); i++) {
                struct world w;
                size_t len = strlen(text);
                unsigned char *coded = NULL;
                begin(&w, codings[i].name);
                if (codings[i].window)
                        coded = code(text, len, codings[i].window, &len);
                const void *data = coded ? (const void *)coded : text;
                if (peek_can_read(&w.fields) != codings[i].can_read)
                        fail_msg("%s", codings[i].name);
                assert_false(peek_take(w.peek, data, len));
                struct span got = peek_text(w.peek);
                if (span_equal(got, span_of(text)) != codings[i].can_read)
                        fail_msg("%s: %.*s", codings[i].name, (int)got.len, got.ptr);
                /* what goes to the client is what came */
                struct evbuffer *body = peek_body(w.peek);
                assert_int_equal(evbuffer_get_length(body), len);
                assert_memory_equal(evbuffer_pullup(body, -1), data, len);
                free(coded);
                end(&w);
        }
}

static void ends_with_enough(void **state)
{
        (void)state;
        char half[CLASSIFY_BODY_MAX / 2];
        struct world w;
        begin(&w, NULL);
        memset(half, 'x', sizeof half);
        assert_false(peek_take(w.peek, half, sizeof half));
        assert_false(peek_take(w.peek, half, sizeof half - 1));
        assert_true(peek_take(w.peek, "yz", 2));
        assert_int_equal(peek_text(w.peek).len, CLASSIFY_BODY_MAX);
        assert_int_equal(peek_text(w.peek).ptr[CLASSIFY_BODY_MAX - 1], 'y');
        assert_int_equal(evbuffer_get_length(peek_body(w.peek)), CLASSIFY_BODY_MAX + 1);
        end(&w);
}

/* A little that unpacks to a lot is unpacked as far as it is looked at. */
static void stands_bombs(void **state)
{
        (void)state;
        const size_t size = (size_t)16 << 20;
        char *zeros = calloc(1, size);
        assert_non_null(zeros);
        size_t len;
        unsigned char *coded = code(zeros, size, 15 + 16, &len);
        struct world w;
        begin(&w, "gzip");
        assert_true(peek_take(w.peek, coded, len));
        assert_int_equal(peek_text(w.peek).len, CLASSIFY_BODY_MAX);
        end(&w);
        free(coded);
        free(zeros);
}

static void reads_what_it_can(void **state)
{
        (void)state;
        static const char *const names[] = {"gzip", "deflate"};
        for (size_t i = 0; i < COUNT_OF(names); i++) {
                size_t len;
                char random[4000];
                struct world w;
                /* cut off in the midst: the part before is there */
                for (size_t k = 0; k < sizeof random; k++)
                        random[k] = (char)(k * k * 7919 >> 5);
                unsigned char *coded = code(random, sizeof random, i ? 15 : 15 + 16, &len);
                begin(&w, names[i]);
                peek_take(w.peek, coded, 600);
                struct span got = peek_text(w.peek);
                assert_in_range(got.len, 1, CLASSIFY_BODY_MAX);
                assert_memory_equal(got.ptr, random, got.len);
                end(&w);
                free(coded);
                /* not coded at all, whatever it says; and nothing */
                begin(&w, names[i]);
                assert_int_equal(peek_text(w.peek).len, 0);
                peek_take(w.peek, "!!!!", 4);
                (void)peek_text(w.peek);
                assert_int_equal(evbuffer_get_length(peek_body(w.peek)), 4);
                end(&w);
        }
}

static void does_not_wait_for_ever(void **state)
{
        (void)state;
        struct world w;
        begin(&w, NULL);
        peek_take(w.peek, "x", 1);
        event_base_dispatch(w.base); /* until the clock of the peek ends it */
        assert_int_equal(w.late, 1);
        assert_int_equal(peek_text(w.peek).len, 1);
        end(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(undoes_codings),         cmocka_unit_test(ends_with_enough),
            cmocka_unit_test(stands_bombs),           cmocka_unit_test(reads_what_it_can),
            cmocka_unit_test(does_not_wait_for_ever),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
