#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *field = xspandup(fuzz_span(data, size));
        struct credentials c = {.session = "untouched"};
        if (credentials_read(field, &c)) {
                size_t name = strlen(c.name), password = strlen(c.password);
                FUZZ_CHECK(name + password < size);
                FUZZ_CHECK(c.password > c.name && !strchr(c.name, ':'));
                FUZZ_CHECK(!strstr(c.name, CREDENTIALS_SESSION));
                FUZZ_CHECK(!c.session || (c.session > c.name && c.session < c.password &&
                                          !strchr(c.session, ':')));
                credentials_done(&c);
        } else {
                FUZZ_CHECK(!c.name && !c.password && strcmp(c.session, "untouched") == 0);
        }
        free(field);
        return 0;
}
