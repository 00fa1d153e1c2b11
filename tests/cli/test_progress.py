"""Progress is drawn on the terminal of stderr and nowhere else, and goes again; Ctrl-C ends every command cleanly.

Bars appear after a second: here at once, so that small jobs show them.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import rocpd
from rocpd.advice.judge import JUDGING
from rocpd.base.stages import Cost, Stages
from rocpd.cli import diagnostics as progress
from rocpd.report.material import WRITING
from rocpd.summary import run
from tests import warm
from tests.build import TraceBuilder
from tests.cli.test_process import environment
from tests.waiting import until

RANKS = 4
BAR = re.compile(r"\r(?P<label>[\w -]+?)(?: (?:of|on) \d ranks, [\d.]+ \w+)? (?P<bar>[━ ]{10,}) +\d+%")

BEFORE = """
import rocpd.cli.diagnostics as progress
from rocpd.federate import limits
progress._PATIENCE_S = {patience}
limits.DEFAULT = limits.Limits(small_bytes=0)
if {controlling}:
    import fcntl, os, termios
    os.setsid()
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)
"""


@dataclass(frozen=True)
class Seen:
    """What a command line ended with, and what its terminal got."""

    code: int
    out: str
    err: str
    terminal: str


class Terminal:
    """Runs one command line with a terminal for stderr, stdout or both; the others are pipes."""

    def __init__(self, words: Sequence[str | Path], on: str = "err", columns: int = 100, patience: float = -1) -> None:
        self._main, side = os.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        before = {warm.BEFORE: BEFORE.format(patience=patience, controlling=on == "err")}
        self.process = subprocess.Popen(
            [warm.program(), *(os.fspath(word) for word in words)],
            stdin=subprocess.DEVNULL,
            stdout=side if on in ("out", "both") else subprocess.PIPE,
            stderr=side if on in ("err", "both") else subprocess.PIPE,
            env={name: value for name, value in environment().items() if name not in ("COLUMNS", "LINES")} | before,
        )
        os.close(side)
        self._got = b""

    def read(self) -> bool:
        """Take what the terminal got meanwhile; False when the command is over."""
        try:
            piece = os.read(self._main, 65536)
        except OSError:  # Linux says so when the last writer is gone
            return False
        self._got += piece
        return bool(piece)

    @property
    def got(self) -> str:
        """What the terminal got so far."""
        return self._got.decode("utf-8", "replace").replace("\r\n", "\n")

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._main, keys)

    def end(self) -> Seen:
        """Wait for the end."""
        while self.read():
            pass
        out, err = self.process.communicate()
        os.close(self._main)
        return Seen(self.process.returncode, (out or b"").decode(), (err or b"").decode(), self.got)


def screen(text: str, columns: int) -> list[str]:
    """Return the lines that a terminal shows in the end: a carriage return goes to the start of the last line."""
    lines, at = [""], 0
    for char in text:
        if char == "\n":
            lines.append("")
            at = 0
        elif char == "\r":
            at = 0
        else:
            if at == columns:
                lines.append("")
                at = 0
            lines[-1] = lines[-1][:at].ljust(at) + char + lines[-1][at + 1 :]
            at += 1
    return [line.rstrip() for line in lines]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    for number in range(RANKS):
        trace = TraceBuilder(number, pid=100 + number).region("roctxRangePushA", 1, 90, message="step")
        trace.region("hipLaunch", 5, 9, stack=1).kernel("gemm", 10, 20, stack=1).kernel("nccl", 30, 40, stack=1)
        trace.region("hipCopy", 21, 26, stack=2).copy(21, 25, stack=2)
        trace.write(folder / f"{number}.db")
    return folder


BY_NAME = "select name, count(*) from kernels group by 1"
COMMANDS: dict[str, tuple[tuple[str, ...], bool]] = {
    "query": (("query", BY_NAME, "-f", "csv"), True),
    "overview": (("summary",), True),
    "markers": (("summary", "markers", "-f", "csv"), True),
    "ranks": (("summary", "ranks", "-f", "html"), True),
    "calls": (("summary", "calls", "-f", "folded"), True),
    "convert json": (("convert", "-f", "json", "-d", "out"), False),
    "convert csv": (("convert", "-f", "csv", "--split", "rank", "-d", "out"), False),
    "merge": (("merge", "-d", "out"), False),
    "package": (("package", "-d", "out/x.rpdb", "--copy"), False),
}
"""Label of the bar: command line, and whether it writes rows to stdout."""


def words_of(label: str, files: Path) -> tuple[str, ...]:
    """Return the command line whose bar has this label; it writes to `out`."""
    return (*COMMANDS[label][0], "-i", str(files))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of outputs are short, so that what is told fits a line."""
    monkeypatch.chdir(tmp_path)


