#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "core/http_date.h"

/* No year has more than four digits. */
static const usec_t latest = (usec_t)253402300800 * USEC_PER_SEC + 86400 * USEC_PER_SEC;
static const usec_t untouched = 4711;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct span text = fuzz_span(data, size);
        usec_t real = untouched;
        int r = http_date_parse(text, FUZZ_NOW_REAL, &real);
        FUZZ_CHECK(r == 0 ? real < latest : r == -EINVAL && real == untouched);
        real = untouched;
        r = http_date_parse_iso(text, &real);
        FUZZ_CHECK(r == 0 ? real < latest : r == -EINVAL && real == untouched);
        http_date_is_weekday(text);
        return 0;
}
