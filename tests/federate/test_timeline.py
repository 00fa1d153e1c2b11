"""The time line: shifts that drift, and times as views show them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.federate.select.align import Shift, Span, TimeLine
from tests.build import TraceBuilder
from tests.conftest import Cli

SHIFTS = [Shift(), Shift(-(10**14), 10**15, 0.0), Shift(77 * 10**12, 10**15, 3.1e-5), Shift(-5, 10**15, -1.9e-4)]


@pytest.mark.parametrize("shift", SHIFTS, ids=str)
def test_times_stay_in_order_and_there_is_a_way_back(shift: Shift) -> None:
    times = 10**15 + np.sort(np.random.default_rng(1).integers(0, 3_600 * 10**9, 2000))
    on_line = shift.to_line(times)
    assert (np.diff(on_line) >= 0).all()
    assert on_line.tolist() == [shift.to_line(time) for time in times.tolist()]
    assert np.abs(shift.to_clock(on_line) - times).max() <= 1
    for time in times[:200].tolist():
        there = shift.to_line(time)
        first = shift.to_clock(there)
        assert shift.to_line(first) >= there > shift.to_line(first - 1)


def test_a_time_of_a_view_is_of_the_clock_that_showed_it_then() -> None:
    shifts = {0: Shift(), 1: Shift(-900), 2: Shift(-900), 3: Shift(5)}
    line = TimeLine.of({0: Span(100, 200), 1: Span(1000, 1100), 2: Span(1050, 1200), 3: Span(180, 250)}, shifts)
    assert line is not None
    assert [line.of_view(time) for time in (150, 1050, 90, 5000, 220)] == [150, 150, 90, 4100, 225]
    with pytest.raises(UsageError, match="190 ns is a time of several clocks: of rank 0, rank 3") as raised:
        line.of_view(190)
    assert raised.value.hint == "choose one with --rank"


def test_bare_nanoseconds_are_those_of_the_rank_that_shows_them(cli: Cli, tmp_path: Path) -> None:
    for number, start in enumerate((1000, 900_000, 1050)):
        rank = TraceBuilder(number, host=f"n{number}", pid=20 + number)
        for k in range(3):
            rank.kernel(f"{number}{k}", start + 100 * k, start + 100 * k + 50)
        rank.write(tmp_path / f"{number}.db")
    shown = ["query", "select name from kernels", "--format", "csv", str(tmp_path)]
    late = cli(*shown, "--start", "900100", "--end", "900200", "--inclusive", "False")
    assert late.out.split() == ["name", "01", "11", "21"]  # they start together
    several = cli(*shown, "--start", "1100")
    assert (several.code, several.out) == (2, "")
    assert "1100 ns is a time of several clocks: of rank 0, rank 2" in several.err
    assert "--rank" in several.err
    assert cli(*shown, "--start", "1150", "--rank", "2").out.split() == ["name", "21", "22"]


@pytest.mark.parametrize("word", ["n1=-100", "n1=-100±7", "n1=-100+-7", "n1=-100+/-7"])
def test_offsets_that_are_known(word: str, cli: Cli, tmp_path: Path) -> None:
    for number in range(2):
        TraceBuilder(number, host=f"n{number}").kernel("k", 1000 + 100 * number, 1050).write(tmp_path / f"{number}.db")
    done = cli("query", "select count(*) from kernels", str(tmp_path), "--start", "1%", "--clock-offset", word)
    within = " ±7 ns" if "7" in word else ""
    assert f"time: clocks shifted by n1 -100 ns{within}\n" in done.err


OTHER = "--output-path"
COMMANDS = {
    "query": ["select 1"],
    "summary": ["kernels"],
    "info": [],
    "advise": [],
    "shell": [],
    "convert": ["-f", "json", OTHER],
    "merge": [OTHER],
    "report": ["-o"],
    "trim": ["--start", "1%", "-o"],
    "diff": [],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_offsets_are_taken_by_every_command(command: str, cli: Cli, tmp_path: Path) -> None:
    """Each refuses one of a host that is not in the job, in the same words."""
    path = TraceBuilder(0, host="n0").kernel("a", 100, 110).write(tmp_path / "a.db")
    more = COMMANDS[command]
    output = [tmp_path / "out.md"] if more and more[-1] in (OTHER, "-o") else []
    jobs = [path, path] if command == "diff" else [path]
    words = [*more, *jobs] if command in ("query", "summary") else [*jobs, *more, *output]
    done = cli(command, *words, "--clock-offset", "nowhere=5")
    assert (done.code, "clock offset for nowhere: no rank ran there" in done.err) == (2, True), done.err


def test_python_gives_offsets_with_their_error(tmp_path: Path) -> None:
    path = TraceBuilder(0, host="n0").kernel("a", 100, 110).write(tmp_path / "a.db")
    with rocpd.connect(path, clock_offsets={"n0": (50, 3)}) as session:
        (clock,) = session.alignment.clocks
        assert (clock.method, clock.shift, clock.certain_ns) == ("given", Shift(50), 3)
