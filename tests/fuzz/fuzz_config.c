#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

/* What weir shows of a configuration, it reads back, and shows the same again. */
static char *show(const struct config *c, size_t *ret_len)
{
        char *text = NULL;
        FILE *to = open_memstream(&text, ret_len);
        config_show(c, to);
        fclose(to);
        return text;
}

static void check(const struct config *c)
{
        struct config *again = NULL;
        struct config_faults faults = {0};
        size_t len, len_again;
        char *text = show(c, &len);
        if (strstr(text,
                   "***")) { /* what is not shown cannot be read back: two may look the same */
                free(text);
                return;
        }
        if (config_parse((struct span){text, len}, &again, &faults) < 0) {
                config_faults_print(&faults, "shown", stderr);
                FUZZ_CHECK(false);
        }
        char *text_again = show(again, &len_again);
        FUZZ_CHECK(span_equal((struct span){text, len}, (struct span){text_again, len_again}));
        free(text);
        free(text_again);
        config_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct config *c = NULL;
        struct config_faults faults = {0};
        if (config_parse(fuzz_span(data, size), &c, &faults) == 0) {
                FUZZ_CHECK(config_policy(c, span_of("www.example.com")));
                check(c);
                config_unref(c);
                return 0;
        }
        FUZZ_CHECK(faults.count > 0);
        for (size_t i = 0; i < faults.count; i++)
                for (const char *t = faults.list[i].text; *t; t++)
                        FUZZ_CHECK((unsigned char)*t >= ' ' && *t != 0x7f);
        config_faults_done(&faults);
        return 0;
}
