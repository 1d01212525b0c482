#include "cli/practice_signals.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "runtime/clock.h"

static void fill(sigset_t *set)
{
        sigemptyset(set);
        sigaddset(set, SIGINT);
        sigaddset(set, SIGTERM);
        sigaddset(set, SIGHUP);
}

void practice_signals_block(void)
{
        sigset_t set;
        fill(&set);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
}

bool practice_signals_wait(usec_t until)
{
        sigset_t set;
        fill(&set);
        for (;;) {
                usec_t left = usec_sub(until, clock_now());
                struct timespec ts = {(time_t)(left / USEC_PER_SEC),
                                      (long)(left % USEC_PER_SEC) * 1000};
                int signal =
                    until == USEC_MAX ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &ts);
                if (signal > 0)
                        return true;
                if (errno == EAGAIN)
                        return false;
        }
}
