#include "cli/config_file.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/usage.h"

const char *config_file_default(void)
{
        static const char path[] = SYSCONFDIR "/weir/weir.yaml";
        /* Whatever else may be wrong with it is to be said, not passed over in silence. */
        return access(path, F_OK) == 0 ? path : NULL;
}

bool config_file_option(const char *command, int argc, char **argv, const char **ret_path,
                        int *ret_status)
{
        static const struct option options[] = {
            {"config", required_argument, NULL, 'c'},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        *ret_path = config_file_default();
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int o; (o = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
                if (o != 'c') {
                        *ret_status = o == 'h' ? usage_print(command) : usage_refuse(command);
                        return false;
                }
                *ret_path = optarg;
        }
        if (optind == argc)
                return true;
        fprintf(stderr, "weir %s: unexpected argument: %s\n", command, argv[optind]);
        *ret_status = usage_refuse(command);
        return false;
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
