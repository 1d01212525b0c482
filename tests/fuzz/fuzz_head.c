#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "proxy/intake.h"
#include "proxy/steering.h"
#include "proxy/target.h"

enum { MAX_BODY = 1000, MAX_HEADER = 4000 };

/* However the bytes arrive, the head ends at the same place. */
static bool feed(struct head *h, struct span text, size_t step)
{
        for (size_t at = 0; at < text.len; at += step) {
                size_t n = text.len - at < step ? text.len - at : step;
                size_t used;
                if (head_feed(h, text.ptr + at, n, &used))
                        return true;
        }
        return false;
}

static void check_fault(const struct message_fault *f)
{
        FUZZ_CHECK(f->status >= 400 && f->status <= 599 && f->text && f->text[0] && f->close);
}

static void read_target(struct span text)
{
        char *url = xspandup(text);
        struct target t;
        if (!target_read(&t, url)) {
                FUZZ_CHECK(t.host && t.host[0] && t.port <= 65535 && t.path[0] == '/');
                for (const char *c = t.host; *c; c++)
                        FUZZ_CHECK(*c < 'A' || *c > 'Z');
        }
        target_done(&t);
        free(url);
}

static void read_steering(struct span text)
{
        struct fields fields;
        struct steering s;
        steering_init(&s);
        fuzz_fields(text, &fields);
        for (size_t i = 0; i < fields.count; i++) {
                const char *fault = NULL;
                struct field f = fields_at(&fields, i);
                if (!steering_take(&s, f.name, f.value, &fault) || fault)
                        continue;
                FUZZ_CHECK(s.priority <= 9 && s.deadline > 0);
                FUZZ_CHECK(s.session.len <= STEERING_MAX_SESSION);
        }
        fields_done(&fields);
}

/* The status of the fault that is found; 0: none. */
static int take_in(struct span text, size_t step, struct intake *ret)
{
        struct message_fault fault = {0};
        *ret = (struct intake){0};
        for (size_t at = 0; at < text.len; at += step) {
                size_t n = text.len - at < step ? text.len - at : step;
                if (!intake_feed(ret, text.ptr + at, n, MAX_HEADER, MAX_BODY, &fault)) {
                        check_fault(&fault);
                        return fault.status;
                }
        }
        return 0;
}

/* What is found wrong, and where a request ends, does not hang on how it is cut. */
static void read_requests(struct span text)
{
        struct intake whole, pieces;
        int status = take_in(text, text.len ? text.len : 1, &whole);
        FUZZ_CHECK(take_in(text, 7, &pieces) == status || status == 431 || status == 400);
        FUZZ_CHECK(status ||
                   (whole.phase == pieces.phase && whole.chunked.state == pieces.chunked.state &&
                    whole.chunked.total == pieces.chunked.total &&
                    whole.chunked.total <= MAX_BODY));
        intake_reset(&whole);
        intake_reset(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct span text = fuzz_span(data, size);
        struct head whole = {0}, pieces = {0};
        struct message_fault fault;
        struct head_facts facts;
        bool ended = feed(&whole, text, size ? size : 1);
        FUZZ_CHECK(feed(&pieces, text, 3) == ended);
        FUZZ_CHECK(span_equal((struct span){whole.text, whole.len},
                              (struct span){pieces.text, pieces.len}));
        struct span head = {whole.text, whole.len};
        if (ended && !head_check(head, MAX_BODY, &facts, &fault))
                check_fault(&fault);
        if (ended) { /* between the method and the version */
                struct span rest = head, word;
                span_next(&rest, ' ', &word);
                if (span_next(&rest, ' ', &word))
                        read_target(word);
        }
        read_requests(text);
        read_target(text);
        read_steering(text);
        head_clear(&whole);
        head_clear(&pieces);
        return 0;
}
