/* base/cidr.h - sets of IP networks: "10.0.0.0/8", "::1/128", a lone address, a named set. */
#ifndef WEIR_BASE_CIDR_H
#define WEIR_BASE_CIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"

/* IPv4 networks are kept in IPv4-mapped form (::ffff:a.b.c.d, prefix + 96). */
struct cidr {
        uint8_t address[16];
        unsigned prefix; /* bits, 0 to 128 */
};

struct cidr_set {
        struct cidr *list; /* owned */
        size_t count;
};

/* "192.0.2.0/24", "2001:db8::/32", or an address alone (all its bits). 0, or -EINVAL also where
 * bits beyond the prefix are set. */
int cidr_parse(struct span text, struct cidr *ret);

/* Room for the longest text of a network and its NUL. */
#define CIDR_TEXT_MAX 64

/* Writes it as cidr_parse reads it; an address alone without its prefix. */
void cidr_text(const struct cidr *c, char ret[CIDR_TEXT_MAX]);

/* The names of the named sets, NULL-terminated. */
extern const char *const cidr_set_names[];

/* Adds the networks of a named set: loopback ("this host", 0.0.0.0/8 and ::, included), private,
 * link-local (the metadata addresses of clouds included), multicast. 0, or -ENOENT when the name is
 * none of these. */
int cidr_set_add_named(struct cidr_set *set, struct span name);
void cidr_set_add(struct cidr_set *set, const struct cidr *c); /* once, however often it is added */
void cidr_set_done(struct cidr_set *set);

/* Is this very network in the list? */
bool cidr_set_lists(const struct cidr_set *set, const struct cidr *c);

/* Is the destination in one of the networks? An IPv4-mapped, IPv4-compatible, NAT64 (64:ff9b::/96)
 * or 6to4 (2002::/16) IPv6 address counts as the IPv4 address that it carries as well. Families
 * other than AF_INET and AF_INET6 are in no set. ::/0 holds no IPv4 address. */
bool cidr_set_contains(const struct cidr_set *set, const struct sockaddr *sa);

/* The same for the address of a peer, which proves who it is: only the IPv4-mapped form, in which a
 * socket for both families reports IPv4 peers, counts as IPv4. Else whoever takes the address
 * 2002:7f00:1:: would be on 127.0.0.0/8. */
bool cidr_set_contains_peer(const struct cidr_set *set, const struct sockaddr *sa);

#endif
