/* core/classify.h - what kind of answer is this? From its status, its header fields, and, where
 * those leave it open, the beginning of its body. */
#ifndef WEIR_CORE_CLASSIFY_H
#define WEIR_CORE_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "core/answer_class.h"

struct fields;

/* Bytes of a body that are looked at, content codings undone. */
#define CLASSIFY_BODY_MAX ((size_t)2048)

/* A rule of the configuration: it applies where all that it asks for is so. Texts are compared
 * without regard to the case of ASCII letters. */
struct classify_rule {
        const int *status;   /* one of these */
        size_t status_count; /* 0: any */
        struct span name;    /* there is a field of this name; empty: not asked for */
        struct span value;   /* whose value contains this */
        struct span body;    /* the body contains this; empty: not asked for */
        enum answer_class as;
};

/* What is known of an answer. */
struct classify_case {
        const struct classify_rule *rules; /* in order */
        size_t rule_count;
        int status;
        const struct fields *fields;
        bool wait_named;  /* answer_read found a wait, 0 included */
        bool has_body;    /* the body was looked at: this is all of it that will ever be known */
        struct span body; /* at most CLASSIFY_BODY_MAX */
};

/* Could classify_answer or classify_is_by_address say something else, knowing the body? */
bool classify_wants_body(const struct classify_case *c);

/*
 * The first of these that applies:
 *   1. a rule of the configuration;
 *   2. a challenge of a web application firewall: blocked, whatever the status, 429 included;
 *   3. 403 that names a wait, or whose body is text or JSON and speaks of a "rate limit":
 * throttled;
 *   4. the status alone, see classify_status.
 */
enum answer_class classify_answer(const struct classify_case *c);

/* Cloudflare's error 1015: throttled, and that goes by the address that asks, at whatever host of
 * theirs. */
bool classify_is_by_address(const struct classify_case *c);

/* 429, and 420, 430, 509, 529, 999 as some vendors say it: throttled. 503: overloaded. 401, 403,
 * 407: blocked. 408, 425, every other 5xx: failed. The rest: success. */
enum answer_class classify_status(int status);

#endif
