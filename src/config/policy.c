#include "config/policy.h"

#include <stdlib.h>

#include "config/setting.h"

static bool matches(struct span pattern, struct span host)
{
        if (span_equal(pattern, span_of("*")))
                return true;
        if (pattern.len < 2 || pattern.ptr[0] != '*')
                return span_equal(pattern, host);
        /* "*.host" is for what is below the host, not for the host itself */
        struct span tail = {pattern.ptr + 1, pattern.len - 1};
        return host.len > tail.len &&
               span_equal(tail, (struct span){host.ptr + host.len - tail.len, tail.len});
}

bool policy_matches(const struct policy *p, struct span host)
{
        if (host.len > 1 && host.ptr[host.len - 1] == '.') /* the root: the same host */
                host.len--;
        for (size_t i = 0; p->hosts[i]; i++)
                if (matches(span_of(p->hosts[i]), host))
                        return true;
        return false;
}

void policy_fault(const struct policy *p, const char *setting, char *text,
                  struct config_faults *faults)
{
        struct policy_place place = p->places[setting_find(setting) - settings];
        config_faults_add(faults, place.line, place.column, NULL, "%s", text);
        free(text);
}
