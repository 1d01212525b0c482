#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/document.h"

/* The faults of a text as they are printed. */
static char *faults_of(struct span text, struct node **ret_root, int *ret_result)
{
        struct config_faults faults = {0};
        char *out = NULL;
        size_t len;
        *ret_root = NULL;
        *ret_result = document_parse(text, ret_root, &faults);
        config_faults_sort(&faults);
        FILE *to = open_memstream(&out, &len);
        config_faults_print(&faults, "f", to);
        fclose(to);
        config_faults_done(&faults);
        return out;
}

static void keeps_places(void **state)
{
        (void)state;
        struct node *root;
        int r;
        char *faults = faults_of(span_of("# first\n"
                                         "a: 1\n"
                                         "b:\n"
                                         "  c: [x, 'y z', {d: }]\n"
                                         "e:\n"
                                         "  - ~\n"
                                         "  -   \"~\"\n"),
                                 &root, &r);
        assert_string_equal(faults, "");
        assert_int_equal(r, 0);
        static const struct {
                const char *path;
                enum node_kind kind;
                unsigned line, column, key_line, key_column;
        } cases[] = {
            {"a", NODE_SCALAR, 2, 4, 2, 1},
            {"b", NODE_MAP, 4, 3, 3, 1},
            {"b.c", NODE_LIST, 4, 6, 4, 3},
            {"e", NODE_LIST, 6, 3, 5, 1},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                const struct node *n = node_at(root, cases[i].path);
                print_message("%s\n", cases[i].path);
                assert_non_null(n);
                assert_int_equal(n->kind, cases[i].kind);
                assert_int_equal(n->line, cases[i].line);
                assert_int_equal(n->column, cases[i].column);
                assert_int_equal(n->key_line, cases[i].key_line);
                assert_int_equal(n->key_column, cases[i].key_column);
        }
        const struct node *c = node_at(root, "b.c");
        assert_int_equal(c->count, 3);
        assert_string_equal(c->children[1]->text, "y z");
        assert_true(c->children[1]->quoted);
        assert_int_equal(c->children[1]->column, 10);
        assert_true(node_is_null(node_entry(c->children[2], "d")));
        const struct node *e = node_entry(root, "e");
        assert_true(node_is_null(e->children[0]));
        assert_false(node_is_null(e->children[1]));
        assert_null(node_at(root, "a.b"));
        assert_null(node_at(root, "b.c.d"));
        assert_null(node_at(root, ""));
        assert_null(node_at(NULL, "a"));
        free(faults);
        node_free(root);
}

static void empty_is_fine(void **state)
{
        (void)state;
        static const char *const texts[] = {"",           "\n\n", "# nothing\n", "---\n",
                                            "---\n...\n", "~\n",  "\xef\xbb\xbf"};
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
                struct node *root;
                int r;
                char *faults = faults_of(span_of(texts[i]), &root, &r);
                assert_string_equal(faults, "");
                assert_int_equal(r, 0);
                assert_null(root);
                free(faults);
        }
}

static void finds_faults(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                bool tree;
                const char *faults; /* the beginning of what is printed */
        } cases[] = {
            {"a: 1\nb: 2\na: 3\n", true, "f:3:1: a: given twice, first on line 1\n"},
            {"\"a\\tb\\n\": 1\n\"a\\tb\\n\": 2\n", true,
             "f:2:1: a?b?: given twice, first on line 1\n"},
            {"a: {b: 1, c: 2, b: 3, b: 4}\n", true,
             "f:1:17: a.b: given twice, first on line 1\nf:1:23: a.b: given twice, first on line "
             "1\n"},
            {"a: [{b: 1}, {b: 1,\n b: 1}]\n", true,
             "f:2:2: a[1].b: given twice, first on line 1\n"},
            {"a: [\n", false,
             "f:2:1: did not find expected node content while parsing a flow node"},
            {"a: {b: 1\nc: 2\n", false, "f:2:2: "},
            {"a: 'x\n", false,
             "f:2:1: found unexpected end of stream while scanning a quoted scalar"},
            {"a:\n\tb: 1\n", false, "f:2:1: found character that cannot start any token"},
            {"a: b: c\n", false, "f:1:5: mapping values are not allowed in this context"},
            {"a: 1\n b: 2\n", false, "f:2:3: "},
            {"a: &x 1\nb: *x\n", true,
             "f:1:4: anchors (&name) are not supported\nf:2:4: aliases (*name) are not "
             "supported\n"},
            {"a: &x [1]\n", true, "f:1:4: anchors (&name) are not supported\n"},
            {"a: !!str 1\n", true, "f:1:4: tags (!name) are not supported\n"},
            {"a: !x {b: 1}\n", true, "f:1:4: tags (!name) are not supported\n"},
            {"&x a: 1\n", false, "f:1:1: expected a plain key\n"},
            {"*x : 1\n", false, "f:1:1: expected a plain key\n"},
            {"? [a]\n: 1\n", false, "f:1:3: expected a plain key\n"},
            {"\"a\\0b\": 1\n", false, "f:1:1: expected a plain key\n"},
            {"a: \"x\\0y\"\n", true, "f:1:4: a NUL character cannot be part of a value\n"},
            {"a: 1\n---\nb: 1\n", false, "f:3:1: a second document begins here"},
            {"a: 1\nb: \xff\n", false, "f:2:4: invalid leading UTF-8 octet"},
            {"a: 1\nb: x\001\n", false, "f:2:5: control characters are not allowed"},
            {"[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n", false, "f:1:18: nested too deeply\n"},
            {"%YAML 3.0\n---\na: 1\n", false, "f:1:1: found incompatible YAML document"},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct node *root;
                int r;
                char *faults = faults_of(span_of(cases[i].text), &root, &r);
                print_message("%s->%s", cases[i].text, faults);
                assert_int_equal(r, cases[i].tree ? 0 : -EINVAL);
                assert_int_equal(root != NULL, cases[i].tree);
                assert_memory_equal(faults, cases[i].faults, strlen(cases[i].faults));
                free(faults);
                node_free(root);
        }
}

