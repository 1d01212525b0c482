#!/bin/sh
# lint.sh SRCDIR CC FLAG...: finds what the compilers' warnings do not. The flags are those that the
# sources need to compile. All parts run; it fails when one of them found something.
# shellcheck disable=SC2317 # its functions are called through part()
set -u
srcdir=$1
cc=$2
shift 2
jobs=$(getconf _NPROCESSORS_ONLN)
failed=0

part() {
        name=$1
        shift
        if "$@"; then
                echo "lint: $name: fine"
        else
                echo "lint: $name: found something" >&2
                failed=1
        fi
}

# Each header compiles by itself, as the first thing in a source.
headers_alone() {
        find "$srcdir/src" -name '*.h' -print0 |
                xargs -0 -P "$jobs" -I{} "$cc" -std=gnu11 -Wall -Wextra -Werror -fsyntax-only \
                        -x c "$@" {}
}

# clang-tidy takes seconds for each source: those that it passed before are left out.
check_with_clang_tidy() {
        find "$srcdir/src" "$srcdir/tests" "$srcdir/bench" "$srcdir/man" -name '*.c' -print0 | sort -z |
                xargs -0 -P "$jobs" -I{} "$srcdir/tools/tidy.sh" {} "$srcdir/.clang-tidy" "$cc" "$@"
}

check_with_cppcheck() {
        cppcheck --quiet -j "$jobs" --std=c11 --enable=warning,performance,portability \
                --inline-suppr --suppress=missingIncludeSystem --error-exitcode=1 \
                --include="$srcdir/tools/cppcheck.h" \
                -I "$srcdir/src" "$srcdir/src"
}

part "includes" /usr/bin/python3 "$srcdir/tools/check_includes.py" "$srcdir/src"
part "tables" /usr/bin/python3 "$srcdir/tools/check_tables.py" "$srcdir" man/weir.yaml.5
part "headers alone" headers_alone "$@"
part "cppcheck" check_with_cppcheck
part "clang-tidy" check_with_clang_tidy "$@"
exit "$failed"
