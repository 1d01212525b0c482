"""Lines for journald begin with their priority."""
import json
import os
import signal
import subprocess
import threading

from harness.daemon import PROGRAM, Lines, clean_environment, json_line


class Started:
    """`weir run` with a standard error that $JOURNAL_STREAM names, or does not."""

    def __init__(self, directory, config, named=True):
        self.config = directory / "weir.yaml"
        self.config.write_text(config)
        read, write = os.pipe()
        st = os.fstat(write)
        name = f"{st.st_dev}:{st.st_ino if named else st.st_ino + 1}"
        self.process = subprocess.Popen(
            [PROGRAM, "run", "-c", str(self.config)],
            stderr=write,
            env={**clean_environment(directory), "JOURNAL_STREAM": name},
        )
        os.close(write)
        self.lines = Lines()
        self.reader = threading.Thread(target=self.lines.follow, args=(os.fdopen(read),))
        self.reader.start()

    def __enter__(self):
        return self.lines

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(30)
        self.reader.join(30)


def config(directory, more=""):
    return f'listen: ["127.0.0.1:0"]\nadmin: {{listen: ""}}\nstate: {{dir: "{directory}"}}\n{more}'


def test_priorities_take_the_place_of_time_and_level(tmp_path):
    with Started(tmp_path, config(tmp_path)) as lines:
        assert lines.wait("listening on")[0].string.startswith("<6>listening on 127.0.0.1:")


def test_faults_are_errors(tmp_path):
    with Started(tmp_path, "listen: [1]\n") as lines:
        assert lines.wait("weir.yaml")[0].string.startswith(f"<3>{tmp_path}/weir.yaml:1:")


def test_json_keeps_its_fields(tmp_path):
    with Started(tmp_path, config(tmp_path, "log: {format: json}\n")) as lines:
        line = lines.wait("listening on")[0].string
    assert line.startswith("<6>{")
    assert json.loads(line[3:])["level"] == "info"


def test_the_standard_error_of_somebody_else(tmp_path):
    with Started(tmp_path, config(tmp_path), named=False) as lines:
        assert "<" not in lines.wait("listening on")[0].string


def test_a_file_in_the_place_of_standard_error(tmp_path):
    log = tmp_path / "weir.log"
    with Started(tmp_path, config(tmp_path, f'log: {{file: "{log}", format: json}}\n')):
        row = json_line(log, lambda row: row["message"].startswith("listening on"))
    assert row["level"] == "info"