/* A text of `head` and `count` times `unit`. */
static struct span repeated(const char *head, const char *unit, size_t count)
{
        struct span text;
        char *out = NULL;
        FILE *to = open_memstream(&out, &text.len);
        fputs(head, to);
        for (size_t i = 0; i < count; i++)
                fputs(unit, to);
        fclose(to);
        text.ptr = out;
        return text;
}

static void is_bounded(void **state)
{
        (void)state;
        static const struct {
                const char *head, *unit;
                size_t count;
                const char *fault; /* "" none */
        } cases[] = {
            {"a: 1\n", "#\n", DOCUMENT_MAX_BYTES / 2 - 3, ""},
            {"a: 1\n", "#\n", DOCUMENT_MAX_BYTES / 2, "f: larger than 1 MiB\n"},
            {"[", "x,", 60000, "f:2:1: did not find expected node content"},
            {"[", "x,", 70000, "f:1:131072: too many values in one file\n"},
            {"", "[", 100000, "f:1:18: nested too deeply\n"},
            {"", "{a: ", 100000, "f:1:69: nested too deeply\n"},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct span text = repeated(cases[i].head, cases[i].unit, cases[i].count);
                struct node *root;
                int r;
                char *faults = faults_of(text, &root, &r);
                print_message("%zu: %s", i, faults);
                assert_memory_equal(faults, cases[i].fault, strlen(cases[i].fault));
                assert_int_equal(r, *cases[i].fault ? -EINVAL : 0);
                free(faults);
                node_free(root);
                free((char *)text.ptr);
        }
}

static void describes(void **state)
{
        (void)state;
        static const struct {
                const char *text, *description;
        } cases[] = {
            {"a: x", "\"x\""},
            {"a: 'x'", "\"x\""},
            {"a: ''", "\"\""},
            {"a:", "nothing"},
            {"a: null", "nothing"},
            {"a: 'null'", "\"null\""},
            {"a: [x]", "a list"},
            {"a: {}", "keys"},
            {"a: \"x\\ny\"", "\"x?y\""},
            {"a: "
             "123456789012345678901234567890123456789012345678901234567890123456789012345678901",
             "\"1234567890123456789012345678901234567890123456789012345678901234567890123"
             "4…\""},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct node *root;
                int r;
                char got[NODE_DESCRIPTION_MAX];
                free(faults_of(span_of(cases[i].text), &root, &r));
                assert_non_null(root);
                node_describe(node_entry(root, "a"), got);
                assert_string_equal(got, cases[i].description);
                node_free(root);
        }
}

static void reads_files(void **state)
{
        (void)state;
        struct config_faults faults = {0};
        struct node *root = NULL;
        assert_int_equal(document_read("/nonexistent/weir.yaml", &root, &faults), -ENOENT);
        assert_int_equal(document_read("/", &root, &faults), -EISDIR);
        assert_int_equal(document_read("/dev/zero", &root, &faults), -EINVAL);
        assert_int_equal(faults.count, 3);
        assert_int_equal(faults.list[0].line, 0);
        assert_string_equal(faults.list[0].text, "cannot be opened: No such file or directory");
        assert_string_equal(faults.list[1].text, "cannot be read: Is a directory");
        assert_string_equal(faults.list[2].text, "larger than 1 MiB");
        assert_null(root);
        config_faults_done(&faults);
        assert_int_equal(document_read("/dev/null", &root, &faults), 0);
        assert_null(root);
        assert_int_equal(faults.count, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_places), cmocka_unit_test(empty_is_fine),
            cmocka_unit_test(finds_faults), cmocka_unit_test(is_bounded),
            cmocka_unit_test(describes),    cmocka_unit_test(reads_files),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
