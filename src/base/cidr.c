#include "base/cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"

#define V4_BITS 96 /* of ::ffff:0:0/96, in front of each IPv4 prefix */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

const char *const cidr_set_names[] = {"loopback", "private", "link-local", "multicast", NULL};

/* 0.0.0.0/8 and :: are no loopback addresses, but connecting to them reaches this host as well. */
static const char *const loopback[] = {"127.0.0.0/8", "::1", "0.0.0.0/8", "::", NULL};
static const char *const private[] = {"10.0.0.0/8",    "172.16.0.0/12", "192.168.0.0/16",
                                      "100.64.0.0/10", "fc00::/7",      NULL};
/* The lone addresses are where clouds serve credentials to whoever asks from inside: Alibaba,
 * Oracle, Azure, AWS, Google, Scaleway. The others use 169.254.169.254. */
static const char *const link_local[] = {"169.254.0.0/16", "fe80::/10",     "100.100.100.200",
                                         "192.0.0.192",    "168.63.129.16", "fd00:ec2::254",
                                         "fd20:ce::254",   "fd00:42::42",   NULL};
static const char *const multicast[] = {"224.0.0.0/4", "ff00::/8", NULL};

static const char *const *const named[] = {loopback, private, link_local, multicast};

static void put_v4(const void *v4, uint8_t ret[16])
{
        memcpy(ret, mapped, sizeof mapped);
        memcpy(ret + sizeof mapped, v4, 4);
}

static int parse_prefix(struct span text, unsigned *ret)
{
        unsigned n = 0;
        if (text.len < 1 || text.len > 3 || (text.len > 1 && text.ptr[0] == '0'))
                return -EINVAL;
        for (size_t i = 0; i < text.len; i++) {
                if (text.ptr[i] < '0' || text.ptr[i] > '9')
                        return -EINVAL;
                n = n * 10 + (unsigned)(text.ptr[i] - '0');
        }
        *ret = n;
        return 0;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
        unsigned whole = bits / 8, rest = bits % 8;
        if (memcmp(a, b, whole) != 0)
                return false;
        return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

static bool clear_after(const struct cidr *c)
{
        for (unsigned bit = c->prefix; bit < 128; bit++)
                if (c->address[bit / 8] & (0x80u >> (bit % 8)))
                        return false;
        return true;
}

int cidr_parse(struct span text, struct cidr *ret)
{
        char address[INET6_ADDRSTRLEN];
        const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
        size_t n = slash ? (size_t)(slash - text.ptr) : text.len;
        if (n == 0 || n >= sizeof address || memchr(text.ptr, '\0', n))
                return -EINVAL;
        memcpy(address, text.ptr, n);
        address[n] = '\0';

        struct cidr c = {.prefix = 128};
        uint8_t v4[4];
        bool is_v4 = inet_pton(AF_INET, address, v4) == 1;
        if (is_v4)
                put_v4(v4, c.address);
        else if (inet_pton(AF_INET6, address, c.address) != 1)
                return -EINVAL;
        if (slash) {
                unsigned prefix;
                if (parse_prefix((struct span){slash + 1, text.len - n - 1}, &prefix) < 0 ||
                    prefix > (is_v4 ? 32 : 128))
                        return -EINVAL;
                c.prefix = prefix + (is_v4 ? V4_BITS : 0);
        }
        if (!clear_after(&c))
                return -EINVAL;
        *ret = c;
        return 0;
}

static bool is_mapped(const uint8_t *address)
{
        return memcmp(address, mapped, sizeof mapped) == 0;
}

static bool is_v4_network(const struct cidr *c)
{
        return c->prefix >= V4_BITS && is_mapped(c->address);
}

void cidr_text(const struct cidr *c, char ret[CIDR_TEXT_MAX])
{
        char address[INET6_ADDRSTRLEN];
        bool v4 = is_v4_network(c);
        if (v4)
                inet_ntop(AF_INET, c->address + sizeof mapped, address, sizeof address);
        else
                inet_ntop(AF_INET6, c->address, address, sizeof address);
        if (c->prefix == 128)
                snprintf(ret, CIDR_TEXT_MAX, "%s", address);
        else
                snprintf(ret, CIDR_TEXT_MAX, "%s/%u", address, c->prefix - (v4 ? V4_BITS : 0));
}

bool cidr_set_lists(const struct cidr_set *set, const struct cidr *c)
{
        for (size_t i = 0; i < set->count; i++)
                if (set->list[i].prefix == c->prefix &&
                    memcmp(set->list[i].address, c->address, sizeof c->address) == 0)
                        return true;
        return false;
}

void cidr_set_add(struct cidr_set *set, const struct cidr *c)
{
        if (cidr_set_lists(set, c))
                return;
        set->list = xrealloc(set->list, (set->count + 1) * sizeof *set->list);
        set->list[set->count++] = *c;
}

int cidr_set_add_named(struct cidr_set *set, struct span name)
{
        for (size_t i = 0; cidr_set_names[i]; i++) {
                if (!span_equal(name, span_of(cidr_set_names[i])))
                        continue;
                for (const char *const *text = named[i]; *text; text++) {
                        struct cidr c;
                        if (cidr_parse(span_of(*text), &c) < 0)
                                abort(); /* the tables above are wrong */
                        cidr_set_add(set, &c);
                }
                return 0;
        }
        return -ENOENT;
}

void cidr_set_done(struct cidr_set *set)
{
        free(set->list);
        *set = (struct cidr_set){0};
}

static bool holds(const struct cidr_set *set, const uint8_t address[16], bool v4)
{
        for (size_t i = 0; i < set->count; i++) {
                const struct cidr *c = &set->list[i];
                if ((!v4 || is_v4_network(c)) && same_bits(address, c->address, c->prefix))
                        return true;
        }
        return false;
}

static bool holds_v4(const struct cidr_set *set, const void *v4)
{
        uint8_t address[16];
        put_v4(v4, address);
        return holds(set, address, true);
}

/* :: and ::1 have the shape of IPv4-compatible addresses but are none (RFC 4291, 2.5.5.1). */
static bool is_compatible(const uint8_t *a)
{
        static const uint8_t zero[15];
        return memcmp(a, zero, 12) == 0 && !(memcmp(a, zero, 15) == 0 && a[15] <= 1);
}

static bool contains(const struct cidr_set *set, const struct sockaddr *sa, bool peer)
{
        static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
        if (sa->sa_family == AF_INET) {
                struct sockaddr_in in;
                memcpy(&in, sa, sizeof in);
                return holds_v4(set, &in.sin_addr);
        }
        if (sa->sa_family != AF_INET6)
                return false;
        struct sockaddr_in6 in6;
        memcpy(&in6, sa, sizeof in6);
        const uint8_t *a = in6.sin6_addr.s6_addr;
        if (is_mapped(a))
                return holds(set, a, peer) || holds_v4(set, a + 12);
        if (holds(set, a, false))
                return true;
        if (peer)
                return false;
        if (is_compatible(a) || memcmp(a, nat64, sizeof nat64) == 0)
                return holds_v4(set, a + 12);
        return a[0] == 0x20 && a[1] == 0x02 && holds_v4(set, a + 2);
}

bool cidr_set_contains(const struct cidr_set *set, const struct sockaddr *sa)
{
        return contains(set, sa, false);
}

bool cidr_set_contains_peer(const struct cidr_set *set, const struct sockaddr *sa)
{
        return contains(set, sa, true);
}
