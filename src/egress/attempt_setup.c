#include "egress/attempt.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"

#define MAX_HOST 255

/* "https://[" host "]:65535" */
#define ORIGIN_ROOM(host_len) ((host_len) + sizeof "https://[]:65535")

/* After this time a file of CAs is read again: it may be another one by then. */
#define CA_SECONDS 3600L

/* Read in one go; libcurl allocates this much for each transfer under way, and none for idle
 * handles. A quarter of it doubles what a long body costs; a short one touches only what it fills.
 */
#define READ_BYTES (64L * 1024)

/* Of what was switched over, each way: it may say nothing for hours, and what libcurl has filled
 * once it keeps for as long. Its least for an upload. */
#define SWITCHED_BYTES (16L * 1024)

/*
 * The address must be dialled as it was written: nothing that ends the host in a URL, and no
 * percent-encoding, which libcurl would undo.
 */
static bool is_host(struct span host)
{
        for (size_t i = 0; i < host.len; i++) {
                unsigned char c = (unsigned char)host.ptr[i];
                if (c <= ' ' || c == 0x7f || strchr("/?#@[]\\%\"<>^`{|}", c))
                        return false;
        }
        return host.len > 0 && host.len <= MAX_HOST;
}

/* Method and target go into the request line as they are. */
static bool is_word(struct span s)
{
        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char)s.ptr[i];
                if (c <= ' ' || c == 0x7f)
                        return false;
        }
        return s.len > 0;
}

static bool is_text(const char *text, struct span s)
{
        return text && strncmp(text, s.ptr, s.len) == 0 && text[s.len] == '\0';
}

CURLcode attempt_setup_text(CURL *easy, CURLoption option, char **was, struct span text)
{
        if (text.ptr ? is_text(*was, text) : !*was)
                return CURLE_OK;
        free(*was);
        *was = text.ptr ? xspandup(text) : NULL;
        return curl_easy_setopt(easy, option, *was);
}

static CURLcode set_origin(struct attempt *a, const struct upstream_request *request)
{
        char url[ORIGIN_ROOM(MAX_HOST)];
        struct span host = request->host;
        bool v6 = memchr(host.ptr, ':', host.len) != NULL;

        if (is_text(a->set.host, host) && a->set.port == request->port &&
            a->set.tls == request->tls)
                return CURLE_OK;
        free(a->set.host);
        a->set.host = xspandup(host);
        a->set.port = request->port;
        a->set.tls = request->tls;
        snprintf(url, sizeof url, "%s%s%s%s:%u", request->tls ? "https://" : "http://",
                 v6 ? "[" : "", a->set.host, v6 ? "]" : "", request->port);
        return curl_easy_setopt(a->easy, CURLOPT_URL, url);
}

/* The system's CAs as libcurl was built for them. Only a file is kept in memory by libcurl, to be
 * read once and not for each connection; so no directory beside it. */
static void use_system_cas(CURL *easy)
{
        const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

        curl_easy_setopt(easy, CURLOPT_CAINFO, info->cainfo);
        curl_easy_setopt(easy, CURLOPT_CAPATH, info->cainfo ? NULL : info->capath);
        curl_easy_setopt(easy, CURLOPT_CRLFILE, NULL);
}

/* Are there lists of revoked certificates in it? libcurl takes them only when told to, and from
 * then on wants one of every CA. */
static bool holds_revocations(const char *file)
{
        char *line = NULL;
        size_t room = 0;
        bool found = false;
        FILE *from = fopen(file, "re");

        while (from && !found && getline(&line, &room, from) > 0)
                found = strncmp(line, "-----BEGIN X509 CRL-----", 24) == 0;
        free(line);
        if (from)
                fclose(from);
        return found;
}

