#include "proxy/steering.h"

#include "core/duration.h"
#include "core/governor.h"

static bool read_session(struct steering *s, struct span value)
{
        if (value.len == 0 || value.len > STEERING_MAX_SESSION)
                return false;
        for (size_t i = 0; i < value.len; i++)
                if (value.ptr[i] <= ' ' || value.ptr[i] >= 0x7f)
                        return false;
        s->session = value;
        return true;
}

static bool read_priority(struct steering *s, struct span value)
{
        if (value.len != 1 || value.ptr[0] < '0' || value.ptr[0] > '9')
                return false;
        s->priority = (unsigned)(value.ptr[0] - '0');
        return true;
}

static bool read_deadline(struct steering *s, struct span value)
{
        struct decimal seconds;
        usec_t after;
        if (decimal_parse(value, &seconds) == 0)
                after = decimal_usec(seconds, USEC_PER_SEC);
        else if (duration_parse(value, &after) < 0)
                return false;
        if (after == 0)
                return false;
        s->deadline = after;
        return true;
}

static bool read_retry(struct steering *s, struct span value)
{
        s->no_retry = span_equal_nocase(value, span_of("no"));
        return s->no_retry || span_equal_nocase(value, span_of("yes"));
}

static const struct {
        const char *name;
        bool (*read)(struct steering *s, struct span value);
        const char *bad, *twice;
} fields[] = {
    {"Weir-Session", read_session, "Weir-Session is not 1 to 128 visible ASCII characters.",
     "There is more than one Weir-Session."},
    {"Weir-Priority", read_priority, "Weir-Priority is not a digit from 0 to 9.",
     "There is more than one Weir-Priority."},
    {"Weir-Deadline", read_deadline,
     "Weir-Deadline is not a time of more than 0, such as 30s, 1m30s or 2.5 (in seconds).",
     "There is more than one Weir-Deadline."},
    {"Weir-Retry", read_retry, "Weir-Retry is neither no nor yes.",
     "There is more than one Weir-Retry."},
};

void steering_init(struct steering *s)
{
        *s = (struct steering){.priority = TICKET_PRIORITY_DEFAULT, .deadline = USEC_MAX};
}

bool steering_take(struct steering *s, struct span name, struct span value, const char **ret_fault)
{
        static const char prefix[] = "Weir-";
        const size_t len = sizeof prefix - 1;
        if (name.len < len || !span_equal_nocase((struct span){name.ptr, len}, span_of(prefix)))
                return false;
        *ret_fault = NULL;
        for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
                if (!span_equal_nocase(name, span_of(fields[i].name)))
                        continue;
                if (s->seen & 1u << i)
                        *ret_fault = fields[i].twice;
                else if (!fields[i].read(s, span_trim(value)))
                        *ret_fault = fields[i].bad;
                s->seen |= 1u << i;
        }
        return true;
}

bool steering_offer_session(struct steering *s, struct span session)
{
        struct steering named = {.seen = 0};
        if (!read_session(&named, session))
                return false;
        if (s->session.len == 0)
                s->session = session;
        return true;
}
