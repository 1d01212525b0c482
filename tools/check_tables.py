#!/usr/bin/python3
"""Checks that what is written twice says the same: the table of settings, the sample file and the
manual; the table of commands and what each command's source reads; the metrics and what the
operations manual says of them; the packages that quickstart installs and those that debian/ wants.

check_tables.py SOURCE_DIRECTORY MANUAL
"""
import pathlib
import re
import sys

# commands whose options are read in files of other names
FILES = {
    "check": ("config_file",),
    "demo": ("demo_options", "practice_args"),
    "env": ("config_file",),
    "origin": ("origin", "practice_args"),
}
SETTING = re.compile(r'^(CONFIG|POLICY|RULE|POOL)\("([^"]+)"', re.MULTILINE)
OPTION = re.compile(r'^OPTION\((\w+), (?:0|\'(.)\'), "([^"]+)", (NULL|")', re.MULTILINE)
READ = re.compile(r'\{"([a-z0-9-]+)", (no|required)_argument, NULL, (?:\'(.)\')?')
SHORT = re.compile(r'getopt_long\(argc, argv, "([^"]*)"')


def settings(src):
    """The dotted names as the sample has them, and as the manual has them."""
    rows = SETTING.findall((src / "src/config/settings.def").read_text())
    sample = [("defaults." if kind == "POLICY" else "") + path for kind, path in rows if kind in ("CONFIG", "POLICY")]
    return sample + ["rules", "pools"], [path for _, path in rows]


def keys_of_sample(path):
    """Those in force and those behind a "#", by their indentation; prose has a space behind it."""
    above = []
    for line in path.read_text().splitlines():
        match = re.match(r"^( *)(#?)([a-z_0-9]+):( |$)", line)
        if not match:
            continue
        depth = len(match[1]) // 2
        above = above[:depth] + [match[3]]
        if match[2]:
            yield ".".join(above)


def keys_of_manual(path):
    text = path.read_text().replace("\\-", "-")
    return re.findall(r"^\.TP\n\\fB([a-z_0-9.]+)\\fR", text, re.MULTILINE)


def compare(what, wanted, found):
    for name in wanted:
        if name not in found:
            yield f"{what}: {name} is missing"
    for name in found:
        if name not in wanted:
            yield f"{what}: {name} is not in the table"
        elif found.count(name) > 1:
            yield f"{what}: {name} is there twice"


def options(src):
    rows = OPTION.findall((src / "src/cli/commands.def").read_text())
    for command in dict.fromkeys(row[0] for row in rows):
        text = "".join((src / f"src/cli/{name}.c").read_text() for name in FILES.get(command, (command,)))
        letters = SHORT.search(text)[1].lstrip("+:")
        table = [(f"--{name}", quote == '"') for c, _, name, quote in rows if c == command]
        table += [(f"-{letter}", quote == '"') for c, letter, _, quote in rows if c == command and letter]
        read = [(f"--{name}", kind == "required") for name, kind, _ in READ.findall(text)]
        read += [(f"-{letter}", colon == ":") for letter, colon in re.findall(r"(\w)(:?)", letters)]
        table += [("--help", False), ("-h", False)]
        yield from compare(f"options of {command}", table, read)


def metrics(src):
    table = re.findall(r'^(?:KEPT|ASKED)\(\w+, \w+, "(\w+)"', (src / "src/runtime/metrics.def").read_text(), re.MULTILINE)
    rows = [line.split("|")[1] for line in (src / "docs/OPERATIONS.md").read_text().splitlines() if line.startswith("| `")]
    told = re.findall(r"`((?:weir|process)_\w+)`", " ".join(rows))
    return compare("docs/OPERATIONS.md", table, told)


EVERYWHERE = {"gcc", "libc6-dev", "make", "autoconf", "automake"}  # debhelper and build-essential bring them


def packages(src):
    quickstart = re.search(r"^build_packages=\(([^)]*)\)", (src / "quickstart").read_text(), re.MULTILINE)[1].split()
    control = (src / "debian/control").read_text()
    depends = re.search(r"^Build-Depends:((?:\n .*)+)", control, re.MULTILINE)[1]
    wanted = [name for name in quickstart if name not in EVERYWHERE]
    found = [name for name in re.findall(r"^ ([\w.+-]+)", depends, re.MULTILINE)]
    return compare("debian/control", [*wanted, "debhelper-compat", "libcmocka-dev"], found)


def main():
    src, manual = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    in_sample, in_manual = settings(src)
    faults = [
        *compare("conf/weir.yaml", in_sample, list(keys_of_sample(src / "conf/weir.yaml"))),
        *compare("weir.yaml(5)", in_manual, keys_of_manual(manual)),
        *options(src),
        *metrics(src),
        *packages(src),
    ]
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(1 if faults else 0)


main()
