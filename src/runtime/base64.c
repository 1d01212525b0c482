#include "runtime/base64.h"

#include <nettle/base64.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/xalloc.h"

bool base64_decode(struct span text, struct span *ret)
{
        struct base64_decode_ctx ctx;
        size_t len = BASE64_DECODE_LENGTH(text.len);
        char *out = xmalloc(len + 1);
        base64_decode_init(&ctx);
        if (!base64_decode_update(&ctx, &len, (uint8_t *)out, text.len, text.ptr) ||
            !base64_decode_final(&ctx)) {
                free(out);
                return false;
        }
        out[len] = '\0';
        *ret = (struct span){out, len};
        return true;
}
