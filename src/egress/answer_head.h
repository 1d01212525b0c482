/* egress/answer_head.h - collects the head of the final answer from the lines that libcurl hands
 * over. */
#ifndef WEIR_EGRESS_ANSWER_HEAD_H
#define WEIR_EGRESS_ANSWER_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fields.h"
#include "base/span.h"
#include "egress/upstream.h"

/* Interim answers (1xx) count too: a host cannot fill memory, or keep us busy, with them. */
#define ANSWER_HEAD_MAX_BYTES ((size_t)256 * 1024)

struct answer_head {
        char *text; /* the lines of the head under way, owned */
        size_t len, room;
        size_t seen; /* bytes of all lines, interim answers included */
        int status;
        struct span reason; /* in text */
        struct fields fields;
        bool done;
        bool may_switch; /* 101 is an answer too: it was asked for; kept by the reset */
};

/* Empties it for the next answer; keeps its memory unless that has become large. All zeroes are a
 * fine start. */
void answer_head_reset(struct answer_head *h);
void answer_head_done(struct answer_head *h);

/*
 * Takes one line, line end included. h->done turns true with the empty line that ends the final
 * head; status, reason and fields are filled then, until the next reset.
 *
 * Folded lines are joined (RFC 9112, 5.2). Where there is a Transfer-Encoding, Content-Length
 * fields are left out, and of several equal ones all but the first (RFC 9112, 6.3); lines that are
 * no fields are left out too.
 *
 * Returns UPSTREAM_OK, or what is wrong with the answer: too large, 101 although no upgrade was
 * asked for, lengths that contradict each other, bytes that no field may have.
 */
enum upstream_error answer_head_line(struct answer_head *h, const char *line, size_t len);

#endif
