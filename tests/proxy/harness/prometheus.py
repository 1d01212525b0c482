"""Reads the text format of Prometheus, version 0.0.4, as strictly as promtool does."""
import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
TYPES = {"counter", "gauge", "histogram"}


class Metrics:
    """What one scrape told. `samples` has a value for each name and sorted labels."""

    def __init__(self, text):
        self.text = text
        self.samples = {}
        self.types = {}
        self.helps = {}
        assert text.endswith("\n"), "the last line has no end"
        self._read(text[:-1].split("\n"))
        for name, kind in self.types.items():
            self._lint(name, kind)

    def value(self, name, **labels):
        """The sample with exactly these labels, 0 where there is none of a metric that is known."""
        assert self.family(name) in self.types, f"{name} is not told of"
        return self.samples.get((name, tuple(sorted(labels.items()))), 0)

    def series(self, name):
        """All samples of that name: a list of their labels and values."""
        return [(dict(labels), value) for (n, labels), value in self.samples.items() if n == name]

    def total(self, name, **labels):
        """The sum of all samples that have these labels among theirs."""
        return sum(v for own, v in self.series(name) if labels.items() <= own.items())

    def family(self, name):
        if name in self.types:
            return name
        return re.sub(r"_(bucket|sum|count)$", "", name)

    def _read(self, lines):
        current = None
        for number, line in enumerate(lines, 1):
            where = f"line {number}: {line!r}"
            if line.startswith("# HELP "):
                current, text = line[7:].split(" ", 1)
                assert NAME.fullmatch(current) and current not in self.helps, where
                assert text and not re.search(r"\\(?![\\n])", text), where
                self.helps[current] = text
            elif line.startswith("# TYPE "):
                name, kind = line[7:].split(" ")
                assert name == current and name not in self.types and kind in TYPES, where
                self.types[name] = kind
            else:
                self._sample(line, current, where)

    def _sample(self, line, current, where):
        name = NAME.match(line)
        assert name, where
        name, rest = name[0], line[name.end() :]
        assert self.family(name) == current and current in self.types, "not with its kind: " + where
        labels = {}
        if rest.startswith("{"):
            inside, rest = self._labels(rest[1:], where)
            labels = dict(inside)
            assert len(labels) == len(inside), "a label comes twice: " + where
        assert re.fullmatch(r" [-+0-9.e]+| [-+]?Inf| NaN", rest), where
        key = (name, tuple(sorted(labels.items())))
        assert key not in self.samples, "it comes twice: " + where
        self.samples[key] = float(rest)

    @staticmethod
    def _labels(text, where):
        found = []
        while not text.startswith("}"):
            name, equals, rest = text.partition('="')
            assert equals and re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name), where
            value = re.match(r'(?:[^"\\\n]|\\["\\n])*', rest)[0]
            assert rest[len(value) :].startswith('"'), where
            plain = re.sub(r'\\(["\\n])', lambda m: "\n" if m[1] == "n" else m[1], value)
            found.append((name, plain))
            text = rest[len(value) + 1 :]
            assert text[:1] in (",", "}"), where
            text = text.removeprefix(",")
        return found, text[1:]

    def _lint(self, name, kind):
        assert name.startswith(("weir_", "process_")), name
        assert name in self.helps, f"{name} has no HELP"
        assert (kind == "counter") == name.endswith("_total"), name
        assert not re.search(r"_(ms|milliseconds|minutes|kib|kilobytes|ratio_percent)(_|$)", name), name
        if kind == "histogram":
            self._lint_histogram(name)
        elif kind == "counter":
            assert all(v >= 0 for _, v in self.series(name)), name

    def _lint_histogram(self, name):
        buckets = [(float(labels["le"]), value) for labels, value in self.series(name + "_bucket")]
        bounds, counts = zip(*buckets)
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, name
        assert list(counts) == sorted(counts), f"{name} is not cumulative: {counts}"
        assert counts[-1] == self.value(name + "_count"), name
        assert self.value(name + "_sum") >= 0 and (name + "_sum", ()) in self.samples, name


# What must be 0 again when nothing goes on.
IDLE = (
    "weir_requests_open",
    "weir_queued",
    "weir_sleeping",
    "weir_in_flight",
    "weir_scope_in_flight",
    "weir_scope_queued",
)


def still_open(metrics):
    """What of that is not 0."""
    return {f"{name}{labels}": v for name in IDLE for labels, v in metrics.series(name) if v}
