#!/bin/sh
# fuzz.sh SRCDIR SECONDS LIBS FLAG...: builds the fuzz targets with clang's libFuzzer and sanitizers
# below ./fuzz, and runs each for so many seconds, one after the other. FUZZ_TARGETS names some of
# them instead of all. Each starts with its corpus in the sources; what it finds out on the way stays
# in fuzz/corpus. What makes a target fail is kept in fuzz/found, and the whole fails then.
set -eu
srcdir=$1
seconds=$2
libs=$3
shift 3
cc=${FUZZ_CC:-clang}
targets=${FUZZ_TARGETS:-$(cd "$srcdir/tests/fuzz" && echo fuzz_*.c | sed 's/fuzz_//g; s/\.c//g')}
checks=address,undefined

say() { printf '%s\n' "$*"; }

build() {
        mkdir -p fuzz/obj
        for source in $(cd "$srcdir" && echo src/base/*.c src/core/*.c src/config/*.c \
                src/runtime/*.c src/proxy/*.c); do
                object=fuzz/obj/$(echo "$source" | tr / _).o
                # find complains where there is no object as yet, which will do as well
                [ -z "$(find "$srcdir/src" -name '*.[chd]*' -newer "$object" 2>&1)" ] ||
                        echo "-c $srcdir/$source -o $object"
        done | xargs -r -L 1 -P "$(getconf _NPROCESSORS_ONLN)" \
                "$cc" -std=gnu11 -g -O1 -fno-omit-frame-pointer "-fsanitize=fuzzer-no-link,$checks" \
                -fno-sanitize-recover=all "$@"
        rm -f fuzz/obj/all.a
        ar cr fuzz/obj/all.a fuzz/obj/*.o # of which each target takes what it needs
        for target in $targets; do
                # shellcheck disable=SC2086 # the libraries are several words
                "$cc" -std=gnu11 -g -O1 "-fsanitize=fuzzer,$checks" -fno-sanitize-recover=all "$@" \
                        "$srcdir/tests/fuzz/fuzz_$target.c" fuzz/obj/all.a $libs -o "fuzz/$target"
        done
}

# The sanitizers of these compilers cannot place their shadow memory where the kernel randomizes more
# than 28 bits of an address.
calm=
if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)" -gt 28 ] && setarch -R true; then
        calm="setarch -R"
fi

run() {
        mkdir -p "fuzz/corpus/$1" fuzz/found
        dictionary=$srcdir/tests/fuzz/$1.dict
        set -- "$1" "fuzz/corpus/$1" "$srcdir/tests/fuzz/corpus/$1" "-max_total_time=$seconds" \
                -timeout=10 -rss_limit_mb=1024 -max_len=8192 "-artifact_prefix=fuzz/found/$1-" \
                -print_final_stats=1
        [ ! -f "$dictionary" ] || set -- "$@" "-dict=$dictionary"
        target=$1
        shift
        good=fine
        $calm "fuzz/$target" "$@" >"fuzz/$target.log" 2>&1 || good=FAILED
        executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "fuzz/$target.log")
        say "fuzz: $target: $good, ${executions:-?} executions, $(find "fuzz/corpus/$target" -type f | wc -l) inputs kept"
        [ "$good" = fine ] || grep -v '^#' "fuzz/$target.log" | tail -n 40
        [ "$good" = fine ]
}

build "$@"
failed=0
for one in $targets; do
        run "$one" || failed=1
done
exit "$failed"
