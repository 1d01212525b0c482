#include "tests/fuzz/fuzz.h"

#include "core/answer.h"
#include "core/quota.h"
#include "core/quota_bound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fields fields;
        struct answer answer;
        struct quota quota;
        struct quota_bound bound = {0};
        fuzz_fields(fuzz_span(data, size), &fields);
        quota_read(&fields, FUZZ_NOW_REAL, &quota);
        FUZZ_CHECK(quota.count <= QUOTA_MAX_WINDOWS);
        for (size_t i = 0; i < quota.count; i++) {
                const struct quota_window *w = &quota.windows[i];
                FUZZ_CHECK(w->limit == 0 || w->remaining <= w->limit);
                FUZZ_CHECK(w->reset <= QUOTA_RESET_MAX || w->reset == USEC_MAX);
        }
        usec_t hold = quota_hold(&quota);
        FUZZ_CHECK(hold == 0 || hold >= QUOTA_HOLD_MIN);
        quota_bound_read(&bound, &quota, 3, USEC_PER_SEC / 10, USEC_PER_SEC);
        FUZZ_CHECK(bound.rate >= 0 && bound.rate <= 1e30);
        answer_read(&fields, FUZZ_NOW_REAL, &answer);
        fields_done(&fields);
        return 0;
}
