/* tests/fuzz/fuzz.h - what each fuzz target offers: to libFuzzer, and to replay.c. */
#ifndef WEIR_TESTS_FUZZ_FUZZ_H
#define WEIR_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"
#include "base/span.h"

/* Feeds one input to the code under test and aborts where that breaks a promise of its header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The wall-clock time of every target: a run must not depend on when it happens. */
#define FUZZ_NOW_REAL ((usec_t)1790000000 * 1000000)

static inline struct span fuzz_span(const uint8_t *data, size_t size)
{
        return (struct span){(const char *)data, size};
}

#define FUZZ_CHECK(condition)             \
        do {                              \
                if (!(condition))         \
                        __builtin_trap(); \
        } while (0)

/* Lines "Name: value" as the fields of an answer, spaces around the value taken off as weir's own
 * readers of heads do. */
static inline void fuzz_fields(struct span text, struct fields *ret)
{
        fields_init(ret);
        for (struct span rest = text, line; span_next(&rest, '\n', &line);) {
                struct span name;
                if (span_next(&line, ':', &name) && line.ptr)
                        fields_add(ret, name, span_trim(line));
        }
}

#endif
