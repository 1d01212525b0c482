#include "admin/answer.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"

static const char *reason_of(int status)
{
        switch (status) {
        case 200:
                return "OK";
        case 400:
                return "Bad Request";
        case 401:
                return "Unauthorized";
        case 403:
                return "Forbidden";
        case 404:
                return "Not Found";
        case 405:
                return "Method Not Allowed";
        case 422:
                return "Unprocessable Content";
        case 503:
                return "Service Unavailable";
        default:
                return "Said";
        }
}

void answer_buffer(struct evhttp_request *req, int status, const char *type, struct evbuffer *body)
{
        struct evkeyvalq *fields = evhttp_request_get_output_headers(req);
        char length[32];
        snprintf(length, sizeof length, "%zu", evbuffer_get_length(body));
        evhttp_add_header(fields, "Content-Type", type);
        evhttp_add_header(fields, "Content-Length", length);
        evhttp_add_header(fields, "Cache-Control", "no-store");
        evhttp_add_header(fields, "X-Content-Type-Options", "nosniff");
        if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD)
                evbuffer_drain(body, evbuffer_get_length(body)); /* evhttp would send it */
        evhttp_send_reply(req, status, reason_of(status), body);
}

void answer_json(struct evhttp_request *req, int status, json_t *body)
{
        struct evbuffer *out = evbuffer_new();
        char *text = json_dumps(body, JSON_REAL_PRECISION(15) | JSON_PRESERVE_ORDER);
        if (!out || !text)
                abort(); /* out of memory */
        evbuffer_add_printf(out, "%s\n", text);
        answer_buffer(req, status, "application/json", out);
        evbuffer_free(out);
        free(text);
        json_decref(body);
}

void answer_fault(struct evhttp_request *req, int status, const char *text)
{
        answer_json(req, status, json_pack("{s:s}", "error", text));
}

json_t *answer_time(usec_t real)
{
        char text[CLOCK_TEXT_SIZE];
        return real ? json_string(clock_text(real, text)) : json_null();
}

json_t *answer_seconds(usec_t t)
{
        /* 10 us: no noise in the last digits. NOLINTNEXTLINE(bugprone-integer-division) */
        return json_real((double)(t / 10) / 1e5);
}

json_t *answer_real(double value)
{
        return json_real(round(value * 1000) / 1000);
}

usec_t answer_real_time(usec_t moment)
{
        usec_t now = clock_now(), real = clock_real();
        if (moment == 0)
                return 0;
        return moment > now ? usec_add(real, moment - now) : usec_sub(real, now - moment);
}
