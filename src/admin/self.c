#include "admin/self.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"

/* proc(5): fields of /proc/self/stat, counted from 1; the second, the name, may hold anything. */
#define FIELD_THREADS 20
#define FIELD_START 22

/* The one line of a file of proc(5); false where it cannot be read. */
static bool read_line(const char *path, char *line, int size)
{
        FILE *from = fopen(path, "re");
        bool good = from && fgets(line, size, from);
        if (from)
                fclose(from);
        return good;
}

static double stat_field(unsigned wanted)
{
        char line[1024];
        char *at = read_line("/proc/self/stat", line, sizeof line) ? strrchr(line, ')') : NULL;
        for (unsigned field = 2; at && field < wanted; field++)
                at = strchr(at + 1, ' ');
        return at ? strtod(at, NULL) : 0;
}

static void look_at_memory(struct self_figures *f)
{
        char line[256], *rest;
        double page = (double)sysconf(_SC_PAGESIZE);
        if (!read_line("/proc/self/statm", line, sizeof line))
                return;
        f->virtual_bytes = strtod(line, &rest) * page;
        f->resident_bytes = strtod(rest, NULL) * page;
}

static void look_at_descriptors(struct self_figures *f)
{
        struct rlimit limit;
        DIR *dir = opendir("/proc/self/fd");
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): the directory is ours alone */
        for (struct dirent *e; dir && (e = readdir(dir));)
                f->open_fds += e->d_name[0] != '.';
        if (dir) {
                f->open_fds--; /* that of the directory */
                closedir(dir);
        }
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                f->max_fds = (double)limit.rlim_cur;
}

static double seconds(struct timeval t)
{
        return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

void self_look(struct self_figures *ret)
{
        struct rusage usage;
        *ret = (struct self_figures){.threads = stat_field(FIELD_THREADS)};
        if (getrusage(RUSAGE_SELF, &usage) == 0)
                ret->cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
        look_at_memory(ret);
        look_at_descriptors(ret);
}

usec_t self_started(void)
{
        struct timespec up;
        double ticks = stat_field(FIELD_START);
        if (ticks <= 0 || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
                return clock_real();
        double age =
            (double)up.tv_sec + (double)up.tv_nsec / 1e9 - ticks / (double)sysconf(_SC_CLK_TCK);
        return usec_sub(clock_real(), usec_from_seconds(age));
}
