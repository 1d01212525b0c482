#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/sink.h"

static size_t count_lines(int fd)
{
        char buf[4096];
        size_t lines = 0;
        for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
                for (ssize_t i = 0; i < n; i++)
                        lines += buf[i] == '\n';
        return lines;
}

/* Takes the place of stdout for a while; what cmocka prints must not end up in the pipe. */
static struct sink *open_on_pipe(int fds[2])
{
        struct sink *s = NULL;
        int out = dup(STDOUT_FILENO);
        assert_int_equal(pipe(fds), 0);
        dup2(fds[1], STDOUT_FILENO);
        int r = sink_open("-", &s);
        dup2(out, STDOUT_FILENO);
        close(out);
        assert_int_equal(r, 0);
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        return s;
}

static void a_full_pipe_loses_lines_and_never_waits(void **state)
{
        (void)state;
        int fds[2];
        struct sink *s = open_on_pipe(fds);
        /* Far more than a pipe holds: this returns only if nothing waits. */
        for (int i = 0; i < 20000; i++)
                sink_write(s, json_pack("{s:i, s:s}", "line", i, "text", "to fill it"));
        size_t kept = count_lines(fds[0]);
        assert_in_range(kept, 1, 19999);
        sink_write(s, json_pack("{s:i}", "line", -1));
        assert_int_equal(count_lines(fds[0]), 1);
        sink_close(s);
        close(fds[0]);
        close(fds[1]);
}

static void appends_and_reopens(void **state)
{
        (void)state;
        char path[] = "/tmp/weir-sink-XXXXXX";
        struct sink *s = NULL;
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(sink_open(path, &s), 0);
        sink_write(s, json_pack("{s:i}", "line", 1));
        sink_write(s, json_pack("{s:i}", "line", 2));
        assert_int_equal(count_lines(fd), 2);
        unlink(path);
        assert_int_equal(sink_reopen(s), 0);
        sink_write(s, json_pack("{s:i}", "line", 3));
        assert_int_equal(count_lines(fd), 0);
        close(fd);
        fd = open(path, O_RDONLY);
        assert_int_equal(count_lines(fd), 1);
        close(fd);
        unlink(path);
        sink_close(s);
}

static void none_is_fine(void **state)
{
        (void)state;
        struct sink *s = (struct sink *)-1;
        assert_int_equal(sink_open("", &s), 0);
        assert_null(s);
        sink_write(s, json_pack("{s:i}", "line", 1));
        assert_int_equal(sink_reopen(s), 0);
        sink_close(s);
        assert_true(sink_open("/nonexistent/log", &s) < 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_full_pipe_loses_lines_and_never_waits),
            cmocka_unit_test(appends_and_reopens),
            cmocka_unit_test(none_is_fine),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
