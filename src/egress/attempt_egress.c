/* egress/attempt_egress.c - the way out of an attempt: what libcurl is told of it, and what its
 * proxy says. */
#include "egress/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "egress/guard.h"

static bool is_http_proxy(enum egress_kind kind)
{
        return kind == EGRESS_HTTP || kind == EGRESS_HTTPS;
}

bool attempt_egress_reads(const struct upstream_request *request)
{
        return request->egress && is_http_proxy(request->egress->kind) && !request->tls &&
               !request->dial && !request->may_switch;
}

/* The same of one that is set up. */
static bool is_read_by_proxy(const struct attempt *a)
{
        return is_http_proxy(a->set.egress) && !a->set.tls && !a->set.tunnel;
}

/* ---- what libcurl is told ---- */

/* attempt_setup_text with a text that was made for it; NULL takes the option back. */
static CURLcode set_text(CURL *easy, CURLoption option, char **was, char *text)
{
        CURLcode code =
            attempt_setup_text(easy, option, was, text ? span_of(text) : (struct span){NULL, 0});
        free(text);
        return code;
}

/* libcurl undoes percent-encoding in credentials, wherever they come from. */
static char *encoded(CURL *easy, const char *text)
{
        char *escaped = text ? curl_easy_escape(easy, text, 0) : NULL;
        if (text && !escaped)
                abort(); /* out of memory */
        char *own = escaped ? xstrdup(escaped) : NULL;
        curl_free(escaped);
        return own;
}

static char *proxy_url(const struct egress_endpoint *e)
{
        static const char *const schemes[] = {[EGRESS_HTTP] = "http",
                                              [EGRESS_HTTPS] = "https",
                                              [EGRESS_SOCKS5] = "socks5",
                                              [EGRESS_SOCKS5H] = "socks5h"};
        if (!e || !egress_is_proxy(e->kind))
                return NULL;
        return xasprintf(strchr(e->host, ':') ? "%s://[%s]:%u" : "%s://%s:%u", schemes[e->kind],
                         e->host, e->port);
}

/* "" is no proxy; NULL would be what our own environment says. */
static CURLcode set_proxy(struct attempt *a, const struct egress_endpoint *e)
{
        char *url = proxy_url(e);
        return set_text(a->easy, CURLOPT_PROXY, &a->set.proxy, url ? url : xstrdup(""));
}

/*
 * Who goes by different ways must not be known for the same by what TLS remembers. And an endpoint
 * that does not answer must not hold up those who go to the same host by another one, as it would
 * with libcurl waiting to learn whether one connection can carry all.
 */
static void keep_apart(struct attempt *a, bool apart)
{
        if (apart == a->set.apart)
                return;
        curl_easy_setopt(a->easy, CURLOPT_SSL_SESSIONID_CACHE, apart ? 0L : 1L);
        curl_easy_setopt(a->easy, CURLOPT_PIPEWAIT, apart ? 0L : 1L);
        a->set.apart = apart;
}

static void set_tunnel(struct attempt *a, bool tunnel)
{
        if (tunnel != a->set.tunnel)
                curl_easy_setopt(a->easy, CURLOPT_HTTPPROXYTUNNEL, tunnel ? 1L : 0L);
        a->set.tunnel = tunnel;
}

/*
 * What a proxy is to connect to can be looked at here where it is written as an address, in any of
 * the ways that are read as one. A name may mean something else to the proxy.
 */
static bool is_denied(const struct upstream_request *request, bool *ret_is_name)
{
        struct sockaddr_in in = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        char *host = xspandup(request->host);
        bool denied = false;
        *ret_is_name = false;
        for (size_t len = strlen(host); len > 1 && host[len - 1] == '.';)
                host[--len] = '\0';
        const char *dot = strrchr(host, '.');
        if (strcasecmp(dot ? dot + 1 : host, "localhost") == 0)
                denied = !guard_allows_text(request->deny, request->allow, "127.0.0.1");
        else if (inet_aton(host, &in.sin_addr) != 0) /* "127.1" and "0x7f.1" too */
                denied = !guard_allows(request->deny, request->allow, (struct sockaddr *)&in);
        else if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
                denied = !guard_allows(request->deny, request->allow, (struct sockaddr *)&in6);
        else
                *ret_is_name = true;
        free(host);
        return denied;
}

enum upstream_error attempt_setup_egress(struct attempt *a, const struct upstream_request *request)
{
        const struct egress_endpoint *e = request->egress;
        enum egress_kind kind = e ? e->kind : EGRESS_DIRECT;
        bool proxy = egress_is_proxy(kind), is_name = false;
        char *device = kind == EGRESS_SOURCE ? xasprintf("host!%s", e->source) : NULL;

