#include "egress/answer_head.h"

#include <stdlib.h>

#include "base/http_text.h"
#include "base/xalloc.h"

/* An idle handle keeps no more than this. */
#define KEPT_BYTES ((size_t)16 * 1024)

void answer_head_reset(struct answer_head *h)
{
        if (h->room > KEPT_BYTES) {
                free(h->text);
                h->text = NULL;
                h->room = 0;
        }
        if (h->fields.text_room > KEPT_BYTES)
                fields_done(&h->fields);
        h->len = 0;
        h->seen = 0;
        h->status = 0;
        h->reason = (struct span){NULL, 0};
        h->done = false;
        fields_clear(&h->fields);
}

void answer_head_done(struct answer_head *h)
{
        free(h->text);
        fields_done(&h->fields);
        *h = (struct answer_head){0};
}

static void append(struct answer_head *h, const char *line, size_t len)
{
        if (h->len + len > h->room) {
                h->room = 2 * (h->len + len);
                if (h->room < 1024)
                        h->room = 1024;
                h->text = xrealloc(h->text, h->room);
        }
        memcpy(h->text + h->len, line, len);
        h->len += len;
}

/* Controls in a phrase become spaces: some clients take a lone CR for the end of the line. */
static void blank_controls(struct answer_head *h, struct span part)
{
        char *text = h->text + (part.ptr - h->text);
        for (size_t i = 0; i < part.len; i++)
                if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
                        text[i] = ' ';
}

/* "HTTP/1.1 200 OK": libcurl has checked its form. */
static void parse_status_line(struct answer_head *h, struct span line)
{
        const char *at = memchr(line.ptr, ' ', line.len);
        struct span rest = {NULL, 0};

        h->status = 0;
        if (at)
                rest = (struct span){at, line.len - (size_t)(at - line.ptr)};
        rest = span_trim(rest);
        size_t n = 0;
        for (; n < 3 && n < rest.len && rest.ptr[n] >= '0' && rest.ptr[n] <= '9'; n++)
                h->status = 10 * h->status + (rest.ptr[n] - '0');
        h->reason = span_trim((struct span){rest.ptr + n, rest.len - n});
        blank_controls(h, h->reason);
}

/* Is the length a number, and the same as any before? A list of equal ones ("5, 5") is sent by
 * faulty servers and means that one. */
static bool length_agrees(struct span value, struct span *length)
{
        struct span item;

        if (value.len == 0)
                return false;
        while (span_next(&value, ',', &item)) {
                if (item.len == 0)
                        return false;
                for (size_t i = 0; i < item.len; i++)
                        if (item.ptr[i] < '0' || item.ptr[i] > '9')
                                return false;
                if (length->ptr && !span_equal(*length, item))
                        return false;
                *length = item;
        }
        return true;
}

/* libcurl undoes chunks and passes on what any other coding made of the body, while the field that
 * says so ends at this hop (RFC 9112, 6.1). */
static bool is_readable_coding(const struct answer_head *h, struct span value)
{
        struct span before;

        return span_equal_nocase(value, span_of("chunked")) &&
               !fields_find(&h->fields, 0, span_of("transfer-encoding"), &before, NULL);
}

static enum upstream_error parse_fields(struct answer_head *h, struct span rest)
{
        struct span length = {NULL, 0}, coding;

        while (rest.len) {
                struct span line = http_text_line(&rest);
                const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
                if (!colon)
                        continue;
                struct span name = span_trim((struct span){line.ptr, (size_t)(colon - line.ptr)});
                struct span value =
                    span_trim((struct span){colon + 1, line.len - (size_t)(colon + 1 - line.ptr)});
                if (memchr(line.ptr, '\0', line.len) || memchr(line.ptr, '\r', line.len))
                        return UPSTREAM_HTTP_PROTOCOL_ERROR;
                if (!http_text_is_token(name))
                        continue;
                if (span_equal_nocase(name, span_of("content-length"))) {
                        bool first = !length.ptr;
                        if (!length_agrees(value, &length))
                                return UPSTREAM_HTTP_PROTOCOL_ERROR;
                        if (!first)
                                continue;
                        value = length;
                }
                if (span_equal_nocase(name, span_of("transfer-encoding"))) {
                        if (span_equal_nocase(value, span_of("identity")))
                                continue; /* of HTTP/1.1's first years: no coding at all */
                        if (!is_readable_coding(h, value))
                                return UPSTREAM_HTTP_RESPONSE_TRANSFER_CODING;
                }
                fields_add(&h->fields, name, value);
        }
        if (!length.ptr || !fields_find(&h->fields, 0, span_of("transfer-encoding"), &coding, NULL))
                return UPSTREAM_OK;

        struct fields kept = {0};
        for (size_t i = 0; i < h->fields.count; i++) {
                struct field f = fields_at(&h->fields, i);
                if (!span_equal_nocase(f.name, span_of("content-length")))
                        fields_add(&kept, f.name, f.value);
        }
        fields_done(&h->fields);
        h->fields = kept;
        return UPSTREAM_OK;
}

/* A body would be taken for the first bytes of the other protocol, or the other way round; RFC
 * 9110, 8.6 and RFC 9112, 6.1 allow none. */
static enum upstream_error switch_over(struct answer_head *h, struct span rest)
{
        struct span value;
        enum upstream_error error = parse_fields(h, rest);

        if (!error && (fields_find(&h->fields, 0, span_of("content-length"), &value, NULL) ||
                       fields_find(&h->fields, 0, span_of("transfer-encoding"), &value, NULL)))
                error = UPSTREAM_HTTP_PROTOCOL_ERROR;
        h->done = true;
        return error;
}

static enum upstream_error finish(struct answer_head *h)
{
        struct span rest = {h->text, h->len};

        parse_status_line(h, http_text_line(&rest));
        if (h->status == 101)
                return h->may_switch ? switch_over(h, rest) : UPSTREAM_HTTP_PROTOCOL_ERROR;
        if (h->status < 200) {
                h->len = 0;
                return UPSTREAM_OK;
        }
        h->done = true;
        return parse_fields(h, rest);
}

enum upstream_error answer_head_line(struct answer_head *h, const char *line, size_t len)
{
        bool empty =
            (len == 2 && line[0] == '\r' && line[1] == '\n') || (len == 1 && *line == '\n');

        h->seen += len;
        if (h->seen > ANSWER_HEAD_MAX_BYTES)
                return UPSTREAM_HTTP_RESPONSE_HEADER_SECTION_SIZE;
        if (empty)
                return h->len ? finish(h) : UPSTREAM_OK;
        /* A status line that starts anew: libcurl began another answer. */
        if (len >= 5 && memcmp(line, "HTTP/", 5) == 0 && !h->done)
                h->len = 0;
        if (h->len && (line[0] == ' ' || line[0] == '\t'))
                while (h->len && (h->text[h->len - 1] == '\n' || h->text[h->len - 1] == '\r'))
                        h->len--;
        append(h, line, len);
        return UPSTREAM_OK;
}
