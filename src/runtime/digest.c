#include "runtime/digest.h"

#include <nettle/sha2.h>
#include <stdio.h>

void digest_text(struct span secret, char ret[DIGEST_TEXT_SIZE])
{
        struct sha256_ctx sha;
        uint8_t first[(DIGEST_TEXT_SIZE - 1) / 2];
        sha256_init(&sha);
        sha256_update(&sha, secret.len, (const uint8_t *)secret.ptr);
        sha256_digest(&sha, sizeof first, first);
        for (size_t i = 0; i < sizeof first; i++)
                snprintf(ret + 2 * i, 3, "%02x", first[i]);
}

void digest_bytes(const struct span *texts, size_t count, uint8_t ret[DIGEST_SIZE])
{
        struct sha256_ctx sha;
        sha256_init(&sha);
        for (size_t i = 0; i < count; i++) {
                uint64_t len = texts[i].len;
                sha256_update(&sha, sizeof len, (const uint8_t *)&len);
                sha256_update(&sha, texts[i].len, (const uint8_t *)texts[i].ptr);
        }
        sha256_digest(&sha, DIGEST_SIZE, ret);
}
