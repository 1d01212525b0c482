/* tests/unit/config_text.h - loads a configuration from a text. */
#ifndef WEIR_TESTS_UNIT_CONFIG_TEXT_H
#define WEIR_TESTS_UNIT_CONFIG_TEXT_H

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"

/* Writes a file and loads it; the faults as they are printed, to be freed. */
static inline char *load_text(const char *text, const char *listen, struct config **ret)
{
        char path[] = "/tmp/weir-test-config-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
        struct config_faults faults = {0};
        char *out = NULL;
        size_t len;
        *ret = NULL;
        int r = config_load_listen(path, listen, ret, &faults);
        unlink(path);
        assert_int_equal(r, faults.count ? -EINVAL : 0);
        assert_int_equal(*ret != NULL, r == 0);
        FILE *to = open_memstream(&out, &len);
        config_faults_print(&faults, "f", to);
        fclose(to);
        config_faults_done(&faults);
        return out;
}

static inline struct config *load_good(const char *text)
{
        struct config *c;
        char *faults = load_text(text, NULL, &c);
        assert_string_equal(faults, "");
        free(faults);
        return c;
}

#endif
