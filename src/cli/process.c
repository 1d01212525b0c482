#include "cli/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void process_fill_standard_descriptors(void)
{
        int fd;
        do
                fd = open("/dev/null", O_RDWR | O_NOCTTY);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd >= 0)
                close(fd);
}

void process_raise_descriptor_limit(void)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = limit.rlim_max;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
}
