#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "core/limiter_state.h"
#include "runtime/learned.h"

static const struct limiter_policy policy = {
    .start = 4,
    .floor = 1,
    .ceiling = 32,
    .max_hold = 900 * USEC_PER_SEC,
    .aimd = {.increase = 1, .decrease = .5},
    .breaker = {.trip = 6, .cooldown = 30 * USEC_PER_SEC},
};

/* Whatever a file says, a limiter made of it works: it lets a request go within a day. */
static void use(const struct limiter_memory *m)
{
        struct limiter_policy p = policy;
        struct limiter l;
        struct prng prng;
        struct limiter_pass pass;
        usec_t now = 7 * USEC_PER_SEC, end = now + 86400 * USEC_PER_SEC;
        p.algorithm = m->algorithm;
        prng_init(&prng, 1);
        limiter_import(&l, &p, m, now);
        for (int i = 0; i < 8; i++) {
                for (usec_t wake = 0; !limiter_may_go(&l, now, &wake); now = wake)
                        FUZZ_CHECK(wake > now && wake < end);
                limiter_go(&l, true, now, &prng, &pass);
                limiter_answer(&l, &pass,
                               &(struct answer){.class = i % 3 ? ANSWER_SUCCESS : ANSWER_THROTTLED},
                               now += 1000, &prng);
                limiter_finish(&l, &pass);
                struct limiter_view view;
                limiter_look(&l, now, &view);
                FUZZ_CHECK(isfinite(view.rate) && view.rate >= 0);
                FUZZ_CHECK(view.concurrency >= 1 && view.concurrency <= policy.ceiling);
        }
}

/* What was read is written again, and that is read again. */
static void rewrite(const struct learned_scope *s)
{
        struct learned again;
        char *why = NULL, *line = learned_line(s->key, &s->memory, FUZZ_NOW_REAL);
        FUZZ_CHECK(line);
        char *text = xasprintf("%s%s%s", learned_head, line, learned_tail);
        FUZZ_CHECK(learned_parse(span_of(text), FUZZ_NOW_REAL, &again, &why) == 0);
        FUZZ_CHECK(again.count == 1 && again.unreadable == 0);
        FUZZ_CHECK(strcmp(again.scopes[0].key, s->key) == 0);
        FUZZ_CHECK(again.scopes[0].memory.slots == s->memory.slots);
        learned_done(&again);
        free(text);
        free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct learned learned;
        char *why = NULL;
        int r = learned_parse(fuzz_span(data, size), FUZZ_NOW_REAL, &learned, &why);
        if (r < 0) {
                FUZZ_CHECK((r == -EINVAL || r == -ENOTSUP) && why);
                free(why);
                return 0;
        }
        for (size_t i = 0; i < learned.count; i++) {
                use(&learned.scopes[i].memory);
                rewrite(&learned.scopes[i]);
        }
        learned_done(&learned);
        return 0;
}
