#include "egress/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* OpenSSL stops at the first thing that is wrong, which may be below what libcurl looks at: a CA of
 * the same name with another key, for one. */
static bool certificate_at_fault(const struct attempt *a)
{
        return strstr(a->error_text, "x509 certificate routines") ||
               strstr(a->error_text, "asn1 encoding routines");
}

/* OpenSSL's words for a thing: what stands behind the last "::". */
static const char *openssl_reason(const struct attempt *a)
{
        const char *reason = a->error_text;

        for (const char *at; (at = strstr(reason, "::"));)
                reason = at + 2;
        return reason;
}

/* The name of the alert with which the host broke off; NULL: it sent none. */
static const char *alert_received(const struct attempt *a)
{
        const char *reason = openssl_reason(a), *at;

        if (strstr(reason, "tlsv1 unrecognized name"))
                return "unrecognized name";
        return (at = strstr(reason, " alert ")) ? at + strlen(" alert ") : NULL;
}

static enum upstream_error tls_error(const struct attempt *a)
{
        const char *alert = alert_received(a);

        if (certificate_at_fault(a))
                return UPSTREAM_TLS_CERTIFICATE_ERROR;
        if (!alert)
                return handshake_broken(a) ? UPSTREAM_CONNECTION_TERMINATED
                                           : UPSTREAM_TLS_PROTOCOL_ERROR;
        /* It says what our own side would say of such a host. */
        return strcmp(alert, "protocol version") == 0 ? UPSTREAM_TLS_PROTOCOL_ERROR
                                                      : UPSTREAM_TLS_ALERT_RECEIVED;
}

enum upstream_error attempt_error_from(const struct attempt *a, CURLcode code)
{
        if (a->error)
                return a->error;
        if (a->head_only && a->head.done)
                return UPSTREAM_OK;
        enum upstream_error egress = attempt_egress_error(a, code);
        if (egress)
                return egress;
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
                /* With TLS 1.3 a host that wants a certificate says so late. */
                if (a->set.tls && !a->head.done && alert_received(a))
                        return UPSTREAM_TLS_ALERT_RECEIVED;
                return broken_error(a);
        case CURLE_HTTP2: /* the host has gone away (GOAWAY), and with it this request */
        case CURLE_HTTP2_STREAM:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_FAIL_REWIND:
                return broken_error(a);
        case CURLE_PARTIAL_FILE:
                return UPSTREAM_HTTP_RESPONSE_INCOMPLETE;
        case CURLE_SSL_CONNECT_ERROR:
                return tls_error(a);
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
                return a->phase == ATTEMPT_CONNECTING ? UPSTREAM_HTTP_REQUEST_ERROR
                                                      : UPSTREAM_HTTP_PROTOCOL_ERROR;
        case CURLE_BAD_CONTENT_ENCODING:
                return UPSTREAM_HTTP_RESPONSE_TRANSFER_CODING;
        default:
                return UPSTREAM_PROXY_INTERNAL_ERROR;
        }
}

/* What is wrong with the host's certificate: libcurl passes on OpenSSL's phrases. */
static const char *certificate_detail(struct attempt *a)
{
        static const struct {
                const char *theirs, *ours;
        } phrases[] = {
            {"has expired", "has expired"},
            {"not yet valid", "is not valid yet"},
            {"self-signed certificate in certificate chain",
             "comes from a CA that is not known here (tls.ca_file can name it)"},
            {"self-signed", "is signed by itself, so nobody vouches for it (tls.ca_file can)"},
            {"unable to get local issuer",
             "comes from an issuer that is not known here (tls.ca_file can name it)"},
            {"unable to get issuer", "comes from an issuer that is not known here"},
            {"revoked", "has been revoked"},
            {"subject name", "is for another host"},
        };
        static const char prefix[] = "SSL certificate problem: ";
        const char *text = a->error_text;

        for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
                if (strstr(text, phrases[i].theirs)) {
                        snprintf(a->detail, sizeof a->detail, "the host's certificate %s",
                                 phrases[i].ours);
                        return a->detail;
                }
        if (certificate_at_fault(a))
                return "the host's certificate comes from an issuer that is not known here: one of "
                       "that name is, with another key";
        if (strncmp(text, prefix, strlen(prefix)) == 0)
                text += strlen(prefix);
        snprintf(a->detail, sizeof a->detail, "the host's certificate cannot be verified: %s",
                 *text ? text : "no reason given");
        return a->detail;
}

static const char *tls_detail(struct attempt *a)
{
        const char *reason = openssl_reason(a);
        bool version = strstr(reason, "protocol version") || strstr(reason, "unsupported protocol");

        if (version)
                return "the host does not speak a version of TLS that is allowed here "
                       "(tls.min_version)";
        snprintf(a->detail, sizeof a->detail, "TLS with the host failed: %s", reason);
        return a->detail;
}

static const char *alert_detail(struct attempt *a)
{
        const char *alert = alert_received(a);

        snprintf(a->detail, sizeof a->detail, "the host broke TLS off with the alert \"%s\"",
                 alert ? alert : "unknown");
        return a->detail;
}

const char *attempt_error_detail(struct attempt *a, enum upstream_error error)
{
        const char *egress = attempt_egress_detail(error);
        if (egress)
                return egress;
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
        case UPSTREAM_TLS_CERTIFICATE_ERROR:
                return certificate_detail(a);
        case UPSTREAM_TLS_PROTOCOL_ERROR:
                return tls_detail(a);
        case UPSTREAM_TLS_ALERT_RECEIVED:
                return alert_detail(a);
        default:
                break;
        }
        /* libcurl would name the proxy, which may be a secret. */
        if (attempt_egress_is_proxy(a)) {
                snprintf(a->detail, sizeof a->detail, "the upstream proxy could not reach it (%s)",
                         upstream_error_type(error));
                return a->detail;
        }
        return a->error_text[0] ? a->error_text : upstream_error_type(error);
}
