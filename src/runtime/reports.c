#include "runtime/reports.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/safe_url.h"

#define ROOM 4096      /* reports that wait, of each writer; a power of two */
#define BELL_EVERY 512 /* as often as that the reader is told */
#define CACHE_LINE 64

/* A ring with one writer and one reader. Both counts only grow. */
struct ring {
        char before[CACHE_LINE];
        atomic_size_t put; /* by the writer */
        char between[CACHE_LINE];
        atomic_size_t taken; /* by the reader */
        char behind[CACHE_LINE];
        struct report *slots[ROOM];
};

struct reports {
        atomic_bool watched;
        int bell;
        unsigned count;
        struct ring rings[];
};

char *report_url(const char *url)
{
        if (strlen(url) <= REPORT_MAX_URL)
                return xstrdup(url);
        char *safe = safe_url(url);
        if (strlen(safe) > REPORT_MAX_URL)
                safe[REPORT_MAX_URL] = '\0';
        return safe;
}

void report_free(struct report *r)
{
        if (!r)
                return;
        free(r->scope);
        free(r->url);
        free(r->endpoint);
        free(r);
}

struct reports *reports_new(unsigned writers)
{
        struct reports *r = xcalloc(1, sizeof *r + writers * sizeof r->rings[0]);
        r->count = writers;
        r->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (r->bell < 0)
                abort();
        return r;
}

static void on_left_over(void *arg, struct report *report)
{
        (void)arg;
        report_free(report);
}

void reports_free(struct reports *r)
{
        if (!r)
                return;
        reports_take(r, on_left_over, NULL);
        close(r->bell);
        free(r);
}

void reports_watch(struct reports *r, bool watch)
{
        atomic_store_explicit(&r->watched, watch, memory_order_relaxed);
}

bool reports_are_watched(const struct reports *r)
{
        return atomic_load_explicit(&r->watched, memory_order_relaxed);
}

bool reports_put(struct reports *r, unsigned writer, struct report *report)
{
        assert(writer < r->count);
        struct ring *ring = &r->rings[writer];
        size_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
        if (put - atomic_load_explicit(&ring->taken, memory_order_acquire) >= ROOM) {
                report_free(report);
                return false;
        }
        ring->slots[put % ROOM] = report;
        atomic_store_explicit(&ring->put, put + 1, memory_order_release);
        if ((put + 1) % BELL_EVERY == 0) {
                uint64_t one = 1;
                ssize_t ignored = write(r->bell, &one, sizeof one);
                (void)ignored;
        }
        return true;
}

int reports_bell(const struct reports *r)
{
        return r->bell;
}

void reports_take(struct reports *r, void (*each)(void *arg, struct report *report), void *arg)
{
        uint64_t rung;
        ssize_t ignored = read(r->bell, &rung, sizeof rung);
        (void)ignored;
        for (unsigned i = 0; i < r->count; i++) {
                struct ring *ring = &r->rings[i];
                size_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
                size_t put = atomic_load_explicit(&ring->put, memory_order_acquire);
                for (; taken != put; taken++) {
                        struct report *report = ring->slots[taken % ROOM];
                        atomic_store_explicit(&ring->taken, taken + 1, memory_order_release);
                        each(arg, report);
                }
        }
}
