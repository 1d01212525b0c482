#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "core/retry_after.h"

static const usec_t untouched = 4711;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fields fields;
        usec_t wait = untouched;
        int r = retry_after_parse((const char *)data, size, FUZZ_NOW_REAL, &wait);
        FUZZ_CHECK(r == 0 || (r == -EINVAL && wait == untouched));
        fuzz_fields(fuzz_span(data, size), &fields);
        wait = untouched;
        r = retry_after_read(&fields, FUZZ_NOW_REAL, &wait);
        FUZZ_CHECK(r == 0 || ((r == -ENOENT || r == -EINVAL) && wait == untouched));
        fields_done(&fields);
        return 0;
}
