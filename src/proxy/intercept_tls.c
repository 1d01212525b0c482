#include "proxy/intercept_tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/intercept_cert.h"
#include "runtime/clock.h"

/* Certificates kept by each thread, some 2 KiB each. */
#define MOST_LEAVES 1000

/* OpenSSL's reason for an alert that has come is this and the alert's number. */
#define ALERT_REASON 1000

struct intercept_tls {
        struct intercept_ca *ca;
        EVP_PKEY *key; /* of all leaves */
        SSL_CTX *ctx;
        STACK_OF(X509) * chain; /* what is sent behind a leaf */
};

/* Called once the client has said whom it wants to talk to, unless it takes up a former session. */
static int on_certificate(SSL *ssl, void *arg)
{
        (void)arg;
        const struct intercept_shake *shake = SSL_get_app_data(ssl);
        const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
        usec_t now = clock_real();
        struct intercept_leaf *leaf = name ? intercept_leaf_get(shake->leaves, name, now) : NULL;
        if (!leaf)
                leaf = intercept_leaf_get(shake->leaves, shake->host, now);
        return leaf && SSL_use_cert_and_key(ssl, leaf->certificate, shake->tls->key,
                                            shake->tls->chain, 1) == 1;
}

/* Who offers HTTP/1.1 gets it; who offers other things alone is told that there is none of them
 * (RFC 7301, 3.2). */
static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                   const unsigned char *offered, unsigned len, void *arg)
{
        static const unsigned char ours[] = "\x08http/1.1";
        (void)ssl, (void)arg;
        unsigned char *chosen;
        if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof ours - 1, offered, len) !=
            OPENSSL_NPN_NEGOTIATED)
                return SSL_TLSEXT_ERR_ALERT_FATAL;
        *ret = chosen;
        return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *new_context(void)
{
        static const unsigned char id[] = "weir";
        SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
        if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
            !SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1)) {
                SSL_CTX_free(ctx);
                return NULL;
        }
        SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
        /* Sessions are in the tickets, which any worker can read: nothing is kept here. */
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_num_tickets(ctx, 1);
        SSL_CTX_set_read_ahead(ctx, 1); /* a record's head and body in one read */
        SSL_CTX_set_cert_cb(ctx, on_certificate, NULL);
        SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
        return ctx;
}

/* The CA and those above it: some clients trust only the uppermost. */
static STACK_OF(X509) * chain_of(const struct intercept_ca *ca)
{
        STACK_OF(X509) *chain = X509_chain_up_ref(ca->above);
        if (!chain || !X509_up_ref(ca->certificate) || !sk_X509_unshift(chain, ca->certificate))
                abort(); /* out of memory */
        return chain;
}

int intercept_tls_new(struct intercept_ca *ca, struct intercept_tls **ret)
{
        struct intercept_tls *t = xcalloc(1, sizeof *t);
        t->ca = ca;
        t->chain = chain_of(ca);
        t->key = intercept_cert_key();
        t->ctx = new_context();
        if (!t->key || !t->ctx) {
                intercept_tls_free(t);
                return -EIO;
        }
        *ret = t;
        return 0;
}

void intercept_tls_free(struct intercept_tls *t)
{
        if (!t)
                return;
        SSL_CTX_free(t->ctx);
        EVP_PKEY_free(t->key);
        sk_X509_pop_free(t->chain, X509_free);
        intercept_ca_free(t->ca);
        free(t);
}

const struct intercept_ca *intercept_tls_ca(const struct intercept_tls *t)
{
        return t->ca;
}

struct intercept_leaves *intercept_tls_leaves(const struct intercept_tls *t)
{
        return intercept_leaves_new(t->ca, t->key, MOST_LEAVES);
}

SSL *intercept_tls_accept(const struct intercept_shake *shake, int fd)
{
        SSL *ssl = SSL_new(shake->tls->ctx);
        if (!ssl || !SSL_set_fd(ssl, fd)) {
                SSL_free(ssl);
                ERR_clear_error();
                return NULL;
        }
        SSL_set_app_data(ssl, (void *)shake);
        SSL_set_accept_state(ssl);
        return ssl;
}

const char *intercept_tls_distrust(void)
{
        unsigned long error = ERR_peek_error();
        int alert = ERR_GET_REASON(error) - ALERT_REASON;
        if (ERR_GET_LIB(error) != ERR_LIB_SSL)
                return NULL;
        switch (alert) {
        case SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_CERTIFICATE_REVOKED:
        case SSL_AD_CERTIFICATE_EXPIRED:
        case SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_UNKNOWN_CA:
                return SSL_alert_desc_string_long(alert);
        default:
                return NULL;
        }
}
