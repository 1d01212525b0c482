#include "proxy/message.h"

#include <ctype.h>
#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/xalloc.h"
#include "proxy/target.h"
#include "proxy/upgrade.h"

/* RFC 9110, 7.6.1 and the obsolete Proxy-Connection and Keep-Alive. Trailer goes with the trailers,
 * which are not forwarded (6.5.1); Expect was answered by evhttp, which has read the body already.
 */
static bool is_hop_by_hop(struct span name)
{
        static const char *const names[] = {
            "Connection", "Keep-Alive",        "Proxy-Connection", "Proxy-Authorization",
            "TE",         "Transfer-Encoding", "Upgrade",          "Proxy-Authenticate",
            "Trailer",
        };
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (span_equal_nocase(name, span_of(names[i])))
                        return true;
        return false;
}

/* A field that must reach the other side whatever Connection says: without it the message would
 * mean something else (RFC 9110, 7.6.1 asks senders not to name such). */
static bool is_essential(struct span name)
{
        static const char *const names[] = {"Host", "Content-Length",   "Date",
                                            "Via",  "Content-Encoding", "Content-Type"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (span_equal_nocase(name, span_of(names[i])))
                        return true;
        return false;
}

static bool list_has(struct span list, struct span token)
{
        for (struct span item; span_next(&list, ',', &item);)
                if (span_equal_nocase(item, token))
                        return true;
        return false;
}

static bool connection_names(const struct evkeyvalq *headers, struct span name)
{
        const struct evkeyval *kv;
        TAILQ_FOREACH(kv, headers, next)
        if (strcasecmp(kv->key, "Connection") == 0 && list_has(span_of(kv->value), name))
                return true;
        return false;
}

static bool fault(struct message_fault *ret, int status, const char *error, const char *text)
{
        *ret = (struct message_fault){status, error, text, false};
        return false;
}

static bool bad_request(struct message_fault *ret, const char *text)
{
        return fault(ret, 400, "http_request_error", text);
}

static unsigned default_port(bool tls)
{
        return tls ? 443 : 80;
}

static bool parse_target(struct message *m, struct evhttp_request *req, struct message_fault *ret)
{
        const char *uri = evhttp_request_get_uri(req);
        if (uri[0] == '/' || strcmp(uri, "*") == 0)
                return fault(
                    ret, 400, "http_request_error",
                    "This is a forward proxy: it wants a whole URL, as clients send it when "
                    "HTTP_PROXY is set.");
        struct target t;
        const char *text = target_read(&t, uri);
        m->host = t.host;
        m->target = t.path;
        if (text)
                return bad_request(ret, text);
        m->authority = t.authority;
        m->tls = span_equal_nocase(t.scheme, span_of("https"));
        m->port = t.port ? t.port : default_port(m->tls);
        if (!m->tls && !span_equal_nocase(t.scheme, span_of("http")))
                return bad_request(ret, "Only http and https targets can be fetched.");
        const char *after = m->authority.ptr + m->authority.len;
        if (req->type == EVHTTP_REQ_OPTIONS && (*after == '\0' || *after == '#')) {
                free(m->target); /* RFC 9112, 3.2.4 */
                m->target = xstrdup("*");
        }
        return true;
}

/* What CONNECT has in place of a URL. */
static bool parse_authority(struct message *m, struct evhttp_request *req,
                            struct message_fault *ret)
{
        struct target t = {0};
        const char *text = target_read_authority(&t, span_of(evhttp_request_get_uri(req)));
        m->host = t.host;
        m->port = t.port;
        m->authority = t.authority;
        m->target = xstrdup("/"); /* for scopes by path */
        return text ? bad_request(ret, text) : true;
}

static bool misdirected(struct message_fault *ret)
{
        return fault(ret, 421, "http_request_error",
                     "This tunnel leads to another host: requests for that one want their own.");
}

/* Does the tunnel lead there? */
static bool leads_to(const struct message_inside *inside, const struct target *t)
{
        unsigned port = t->port ? t->port : default_port(inside->tls);
        return port == inside->port && strcmp(t->host, inside->host) == 0;
}

/* The host that the request names, which is that of the tunnel; without one it is that of the
 * tunnel in any case. */
static bool check_host(struct message *m, struct evhttp_request *req,
                       const struct message_inside *inside, struct message_fault *ret)
{
        const char *host = evhttp_find_header(req->input_headers, "Host");
        if (!host) { /* HTTP/1.0 */
                m->authority = span_of(m->host);
                return true;
        }
        struct target t = {0};
        const char *text = target_read_authority(&t, span_of(host));
        bool good = !text && leads_to(inside, &t);
        m->authority = span_of(host);
        target_done(&t);
        return good || (text ? bad_request(ret, text) : misdirected(ret));
}

/* A whole URL must be taken from a client as well (RFC 9112, 3.2.2); it wins over Host. */
static bool check_url(struct message *m, const char *url, const struct message_inside *inside,
                      struct message_fault *ret)
{
        struct target t;
        const char *text = target_read(&t, url);
        bool good = !text && leads_to(inside, &t) &&
                    span_equal_nocase(t.scheme, span_of(inside->tls ? "https" : "http"));
        if (good) {
                m->authority = t.authority;
                m->target = t.path;
                t.path = NULL;
        }
        target_done(&t);
        return good || (text ? bad_request(ret, text) : misdirected(ret));
}

/* In a tunnel requests are as a host gets them: a path, and Host beside it. */
static bool parse_inside(struct message *m, struct evhttp_request *req,
                         const struct message_inside *inside, struct message_fault *ret)
{
        const char *uri = evhttp_request_get_uri(req);
        bool v6 = strchr(inside->host, ':');
        m->tls = inside->tls;
        m->host = xstrdup(inside->host);
        m->port = inside->port;
        if (m->connect)
                return bad_request(ret, "There is no CONNECT inside of a tunnel.");
        if (uri[0] != '/' && strcmp(uri, "*") != 0)
                return check_url(m, uri, inside, ret);
        if (uri[0] == '*' && req->type != EVHTTP_REQ_OPTIONS)
                return bad_request(ret, "The target * is for OPTIONS alone.");
        m->target = xspandup((struct span){uri, strcspn(uri, "#")});
        char port[sizeof ":65535"] = "";
        if (m->port != default_port(m->tls))
                snprintf(port, sizeof port, ":%u", m->port);
        m->url = xasprintf("%s://%s%s%s%s%s", m->tls ? "https" : "http", v6 ? "[" : "", m->host,
                           v6 ? "]" : "", port, uri[0] == '/' ? uri : "");
        return check_host(m, req, inside, ret);
}

static struct span method_name(const struct evhttp_request *req)
{
        static const struct {
                enum evhttp_cmd_type type;
                const char *name;
        } methods[] = {
            {EVHTTP_REQ_GET, "GET"},         {EVHTTP_REQ_HEAD, "HEAD"},
            {EVHTTP_REQ_POST, "POST"},       {EVHTTP_REQ_PUT, "PUT"},
            {EVHTTP_REQ_DELETE, "DELETE"},   {EVHTTP_REQ_PATCH, "PATCH"},
            {EVHTTP_REQ_TRACE, "TRACE"},     {EVHTTP_REQ_OPTIONS, "OPTIONS"},
            {EVHTTP_REQ_CONNECT, "CONNECT"},
        };
        for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
                if (methods[i].type == req->type)
                        return span_of(methods[i].name);
        return (struct span){0};
}

/* RFC 9110, 7.6.2: TRACE and OPTIONS may say how many proxies they still pass. */
static bool add_max_forwards(struct message *m, struct span name, const char *value,
                             struct message_fault *ret)
{
        size_t digits = strspn(value, "0123456789");
        if (digits == 0 || digits > 9 || value[digits])
                return bad_request(ret, "Max-Forwards is not a number.");
        unsigned long left = strtoul(value, NULL, 10);
        if (left == 0)
                return fault(ret, 200, "", "Max-Forwards lets this request go no further.");
        char *fewer = xasprintf("%lu", left - 1);
        fields_add(&m->fields, name, span_of(fewer));
        free(fewer);
        return true;
}

/* To these the two ends would switch by themselves, and what is asked and answered would be hidden
 * where it need not be; clients offer them without being in want of them. */
static bool stays_http(struct span protocol)
{
        return span_equal_nocase(protocol, span_of("h2c")) ||
               (protocol.len >= 4 && strncasecmp(protocol.ptr, "TLS/", 4) == 0) ||
               (protocol.len >= 5 && strncasecmp(protocol.ptr, "HTTP/", 5) == 0);
}

/* RFC 9110, 7.8: offers count only where Connection names the field, from HTTP/1.1 on, and are no
 * more than offers. Where there is a body to be sent first they are not taken up. */
static bool asks_to_switch(struct evhttp_request *req)
{
        const struct evkeyval *kv;
        bool any = false;
        if (req->minor == 0 || !connection_names(req->input_headers, span_of("Upgrade")) ||
            evbuffer_get_length(evhttp_request_get_input_buffer(req)) > 0)
                return false;
        TAILQ_FOREACH(kv, req->input_headers, next)
        {
                if (strcasecmp(kv->key, "Upgrade") != 0)
                        continue;
                struct span list = span_of(kv->value);
                for (struct span item; span_next(&list, ',', &item);) {
                        if (stays_http(span_trim(item)))
                                return false;
                        any = any || item.len > 0;
                }
        }
        return any;
}

static void copy_switch(struct message *m, const struct evkeyvalq *headers)
{
        const struct evkeyval *kv;
        fields_add(&m->fields, span_of("Connection"), span_of("Upgrade"));
        TAILQ_FOREACH(kv, headers, next)
        if (strcasecmp(kv->key, "Upgrade") == 0)
                fields_add(&m->fields, span_of(kv->key), span_of(kv->value));
}

static bool copy_fields(struct message *m, struct evhttp_request *req, unsigned field_count,
                        const char *via, struct message_fault *ret)
{
        const struct evkeyvalq *headers = req->input_headers;
        const struct evkeyval *kv;
        bool listed = evhttp_find_header(headers, "Connection") != NULL;
        bool counts_hops = req->type == EVHTTP_REQ_TRACE || req->type == EVHTTP_REQ_OPTIONS;
        if (req->minor == 0 && !evhttp_find_header(headers, "Host"))
                fields_add(&m->fields, span_of("Host"), m->authority);
        TAILQ_FOREACH(kv, headers, next)
        {
                if (field_count-- == 0)
                        break;
                struct span name = span_of(kv->key), value = span_of(kv->value);
                const char *text;
                if (steering_take(&m->steering, name, value, &text)) {
                        if (text)
                                return bad_request(ret, text);
                        continue;
                }
                if (is_hop_by_hop(name) || span_equal_nocase(name, span_of("Expect")))
                        continue;
                if (listed && !is_essential(name) && connection_names(headers, name))
                        continue;
                if (span_equal_nocase(name, span_of("Via")) && strstr(kv->value, via))
                        return fault(ret, 508, "proxy_loop_detected",
                                     "This request has been here before: the proxies form a loop.");
                if (counts_hops && span_equal_nocase(name, span_of("Max-Forwards"))) {
                        if (!add_max_forwards(m, name, kv->value, ret))
                                return false;
                        continue;
                }
                /* RFC 9112, 3.2.2: the target wins. */
                if (span_equal_nocase(name, span_of("Host")))
                        value = m->authority;
                fields_add(&m->fields, name, value);
        }
        if (m->wants_switch)
                copy_switch(m, headers);
        char *entry = xasprintf("1.%d %s", req->minor, via);
        fields_add(&m->fields, span_of("Via"), span_of(entry));
        free(entry);
        return true;
}

bool message_read(struct message *ret, struct evhttp_request *req, unsigned field_count,
                  const struct message_inside *inside, const char *via,
                  struct message_fault *ret_fault)
{
        *ret = (struct message){0};
        steering_init(&ret->steering);
        if (inside)
                ret->steering = inside->steering;
        /* evhttp speaks any 1.x and would answer in kind. */
        if (req->minor > 1)
                req->minor = 1;
        ret->wants_close = connection_names(req->input_headers, span_of("close"));
        ret->chunked = evhttp_find_header(req->input_headers, "Transfer-Encoding") != NULL;
        ret->method = method_name(req);
        ret->connect = req->type == EVHTTP_REQ_CONNECT;
        ret->wants_switch = !ret->connect && asks_to_switch(req);
        bool good = inside         ? parse_inside(ret, req, inside, ret_fault)
                    : ret->connect ? parse_authority(ret, req, ret_fault)
                                   : parse_target(ret, req, ret_fault);
        return good && copy_fields(ret, req, field_count, via, ret_fault);
}

void message_done(struct message *m)
{
        free(m->host);
        free(m->target);
        free(m->url);
        fields_done(&m->fields);
        *m = (struct message){0};
}

void message_upgrade(struct message *m)
{
        const char *port = ":80";
        struct span host;
        size_t i;
        if (m->tls)
                return;
        m->tls = m->upgraded = true;
        if (m->port != 80)
                return;
        m->port = upgrade_port(m->port);
        if (fields_find(&m->fields, 0, span_of("Host"), &host, &i) && host.len > strlen(port) &&
            memcmp(host.ptr + host.len - strlen(port), port, strlen(port)) == 0)
                fields_cut(&m->fields, i, host.len - strlen(port));
}

static bool answer_connection_names(const struct fields *answer, struct span name)
{
        struct span list;
        for (size_t i = 0; fields_find(answer, i, span_of("Connection"), &list, &i); i++)
                if (list_has(list, name))
                        return true;
        return false;
}

/* NULL: as the host has it. */
static char *upgraded(const struct message *m, const struct field *f)
{
        if (span_equal_nocase(f->name, span_of("Location")))
                return upgrade_location(f->value, m->host);
        return span_equal_nocase(f->name, span_of("Set-Cookie")) ? upgrade_cookie(f->value) : NULL;
}

void message_copy_answer(struct evhttp_request *req, const struct message *m, int status,
                         const struct fields *answer, const char *via)
{
        struct evkeyvalq *out = evhttp_request_get_output_headers(req);
        struct span ignored;
        bool listed = fields_find(answer, 0, span_of("Connection"), &ignored, NULL);
        for (size_t i = 0; i < answer->count; i++) {
                struct field f = fields_at(answer, i);
                bool switches = status == 101 && span_equal_nocase(f.name, span_of("Upgrade"));
                if (is_hop_by_hop(f.name) && !switches)
                        continue;
                if (listed && !switches && !is_essential(f.name) &&
                    answer_connection_names(answer, f.name))
                        continue;
                char *name = xspandup(f.name), *value = m->upgraded ? upgraded(m, &f) : NULL;
                if (!value)
                        value = xspandup(f.value);
                evhttp_add_header(out, name, value);
                free(name);
                free(value);
        }
        if (status == 101)
                evhttp_add_header(out, "Connection", "Upgrade");
        char *entry = xasprintf("1.1 %s", via);
        evhttp_add_header(out, "Via", entry);
        free(entry);
}
