#include "tests/unit/unit.h"

#include "base/list.h"

struct item {
        int number;
        struct list link;
};

static struct item *item_of(struct list *link)
{
        return LIST_ENTRY_OF(link, struct item, link);
}

/* The numbers of the elements as decimal digits, first to last; checks the way back as well. */
static int numbers(struct list *head)
{
        int forth = 0, back = 0, place = 1;
        list_foreach (it, head)
                forth = forth * 10 + item_of(it)->number;
        for (struct list *it = head->prev; it != head; it = it->prev, place *= 10)
                back += item_of(it)->number * place;
        assert_int_equal(forth, back);
        return forth;
}

static void fill(struct list *head, struct item *items, int count)
{
        list_init(head);
        for (int i = 0; i < count; i++) {
                items[i].number = i + 1;
                list_init(&items[i].link);
                list_append(head, &items[i].link);
        }
}

static void appends_inserts_removes(void **state)
{
        (void)state;
        struct list head;
        struct item items[4], extra = {.number = 9};
        list_init(&head);
        assert_true(list_empty(&head));
        assert_int_equal(numbers(&head), 0);
        fill(&head, items, 4);
        assert_false(list_empty(&head));
        assert_int_equal(numbers(&head), 1234);
        list_insert_before(&items[2].link, &extra.link);
        assert_int_equal(numbers(&head), 12934);
        list_remove(&extra.link);
        assert_int_equal(numbers(&head), 1234);
        assert_true(list_empty(&extra.link));
        list_remove(&extra.link); /* in no list: harmless */
        list_remove(&items[0].link);
        list_remove(&items[3].link);
        assert_int_equal(numbers(&head), 23);
        list_insert_before(head.next, &items[3].link);
        assert_int_equal(numbers(&head), 423);
        list_remove(&items[1].link);
        list_remove(&items[2].link);
        list_remove(&items[3].link);
        assert_true(list_empty(&head));
}

static void removes_while_walking(void **state)
{
        (void)state;
        struct list head;
        struct item items[6];
        fill(&head, items, 6);
        list_foreach_safe (it, &head)
                if (item_of(it)->number % 2 == 0)
                        list_remove(it);
        assert_int_equal(numbers(&head), 135);
        list_foreach_safe (it, &head)
                list_remove(it);
        assert_true(list_empty(&head));
}

static void splices(void **state)
{
        (void)state;
        struct list to, from;
        struct item a[2], b[3];
        fill(&to, a, 2);
        fill(&from, b, 3);
        list_splice(&to, &from);
        assert_int_equal(numbers(&to), 12123);
        assert_true(list_empty(&from));
        list_splice(&to, &from); /* nothing in it */
        assert_int_equal(numbers(&to), 12123);
        list_splice(&from, &to); /* into an empty one */
        assert_int_equal(numbers(&from), 12123);
        assert_true(list_empty(&to));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(appends_inserts_removes),
            cmocka_unit_test(removes_while_walking),
            cmocka_unit_test(splices),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
