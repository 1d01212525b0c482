#include "proxy/head.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "proxy/target.h"

/* ---- arriving ---- */

bool head_feed(struct head *h, const char *data, size_t len, size_t *ret_used)
{
        bool ended = false;
        size_t n = 0;
        *ret_used = 0;
        if (len == 0)
                return false;
        while (n < len && !ended) {
                char c = data[n++];
                ended = c == '\n' && h->line_empty;
                if (c != '\r')
                        h->line_empty = c == '\n';
        }
        if (h->len + n > h->room) {
                h->room = h->len + n < 512 ? 512 : 2 * (h->len + n);
                h->text = xrealloc(h->text, h->room);
        }
        memcpy(h->text + h->len, data, n);
        h->len += n;
        *ret_used = n;
        return ended;
}

void head_clear(struct head *h)
{
        free(h->text);
        *h = (struct head){0};
}

/* ---- checking ---- */

/* What the fields say of the body. */
struct framing {
        struct span method;
        bool http_1_0, connect;
        unsigned fields, hosts, lengths, codings;
        bool length_positive;
};

static bool fault(struct message_fault *ret, int status, const char *text)
{
        *ret = (struct message_fault){status, "http_request_error", text, true};
        return false;
}

static bool is_token(struct span s)
{
        for (size_t i = 0; i < s.len; i++)
                if (!isalnum((unsigned char)s.ptr[i]) &&
                    (s.ptr[i] == '\0' || !strchr("!#$%&'*+-.^_`|~", s.ptr[i])))
                        return false;
        return s.len > 0;
}

/* Bytes that have no place inside of a line; spaces and tabs are allowed in field values alone. */
static bool has_control(struct span s, bool blanks_allowed)
{
        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char)s.ptr[i];
                bool blank = c == ' ' || c == '\t';
                if (blank ? !blanks_allowed : c < 0x20 || c == 0x7f)
                        return true;
        }
        return false;
}

/* The next line, without its CRLF or lone LF (RFC 9112, 2.2 allows that). */
static struct span next_line(struct span *rest)
{
        const char *end = memchr(rest->ptr, '\n', rest->len);
        size_t n = end ? (size_t)(end - rest->ptr) : rest->len;
        struct span line = {rest->ptr, n};
        *rest = (struct span){rest->ptr + n + (end != NULL), rest->len - n - (end != NULL)};
        if (line.len && line.ptr[line.len - 1] == '\r')
                line.len--;
        return line;
}

