#include "proxy/credentials.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/span.h"
#include "runtime/base64.h"

static bool has_control(struct span s)
{
        for (size_t i = 0; i < s.len; i++)
                if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f)
                        return true;
        return false;
}

bool credentials_read(const char *field, struct credentials *ret)
{
        static const char scheme[] = "Basic ";
        size_t n = sizeof scheme - 1;
        struct span text;
        if (strncasecmp(field, scheme, n) != 0 ||
            !base64_decode(span_trim(span_of(field + n)), &text))
                return false;
        char *name = (char *)text.ptr, *colon = strchr(name, ':');
        if (!colon || has_control(text)) {
                explicit_bzero(name, text.len);
                free(name);
                return false;
        }
        *colon = '\0';
        char *session = strstr(name, CREDENTIALS_SESSION);
        *ret = (struct credentials){
            .name = name,
            .password = colon + 1,
            .session = session ? session + strlen(CREDENTIALS_SESSION) : NULL,
        };
        if (session)
                *session = '\0';
        return true;
}

void credentials_done(struct credentials *c)
{
        if (c->password)
                explicit_bzero(c->password, strlen(c->password));
        free(c->name);
        *c = (struct credentials){.name = NULL};
}
