#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/cidr.h"

static void parses(void **state)
{
        (void)state;
        static const struct {
                const char *text, *shown;
        } good[] = {
            {"192.0.2.0/24", "192.0.2.0/24"},
            {"192.0.2.1", "192.0.2.1"},
            {"192.0.2.1/32", "192.0.2.1"},
            {"0.0.0.0/0", "0.0.0.0/0"},
            {"10.0.0.0/9", "10.0.0.0/9"},
            {"10.128.0.0/9", "10.128.0.0/9"},
            {"2001:db8::/32", "2001:db8::/32"},
            {"2001:DB8:0::/33", "2001:db8::/33"},
            {"::1/128", "::1"},
            {"::", "::"},
            {"::/0", "::/0"},
            {"::ffff:192.0.2.0/120", "192.0.2.0/24"},
        };
        for (size_t i = 0; i < COUNT_OF(good); i++) {
                struct cidr c;
                char shown[CIDR_TEXT_MAX];
                assert_int_equal(cidr_parse(span_of(good[i].text), &c), 0);
                cidr_text(&c, shown);
                assert_string_equal(shown, good[i].shown);
        }
}

static void refuses(void **state)
{
        (void)state;
        static const char *const bad[] = {
            "",
            "/",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/08",
            "10.0.0.0/8 ",
            " 10.0.0.0/8",
            "10.0.0.0/8/8",
            "10.0.0.0/ 8",
            "10.0.0.1/8",
            "300.1.1.1/8",
            "10.0.0/8",
            "10.1/16",
            "10",
            "::1/129",
            "::1/127",
            "2001:db8::/28",
            "2001:db8:::/32",
            "[::1]",
            "fe80::1%lo",
            "localhost",
            "192.0.2.128/24",
            "0x0a.0.0.0/8",
            "10.0.0.0/9999999999",
            "1111:2222:3333:4444:5555:6666:7777:8888:9999/16",
        };
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                struct cidr c = {.prefix = 77};
                assert_int_equal(cidr_parse(span_of(bad[i]), &c), -EINVAL);
                assert_int_equal(c.prefix, 77);
        }
        struct cidr c;
        assert_int_equal(cidr_parse((struct span){"10.0.0.0\0", 9}, &c), -EINVAL);
        assert_int_equal(cidr_parse((struct span){NULL, 0}, &c), -EINVAL);
}

static void address_of(const char *text, struct sockaddr_storage *ret)
{
        struct sockaddr_in in = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        *ret = (struct sockaddr_storage){0};
        if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
                memcpy(ret, &in, sizeof in);
        } else {
                assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
                memcpy(ret, &in6, sizeof in6);
        }
}

