#!/usr/bin/python3
"""Writes the scenarios of the bench to stdout: hosts of every kind, with everything about them drawn
by chance. The same seed gives the same file.

make_scenarios.py [SEED] > scenarios.tsv
"""
import math
import random
import sys

SEED = 20240229
COUNTS = {
    "window": 18, "long-window": 16, "sliding": 12, "bucket": 14, "gcra": 10, "concurrency": 14,
    "overloaded": 8, "capped-window": 8, "penalty": 8, "jobs": 7, "on-off": 5,
}
KINDS = {
    "window": 0, "long-window": 0, "sliding": 1, "bucket": 2, "gcra": 3, "concurrency": 4,
    "overloaded": 5, "capped-window": 6, "penalty": 7, "jobs": 0, "on-off": 0,
}
NO_WAIT, EXACT, ZERO, DATE, LONG, ONE = range(6)  # Retry-After
WAITS = {NO_WAIT: 7, EXACT: 6, ZERO: 2, DATE: 2, LONG: 2, ONE: 1}
MOST_REQUESTS = 150_000  # in a run: its length gives way


def one_of(chance, weights):
    return chance.choices(list(weights), list(weights.values()))[0]


def rate_of(chance, kind):
    """Requests/s, whole windows of whole requests."""
    if kind == "long-window":
        return one_of(chance, {0.2: 3, 0.5: 3, 1: 3, 2: 3, 5: 3, 10: 2, 30: 1})
    if kind in ("capped-window", "penalty"):
        return one_of(chance, {1: 1, 3: 2, 5: 2, 10: 2, 30: 2, 100: 1})
    return one_of(chance, {1: 1, 3: 2, 5: 3, 10: 4, 30: 5, 100: 4, 300: 2, 1000: 1})


def host_of(chance, kind, rate, latency):
    """The keys of one kind only, and the rate: what servers bear follows from their number."""
    keys = {"rate": rate}
    if kind in ("window", "sliding", "penalty", "jobs", "on-off"):
        keys["period"] = 1
    if kind in ("long-window", "capped-window"):
        keys["period"] = one_of(chance, {10: 1, 60: 3})
    if kind in ("bucket", "gcra"):
        keys["burst"] = one_of(chance, {1: 1, 3: 1, 10: 1, max(2, round(rate)): 2, round(5 * rate) + 1: 1})
    if kind == "concurrency":
        keys["conc"] = one_of(chance, {1: 1, 2: 2, 4: 3, 10: 4, 20: 2, 50: 2, 100: 1})
    if kind == "overloaded":
        keys["conc"] = one_of(chance, {2: 1, 5: 2, 10: 2, 30: 1})
        keys["burst"] = keys["conc"] * chance.randint(1, 6)
        keys["thrash"] = one_of(chance, {0: 1, 0.1: 2, 0.3: 1})
    if kind == "capped-window":
        keys["conc"] = max(2, math.ceil(rate * latency * chance.uniform(1.2, 4)))
    if kind == "penalty":
        keys["k"] = one_of(chance, {3: 1, 5: 1, 10: 1})
    if kind in ("concurrency", "overloaded"):
        keys["nf"] = one_of(chance, {0.04: 1, 0.1: 1, 0.3: 1})
        keys["rate"] = round(keys["conc"] / (latency * (1 - keys["nf"])), 4)
    return keys


def span_of(keys, stepping):
    """How long the run is: long enough to learn a slow limit, short enough to be run at all."""
    period = keys.get("period", 1)
    span = max(240, 1200 / keys["rate"], 15 * period)
    span = max(span, 15 * min(keys.get("ralong", 0), 120))  # the longest wait that is believed
    if stepping:
        span *= 1.5
    return math.ceil(min(span, 7200, max(90, MOST_REQUESTS / keys["rate"])))


def scenario(chance, kind, number):
    latency = one_of(chance, {0.02: 2, 0.05: 3, 0.1: 4, 0.35: 5, 1: 4, 3: 1})
    keys = {"kind": KINDS[kind], "lat": latency}
    keys |= host_of(chance, kind, rate_of(chance, kind), latency)
    wait = one_of(chance, WAITS)
    in_flight = keys["rate"] * latency
    keys["ra"] = wait
    if wait == LONG:
        keys["ralong"] = one_of(chance, {30: 2, 60: 2, 300: 1})
    keys["dist"] = chance.randrange(3)
    keys["slowrej"] = chance.randrange(2)
    if keys.get("period", 1) > 1:
        keys["hdr"] = chance.randrange(2)
    keys["W"] = max(4, math.ceil(in_flight * chance.uniform(1.5, 8)))
    if kind == "jobs":
        keys["jobs"] = math.ceil(keys["rate"] * chance.uniform(10, 60))
    step = chance.randrange(3) if kind not in ("jobs", "on-off") else 0
    span = span_of(keys, step)
    if kind == "on-off":
        keys["onoff"] = chance.choice((5, 15, 40))
    if step:
        keys |= {"step": step, "t1": round(span / 3), "t2": round(2 * span / 3)}
    keys["dur"] = span
    fields = "\t".join(f"{key}={value:g}" for key, value in keys.items())
    return f"{kind}\t{kind}-{number:02}-{keys['rate']:g}-{latency:g}s\t{fields}"


def main():
    chance = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else SEED)
    print("# Written by make_scenarios.py; README.md explains the keys.")
    for kind, count in COUNTS.items():
        for number in range(1, count + 1):
            print(scenario(chance, kind, number))


main()
