/* egress/guard.h - which addresses may be dialled, decided when the address is known. */
#ifndef WEIR_EGRESS_GUARD_H
#define WEIR_EGRESS_GUARD_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/cidr.h"

/* May `sa` be dialled? `allow` wins over `deny`; either may be NULL (an empty set). Families other
 * than AF_INET and AF_INET6 may not. */
bool guard_allows(const struct cidr_set *deny, const struct cidr_set *allow,
                  const struct sockaddr *sa);

/* The same for a numeric address; false for anything else. */
bool guard_allows_text(const struct cidr_set *deny, const struct cidr_set *allow, const char *ip);

#endif
