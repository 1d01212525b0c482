#include "tests/fuzz/fuzz.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "config/config.h"
#include "core/answer.h"
#include "core/classify.h"
#include "proxy/peek.h"

/*
 * A configuration, a form feed, and an answer: its status, its fields, an empty line, its body.
 */
struct input {
        struct span config, fields, body;
        int status;
};

static struct span before(struct span *rest, const char *mark)
{
        const char *at = rest->len ? memmem(rest->ptr, rest->len, mark, strlen(mark)) : NULL;
        size_t n = at ? (size_t)(at - rest->ptr) : rest->len;
        struct span s = {rest->ptr, n};
        size_t skip = at ? n + strlen(mark) : n;
        *rest = (struct span){rest->ptr + skip, rest->len - skip};
        return s;
}

static struct input read_input(struct span rest)
{
        struct input in = {.config = before(&rest, "\f")};
        struct span status = before(&rest, "\n");
        for (size_t i = 0; i < status.len && i < 3; i++)
                in.status =
                    in.status * 10 +
                    (status.ptr[i] >= '0' && status.ptr[i] <= '9' ? status.ptr[i] - '0' : 0);
        in.fields = before(&rest, "\n\n");
        in.body = rest;
        return in;
}

static void on_late(void *arg)
{
        (void)arg;
}

static void judge(struct classify_case *c, const struct answer *read)
{
        struct answer a = *read;
        enum answer_class class = classify_answer(c);
        answer_judge(&a, c);
        FUZZ_CHECK(answer_class_name(class)[0] && answer_class_name(a.class)[0]);
        FUZZ_CHECK(c->rule_count > 0 || c->fields->count > 0 || c->has_body ||
                   class == classify_status(c->status));
}

/* The body is only looked at where it can matter; so nothing may change where it is said not to. */
static void look_at_body(struct classify_case *c, const struct answer *read, struct span body)
{
        static struct event_base *base;
        if (!base)
                base = event_base_new();
        enum answer_class without = classify_answer(c);
        bool wanted = classify_wants_body(c);
        struct upstream_answer head = {.status = c->status, .fields = c->fields};
        bool readable = peek_can_read(c->fields);
        struct peek *p = peek_new(base, &head, on_late, NULL);
        for (size_t at = 0, n = 1; at < body.len; at += n, n = 2 * n) {
                n = n < body.len - at ? n : body.len - at;
                if (peek_take(p, body.ptr + at, n))
                        break;
        }
        c->has_body = true;
        c->body = peek_text(p);
        FUZZ_CHECK(c->body.len <= CLASSIFY_BODY_MAX);
        FUZZ_CHECK(readable || c->body.len == 0);
        FUZZ_CHECK(wanted || classify_answer(c) == without);
        judge(c, read);
        peek_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input in = read_input(fuzz_span(data, size));
        struct config *config = NULL;
        struct config_faults faults = {0};
        struct fields fields;
        struct answer answer;
        if (config_parse(in.config, &config, &faults) < 0) {
                config_faults_done(&faults);
                return 0;
        }
        fuzz_fields(in.fields, &fields);
        answer_read(&fields, FUZZ_NOW_REAL, &answer);
        struct classify_case c = {
            .rules = config->defaults.classify.list,
            .rule_count = config->defaults.classify.count,
            .status = in.status,
            .fields = &fields,
            .wait_named = answer.wait_named,
        };
        judge(&c, &answer);
        look_at_body(&c, &answer, in.body);
        fields_done(&fields);
        config_unref(config);
        return 0;
}