static CURLcode set_cas(struct attempt *a, const char *file)
{
        if (!file || !*file) {
                if (a->set.ca_file)
                        use_system_cas(a->easy);
                free(a->set.ca_file);
                a->set.ca_file = NULL;
                return CURLE_OK;
        }
        if (a->set.ca_file && strcmp(a->set.ca_file, file) == 0)
                return CURLE_OK;
        curl_easy_setopt(a->easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(a->easy, CURLOPT_CRLFILE, holds_revocations(file) ? file : NULL);
        return attempt_setup_text(a->easy, CURLOPT_CAINFO, &a->set.ca_file, span_of(file));
}

static CURLcode set_tls(struct attempt *a, const struct upstream_request *request)
{
        const struct upstream_tls *tls = &request->with;
        long version =
            tls->min_version == TLS_1_3 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2;

        if (tls->verify == a->set.no_verify) {
                a->set.no_verify = !tls->verify;
                curl_easy_setopt(a->easy, CURLOPT_SSL_VERIFYPEER, tls->verify ? 1L : 0L);
                curl_easy_setopt(a->easy, CURLOPT_SSL_VERIFYHOST, tls->verify ? 2L : 0L);
        }
        if (version != a->set.ssl_version)
                curl_easy_setopt(a->easy, CURLOPT_SSLVERSION, version);
        a->set.ssl_version = version;
        return set_cas(a, tls->ca_file);
}

/* While a connection to the host is held up by one who does not read, others go beside it: on
 * connections of their own. */
static void set_http_version(struct attempt *a, const struct upstream_request *request)
{
        bool http2 = request->tls && request->with.http2 && !request->dial && !request->may_switch;
        bool alone = http2 && upstream_is_stalled(a->upstream, request->host, request->port);
        /* HTTP/2 knows no 101, and libcurl would take an open connection of it. */
        alone = alone || (request->tls && request->may_switch);
        /* Some proxies (tinyproxy) close after each answer without having said so. What must not be
         * sent twice would be lost on a connection that is just about to be closed. */
        alone = alone || (attempt_egress_reads(request) && !request->replayable);
        long version = http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;

        if (version != a->set.http_version)
                curl_easy_setopt(a->easy, CURLOPT_HTTP_VERSION, version);
        a->set.http_version = version;
        if (alone != a->set.alone)
                curl_easy_setopt(a->easy, CURLOPT_FRESH_CONNECT, alone ? 1L : 0L);
        a->set.alone = alone;
}

/* The order matters to libcurl: UPLOAD switches NOBODY off and changes the method behind it. */
static void set_method(struct attempt *a, bool upload, bool no_body)
{
        if (upload == a->set.upload && no_body == a->set.no_body)
                return;
        curl_easy_setopt(a->easy, CURLOPT_NOBODY, 0L);
        curl_easy_setopt(a->easy, CURLOPT_UPLOAD, upload ? 1L : 0L);
        if (no_body)
                curl_easy_setopt(a->easy, CURLOPT_NOBODY, 1L);
        a->set.upload = upload;
        a->set.no_body = no_body;
}

static long to_ms(usec_t t)
{
        const long forever = 24L * 3600 * 1000;

        if (t == 0 || t / USEC_PER_MSEC >= (usec_t)forever)
                return forever;
        return t < USEC_PER_MSEC ? 1 : (long)(t / USEC_PER_MSEC);
}

static void set_connection(struct attempt *a, const struct upstream_request *request)
{
        long connect_ms = to_ms(request->timeouts.connect);

        if (connect_ms != a->set.connect_ms)
                curl_easy_setopt(a->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
        a->set.connect_ms = connect_ms;
        if (request->dial != a->set.dial)
                curl_easy_setopt(a->easy, CURLOPT_CONNECT_ONLY, request->dial ? 1L : 0L);
        a->set.dial = request->dial;
}

static void set_buffers(struct attempt *a, bool small)
{
        if (small == a->set.small_buffers)
                return;
        curl_easy_setopt(a->easy, CURLOPT_BUFFERSIZE, small ? SWITCHED_BYTES : READ_BYTES);
        curl_easy_setopt(a->easy, CURLOPT_UPLOAD_BUFFERSIZE, small ? SWITCHED_BYTES : READ_BYTES);
        a->set.small_buffers = small;
}

static enum upstream_error set_request(struct attempt *a, const struct upstream_request *request)
{
        size_t body_len = request->body ? evbuffer_get_length(request->body) : 0;

        if (!is_word(request->method) || !is_word(request->target))
                return UPSTREAM_HTTP_REQUEST_ERROR;
        char *whole = attempt_egress_target(a, request);
        CURLcode code = attempt_setup_text(a->easy, CURLOPT_REQUEST_TARGET, &a->set.target,
                                           whole ? span_of(whole) : request->target);
        free(whole);
        if (code)
                return UPSTREAM_PROXY_INTERNAL_ERROR;
        if (!request_lines_fill(&a->lines, request->fields, request->body, body_len,
                                request->may_switch))
                return UPSTREAM_HTTP_REQUEST_ERROR;
        /* What is uploaded after a 101 has neither length nor end. */
        curl_off_t length = request->may_switch ? -1 : (curl_off_t)body_len;
        bool head = span_equal(request->method, span_of("HEAD"));
        set_buffers(a, request->may_switch);
        set_method(a, body_len > 0 || request->may_switch, head && body_len == 0);
        a->head_only = head && body_len > 0; /* libcurl knows no such request */
        if (length != a->set.body_len)
                curl_easy_setopt(a->easy, CURLOPT_INFILESIZE_LARGE, length);
        a->set.body_len = length;
        if (attempt_setup_text(a->easy, CURLOPT_CUSTOMREQUEST, &a->set.method, request->method) ||
            curl_easy_setopt(a->easy, CURLOPT_HTTPHEADER, a->lines.list))
                return UPSTREAM_PROXY_INTERNAL_ERROR;
        a->body_len = body_len;
        return UPSTREAM_OK;
}

enum upstream_error attempt_setup_request(struct attempt *a, const struct upstream_request *request)
{
        if (!is_host(request->host) || request->port == 0 || request->port > 65535)
                return UPSTREAM_HTTP_REQUEST_ERROR;
        set_connection(a, request);
        set_http_version(a, request);
        if ((request->tls && set_tls(a, request)) || set_origin(a, request))
                return UPSTREAM_PROXY_INTERNAL_ERROR;
        enum upstream_error error = attempt_setup_egress(a, request);
        if (error)
                return error;
        return request->dial ? UPSTREAM_OK : set_request(a, request);
}

void attempt_setup_handle(struct attempt *a)
{
        CURL *easy = a->easy;

        /* Only what we were asked for: no redirects (the default), credentials, proxies from our
         * own environment, nor decoding. */
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* the environment is asked otherwise */
        curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, CURLAUTH_BASIC); /* no Kerberos */
        curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
        curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);

        /* Without this, giving up on a name waits for the resolver's thread, and with it the whole
         * worker. */
        curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, READ_BYTES);
        /* Of many requests to one host the first finds out whether a connection can carry all. */
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
        curl_easy_setopt(easy, CURLOPT_SHARE, upstream_share(a->upstream));
        use_system_cas(easy);
        curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, CA_SECONDS);
        if (upstream_proxy_cas(a->upstream))
                curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, upstream_proxy_cas(a->upstream));
        curl_easy_setopt(easy, CURLOPT_PRIVATE, a);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, a->error_text);
        a->set.body_len = -1; /* which is libcurl's default too */
}
