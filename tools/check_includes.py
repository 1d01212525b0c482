#!/usr/bin/python3
"""Checks who includes whom: the layers' direction, the libraries' places, each source's own header
first, and no header without its guard.

check_includes.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

# From the bottom up: a layer may include from itself and from those it names.
LAYERS = {
    "base": [],
    "core": ["base"],
    "config": ["core", "base"],
    "runtime": ["config", "core", "base"],
    "egress": ["runtime", "config", "core", "base"],
    "proxy": ["egress", "runtime", "config", "core", "base"],
    "admin": ["runtime", "config", "core", "base"],
    "cli": ["admin", "proxy", "egress", "runtime", "config", "core", "base"],
    "": ["cli", "base"],
}
# Which layers may use a library's headers.
LIBRARIES = {
    "event2/": ["runtime", "egress", "proxy", "admin", "cli"],
    "curl/": ["egress"],
    "openssl/": ["proxy"],
    "yaml.h": ["config"],
    "jansson.h": ["runtime", "proxy", "admin", "cli"],
    "crypt.h": ["proxy"],
    "libpsl.h": ["runtime"],
    "nettle/": ["runtime"],
    "systemd/": ["runtime"],
    "zlib.h": ["proxy"],
    "pthread.h": ["runtime", "proxy", "admin", "cli"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def layer_of(relative):
    return relative.split("/")[0] if "/" in relative else ""


def faults_of(path, src):
    relative = path.relative_to(src).as_posix()
    layer = layer_of(relative)
    if layer not in LAYERS:
        yield 1, f"{layer}/ is no layer"
        return
    found = list(includes(path))
    for number, own, name in found:
        if own and name != "config.h":
            target = layer_of(name)
            if not (src / name).is_file():
                yield number, f'"{name}" is not a file below src/'
            elif target != layer and target not in LAYERS[layer]:
                yield number, f'{layer or "main"} must not include from {target or "src"}: "{name}"'
        for library, layers in LIBRARIES.items():
            if not own and name.startswith(library) and layer not in layers:
                yield number, f"<{name}> does not belong in {layer or 'main'}"
    if path.suffix == ".c":
        header = path.with_suffix(".h").relative_to(src).as_posix()
        first = next((name for _, own, name in found if name != "config.h"), None)
        if (src / header).is_file() and first != header:
            yield 1, f'its own header "{header}" must come first'
    elif path.suffix == ".h":
        guard = "WEIR_" + re.sub(r"\W", "_", relative).upper()
        text = path.read_text()
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            yield 1, f"no guard {guard}"
        if not re.match(rf"/\* {re.escape(relative)} - ", text):
            yield 1, f'does not open with "/* {relative} - " and what it is'


def main():
    src = pathlib.Path(sys.argv[1])
    wrong = 0
    for path in sorted(src.rglob("*.[ch]")):
        for number, text in faults_of(path, src):
            print(f"{path}:{number}: {text}")
            wrong += 1
    sys.exit(1 if wrong else 0)


main()