static void contains(void **state)
{
        (void)state;
        static const struct {
                const char *set, *address; /* a named set, or one network */
                bool in, peer_in;
        } cases[] = {
            {"loopback", "127.0.0.1", true, true},
            {"loopback", "127.255.255.255", true, true},
            {"loopback", "128.0.0.0", false, false},
            {"loopback", "0.0.0.0", true, true},
            {"loopback", "0.1.2.3", true, true},
            {"loopback", "::", true, true},
            {"loopback", "::1", true, true},
            {"loopback", "::2", true, false}, /* compatible with 0.0.0.2 */
            {"loopback", "::ffff:127.0.0.1", true, true},
            {"loopback", "::127.0.0.1", true, false},
            {"loopback", "64:ff9b::127.0.0.1", true, false},
            {"loopback", "64:ff9b:0:1::127.0.0.1", false, false},
            {"loopback", "2002:7f00:1::", true, false},
            {"loopback", "2002:7f00:1:2:3:4:5:6", true, false},
            {"loopback", "2003:7f00:1::", false, false},
            {"loopback", "192.0.2.1", false, false},
            {"private", "10.0.0.1", true, true},
            {"private", "172.15.255.255", false, false},
            {"private", "172.16.0.0", true, true},
            {"private", "172.31.255.255", true, true},
            {"private", "172.32.0.0", false, false},
            {"private", "192.168.1.1", true, true},
            {"private", "192.169.0.0", false, false},
            {"private", "100.64.0.1", true, true},
            {"private", "100.63.255.255", false, false},
            {"private", "100.128.0.0", false, false},
            {"private", "fc00::1", true, true},
            {"private", "fdff::1", true, true},
            {"private", "fe00::1", false, false},
            {"private", "::ffff:10.1.2.3", true, true},
            {"private", "127.0.0.1", false, false},
            {"link-local", "169.254.169.254", true, true},
            {"link-local", "169.253.0.1", false, false},
            {"link-local", "fe80::1", true, true},
            {"link-local", "febf::1", true, true},
            {"link-local", "fec0::1", false, false},
            {"link-local", "fd00:ec2::254", true, true},
            {"link-local", "fd00:ec2::253", false, false},
            {"link-local", "100.100.100.200", true, true},
            {"link-local", "100.100.100.201", false, false},
            {"multicast", "224.0.0.1", true, true},
            {"multicast", "239.255.255.255", true, true},
            {"multicast", "240.0.0.0", false, false},
            {"multicast", "ff02::1", true, true},
            {"::/0", "2001:db8::1", true, true},
            {"::/0", "192.0.2.1", false, false},
            {"::/0", "::ffff:192.0.2.1", true, false},
            {"0.0.0.0/0", "192.0.2.1", true, true},
            {"0.0.0.0/0", "::ffff:192.0.2.1", true, true},
            {"0.0.0.0/0", "2001:db8::1", false, false},
            {"0.0.0.0/0", "::1", false, false},
            {"2001:db8::/33", "2001:db8:7fff::", true, true},
            {"2001:db8::/33", "2001:db8:8000::", false, false},
            {"192.0.2.128/25", "192.0.2.127", false, false},
            {"192.0.2.128/25", "192.0.2.128", true, true},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct cidr_set set = {0};
                struct cidr c;
                struct sockaddr_storage sa;
                if (cidr_set_add_named(&set, span_of(cases[i].set)) < 0) {
                        assert_int_equal(cidr_parse(span_of(cases[i].set), &c), 0);
                        cidr_set_add(&set, &c);
                }
                address_of(cases[i].address, &sa);
                print_message("%s in %s\n", cases[i].address, cases[i].set);
                assert_int_equal(cidr_set_contains(&set, (struct sockaddr *)&sa), cases[i].in);
                assert_int_equal(cidr_set_contains_peer(&set, (struct sockaddr *)&sa),
                                 cases[i].peer_in);
                cidr_set_done(&set);
        }
}

static void other_families_are_in_no_set(void **state)
{
        (void)state;
        struct cidr_set set = {0};
        struct cidr c;
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        assert_int_equal(cidr_parse(span_of("0.0.0.0/0"), &c), 0);
        cidr_set_add(&set, &c);
        assert_int_equal(cidr_parse(span_of("::/0"), &c), 0);
        cidr_set_add(&set, &c);
        assert_false(cidr_set_contains(&set, (struct sockaddr *)&un));
        assert_false(cidr_set_contains_peer(&set, (struct sockaddr *)&un));
        cidr_set_done(&set);
}

static void sets_list_once(void **state)
{
        (void)state;
        struct cidr_set a = {0};
        struct cidr c;
        assert_int_equal(cidr_set_add_named(&a, span_of("loopbacks")), -ENOENT);
        assert_int_equal(cidr_set_add_named(&a, span_of("Private")), -ENOENT);
        assert_int_equal(a.count, 0);
        assert_int_equal(cidr_set_add_named(&a, span_of("private")), 0);
        size_t count = a.count;
        assert_int_equal(cidr_set_add_named(&a, span_of("private")), 0);
        assert_int_equal(a.count, count);
        assert_int_equal(cidr_parse(span_of("10.0.0.0/8"), &c), 0);
        assert_true(cidr_set_lists(&a, &c));
        c.prefix++;
        assert_false(cidr_set_lists(&a, &c));
        cidr_set_done(&a);
        assert_int_equal(a.count, 0);
        for (const char *const *name = cidr_set_names; *name; name++) {
                count = a.count;
                assert_int_equal(cidr_set_add_named(&a, span_of(*name)), 0);
                assert_true(a.count > count);
        }
        cidr_set_done(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(parses),         cmocka_unit_test(refuses),
            cmocka_unit_test(contains),       cmocka_unit_test(other_families_are_in_no_set),
            cmocka_unit_test(sets_list_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
