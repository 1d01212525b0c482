#include "cli/config_file.h"

#include <stdio.h>
#include <unistd.h>

const char *config_file_default(void)
{
        static const char path[] = SYSCONFDIR "/weir/weir.yaml";
        /* Whatever else may be wrong with it is to be said, not passed over in silence. */
        return access(path, F_OK) == 0 ? path : NULL;
}

struct config *config_file_load(const char *path, const struct config_given *given)
{
        struct config *config;
        struct config_faults faults;
        int r = given ? config_load_given(path, given, &config, &faults)
                      : config_load(path, &config, &faults);
        if (r == 0)
                return config;
        config_faults_print(&faults, path, stderr);
        config_faults_done(&faults);
        return NULL;
}
