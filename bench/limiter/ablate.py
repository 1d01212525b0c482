#!/usr/bin/python3
"""What is each rule of the limiter worth? Builds the bench once for each with that rule switched off
and prints the figures in a table. Takes some minutes.

ablate.py [SCENARIOS]
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
# What is switched off: file of src/core, text there (must occur once), what stands in its place.
RULES = {
    "– (all rules)": [],
    "pacing": [("limiter.c", "if (now < l->pace.next && !h->closed)", "if (0)")],
    "one cut per epoch": [("limiter_answer.c", "if (pass->sent < l->cut) {", "if (0) {")],
    "the silence budget": [("pace.c", "usec_t paid = (p->steady ? cost : cost_unsettled) * silence;",
                            "usec_t paid = 0 * silence;")],
    "N times the refusals": [("pace.c", "per_refusal * (refusals > 1 ? refusals : 1)",
                              "per_refusal + 0 * refusals")],
    "requests counted as at R_max": [("pace.c", "fmin(1, p->rate / p->max)", "1")],
    "slots": [("limiter_answer.c", "slots_refused(&l->slots, pass->in_flight, l->refused_epochs > 1)",
               "SLOTS_UNTOLD")],
    "what was accepted, as evidence on slots": [
        ("limiter_answer.c", "slots_accepted(&l->slots, pass->in_flight);", "")],
    "the rate that slots carry": [("limiter_answer.c", "if (slots == SLOTS_FOUND && !overloaded)", "if (0)")],
    "sparing the rate in a trial": [
        ("limiter_answer.c", "if (slots == SLOTS_TRIAL_REFUSED && !overloaded) {", "if (0) {")],
    "the trial's price": [("slots.c", "fmax(rarely, requests)", "rarely")],
    "sparing the rate in the first burst": [
        ("limiter_answer.c", "if (limiter_is_adaptive(l) && is_first_burst(l, pass))", "if (0)")],
    "adopting a quota": [("pace.c", "cycle_rate < quota_below * p->rate", "0 * cycle_rate > 1")],
    "quota headers": [("limiter.c", "double bound = quota_bound_rate(&l->quota, now),",
                       "double bound = 0 * (double)now,")],
    "the estimate after slow start": [("pace.c", "trust * r->recent", "0.7 * old")],
    "the delivered rate": [("pace.c", "(1 - drop) * r->delivered", "old")],
    "growing only what is used": [("limiter_answer.c", "if (!pass->limited || ", "if (")],
    "accelerating": [("pace.c", "old > p->max * (1 + drop);", "0;")],
}
CORE = ("aimd duration histogram hold http_date limiter limiter_answer limiter_memory pace quota "
        "quota_bound slots")
SOURCES = [*(f"src/core/{name}.c" for name in CORE.split()),
           *(f"src/base/{name}.c" for name in ("fields", "heap", "prng", "xalloc")),
           *(f"tests/sim/{name}.c" for name in ("controller_weir", "origin", "simulator")),
           "bench/limiter/*.c", "bench/limiter/controllers/*.c"]
FASTEST = 200  # requests/s: faster hosts take most of the time


def build(changes, copy):
    for directory in ("src", "tests/sim", "bench/limiter"):
        shutil.copytree(TOP / directory, copy / directory)
    for name, old, new in changes:
        path = copy / "src/core" / name
        text = path.read_text()
        if text.count(old) != 1:
            sys.exit(f"ablate.py: {name} does not have once: {old}")
        path.write_text(text.replace(old, new))
    sources = [str(path) for pattern in SOURCES for path in sorted(copy.glob(pattern))]
    subprocess.run(["cc", "-w", "-O2", "-std=gnu11", "-D_GNU_SOURCE", f"-I{copy}/src", f"-I{copy}", *sources,
                    "-lm", "-o", copy / "limiter"], check=True)


def slower_hosts(path, copy):
    with open(path) as source, open(copy, "w") as target:
        for line in source:
            rate = [float(field[5:]) for field in line.split("\t") if field.startswith("rate=")]
            if rate and rate[0] <= FASTEST:
                target.write(line)
    return copy


def measure(changes, scenarios):
    with tempfile.TemporaryDirectory() as directory:
        build(changes, pathlib.Path(directory))
        hosts = slower_hosts(scenarios, f"{directory}/hosts.tsv")
        said = subprocess.run([f"{directory}/limiter", "--only", "weir", hosts], check=True,
                              capture_output=True, text=True).stdout
    rows = [row.split("|") for row in said.splitlines() if row.startswith("| weir |")]
    demo = rows[2][2].split(",")[0].strip()
    return [rows[0][i].strip() for i in (2, 3, 4, 6)] + [demo]


def main():
    scenarios = sys.argv[1] if len(sys.argv) > 1 else str(TOP / "bench/limiter/scenarios.tsv")
    print("| without | pass | goodput median / mean / worst | whole run | 429s median / p90 / worst % "
          "| demo, 25 s |\n|---|---|---|---|---|---|")
    for name, changes in RULES.items():
        print(f"| {name} | {' | '.join(measure(changes, scenarios))} |", flush=True)


main()
