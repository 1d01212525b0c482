#include "egress/guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>

bool guard_allows(const struct cidr_set *deny, const struct cidr_set *allow,
                  const struct sockaddr *sa)
{
        if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
                return false;
        if (!deny || !cidr_set_contains(deny, sa))
                return true;
        return allow && cidr_set_contains(allow, sa);
}

bool guard_allows_text(const struct cidr_set *deny, const struct cidr_set *allow, const char *ip)
{
        union {
                struct sockaddr sa;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        } address = {0};

        if (inet_pton(AF_INET, ip, &address.in.sin_addr) == 1)
                address.in.sin_family = AF_INET;
        else if (inet_pton(AF_INET6, ip, &address.in6.sin6_addr) == 1)
                address.in6.sin6_family = AF_INET6;
        else
                return false;
        return guard_allows(deny, allow, &address.sa);
}