        a->set.egress = kind;
        a->lookup.on = false;
        attempt_lookup_forget(a);
        if (proxy && is_denied(request, &is_name)) {
                free(device);
                a->denied = true;
                return UPSTREAM_DESTINATION_IP_PROHIBITED;
        }
        /* A proxy would have to switch too, which few do (RFC 6455, 4.1 wants a tunnel). */
        set_tunnel(a, is_http_proxy(kind) && (request->dial || request->may_switch));
        keep_apart(a, e != NULL);
        if (set_proxy(a, e) ||
            set_text(a->easy, CURLOPT_PROXYUSERNAME, &a->set.user,
                     proxy ? encoded(a->easy, e->user) : NULL) ||
            set_text(a->easy, CURLOPT_PROXYPASSWORD, &a->set.password,
                     proxy ? encoded(a->easy, e->password) : NULL) ||
            set_text(a->easy, CURLOPT_INTERFACE, &a->set.device, device))
                return UPSTREAM_PROXY_INTERNAL_ERROR;
        if (kind == EGRESS_SOCKS5 && is_name && request->deny && request->deny->count > 0)
                attempt_lookup_begin(a);
        a->exit_header = request->exit_header ? request->exit_header : "";
        a->exit[0] = '\0';
        return UPSTREAM_OK;
}

/* To a proxy that reads the request the target is the whole URL (RFC 9112, 3.2.2); but for "*" it
 * is that without a path (3.2.4). */
char *attempt_egress_target(const struct attempt *a, const struct upstream_request *request)
{
        struct span host = request->host, target = request->target;
        bool v6 = memchr(host.ptr, ':', host.len) != NULL;
        char port[16] = "";

        if (!is_read_by_proxy(a))
                return NULL;
        if (request->port != 80)
                snprintf(port, sizeof port, ":%u", request->port);
        if (span_equal(target, span_of("*")))
                target.len = 0;
        return xasprintf("http://%s%.*s%s%s%.*s", v6 ? "[" : "", (int)host.len, host.ptr,
                         v6 ? "]" : "", port, (int)target.len, target.ptr);
}

void attempt_egress_done(struct attempt_settings *set)
{
        free(set->proxy);
        free(set->user);
        free(set->password);
        free(set->device);
}

bool attempt_egress_is_proxy(const struct attempt *a)
{
        return egress_is_proxy(a->set.egress);
}

/* ---- what the proxy says ---- */

/* What squid says of a failure of its own making ("ERR_CONNECT_FAIL 111"), or of the host's. Of
 * what it cannot forward it knows no address or no way. */
static enum upstream_error error_of_squid(struct span code)
{
        static const struct {
                const char *code;
                enum upstream_error error;
        } rows[] = {
            {"ERR_CONNECT_FAIL", UPSTREAM_CONNECTION_REFUSED},
            {"ERR_DNS_FAIL", UPSTREAM_DNS_ERROR},
            {"ERR_CANNOT_FORWARD", UPSTREAM_DESTINATION_UNAVAILABLE},
            {"ERR_READ_TIMEOUT", UPSTREAM_HTTP_RESPONSE_TIMEOUT},
            {"ERR_LIFETIME_EXP", UPSTREAM_HTTP_RESPONSE_TIMEOUT},
            {"ERR_ZERO_SIZE_OBJECT", UPSTREAM_CONNECTION_TERMINATED},
            {"ERR_READ_ERROR", UPSTREAM_CONNECTION_TERMINATED},
            {"ERR_WRITE_ERROR", UPSTREAM_CONNECTION_TERMINATED},
            {"ERR_INVALID_RESP", UPSTREAM_HTTP_PROTOCOL_ERROR},
            {"ERR_ACCESS_DENIED", UPSTREAM_EGRESS_DENIED},
            {"ERR_CACHE_ACCESS_DENIED", UPSTREAM_EGRESS_DENIED},
            {"ERR_FORWARDING_DENIED", UPSTREAM_EGRESS_DENIED},
        };
        struct span word = {NULL, 0};

        (void)span_next(&code, ' ', &word);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                if (span_equal(word, span_of(rows[i].code)))
                        return rows[i].error;
        return UPSTREAM_EGRESS_FAILED;
}

/* "a; x=y, weir; error=dns_error; details=..." : the last member is the nearest to us (RFC 9209,
 * 2). A member without an error only passed something on. */
static enum upstream_error error_of_proxy_status(struct span value)
{
        struct span member, part = {NULL, 0}, found = {NULL, 0};

