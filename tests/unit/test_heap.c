#include "tests/unit/unit.h"

#include "base/heap.h"
#include "base/prng.h"

static void comes_out_in_order(void **state)
{
        (void)state;
        struct heap h;
        struct heap_node nodes[200] = {0};
        struct prng prng;
        heap_init(&h);
        prng_init(&prng, 7);
        for (size_t i = 0; i < COUNT_OF(nodes); i++)
                heap_set(&h, &nodes[i], prng_usec(&prng, 1000));
        for (size_t i = 0; i < COUNT_OF(nodes); i += 3) /* moved, both ways */
                heap_set(&h, &nodes[i], prng_usec(&prng, 1000));
        for (size_t i = 0; i < COUNT_OF(nodes); i += 5)
                heap_remove(&h, &nodes[i]);
        heap_remove(&h, &nodes[0]); /* again: harmless */
        usec_t last = 0;
        size_t count = 0;
        for (struct heap_node *n; (n = heap_first(&h)); count++) {
                assert_true(n->at >= last);
                last = n->at;
                heap_set(&h, n, USEC_MAX);
                assert_int_equal(n->place, 0);
        }
        assert_int_equal(count, 160);
        heap_done(&h);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(comes_out_in_order),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
