#include "egress/request_lines.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <curl/curl.h>

#include "base/xalloc.h"

#define KEPT_BYTES ((size_t)16 * 1024)

/*
 * What libcurl would add by itself is switched off by a line without a value. For Host that also
 * keeps libcurl from moving the field to the top and from spelling it its own way: it looks at the
 * first line of that name, finds it empty, writes no Host, and then sends ours where it stands.
 */
static char suppressed[][sizeof "Transfer-Encoding:"] = {
    "Host:", "Accept:", "Proxy-Connection:", "Expect:", "Transfer-Encoding:"};
/* Those that matter only where something is uploaded, or its length is not known. */
#define EXPECT 3
#define CODING 4
#define SUPPRESSED (sizeof suppressed / sizeof *suppressed) /* never written to */

#define LENGTH_ROOM (sizeof "Content-Length: 18446744073709551615")

static bool is_sendable(const struct field *f)
{
        if (f->name.len == 0)
                return false;
        for (size_t i = 0; i < f->name.len; i++) {
                unsigned char c = (unsigned char)f->name.ptr[i];
                if (c <= ' ' || c == 0x7f || c == ':' || c == ';')
                        return false;
        }
        for (size_t i = 0; i < f->value.len; i++) {
                unsigned char c = (unsigned char)f->value.ptr[i];
                if ((c < ' ' && c != '\t') || c == 0x7f)
                        return false;
        }
        return !span_equal_nocase(f->name, span_of("transfer-encoding"));
}

static bool is_length(struct span value, size_t body_len)
{
        size_t n = 0;

        for (size_t i = 0; i < value.len; i++) {
                unsigned digit = (unsigned)(value.ptr[i] - '0');
                if (digit > 9 || n > (SIZE_MAX - digit) / 10)
                        return false;
                n = 10 * n + digit;
        }
        return value.len > 0 && n == body_len;
}

static void grow(struct request_lines *r, size_t size)
{
        if (size <= r->room)
                return;
        free(r->block);
        r->room = 2 * size;
        r->block = xmalloc(r->room);
}

/* "Name: value", or "Name;" which libcurl sends as "Name:". */
static char *write_line(char *at, const struct field *f)
{
        memcpy(at, f->name.ptr, f->name.len);
        at += f->name.len;
        if (f->value.len == 0) {
                *at++ = ';';
        } else {
                *at++ = ':';
                *at++ = ' ';
                memcpy(at, f->value.ptr, f->value.len);
                at += f->value.len;
        }
        *at++ = '\0';
        return at;
}

/* libcurl copies nothing and changes nothing of the list. */
static void put(struct curl_slist *node, char *line)
{
        node->data = line;
        node->next = node + 1;
}

bool request_lines_fill(struct request_lines *r, const struct fields *fields, bool has_body,
                        size_t body_len, bool stream)
{
        bool sent[SUPPRESSED] = {[EXPECT] = body_len == 0 && !stream, [CODING] = !stream};
        bool length = false;
        size_t nodes = fields->count + SUPPRESSED + 1;

        grow(r, nodes * sizeof(struct curl_slist) + fields->text_len + 4 * fields->count +
                    LENGTH_ROOM);
        r->list = r->block;
        struct curl_slist *node = r->list + SUPPRESSED;
        char *text = (char *)(r->list + nodes);
        for (size_t i = 0; i < fields->count; i++) {
                struct field f = fields_at(fields, i);
                f.value = span_trim(f.value);
                if (!is_sendable(&f))
                        return false;
                for (size_t s = 1; s < SUPPRESSED; s++)
                        sent[s] |= span_equal_nocase(
                            f.name, (struct span){suppressed[s], strlen(suppressed[s]) - 1});
                if (span_equal_nocase(f.name, span_of("content-length"))) {
                        if (length || !is_length(f.value, body_len))
                                return false;
                        length = true;
                }
                put(node++, text);
                text = write_line(text, &f);
        }
        if (has_body && !length) {
                put(node++, text);
                snprintf(text, LENGTH_ROOM, "Content-Length: %zu", body_len);
        }
        /* The places at the front are filled from behind, as many as are needed. */
        struct curl_slist *front = r->list + SUPPRESSED;
        for (size_t s = 0; s < SUPPRESSED; s++)
                if (!sent[s])
                        put(--front, suppressed[s]);
        node[-1].next = NULL;
        r->list = front;
        return true;
}

void request_lines_trim(struct request_lines *r)
{
        if (r->room > KEPT_BYTES)
                request_lines_done(r);
}

void request_lines_done(struct request_lines *r)
{
        free(r->block);
        *r = (struct request_lines){0};
}
