"""Progress is drawn on the terminal of stderr and nowhere else, and goes again; Ctrl-C ends every command cleanly.

Bars appear after a second: here at once, so that small jobs show them.
"""

from __future__ import annotations

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.advice.judge import USUAL, questions, tables_of_rules
from rocpd.advice.registry import known_rules
from rocpd.base import Progress
from rocpd.base.stages import COSTS, Stage, Stages
from rocpd.cli import diagnostics as progress
from rocpd.replay import whatif
from rocpd.report.build import build, stages_of
from rocpd.report.contents import chosen_sections
from rocpd.simulator import JobOptions, simulate
from rocpd.summary import reading
from tests import warm
from tests.build import TraceBuilder
from tests.cli.test_process import environment
from tests.processes import children, reads, runs
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
    "advice": (("advise",), True),
    "replays": (("whatif",), True),
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
        megabytes: size of their files.
        planned: stage -> how many of it there are, as the command says.
        took: how long each stage took, in order [s].
        is_kept: what replays of the job say is known.
    """

    ranks: int
    megabytes: int
    planned: Mapping[Stage, float]
    took: Mapping[Stage, float]
    is_kept: bool = False
    now: float = 0.0

    def seconds(self, stage: Stage, amount: float) -> float:
        """Return how long a stage is expected to take on two cores [s]."""
        return COSTS[stage].seconds(self.ranks, self.megabytes * 1e6, 2, amount)

    def said(self) -> list[tuple[float, float]]:
        """Return the times of reports, and how long was left at each of them [s]."""
        said: list[tuple[float, float]] = []
        report: Progress = lambda done, of: said.append((self.now, (of - done) / 1e3))  # noqa: E731
        course = Stages(report, self.planned, self.seconds, 2, lambda: self.now)
        if self.is_kept:
            course.know_blame()
        for stage, took in self.took.items():
            count = self.ranks if COSTS[stage].is_shared else int(self.planned.get(stage, 0))
            begun = self.now
            with course.during(stage) as planned:
                for done in range(1, count + 1):
                    self.now = begun + took * done / count
                    course.step(planned, done, count)
                self.now = begun + took
        return said

    def wrong(self) -> list[tuple[float, float]]:
        """Return (said, truth) wherever these differ by a third and by a second, from a tenth of the time on."""
        said = self.said()
        shown = [(left, self.now - at) for at, left in said if at >= self.now / 10]
        return [(left, truth) for left, truth in shown if abs(left - truth) > max(truth / 3, 1.0)]


def of_summary() -> dict[Stage, float]:
    """Return what `rocpd summary` plans."""
    return reading.stages(["overview"])


def of_advice() -> dict[Stage, float]:
    """Return what `rocpd advise` plans."""
    return {**reading.stages(questions(tables_of_rules(known_rules()))), Stage.REPLAYS: USUAL}


def of_report() -> dict[Stage, float]:
    """Return what `rocpd report` plans."""
    return stages_of(chosen_sections(()))


_PASSES = (Stage.FIRST, Stage.READING)
_JUDGED = (*_PASSES, Stage.TABLES, Stage.BLAME)
_ANEW = (Stage.FIRST, Stage.READING, Stage.TABLES, Stage.GRAPHS, Stage.ANEW)
_REPORTED = (Stage.REPLAYS, Stage.CAUSES, Stage.WRITING)


def of(stages: Sequence[Stage], *took: float) -> dict[Stage, float]:
    """Return how long each stage took [s]."""
    return dict(zip(stages, took, strict=True))


MEASURED = {
    "summary, 16 ranks": Played(16, 598, of_summary(), of(_JUDGED, 0.9, 2.13, 0.13, 0.71)),
    "summary, 64 ranks": Played(64, 252, of_summary(), of(_JUDGED, 0.79, 1.6, 0.08, 0.35)),
    "summary, 256 ranks": Played(256, 154, of_summary(), of(_JUDGED, 0.67, 2.5, 0.16, 0.39)),
    "advise, 16 ranks": Played(*(16, 598, of_advice(), of((*_JUDGED, Stage.REPLAYS), 0.97, 3.2, 0.23, 0.68, 0.93))),
    "advise, 16 ranks that are kept": Played(
        *(16, 598, of_advice(), of((*_ANEW, Stage.REPLAYS), 0.03, 0.24, 0.12, 0.76, 0.65, 0.92), True)
    ),
    "advise, 64 ranks": Played(*(64, 252, of_advice(), of((*_JUDGED, Stage.REPLAYS), 0.65, 2.35, 0.31, 0.33, 0.36))),
    "advise, 256 ranks": Played(*(256, 154, of_advice(), of((*_JUDGED, Stage.REPLAYS), 0.75, 4.5, 1.1, 0.42, 0.08))),
    "report, 16 ranks": Played(
        *(16, 598, of_report(), of((*_JUDGED, *_REPORTED), 0.94, 6.11, 0.53, 0.72, 0.93, 1.07, 1.07))
    ),
    "report, 16 ranks that are kept": Played(
        *(16, 598, of_report(), of((*_ANEW, *_REPORTED), 0.04, 0.54, 0.54, 0.81, 0.81, 0.92, 1.08, 1.05), True)
    ),
    "report, 256 ranks": Played(
        *(256, 154, of_report(), of((*_JUDGED, *_REPORTED), 0.6, 5.7, 1.28, 0.42, 0.07, 0.09, 0.68))
    ),
    "whatif, 16 ranks": Played(
        *(16, 598, whatif.STAGES, of((Stage.GRAPHS, Stage.FIRST, Stage.ANEW, Stage.CAUSES), 2.1, 0.48, 0.78, 1.31))
    ),
}
"""How long stages took, by the CPU time of two cores."""


@pytest.mark.parametrize("played", MEASURED.values(), ids=MEASURED)
def test_the_time_left_is_right_within_a_third(played: Played) -> None:
    assert replace(played).wrong() == []


@pytest.mark.parametrize("name", [name for name in MEASURED if "kept" not in name and "whatif" not in name])
def test_a_machine_that_is_slower_makes_later_stages_longer(name: str) -> None:
    """Three times; where passes over the ranks come first, they show it."""
    played = MEASURED[name]
    assert replace(played, took={stage: 3 * took for stage, took in played.took.items()}).wrong() == []


ASKED: dict[str, tuple[Callable[[rocpd.Session, Progress], object], Mapping[Stage, float]]] = {
    "summary": (lambda job, tell: list(reading.run(job, "overview", progress=tell)), of_summary()),
    "advise": (lambda job, tell: job.advise(on_progress=tell), of_advice()),
    "report": (lambda job, tell: build(job, progress=tell), of_report()),
    "whatif": (lambda job, tell: whatif.what_if(job, progress=tell), whatif.STAGES),
}
"""Commands: as Python asks the same, and the stages that are planned."""


@pytest.mark.parametrize("command", ASKED)
def test_each_stage_that_is_planned_begins(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On two hosts, whose clocks are aligned; what nobody begins would be expected until the end."""
    begun: list[Stage] = []

    during = Stages.during

    def watched(stages: Stages, stage: Stage, amount: float = 0) -> Any:
        begun.append(stage)
        return during(stages, stage, amount)

    monkeypatch.setattr(Stages, "during", watched)
    simulate(JobOptions(tmp_path / "job", ranks=4, nodes=2, steps=6))
    ask, planned = ASKED[command]
    with rocpd.connect(tmp_path / "job") as job:
        ask(job, lambda _done, _of: None)
    assert set(planned) - set(begun) == set()


