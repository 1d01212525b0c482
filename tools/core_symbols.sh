#!/bin/sh
# The core is pure: fails when an object of it refers to anything but the base layer, plain memory
# and string functions, and mathematics. No clock, no I/O, no libevent, no malloc behind xalloc's back.
set -eu

# What the compiler adds by itself, the sanitizers and _FORTIFY_SOURCE included, is allowed as well.
allowed='^(mem(cpy|move|set|cmp|r?chr|mem)|bcmp|str(len|chr|cmp|ncmp|casecmp|ncasecmp|nlen|pbrk|spn|cspn|tod|toul|toull|tol|toll)|__isoc99_.*'
allowed="$allowed"'|__ctype_(b|tolower|toupper)_loc|to(lower|upper)|snprintf|qsort|bsearch|free|abort|__assert_fail'
allowed="$allowed"'|pow|cbrt|sqrt|floor|ceil|round|fmin|fmax|fabs|log|log2|exp|isnan|isinf|ldexp|frexp|trunc|l?lround'
allowed="$allowed"'|__errno_location|__stack_chk_fail|__(snprintf|memcpy|memset|memmove|strcpy)_chk|__(asan|ubsan|tsan|gcov|sanitizer)_.*|_GLOBAL_OFFSET_TABLE_)$'


defined=$(mktemp)
trap 'rm -f "$defined"' EXIT
nm --defined-only libcore.a libbase.a 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u >"$defined"
foreign=$(nm --undefined-only libcore.a 2>/dev/null | awk '$1 == "U" {print $2}' | sort -u |
        comm -23 - "$defined" | grep -Ev "$allowed" || true)
if [ -n "$foreign" ]; then
        echo "core refers to what it must not know:"
        echo "$foreign"
        exit 1
fi
