#!/bin/sh
# smoke.sh: the bench of the limiter runs, gives the same figures each time, and tells a limiter that
# works from one that does not. Run by make check in the build directory.
set -eu
srcdir=${srcdir:-.}
limiter=bench/limiter/limiter
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT

fail() {
        echo "smoke.sh: $*" >&2
        exit 1
}

# A window of 30/s, a token bucket of 20/s, and a limit that halves.
cat >"$dir/hosts.tsv" <<'HOSTS'
# three
a	window	kind=0	rate=30	lat=.1	ra=0	W=20	dur=200
a	bucket	kind=2	rate=20	burst=5	lat=.1	ra=1	W=20	dur=200	dist=1
a	halving	kind=0	rate=30	lat=.05	ra=0	W=20	step=1	t1=100	t2=200	dur=300
HOSTS
mkdir "$dir/one" "$dir/two"
$limiter --seeds 2 --processes 1 --out "$dir/one" "$dir/hosts.tsv" >"$dir/printed"
$limiter --seeds 2 --processes 2 --out "$dir/two" "$dir/hosts.tsv" >/dev/null
diff -r "$dir/one" "$dir/two" || fail "two runs differ"
diff "$dir/printed" "$dir/one/summary.md" || fail "the summary is not what was printed"

# goodput and refused of a controller at a host
row() {
        awk -F '\t' -v host="$1" -v controller="$2" \
                '$1 == host && $2 == controller { print $4, $5, $15 }' "$dir/one/rows.tsv"
}
for host in window bucket halving; do
        row "$host" weir | awk '{ exit !($1 >= .93 && $2 < .01 && $3 == 0) }' ||
                fail "weir at $host: $(row "$host" weir)"
        row "$host" oracle | awk '{ exit !($1 >= .98 && $2 < .005) }' ||
                fail "the oracle at $host: $(row "$host" oracle)"
        row "$host" semaphore | awk '{ exit !($2 > .05) }' ||
                fail "a semaphore that is not refused at $host: $(row "$host" semaphore)"
done
grep -q '	refused' "$dir/one/sawtooth.tsv" || fail "no sawtooth"

# The scenario file of the project can be read, and is what its generator writes.
/usr/bin/python3 "$srcdir/bench/limiter/make_scenarios.py" | diff -q - "$srcdir/bench/limiter/scenarios.tsv" ||
        fail "scenarios.tsv is not what make_scenarios.py writes"

for fault in 'a	b	kind=9	rate=1	lat=1' 'a	b	kind=0	rate=1x	lat=1' 'a	b	colour=1' 'a' \
        'a	b	kind=7	rate=1	lat=1'; do
        printf '%s\n' "$fault" >"$dir/bad.tsv"
        if $limiter --only weir "$dir/bad.tsv" >/dev/null 2>"$dir/said"; then
                fail "took: $fault"
        fi
        grep -q 'bad.tsv:1: not a scenario' "$dir/said" || fail "no word about: $fault"
done
