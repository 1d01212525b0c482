#include "proxy/reply.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/xalloc.h"
#include "proxy/message.h"

static void add_field(struct evhttp_request *req, const char *name, char *value)
{
        evhttp_add_header(evhttp_request_get_output_headers(req), name, value);
        free(value);
}

static void annotate(struct evhttp_request *req, const struct reply_note *note)
{
        if (note && note->moved)
                add_field(req, "Weir-Session-Moved", xstrdup("1"));
        if (!note || !note->annotate)
                return;
        add_field(req, "Weir-Attempts", xasprintf("%u", note->attempts));
        add_field(req, "Weir-Queued", xasprintf("%.3f", usec_seconds(note->queued)));
        if (note->scope)
                add_field(req, "Weir-Scope", xstrdup(note->scope));
}

static void close_after(struct evhttp_request *req)
{
        struct evkeyvalq *out = evhttp_request_get_output_headers(req);
        evhttp_remove_header(out, "Connection");
        evhttp_add_header(out, "Connection", "close");
}

void reply_forward(struct evhttp_request *req, const struct message *m,
                   const struct upstream_answer *answer, const char *via,
                   const struct reply_note *note, bool close)
{
        struct evkeyvalq *out = evhttp_request_get_output_headers(req);
        message_copy_answer(req, m, answer->status, answer->fields, via);
        annotate(req, note);
        /* To an HTTP/1.0 client a body of unknown length ends with the connection; evhttp would
         * write Content-Length: 0 if it thought that the connection is to be kept. */
        if (req->minor == 0 && !evhttp_find_header(out, "Content-Length"))
                while (evhttp_remove_header(evhttp_request_get_input_headers(req), "Connection") ==
                       0)
                        ;
        if (close)
                close_after(req);
        /* HTTP/2 has no reasons: evhttp knows the usual ones. */
        char *reason = answer->reason.len ? xspandup(answer->reason) : NULL;
        evhttp_send_reply_start(req, answer->status, reason);
        free(reason);
}

/* As a quoted string of RFC 8941: printable ASCII, with \ and " escaped. */
static char *quoted(const char *s)
{
        char *out = xmalloc(2 * strlen(s) + 3), *p = out;
        *p++ = '"';
        for (; *s; s++) {
                if (*s == '"' || *s == '\\')
                        *p++ = '\\';
                *p++ = *s >= 0x20 && *s < 0x7f ? *s : '?';
        }
        *p++ = '"';
        *p = '\0';
        return out;
}

static char *proxy_status(const struct reply_refusal *r)
{
        if (!*r->error)
                return xstrdup("weir");
        if (!*r->detail)
                return xasprintf("weir; error=%s", r->error);
        char *detail = quoted(r->detail);
        char *value = xasprintf("weir; error=%s; details=%s", r->error, detail);
        free(detail);
        return value;
}

static const char *reason_phrase(int status)
{
        switch (status) {
        case 200:
                return "OK";
        case 400:
                return "Bad Request";
        case 403:
                return "Forbidden";
        case 407:
                return "Proxy Authentication Required";
        case 408:
                return "Request Timeout";
        case 413:
                return "Content Too Large";
        case 429:
                return "Too Many Requests";
        case 431:
                return "Request Header Fields Too Large";
        case 501:
                return "Not Implemented";
        case 502:
                return "Bad Gateway";
        case 503:
                return "Service Unavailable";
        case 504:
                return "Gateway Timeout";
        case 505:
                return "HTTP Version Not Supported";
        case 508:
                return "Loop Detected";
        default:
                return "Error";
        }
}

void reply_refuse(struct evhttp_request *req, const struct reply_refusal *r,
                  const struct reply_note *note)
{
        struct evkeyvalq *out = evhttp_request_get_output_headers(req);
        struct evbuffer *body = evbuffer_new();
        if (!body)
                abort();
        evbuffer_add_printf(body, "weir: %s\n", r->text);
        evhttp_add_header(out, "Content-Type", "text/plain; charset=utf-8");
        add_field(req, "Content-Length", xasprintf("%zu", evbuffer_get_length(body)));
        add_field(req, "Proxy-Status", proxy_status(r));
        if (r->retry_after) /* whole seconds, rounded up: never an invitation to come too early */
                add_field(req, "Retry-After",
                          xasprintf("%llu",
                                    (unsigned long long)((r->retry_after - 1) / USEC_PER_SEC + 1)));
        if (r->status == 407) /* RFC 7617, 2 */
                evhttp_add_header(out, "Proxy-Authenticate",
                                  "Basic realm=\"weir\", charset=\"UTF-8\"");
        annotate(req, note);
        if (r->close)
                close_after(req);
        /* evhttp sends what it is given, also to HEAD; and it frames no answer to CONNECT. */
        if (req->type == EVHTTP_REQ_HEAD)
                evbuffer_drain(body, evbuffer_get_length(body));
        else if (req->type == EVHTTP_REQ_CONNECT)
                req->type = EVHTTP_REQ_GET;
        evhttp_send_reply(req, r->status, reason_phrase(r->status), body);
        evbuffer_free(body);
}

void reply_open(struct evhttp_request *req, int status, const char *reason,
                const struct reply_note *note, struct evbuffer *to)
{
        const struct evkeyval *kv;
        annotate(req, note);
        evbuffer_add_printf(to, "HTTP/1.%d %d %s\r\n", req->minor, status, reason);
        TAILQ_FOREACH(kv, evhttp_request_get_output_headers(req), next)
        evbuffer_add_printf(to, "%s: %s\r\n", kv->key, kv->value);
        evbuffer_add(to, "\r\n", 2);
}

void reply_connected(struct evhttp_request *req)
{
        req->minor = 1; /* else the connection would end with it */
        while (evhttp_remove_header(evhttp_request_get_input_headers(req), "Connection") == 0)
                ;
        evhttp_send_reply(req, 200, "OK", NULL);
}

char *reply_text(const struct message_fault *f)
{
        char *body = xasprintf("weir: %s\n", f->text);
        char *text = xasprintf("HTTP/1.1 %d %s\r\n"
                               "Content-Type: text/plain; charset=utf-8\r\n"
                               "Content-Length: %zu\r\n"
                               "Proxy-Status: weir; error=%s\r\n"
                               "Connection: close\r\n\r\n%s",
                               f->status, reason_phrase(f->status), strlen(body), f->error, body);
        free(body);
        return text;
}
