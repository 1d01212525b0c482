#include "egress/attempt.h"

#include <errno.h>

static bool resolving(const struct attempt *a)
{
        curl_off_t t = 0;

        curl_easy_getinfo(a->easy, CURLINFO_NAMELOOKUP_TIME_T, &t);
        return t == 0;
}

static int os_error(const struct attempt *a)
{
        long error = 0;

        curl_easy_getinfo(a->easy, CURLINFO_OS_ERRNO, &error);
        return (int)error;
}

static bool all_denied(const struct attempt *a)
{
        return a->denied && !a->dialled;
}

static enum upstream_error connect_error(const struct attempt *a)
{
        if (all_denied(a))
                return UPSTREAM_DESTINATION_IP_PROHIBITED;
        switch (os_error(a)) {
        case ECONNREFUSED:
        case ECONNRESET:
                return UPSTREAM_CONNECTION_REFUSED;
        case ENETUNREACH:
        case EHOSTUNREACH:
        case EADDRNOTAVAIL:
        case EAFNOSUPPORT:
                return UPSTREAM_DESTINATION_IP_UNROUTABLE;
        case ETIMEDOUT:
                return UPSTREAM_CONNECTION_TIMEOUT;
        default:
                return UPSTREAM_DESTINATION_UNAVAILABLE;
        }
}

static enum upstream_error timeout_error(const struct attempt *a)
{
        if (a->phase != ATTEMPT_CONNECTING)
                return UPSTREAM_CONNECTION_READ_TIMEOUT;
        if (resolving(a))
                return UPSTREAM_DNS_TIMEOUT;
        return all_denied(a) ? UPSTREAM_DESTINATION_IP_PROHIBITED : UPSTREAM_CONNECTION_TIMEOUT;
}

/* Bytes stopped coming, or going. */
static enum upstream_error broken_error(const struct attempt *a)
{
        return a->head.done ? UPSTREAM_HTTP_RESPONSE_INCOMPLETE : UPSTREAM_CONNECTION_TERMINATED;
}

/* Was the connection lost while TLS was being set up, rather than TLS refused? A reset leaves its
 * number; an orderly close shows in libcurl's words only. */
static bool handshake_broken(const struct attempt *a)
{
        return os_error(a) == ECONNRESET || strstr(a->error_text, "SSL_ERROR_SYSCALL");
}

enum upstream_error attempt_error_from(const struct attempt *a, CURLcode code)
{
        if (a->error)
                return a->error;
        if (a->head_only && a->head.done)
                return UPSTREAM_OK;
        switch (code) {
        case CURLE_OK:
                return a->head.done || a->set.dial ? UPSTREAM_OK : UPSTREAM_CONNECTION_TERMINATED;
        case CURLE_COULDNT_RESOLVE_HOST:
                return UPSTREAM_DNS_ERROR;
        case CURLE_COULDNT_CONNECT:
                return connect_error(a);
        case CURLE_OPERATION_TIMEDOUT:
                return timeout_error(a);
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_FAIL_REWIND:
                return broken_error(a);
        case CURLE_PARTIAL_FILE:
                return UPSTREAM_HTTP_RESPONSE_INCOMPLETE;
        case CURLE_SSL_CONNECT_ERROR:
                return handshake_broken(a) ? UPSTREAM_CONNECTION_TERMINATED
                                           : UPSTREAM_TLS_PROTOCOL_ERROR;
        case CURLE_SSL_CIPHER:
                return UPSTREAM_TLS_PROTOCOL_ERROR;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_INVALIDCERTSTATUS:
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
                return UPSTREAM_TLS_CERTIFICATE_ERROR;
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL: /* an answer without a status line, when connected */
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
                return a->phase == ATTEMPT_CONNECTING ? UPSTREAM_HTTP_REQUEST_ERROR
                                                      : UPSTREAM_HTTP_PROTOCOL_ERROR;
        case CURLE_BAD_CONTENT_ENCODING:
                return UPSTREAM_HTTP_RESPONSE_TRANSFER_CODING;
        default:
                return UPSTREAM_PROXY_INTERNAL_ERROR;
        }
}

const char *attempt_error_detail(const struct attempt *a, enum upstream_error error)
{
        switch (error) {
        case UPSTREAM_OK:
                return "";
        case UPSTREAM_DESTINATION_IP_PROHIBITED:
                return "this proxy may not connect to that address";
        case UPSTREAM_CONNECTION_READ_TIMEOUT:
                return "the host stopped sending before its answer was complete";
        case UPSTREAM_HTTP_RESPONSE_TIMEOUT:
                return "the host took too long to begin its answer";
        case UPSTREAM_HTTP_REQUEST_ERROR:
                return "the request cannot be sent as it is";
        case UPSTREAM_HTTP_RESPONSE_HEADER_SECTION_SIZE:
                return "the header of the answer is too large";
        case UPSTREAM_CONNECTION_TERMINATED:
                return "the connection was closed before there was an answer";
        case UPSTREAM_HTTP_RESPONSE_INCOMPLETE:
                return "the connection was closed in the middle of the answer";
        case UPSTREAM_HTTP_PROTOCOL_ERROR:
                return "the answer is not valid HTTP";
        default:
                break;
        }
        return a->error_text[0] ? a->error_text : upstream_error_type(error);
}
