"""Signals at any moment: one line at most, the exit code of the signal, nothing left beside the inputs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_process import environment
from tests.places import small_disk

AT_AN_IMPORT = """
import signal, sys
from rocpd.cli import run
imports = 0
def count(event, details):
    global imports
    if event == "import":
        imports += 1
        if imports == int(sys.argv[1]):
            signal.raise_signal(getattr(signal, sys.argv[2]))
sys.addaudithook(count)
sys.exit(run(["query", "select * from kernels", "db0.db", "-o", "x.csv"]))
"""

FROM_THE_START = """
import _signal, sys
imports = 0
def count(event, details):
    global imports
    if event == "import":
        imports += 1
        if imports == int(sys.argv[1]):
            _signal.raise_signal(_signal.SIGINT)
import rocpd.__main__
sys.addaudithook(count)
rocpd.__main__.main()
"""

AFTER_A_FILE = """
import signal
import rocpd.cli, rocpd.cli.tables as tables
report_written = tables.report_written
def interrupted(path):
    report_written(path)
    signal.raise_signal(signal.SIGINT)
tables.report_written = interrupted
rocpd.cli.start("summary", "kernels", "domains", "-f", "csv", "-o", "s/", ".")
"""

UNRAISABLE = """
import signal, sys
import rocpd.session
from rocpd.cli import run
class Last:
    def __del__(self):
        {what}
def connect(*words, **named):
    last = Last()
    del last
    {then}
rocpd.session.connect = connect
sys.exit(run(["info", "."]))
"""


AFTER_A_FOLDER = """
import contextlib, signal, sys
import rocpd.cli, rocpd.convert.deliver as parts
class Interrupted:
    def __init__(self, folder):
        self.workplace = workplace(folder)
    def __enter__(self):
        self.workplace.__enter__()
        signal.raise_signal(getattr(signal, sys.argv[1]))
    def __exit__(self, *_):
        pass
workplace = parts.workplace
parts.workplace = Interrupted
sys.exit(rocpd.cli.run(["convert", "-f", "pftrace", "-d", "new/out", "."]))
"""

IN_A_STRING = """
import signal
import rocpd.cli, rocpd.session
def connect(*words, **named):
    exec("signal.raise_signal(signal.SIGINT)")
rocpd.session.connect = connect
rocpd.cli.start("info", ".")
"""


def end_of(program: str, *words: str, module: bool = False) -> tuple[int, str, str]:
    if module:
        Path("interrupted.py").write_text(program)
    how = ["-m", "interrupted"] if module else ["-c", program]
    done = subprocess.run(
        [sys.executable, *how, *words], capture_output=True, text=True, check=False, env=environment()
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("moment", [1, 3, 10, 30, 60, 90, 120, 200])
def test_interrupted_at_an_import(moment: int, job: Path) -> None:
    before = sorted(job.iterdir())
    assert end_of(AT_AN_IMPORT, str(moment), "SIGINT") == (130, "", "rocpd: interrupted; nothing partial is left\n")
    assert sorted(job.iterdir()) == before


@pytest.mark.parametrize("moment", [*range(1, 13), 20, 40])
def test_interrupted_from_the_first_line_on(moment: int, job: Path) -> None:
    """Whatever rocpd imports, from its first module on."""
    code, out, said = end_of(FROM_THE_START, str(moment))
    assert (code, out) == (130, "")
    assert said in ("rocpd: interrupted; nothing partial is left\n", "")
    assert said or moment == 1


def test_what_is_finished_stays_when_a_command_is_interrupted(job: Path) -> None:
    code, _, said = end_of(AFTER_A_FILE)
    assert code == 130
    assert said.endswith("rocpd: interrupted; nothing partial is left; finished before, and kept: s/out_kernels.csv\n")
    assert [path.name for path in Path("s").iterdir()] == ["out_kernels.csv"]


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_ended_at_an_import(name: str, code: int, job: Path) -> None:
    before = sorted(job.iterdir())
    assert end_of(AT_AN_IMPORT, "200", name) == (code, "", "")
    assert sorted(job.iterdir()) == before


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_where_python_cannot_raise(name: str, code: int, job: Path) -> None:
    """An exception in the end of an object would be lost, with a traceback on stderr; it is raised after that."""
    program = UNRAISABLE.format(what=f"signal.raise_signal(signal.{name})", then="import time; time.sleep(20)")
    said = "rocpd: interrupted; nothing partial is left\n" if name == "SIGINT" else ""
    assert end_of(program) == (code, "", said)


def test_a_signal_that_somebody_swallowed(job: Path) -> None:
    """A library that runs Python's handlers may make an error of its own of it."""
    program = """
import signal
import rocpd.cli, rocpd.cli.commands
def swallow(*words, **named):
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        return 0
rocpd.cli._invoke = swallow
rocpd.cli.start("info", ".")
"""
    assert end_of(program) == (130, "", "rocpd: interrupted; nothing partial is left\n")


def test_a_signal_is_not_raised_again_after_the_end(job: Path) -> None:
    """What Python could not raise may still end the command, such as by an object that was left half closed."""
    program = UNRAISABLE.format(what="signal.raise_signal(signal.SIGINT)", then="raise OSError(5, 'half closed')")
    program = program.replace("sys.exit(run(", "code = run(").replace(
        "]))", "])\nimport time\ntime.sleep(0.1)\nsys.exit(code)"
    )
    assert end_of(program) == (130, "", "rocpd: interrupted; nothing partial is left\n")


def test_interrupted_in_code_from_a_string(job: Path) -> None:
    """Python would end a module that it runs by the signal, whatever exit code the module asks for."""
    assert end_of(IN_A_STRING, module=True) == (130, "", "rocpd: interrupted; nothing partial is left\n")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_before_a_new_folder_is_in_care(name: str, code: int, job: Path) -> None:
    """An inner temporary folder that is removed too late would keep the outer one from going."""
    before = sorted(job.iterdir())
    said = "rocpd: interrupted; nothing partial is left\n" if name == "SIGINT" else ""
    assert end_of(AFTER_A_FOLDER, name) == (code, "", said)
    assert sorted(job.iterdir()) == before


def test_what_python_cannot_raise_adds_no_traceback(job: Path) -> None:
    program = UNRAISABLE.format(what="1 / 0", then="raise OSError(28, 'No space left on device', 'x.csv')")
    assert end_of(program) == (1, "", "rocpd: error: x.csv: No space left on device\n")


def test_hangup_is_ignored_where_it_was_before(job: Path) -> None:
    """As under nohup."""
    program = "import signal, sys\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + AT_AN_IMPORT
    code, _, said = end_of(program, "120", "SIGHUP")
    assert (code, said.partition(" (")[0]) == (0, "rocpd: wrote x.csv")


def test_rows_that_a_full_disk_cuts_off(job: Path) -> None:
    with small_disk(job / "small"):
        many = "select a.name, b.name, c.name, hex(randomblob(50)) from kernels a, kernels b, kernels c, regions d"
        many += ", regions e, regions f, regions g"
        words = ["query", many, ".", "-o", "small/x.csv"]
        done = subprocess.run(
            [sys.executable, "-m", "rocpd", *words], capture_output=True, text=True, check=False, env=environment()
        )
        assert (done.returncode, list((job / "small").iterdir())) == (1, [])
    lines = done.stderr.splitlines()
    assert lines[0].startswith("rocpd: error: small/x.csv: cannot be written")
    assert [line.startswith("  hint: ") for line in lines[1:]] in ([], [True])
