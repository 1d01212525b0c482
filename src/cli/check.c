#include "cli/check.h"

#include <stdio.h>

#include "cli/config_file.h"
#include "proxy/named_files.h"

int check_main(int argc, char **argv)
{
        const char *path;
        int status;
        if (!config_file_option("check", argc, argv, &path, &status))
                return status;
        struct config *config = config_file_load(path, NULL);
        if (!config)
                return 1;
        for (size_t i = 0; i < config->pool_count; i++)
                if (!config_uses_pool(config, &config->pools[i]))
                        fprintf(stderr, "%s: no request goes by the pool %s: no egress names it\n",
                                path, config->pools[i].name);
        struct config_faults faults = {0};
        int r = named_files_check(config, &faults);
        if (r == 0)
                printf("%s: ok\n", path ? path : "built-in defaults");
        config_faults_print(&faults, path, stderr);
        config_faults_done(&faults);
        config_unref(config);
        return r == 0 ? 0 : 1;
}