def is_clean(terminal: str, columns: int = 100) -> bool:
    """Whether a terminal shows whole lines of ours in the end, and nothing else."""
    *lines, last = screen(terminal, columns)
    begins = [True, *(len(line) < columns for line in lines)]  # a long one goes on in the next line
    return last == "" and all(line.startswith("rocpd: ") for line, begin in zip(lines, begins, strict=False) if begin)


@pytest.mark.parametrize("label", COMMANDS)
def test_a_bar_on_the_terminal_of_stderr(label: str, files: Path) -> None:
    """It shows what is done, goes from the line when done, and leaves no trace in stdout."""
    seen = Terminal(words_of(label, files)).end()
    assert seen.code == 0, seen
    bars = [match["label"] for match in BAR.finditer(seen.terminal)]
    assert bars, seen.terminal
    assert set(bars) == {label}
    assert is_clean(seen.terminal), seen.terminal
    assert bool(seen.out) == COMMANDS[label][1]
    assert not {"\r", "━", "\x1b"} & set(seen.out)


@pytest.mark.parametrize("label", ["query", "overview", "convert json"])
def test_no_bar_where_stderr_is_no_terminal(label: str, files: Path) -> None:
    """Whatever stdout is."""
    seen = Terminal(words_of(label, files), on="out").end()
    assert (seen.code, BAR.search(seen.terminal), "\r" in seen.terminal) == (0, None, False), seen
    assert not {"\r", "━", "\x1b"} & set(seen.err), seen.err
    assert bool(seen.terminal) == COMMANDS[label][1]


def test_no_bar_for_what_is_quick(files: Path) -> None:
    for label in ("query", "convert json"):
        seen = Terminal(words_of(label, files), patience=1000).end()
        assert (seen.code, "\r" in seen.terminal) == (0, False), seen


def test_rows_on_the_same_terminal_come_on_a_clean_line(files: Path) -> None:
    both = Terminal(words_of("query", files), on="both").end()
    assert (both.code, bool(BAR.search(both.terminal))) == (0, True)
    plain = Terminal(words_of("query", files)).end().out
    assert screen(both.terminal, 100) == [*plain.splitlines(), ""]


def test_tables_on_the_same_terminal_come_on_a_clean_line(files: Path) -> None:
    both = Terminal(words_of("markers", files), on="both").end()
    assert (both.code, bool(BAR.search(both.terminal))) == (0, True)
    plain = Terminal(words_of("markers", files)).end().out
    assert screen(both.terminal, 100) == [*plain.splitlines(), ""]


def test_ranks_done_are_counted(files: Path) -> None:
    """A quarter of the bar and of the ranks at the first; the speed is in ranks."""
    seen = Terminal(words_of("query", files)).end()
    first, _, _ = seen.terminal.lstrip("\r").partition("\r")
    match = re.fullmatch(rf"query (━*)( *) {100 // RANKS}%  (?:[\d,]+ ranks/s  )?[\d,]+ s left", first)
    assert match is not None, first
    assert len(match[1]) == (len(match[1]) + len(match[2]) - 1) // RANKS  # one blank belongs to the share


def test_what_is_said_meanwhile_stands_on_lines_of_its_own(files: Path) -> None:
    seen = Terminal(("summary", "ranks", "-f", "csv", "-d", "out", "-i", files)).end()
    assert (seen.code, bool(BAR.search(seen.terminal))) == (0, True)
    assert seen.terminal.count("rocpd: wrote out/out_") > 3
    assert is_clean(seen.terminal), seen.terminal


@pytest.mark.parametrize("columns", [60, 36])
def test_a_bar_fits_the_terminal_of_stderr(columns: int, files: Path) -> None:
    """Not that of stdout, which is a pipe: a bar that is too long would leave its first part behind."""
    seen = Terminal(words_of("query", files), columns=columns).end()
    assert (seen.code, seen.terminal.startswith("\rquery "), "━" in seen.terminal) == (0, True, True)
    assert is_clean(seen.terminal, columns), seen.terminal


