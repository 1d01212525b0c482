#include "cli/exec_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/clock.h"

static const int passed_on[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
#define PASSED_ON (sizeof passed_on / sizeof passed_on[0])

/* ---- descriptors ---- */

/* Calls `each` with every descriptor of this process but the standard ones. */
static void each_descriptor(void (*each)(struct exec_child *c, int fd), struct exec_child *c)
{
        DIR *dir = opendir("/proc/self/fd");
        if (!dir)
                return;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): this directory stream is ours alone */
        for (struct dirent *entry; (entry = readdir(dir));) {
                int fd = (int)strtol(entry->d_name, NULL, 10);
                if (fd > STDERR_FILENO && fd != dirfd(dir))
                        each(c, fd);
        }
        closedir(dir);
}

static void note_inherited(struct exec_child *c, int fd)
{
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || flags & FD_CLOEXEC)
                return;
        c->inherited = xrealloc(c->inherited, (c->inherited_count + 1) * sizeof *c->inherited);
        c->inherited[c->inherited_count++] = fd;
}

/* Libraries open some without the flag. */
static void keep_from_child(struct exec_child *c, int fd)
{
        for (size_t i = 0; i < c->inherited_count; i++)
                if (c->inherited[i] == fd)
                        return;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* ---- signals ---- */

/* Is weir's process group what the terminal runs now? *ret_terminal: there is a terminal. */
static bool in_foreground(bool *ret_terminal)
{
        int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
        *ret_terminal = fd >= 0;
        if (fd < 0)
                return false;
        bool yes = tcgetpgrp(fd) == getpgrp();
        close(fd);
        return yes;
}

int exec_child_prepare(struct exec_child *c)
{
        sigset_t set;
        struct sigaction pipe;
        *c = (struct exec_child){.pid = -1, .signals = -1};
        each_descriptor(note_inherited, c);
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        for (size_t i = 0; i < PASSED_ON; i++)
                sigaddset(&set, passed_on[i]);
        pthread_sigmask(SIG_BLOCK, &set, &c->original);
        sigaction(SIGPIPE, NULL, &pipe);
        c->default_pipe = pipe.sa_handler != SIG_IGN;
        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_DFL); /* where it is ignored nobody learns how a child ended */
        c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return c->signals < 0 ? -errno : 0;
}

void exec_child_done(struct exec_child *c)
{
        if (c->signals >= 0)
                close(c->signals);
        free(c->inherited);
}

/* ---- its life ---- */

int exec_child_start(struct exec_child *c, char *const argv[], char *const envp[])
{
        posix_spawnattr_t attributes;
        sigset_t defaults;
        short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
        c->own_group = !in_foreground(&c->job);
        if (c->own_group)
                flags |= POSIX_SPAWN_SETPGROUP; /* 0: one of its own */
        sigemptyset(&defaults);
        if (c->default_pipe)
                sigaddset(&defaults, SIGPIPE);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setsigmask(&attributes, &c->original);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, flags);
        each_descriptor(keep_from_child, c);
        int r = -posix_spawnp(&c->pid, argv[0], NULL, &attributes, argv, envp);
        posix_spawnattr_destroy(&attributes);
        return r;
}

static void pass_on(const struct exec_child *c, const struct signalfd_siginfo *info)
{
        int number = (int)info->ssi_signo;
        /* The kernel sends for the terminal, to the whole group in the foreground. */
        if (info->ssi_code == SI_KERNEL && !c->own_group)
                return;
        kill(c->own_group ? -c->pid : c->pid, number);
}

/* Whoever stopped the command at the terminal wants to have the terminal. */
static void stop_too(const struct exec_child *c, int number)
{
        if (c->job && (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU))
                raise(SIGSTOP);
}

/* True: it has ended, with *ret_status. */
static bool look(const struct exec_child *c, int *ret_status)
{
        int status;
        while (waitpid(c->pid, &status, WNOHANG | WUNTRACED) == c->pid) {
                if (WIFSTOPPED(status)) {
                        stop_too(c, WSTOPSIG(status));
                        continue;
                }
                *ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
                return true;
        }
        return false;
}

int exec_child_wait(struct exec_child *c, usec_t every, void (*on_time)(void *arg), void *arg)
{
        usec_t next = every ? usec_add(clock_now(), every) : USEC_MAX;
        int status;
        while (!look(c, &status)) {
                struct pollfd p = {.fd = c->signals, .events = POLLIN};
                usec_t left = usec_sub(next, clock_now());
                poll(&p, 1, next == USEC_MAX ? -1 : (int)usec_min(left / 1000 + 1, 1000000));
                struct signalfd_siginfo info;
                while (read(c->signals, &info, sizeof info) == sizeof info)
                        if (info.ssi_signo != SIGCHLD)
                                pass_on(c, &info);
                if (clock_now() >= next) {
                        on_time(arg);
                        next = usec_add(clock_now(), every);
                }
        }
        return status;
}