static bool is_known_method(struct span method)
{
        static const char *const names[] = {"GET",     "HEAD",  "POST",  "PUT",    "DELETE",
                                            "OPTIONS", "TRACE", "PATCH", "CONNECT"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (span_equal(method, span_of(names[i])))
                        return true;
        return false;
}

/* RFC 9110, 9.3.6: a host and a port, neither of which may be left out. evhttp would answer a bad
 * one with a page of its own. */
static bool check_connect_target(struct span target, struct message_fault *ret)
{
        struct target t = {0};
        const char *text = target_read_authority(&t, target);
        unsigned port = t.port;
        target_done(&t);
        if (text)
                return fault(ret, 400, text);
        if (port == 0)
                return fault(ret, 400, "CONNECT wants HOST:PORT.");
        return true;
}

static bool check_request_line(struct span line, struct framing *f, struct message_fault *ret)
{
        const char *end = line.ptr + line.len;
        const char *first = memchr(line.ptr, ' ', line.len);
        const char *last = memrchr(line.ptr, ' ', line.len);
        if (!first || first == last)
                return fault(ret, 400, "The request line is not METHOD TARGET VERSION.");
        f->method = (struct span){line.ptr, (size_t)(first - line.ptr)};
        struct span target = {first + 1, (size_t)(last - first) - 1};
        struct span version = {last + 1, (size_t)(end - last) - 1};
        if (!is_token(f->method))
                return fault(ret, 400, "The method is not a token.");
        if (target.len == 0 || has_control(target, false))
                return fault(ret, 400,
                             "The target is empty or has a space or a control character.");
        if (version.len != 8 || memcmp(version.ptr, "HTTP/", 5) != 0 ||
            !isdigit((unsigned char)version.ptr[5]) || version.ptr[6] != '.' ||
            !isdigit((unsigned char)version.ptr[7]))
                return fault(ret, 400, "The request line does not end with an HTTP version.");
        if (version.ptr[5] != '1')
                return fault(ret, 505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
        f->http_1_0 = version.ptr[7] == '0';
        if (!is_known_method(f->method))
                return fault(ret, 501, "This method is not supported.");
        f->connect = span_equal(f->method, span_of("CONNECT"));
        return !f->connect || check_connect_target(target, ret);
}

static bool check_length(struct span value, size_t max_body, struct framing *f,
                         struct message_fault *ret)
{
        size_t length = 0;
        if (f->lengths++)
                return fault(ret, 400, "There is more than one Content-Length.");
        if (value.len == 0)
                return fault(ret, 400, "Content-Length is empty.");
        for (size_t i = 0; i < value.len; i++) {
                if (!isdigit((unsigned char)value.ptr[i]))
                        return fault(ret, 400, "Content-Length is not a number.");
                if (length <= max_body)
                        length = 10 * length + (size_t)(value.ptr[i] - '0');
        }
        if (length > max_body)
                return fault(ret, 413, "The body is larger than clients.max_body allows.");
        f->length_positive = length > 0;
        return true;
}

static bool check_field(struct span line, size_t max_body, struct framing *f,
                        struct message_fault *ret)
{
        const char *colon = memchr(line.ptr, ':', line.len);
        if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
                return fault(ret, 400, "A header field is folded over lines.");
        if (!colon)
                return fault(ret, 400, "A header line has no colon.");
        f->fields++;
        struct span name = {line.ptr, (size_t)(colon - line.ptr)};
        struct span value = span_trim((struct span){colon + 1, line.len - name.len - 1});
        if (!is_token(name))
                return fault(ret, 400, "A header field name is not a token.");
        if (has_control(value, true))
                return fault(ret, 400, "A header field value has control characters.");
        if (span_equal_nocase(name, span_of("Host")) && f->hosts++)
                return fault(ret, 400, "There is more than one Host field.");
        if (span_equal_nocase(name, span_of("Content-Length")))
                return check_length(value, max_body, f, ret);
        if (span_equal_nocase(name, span_of("Transfer-Encoding"))) {
                /* evhttp does not take a tab for white space. */
                if (f->codings++ || memchr(line.ptr, '\t', line.len) ||
                    !span_equal_nocase(value, span_of("chunked")))
                        return fault(ret, 400, "Transfer-Encoding may only be chunked, and once.");
        }
        return true;
}

static bool check_framing(const struct framing *f, struct message_fault *ret)
{
        if (f->lengths && f->codings)
                return fault(ret, 400, "Content-Length and Transfer-Encoding exclude each other.");
        if (f->codings && f->http_1_0)
                return fault(ret, 400, "HTTP/1.0 has no Transfer-Encoding.");
        if (!f->hosts && !f->http_1_0)
                return fault(ret, 400, "The Host field is missing.");
        /* evhttp reads no body for these, so its bytes would be taken for the next request. */
        if ((f->codings || f->length_positive) &&
            (span_equal(f->method, span_of("HEAD")) || span_equal(f->method, span_of("TRACE"))))
                return fault(ret, 400, "HEAD and TRACE requests have no body.");
        if ((f->codings || f->length_positive) && f->connect)
                return fault(ret, 400, "CONNECT requests have no body.");
        return true;
}

bool head_check(struct span head, size_t max_body, struct head_facts *ret_facts,
                struct message_fault *ret_fault)
{
        struct framing f = {0};
        struct span rest = head;
        if (!check_request_line(next_line(&rest), &f, ret_fault))
                return false;
        while (rest.len) {
                struct span line = next_line(&rest);
                if (line.len && !check_field(line, max_body, &f, ret_fault))
                        return false;
        }
        if (!check_framing(&f, ret_fault))
                return false;
        *ret_facts =
            (struct head_facts){.fields = f.fields, .chunked = f.codings > 0, .connect = f.connect};
        return true;
}
