#include "proxy/intercept_cert.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

/* RFC 5280, 4.1.2.2: at most 20 bytes, and positive. */
#define SERIAL_BITS 159

EVP_PKEY *intercept_cert_key(void)
{
        return EVP_EC_gen("P-256");
}

static bool set_serial(X509 *cert)
{
        BIGNUM *n = BN_new();
        bool good = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
                    BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
        BN_free(n);
        return good;
}

X509 *intercept_cert_new(EVP_PKEY *key, int days)
{
        X509 *cert = X509_new();
        if (cert && X509_set_version(cert, X509_VERSION_3) && set_serial(cert) &&
            X509_gmtime_adj(X509_getm_notBefore(cert), -INTERCEPT_CERT_DAY) &&
            X509_gmtime_adj(X509_getm_notAfter(cert), days * INTERCEPT_CERT_DAY) &&
            X509_set_pubkey(cert, key))
                return cert;
        X509_free(cert);
        return NULL;
}

bool intercept_cert_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
        X509V3_CTX ctx;
        X509V3_set_ctx_nodb(&ctx);
        X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        bool good = e && X509_add_ext(cert, e, -1);
        X509_EXTENSION_free(e);
        return good;
}

bool intercept_cert_sign(X509 *cert, EVP_PKEY *key)
{
        /* Some keys, such as Ed25519's, take no digest of ours. */
        int nid = NID_undef;
        bool none = EVP_PKEY_get_default_digest_nid(key, &nid) == 2 && nid == NID_undef;
        return X509_sign(cert, key, none ? NULL : EVP_sha256()) > 0;
}

const char *intercept_cert_error(void)
{
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        ERR_clear_error();
        return reason ? reason : "unknown";
}
