#include "cli/check.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/usage.h"
#include "config/config.h"

const char *config_default_path(void)
{
        static const char path[] = SYSCONFDIR "/weir/weir.yaml";
        /* Whatever else may be wrong with it is to be said, not passed over in silence. */
        return access(path, F_OK) == 0 ? path : NULL;
}

int check_main(int argc, char **argv)
{
        static const struct option options[] = {
            {"config", required_argument, NULL, 'c'},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        const char *path = config_default_path();
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
        struct config *config;
        struct config_faults faults;
        if (config_load(path, &config, &faults) < 0) {
                config_faults_print(&faults, path, stderr);
                config_faults_done(&faults);
                return 1;
        }
        printf("%s: ok\n", path ? path : "built-in defaults");
        config_unref(config);
        return 0;
}