        while (span_next(&value, ',', &member)) {
                found = (struct span){NULL, 0};
                while (span_next(&member, ';', &part))
                        if (part.len > 6 && strncasecmp(part.ptr, "error=", 6) == 0)
                                found = (struct span){part.ptr + 6, part.len - 6};
        }
        if (!found.len)
                return UPSTREAM_OK;
        enum upstream_error error = upstream_error_of_host(found);
        return error ? error : UPSTREAM_EGRESS_FAILED;
}

static bool is_tinyproxy(struct span server)
{
        static const char name[] = "tinyproxy/";
        return server.len > strlen(name) && strncmp(server.ptr, name, strlen(name)) == 0;
}

static enum upstream_error error_of_tinyproxy(const struct answer_head *h)
{
        if (h->status == 401) /* a wrong password; it says 407 where there is none */
                return UPSTREAM_EGRESS_LOGIN;
        return span_equal(h->reason, span_of("Unable to connect"))
                   ? UPSTREAM_DESTINATION_UNAVAILABLE
                   : UPSTREAM_EGRESS_FAILED;
}

/* What the fields tell of an answer that the proxy has made itself; UPSTREAM_OK where they do not
 * say that it has. */
static enum upstream_error error_of_fields(const struct answer_head *h)
{
        const struct fields *fields = &h->fields;
        struct span value, via;

        if (fields_find(fields, 0, span_of("X-Squid-Error"), &value, NULL))
                return error_of_squid(value);
        if (fields_find(fields, 0, span_of("Proxy-Status"), &value, NULL) &&
            !fields_find(fields, 0, span_of("Via"), &via, NULL))
                return error_of_proxy_status(value);
        if (fields_find(fields, 0, span_of("Server"), &value, NULL) && is_tinyproxy(value))
                return error_of_tinyproxy(h);
        return UPSTREAM_OK;
}

/* The same of the whole head. What is wrong with the request alone (4xx) is no error of anybody
 * else: the proxy's answer is the client's. */
static enum upstream_error error_of_head(const struct answer_head *h)
{
        enum upstream_error error = error_of_fields(h);

        if (error != UPSTREAM_EGRESS_FAILED || h->status >= 500)
                return error;
        return h->status == 403 ? UPSTREAM_EGRESS_DENIED : UPSTREAM_OK;
}

static void note_exit(struct attempt *a, const struct fields *fields)
{
        struct span value;

        if (!*a->exit_header || !fields_find(fields, 0, span_of(a->exit_header), &value, NULL) ||
            value.len == 0 || value.len >= sizeof a->exit)
                return;
        for (size_t i = 0; i < value.len; i++) {
                char c = value.ptr[i];
                if (!strchr(".:-_", c) && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
                    !(c >= 'A' && c <= 'Z'))
                        return;
        }
        memcpy(a->exit, value.ptr, value.len);
        a->exit[value.len] = '\0';
}

enum upstream_error attempt_egress_head(struct attempt *a)
{
        const struct answer_head *h = &a->head;

        if (!is_read_by_proxy(a))
                return UPSTREAM_OK;
        note_exit(a, &h->fields);
        if (h->status == 407)
                return UPSTREAM_EGRESS_LOGIN;
        return h->status >= 400 ? error_of_head(h) : UPSTREAM_OK;
}

size_t attempt_egress_tunnel_line(struct attempt *a, const char *line, size_t len)
{
        struct answer_head *h = &a->tunnel;

        if (h->done) /* of a former try */
                answer_head_reset(h);
        if (answer_head_line(h, line, len)) {
                a->error = UPSTREAM_EGRESS_FAILED;
                return 0;
        }
        if (h->done)
                note_exit(a, &h->fields);
        return len;
}

/* What the proxy answered to CONNECT instead of a tunnel. */
static enum upstream_error error_of_tunnel(const struct attempt *a, long status)
{
        enum upstream_error error = UPSTREAM_OK;

        if (status == 407)
                return UPSTREAM_EGRESS_LOGIN;
        if (a->tunnel.done)
                error = error_of_head(&a->tunnel);
        if (error)
                return error;
        switch (status) {
        case 402: /* it wants to be paid */
        case 408:
        case 429:
                return UPSTREAM_EGRESS_FAILED;
        case 502: /* these are said of whom it asked (RFC 9110, 15.6) */
                return UPSTREAM_DESTINATION_UNAVAILABLE;
        case 504:
                return UPSTREAM_CONNECTION_TIMEOUT;
        default:
                return status / 100 == 4 ? UPSTREAM_EGRESS_DENIED : UPSTREAM_EGRESS_FAILED;
        }
}