# --- Ctrl-C


MANY = 400_000
GROW = """
INSERT INTO rocpd_kernel_dispatch{{uuid}} ({columns}) SELECT {values} FROM rocpd_kernel_dispatch{{uuid}}, (
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT {many}) SELECT n FROM n)
"""
ENDLESS = " ".join(
    ("select count(*) from kernels a", *(f"join kernels {name} using (guid)" for name in "bcd"), "where a.id > 0")
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks with so many dispatches that reading them takes seconds."""
    folder = tmp_path_factory.mktemp("large")
    for number in range(2):
        trace = TraceBuilder(number, pid=100 + number).kernel("gemm", 10, 20).region("step", 1, 9, message="step 1")
        row = dict.fromkeys(trace.rows["rocpd_kernel_dispatch"][0])
        del row["id"]
        times = {"start": "n * 1000", "end": "n * 1000 + (n * 7919) % 997 + 1", "dispatch_id": "n + 1"}
        values = ", ".join(times.get(name, f'"{name}"') for name in row)
        columns = ", ".join(f'"{name}"' for name in row)
        trace.sql(GROW.format(columns=columns, values=values, many=MANY)).write(folder / f"{number}.db")
    return folder


LONG: dict[str, tuple[str, ...]] = {
    "statement taken apart": ("query", ENDLESS, "-o", "q.csv", "-d", "out", "--strategy", "aggregates"),
    "statement as a whole": ("query", ENDLESS, "-o", "q.csv", "-d", "out", "--strategy", "attached"),
    "all summaries": ("summary", "all"),
    "summary to a file": ("summary", "op-trace", "-f", "csv", "-d", "out"),
    "convert": ("convert", "-f", "json", "-d", "out"),
}


@pytest.mark.parametrize("label", LONG)
def test_ctrl_c(label: str, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, exit code 130; no file, no temporary file and no process is left, and inputs are as they were."""
    temporary, out = tmp_path / "temporary", tmp_path / "out"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    before = sorted(path.name for path in large.iterdir())
    command = [sys.executable, "-m", "rocpd", *LONG[label], "-i", str(large)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )
    has_begun = out.exists if "out" in LONG[label] else functools.partial(reads, process.pid, large)
    until(lambda: has_begun() or process.poll() is not None)
    time.sleep(0.2)
    below = children(process.pid)
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == "rocpd: interrupted; nothing partial is left"
    assert [line for line in said.splitlines() if not line.startswith("rocpd: ")] == []
    assert not out.exists()
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in large.iterdir()) == before
    until(lambda: not any(map(runs, below)))


def test_ctrl_c_on_a_terminal_that_shows_a_bar(large: Path, tmp_path: Path) -> None:
    words = ("convert", "-f", "json", "-d", tmp_path / "out", "-i", large)
    terminal = Terminal((*words, "-j", "1"))
    while not BAR.search(terminal.got):
        assert terminal.read(), terminal.got
    terminal.press(b"\x03")
    seen = terminal.end()
    assert seen.code == 130, seen
    *lines, reported, last = screen(seen.terminal.replace("^C", ""), 100)
    assert (reported, last) == ("rocpd: interrupted; nothing partial is left", "")
    assert [line for line in lines if not line.startswith("rocpd: ")] == []
    assert not (tmp_path / "out").exists()


def reads(pid: int, folder: Path) -> bool:
    """Whether a process, or one that it started, has a file of a folder open."""
    for member in (pid, *children(pid)):
        try:
            if any(str(link.readlink()).startswith(str(folder)) for link in Path(f"/proc/{member}/fd").iterdir()):
                return True
        except OSError:  # it has closed something meanwhile, or is gone
            continue
    return False