def test_a_stage_within_another_one_counts_once() -> None:
    """Of 10 s for tables, 4 pass, then 2 in which the job is replayed; the rest comes at the pace of the tables."""
    now, said = [0.0], list[int]()
    expected = {Stage.TABLES: 10.0, Stage.BLAME: 2.0}
    course = Stages(
        lambda done, of: said.append(of),
        {Stage.TABLES: 4, Stage.BLAME: 1},
        lambda stage, _: expected[stage],
        1,
        lambda: now[0],
    )
    for number in course.each(Stage.TABLES, range(4), 4):
        now[0] += 2.5
        if number == 1:
            with course.during(Stage.BLAME):
                now[0] += 2.0
    assert max(said) - min(said) <= 1
    assert said[-1] == pytest.approx(12_200)


def test_a_stage_that_comes_again_is_part_of_the_one_around_it() -> None:
    course = Stages(lambda _done, _of: None, {Stage.TABLES: 1, Stage.FIRST: 1}, lambda _stage, _amount: 1.0)
    with course.during(Stage.FIRST) as first, course.during(Stage.FIRST) as again:
        assert first
        assert again is None
    with course.during(Stage.FIRST) as again, course.during(Stage.GRAPHS) as unplanned:
        assert again is None
        assert unplanned is None


def test_the_time_left_is_that_of_all_stages(files: Path) -> None:
    seen: list[tuple[int, int]] = []
    with rocpd.connect(files) as session:
        _ = list(reading.run(session, "overview", progress=lambda done, total: seen.append((done, total))))
    assert len(seen) >= 2 * RANKS
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(done <= total for done, total in seen)