static enum upstream_error error_of_socks(const struct attempt *a)
{
        long code = 0;

        curl_easy_getinfo(a->easy, CURLINFO_PROXY_ERROR, &code);
        switch (code) {
        case CURLPX_REPLY_GENERAL_SERVER_FAILURE: /* such as a name that is not known */
                return UPSTREAM_DESTINATION_UNAVAILABLE;
        case CURLPX_REPLY_CONNECTION_REFUSED:
                return UPSTREAM_CONNECTION_REFUSED;
        case CURLPX_REPLY_HOST_UNREACHABLE:
        case CURLPX_REPLY_NETWORK_UNREACHABLE:
                return UPSTREAM_DESTINATION_IP_UNROUTABLE;
        case CURLPX_REPLY_TTL_EXPIRED:
                return UPSTREAM_CONNECTION_TIMEOUT;
        case CURLPX_RESOLVE_HOST:
                return UPSTREAM_DNS_ERROR;
        case CURLPX_NO_AUTH:
        case CURLPX_USER_REJECTED:
                return UPSTREAM_EGRESS_LOGIN;
        case CURLPX_REPLY_NOT_ALLOWED:
        case CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED:
                return UPSTREAM_EGRESS_DENIED;
        default:
                return UPSTREAM_EGRESS_FAILED;
        }
}

/* Has the proxy opened what TLS with the host can be spoken in? */
static bool has_tunnel(const struct attempt *a)
{
        long status = 0;

        curl_easy_getinfo(a->easy, CURLINFO_HTTP_CONNECTCODE, &status);
        return status / 100 == 2;
}

/* While the proxy itself was being reached. */
static enum upstream_error error_of_proxy(const struct attempt *a, CURLcode code)
{
        long status = 0;

        curl_easy_getinfo(a->easy, CURLINFO_HTTP_CONNECTCODE, &status);
        if (a->phase == ATTEMPT_CONNECTING && status >= 300)
                return error_of_tunnel(a, status);
        switch (code) {
        case CURLE_COULDNT_RESOLVE_PROXY:
                return UPSTREAM_EGRESS_DNS_ERROR;
        case CURLE_COULDNT_CONNECT:
                return UPSTREAM_EGRESS_REFUSED;
        case CURLE_PROXY:
                return error_of_socks(a);
        case CURLE_OPERATION_TIMEDOUT:
                return a->phase == ATTEMPT_CONNECTING && !a->reached ? UPSTREAM_EGRESS_TIMEOUT
                                                                     : UPSTREAM_OK;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
                return a->set.egress == EGRESS_HTTPS && !has_tunnel(a) &&
                               a->phase == ATTEMPT_CONNECTING
                           ? UPSTREAM_EGRESS_TLS_ERROR
                           : UPSTREAM_OK;
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_GOT_NOTHING:
                /* Where there is no tunnel as yet. Later on it is as likely the host: some proxies
                 * close without a word when that does. */
                return a->phase == ATTEMPT_CONNECTING && !has_tunnel(a) ? UPSTREAM_EGRESS_TERMINATED
                                                                        : UPSTREAM_OK;
        default:
                return UPSTREAM_OK;
        }
}

enum upstream_error attempt_egress_error(const struct attempt *a, CURLcode code)
{
        if (code == CURLE_INTERFACE_FAILED)
                return UPSTREAM_EGRESS_ADDRESS;
        return egress_is_proxy(a->set.egress) ? error_of_proxy(a, code) : UPSTREAM_OK;
}

const char *attempt_egress_detail(enum upstream_error error)
{
        switch (error) {
        case UPSTREAM_EGRESS_REFUSED:
                return "the upstream proxy cannot be reached";
        case UPSTREAM_EGRESS_TIMEOUT:
                return "the upstream proxy did not take the connection in time";
        case UPSTREAM_EGRESS_DNS_ERROR:
                return "the name of the upstream proxy is not known";
        case UPSTREAM_EGRESS_TLS_ERROR:
                return "TLS with the upstream proxy failed";
        case UPSTREAM_EGRESS_TERMINATED:
                return "the upstream proxy closed the connection before there was an answer";
        case UPSTREAM_EGRESS_LOGIN:
                return "the upstream proxy refuses the user name and password, or the lack of them";
        case UPSTREAM_EGRESS_DENIED:
                return "the upstream proxy does not let this through";
        case UPSTREAM_EGRESS_FAILED:
                return "the upstream proxy could not do it";
        case UPSTREAM_EGRESS_ADDRESS:
                return "the local address to go out from cannot be used";
        default:
                return NULL;
        }
}