def children(pid: int) -> list[int]:
    children: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread that started it is gone: another one is its parent
            children += map(int, path.read_text().split())
    return children


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_bar_moves_while_one_step_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until somebody else writes to the terminal; then the next step draws it again."""

    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen_ = Tty()
    monkeypatch.setattr(sys, "stderr", screen_)
    monkeypatch.setattr(progress, "_PATIENCE_S", -1.0)
    with progress.progress("convert") as report:
        assert report
        until(lambda: "convert" in screen_.getvalue() and "0%" in screen_.getvalue())
        progress.clear_bars()
        length = len(screen_.getvalue())
        time.sleep(1.2)  # nothing is drawn over what others write
        assert len(screen_.getvalue()) == length
        report(1, 2)
        until(lambda: "50%" in screen_.getvalue())
    assert screen_.getvalue().endswith("\r")


@dataclass
class Played:
    """The course of a command whose stages take what they were measured to take, by a clock of its own.

    Args:
        ranks: how many there are.
        expected: how long each stage is thought to take [s]; the last one has no steps.
        took: how long each took [s]; None: it was passed over.
    """

    ranks: int
    expected: Sequence[float]
    took: Sequence[float | None]
    now: float = 0.0

    def said(self) -> list[tuple[float, float]]:
        """Return the times of reports, and how long was left at each of them [s]."""
        said: list[tuple[float, float]] = []
        course = Stages(lambda done, of: said.append((self.now, (of - done) / 1e3)), self.expected, 2, lambda: self.now)
        for stage, took in enumerate(self.took):
            if took is not None:
                begun = self.now
                course.step(stage)
                for done in range(1, self.ranks + 1) if stage < len(self.took) - 1 else ():
                    self.now = begun + took * done / self.ranks
                    course.step(stage, done, self.ranks)
                self.now = begun + took
        return said

    def wrong(self) -> list[tuple[float, float]]:
        """Return (said, truth) wherever these differ by a third, from a tenth of the time on."""
        said = self.said()
        shown = [(at, left) for at, left in said if at >= self.now / 10]
        return [(left, self.now - at) for at, left in shown if abs(left - self.now + at) > (self.now - at) / 3]


@pytest.mark.parametrize(
    ("ranks", "megabytes", "analyses", "after", "took"),
    [
        pytest.param(256, 154, 6, Cost(0, 0), (0.16, 0.05, 0.31, 1.74, 0.6), id="summary, 256 ranks"),
        pytest.param(256, 154, 14, JUDGING, (0.14, 0.05, 0.3, 2.68, 1.47), id="advise, 256 ranks"),
        pytest.param(256, 154, 28, WRITING, (0.15, 0.06, 0.33, 4.14, 2.2), id="report, 256 ranks"),
        pytest.param(64, 1440, 6, Cost(0, 0), (1.0, 0.39, 1.38, 4.12, 2.18), id="summary, 64 ranks"),
        pytest.param(64, 1440, 14, JUDGING, (0.95, 0.36, 1.47, 7.1, 3.99), id="advise, 64 ranks"),
        pytest.param(64, 1440, 14, JUDGING, (0.04, 0.05, None, 5.9, 5.7), id="advise, 64 ranks that are kept in part"),
        pytest.param(64, 1440, 28, WRITING, (1.0, 0.39, 1.7, 13.7, 8.0), id="report, 64 ranks"),
        pytest.param(16, 2037, 14, JUDGING, (1.0, 0.3, 1.9, 8.2, 5.9), id="advise, 16 ranks"),
        pytest.param(16, 2037, 28, WRITING, (0.93, 0.26, 1.64, 13.7, 11.0), id="report, 16 ranks"),
    ],
)
def test_the_time_left_is_right_within_a_third(
    ranks: int, megabytes: int, analyses: int, after: Cost, took: Sequence[float | None]
) -> None:
    """By what the stages of each command took on two cores."""
    size = megabytes * 1e6
    reading = run.READING.seconds(ranks, size, 2) + analyses * run.ANALYSIS.seconds(ranks, size, 2)
    passes = [cost.seconds(ranks, size, 2) for cost in run.PASSES]
    expected = [*passes, reading, run.BLAME.seconds(ranks, size) + after.seconds(ranks, size)]
    assert Played(ranks, expected, took).wrong() == []


def test_a_machine_that_is_slower_makes_later_stages_longer() -> None:
    assert Played(8, [1.0, 4.0, 2.0], [3.0, 12.0, 6.0]).wrong() == []


def test_the_time_left_is_that_of_all_stages(files: Path) -> None:
    seen: list[tuple[int, int]] = []
    with rocpd.connect(files) as session:
        _ = list(run.run(session, "overview", progress=lambda done, total: seen.append((done, total))))
    assert len(seen) >= 2 * RANKS
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(done <= total for done, total in seen)
