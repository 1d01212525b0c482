#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>

#include "core/scope_key.h"

/*
 * Lines: a list of parts as in the configuration, then host, domain, rule, client, session, path
 * and the digests of header fields.
 */
struct input {
        struct scope_part parts[SCOPE_MAX_PARTS];
        size_t count;
        struct span digests[SCOPE_MAX_PARTS];
        struct scope_subject subject;
};

static struct span line(struct span *rest)
{
        struct span s;
        return span_next(rest, '\n', &s) ? s : (struct span){"", 0};
}

static void read_input(struct span rest, struct input *in)
{
        struct span list = line(&rest);
        struct span *const texts[] = {&in->subject.host,   &in->subject.domain,  &in->subject.rule,
                                      &in->subject.client, &in->subject.session, &in->subject.path};
        for (struct span part; in->count < SCOPE_MAX_PARTS && span_next(&list, ',', &part);) {
                struct scope_part *to = &in->parts[in->count];
                int r = scope_part_parse(part, to);
                FUZZ_CHECK(r == 0 || r == -EINVAL || r == -ENOTSUP);
                if (r < 0)
                        continue;
                FUZZ_CHECK(scope_part_name(to->kind)[0] != '\0');
                FUZZ_CHECK(to->kind != SCOPE_PATH ||
                           (to->segments >= 1 && to->segments <= SCOPE_MAX_SEGMENTS));
                FUZZ_CHECK(to->kind != SCOPE_HEADER || to->name.len > 0);
                in->count++;
        }
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                *texts[i] = line(&rest);
        for (size_t i = 0; i < SCOPE_MAX_PARTS; i++)
                in->digests[i] = line(&rest);
        in->subject.header_digests = in->digests;
        in->subject.port = 8080;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input in = {.count = 0};
        read_input(fuzz_span(data, size), &in);
        char *key = scope_key_new(in.parts, in.count, &in.subject);
        FUZZ_CHECK(key[0] != '\0');
        size_t spaces = 0;
        for (const char *c = key; *c; c++) {
                FUZZ_CHECK(*c >= ' ' && *c <= '~');
                spaces += *c == ' ';
        }
        FUZZ_CHECK(spaces + 1 <= (in.count ? in.count : 1)); /* between parts alone */
        free(key);
        return 0;
}
