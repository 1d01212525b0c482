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
