"""What the shells offer for a command line that is begun."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from harness.daemon import PROGRAM, clean_environment

COMPLETIONS = pathlib.Path(PROGRAM).parent / "completions"
COMMANDS = {"run", "exec", "env", "ca", "check", "explain", "demo", "origin"}
SCRIPT = """
source "$1"; shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_weir
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(directory, *words):
    """What bash would offer for the last of the words."""
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", COMPLETIONS / "weir", "weir", *words],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


@pytest.fixture
def files(tmp_path):
    (tmp_path / "weir.yaml").touch()
    (tmp_path / "weird").mkdir()
    return tmp_path


def test_bash_commands(files):
    assert bash(files, "") >= COMMANDS | {"help", "version"}
    assert bash(files, "ex") == {"exec", "explain"}
    assert bash(files, "help", "ex") == {"exec", "explain"}


def test_bash_options(files):
    assert bash(files, "run", "--") == {"--config", "--listen", "--show-config", "--help"}
    assert "-c" in bash(files, "check", "-")
    assert bash(files, "explain", "--se") == {"--session"}
    assert bash(files, "no-such", "--") == set()


def test_bash_words_and_arguments(files):
    assert bash(files, "ca", "") >= {"init", "show", "export"}
    assert bash(files, "exec", "--https", "") == {"tunnel", "intercept"}
    assert bash(files, "run", "-c", "wei") == {"weir.yaml", "weird"}
    assert bash(files, "ca", "--dir", "wei") == {"weird"}
    assert bash(files, "demo", "--rate", "") == set()


def test_bash_the_command_of_exec(files):
    assert "weir.yaml" in bash(files, "exec", "--", "cat", "weir.y")
    assert "--config" not in bash(files, "exec", "--", "")


PROMPT = "<ready>"


class Zsh:
    """An interactive one, in which `weir` prints its arguments."""

    def __init__(self, directory):
        pid, self.terminal = pty.fork()
        if pid == 0:
            env = {**clean_environment(directory), "TERM": "dumb", "HOME": str(directory), "LC_ALL": "C.UTF-8"}
            os.chdir(directory)
            os.execvpe("zsh", ["zsh", "-f", "-i", "+o", "prompt_sp"], {**env, "PS1": PROMPT})
        self.pid = pid
        self.text = ""
        self.run(f"fpath=('{COMPLETIONS}' $fpath); autoload -U compinit; compinit -u -D")
        self.run("weir() { print -r -- GOT ${(q)@} END }")
        self.wait(PROMPT)

    def wait(self, text):
        until = time.monotonic() + 60
        while text not in self.text:
            assert time.monotonic() < until, self.text
            if select.select([self.terminal], [], [], 1)[0]:
                self.text += os.read(self.terminal, 4096).decode(errors="replace")

    def run(self, line):
        """Types it once the line editor is ready for it."""
        self.wait(PROMPT)
        self.text = ""
        os.write(self.terminal, f"{line}\n".encode())

    def complete(self, line):
        """The arguments once the line has been completed as far as it goes."""
        self.run(f"{line}\t")
        self.wait(PROMPT)
        return re.search(r"^GOT (.*) END", self.text, re.MULTILINE)[1].split()

    def close(self):
        self.run("exit")
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh")
def test_zsh(files):
    shell = Zsh(files)
    try:
        for begun, whole in (
            ("weir chec", "check"),
            ("weir run --sh", "run --show-config"),
            ("weir exec --https inter", "exec --https intercept"),
            ("weir ca exp", "ca export"),
            ("weir run -c weir.y", "run -c weir.yaml"),
            ("weir help orig", "help origin"),
            ("weir exec -- cat weir.y", "exec -- cat weir.yaml"),
            ("weir exec -c weir.yaml cat weir.y", "exec -c weir.yaml cat weir.yaml"),
        ):
            assert shell.complete(begun) == whole.split(), shell.text
    finally:
        shell.close()
