#!/bin/sh
# tidy.sh SOURCE CHECKS CC FLAG...: clang-tidy over one source, unless the same text passed the same
# checks before (.tidy in the build directory remembers it).
set -u
source=$1
checks=$2
cc=$3
shift 3

sum=$({ "$cc" -std=gnu11 -E -P -C "$@" "$source" && cat "$checks"; } | sha256sum | cut -d' ' -f1)
[ -e ".tidy/$sum" ] && exit 0

# It counts to stderr the warnings in other people's headers, which nobody asked for.
found=$(clang-tidy-14 --quiet --config-file="$checks" "$source" -- -std=gnu11 "$@" 2>&1)
status=$?
printf '%s\n' "$found" | grep -v -e '^[0-9]* warnings\? .*generated' -e '^$'
[ "$status" -eq 0 ] || exit 1
mkdir -p .tidy && touch ".tidy/$sum"
