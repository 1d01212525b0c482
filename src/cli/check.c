#include "cli/check.h"

#include <getopt.h>
#include <stdio.h>

#include "cli/config_file.h"
#include "cli/usage.h"
#include "proxy/named_files.h"

int check_main(int argc, char **argv)
{
        static const struct option options[] = {
            {"config", required_argument, NULL, 'c'},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        const char *path = config_file_default();
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int option; (option = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
                if (option == 'c') {
                        path = optarg;
                } else {
                        return option == 'h' ? usage_print("check") : usage_refuse("check");
                }
        }
        if (optind < argc) {
                fprintf(stderr, "weir check: unexpected argument: %s\n", argv[optind]);
                return usage_refuse("check");
        }
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
