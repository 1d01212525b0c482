#include "proxy/access_log.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "runtime/clock.h"
#include "runtime/safe_url.h"

static double seconds(usec_t t)
{
        /* 10 us: no noise in the last digits. NOLINTNEXTLINE(bugprone-integer-division) */
        return (double)(t / 10) / 1e5;
}

void access_log_write(struct sink *sink, const struct access_entry *e)
{
        if (!sink)
                return;
        char time[CLOCK_TEXT_SIZE];
        char *url = safe_url(e->url);
        json_t *o =
            json_pack("{s:s, s:s, s:s?, s:s%, s:s, s:s?, s:s?, s:i, s:i, s:f, s:f, s:{s:s?, s:s?, "
                      "s:s, s:f, s:f, s:f}, s:I, s:I, s:s}",
                      "time", clock_text(e->real, time), "client", e->client, "user", e->user,
                      "method", e->method.ptr ? e->method.ptr : "", e->method.len, "url", url,
                      "scope", e->scope, "class", e->class, "status", e->status, "attempts",
                      (int)e->attempts, "queued", seconds(e->queued), "duration",
                      seconds(e->duration), "upstream", "endpoint", e->upstream.endpoint, "exit",
                      e->upstream.exit && e->upstream.exit[0] ? e->upstream.exit : NULL, "address",
                      e->upstream.address, "connect", seconds(e->upstream.connect), "first_byte",
                      seconds(e->upstream.first_byte), "total", seconds(e->upstream.total),
                      "bytes_in", (json_int_t)e->bytes_in, "bytes_out", (json_int_t)e->bytes_out,
                      "outcome", outcome_name(e->outcome));
        free(url);
        if (o)
                sink_write(sink, o);
}
