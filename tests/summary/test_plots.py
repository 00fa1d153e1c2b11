"""Charts of many lines, and of time lines that begin with nothing."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any, cast

import pytest

import rocpd
from rocpd.chart.model import Lines, Matrix, Series, Timeline
from rocpd.facts.rank import By
from rocpd.simulator.job import simulate
from rocpd.simulator.options import JobOptions
from rocpd.summary import pictures, plots
from rocpd.summary.communication.collectives import TABLES, who
from rocpd.summary.result import Summary
from rocpd.table.palette import BLUE, Screen
from tests.build import TraceBuilder


def test_of_many_lines_those_with_most_stand_beside_the_median(tmp_path: Path) -> None:
    simulate(JobOptions(tmp_path / "job", ranks=8, steps=2, seed=5))
    with rocpd.connect(tmp_path / "job", jobs=1) as session:
        chart = plots.queue_depth(session.summary("queue-depth", bins=10))
    assert isinstance(chart, Lines)
    assert "the 5 of 8 with most" in chart.title
    middle, *others = chart.series
    assert middle.name == "median of 8"
    assert len(others) == 5
    assert len(middle.points) == 10
    assert max(value for _, value in middle.points) <= max(value for _, value in others[0].points)


def test_a_time_line_begins_where_work_does() -> None:
    parts = (0.0,) * 8 + (0.5,) * 2
    chart = Timeline("Ranks", ("rank 0",), 100, 10, ((parts,) * 4,))
    cut = plots._without_start_up(chart)
    assert (cut.start, cut.slices) == (100 + 7 * 10, 3)
    assert "after 70 ns without work" in cut.title
    assert plots._without_start_up(cut) == cut


def test_what_waits_is_shown_from_where_something_does(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Lines("Waiting", (Series("rank 0", BLUE, tuple((at * 10, at // 8) for at in range(10))),))
    monkeypatch.setattr(plots, "_curves", lambda *_: late)
    cut: Any = plots.queue_depth(cast("Any", late))
    assert cut.series[0].points == ((70, 0), (80, 1), (90, 1))
    assert cut.title == "Waiting, after 70 ns without any"


def test_of_many_bars_those_that_stand_out_are_shown() -> None:
    bars = {f"rank {number}": {"compute": 50.0 + number / 100, "idle": 50 - number / 100} for number in range(20)}
    bars |= {"rank 7": {"compute": 90.0, "idle": 10.0}}
    assert list(plots._differing(bars, ("compute", "idle"))) == ["median", "rank 7"]


def test_ranks_for_which_others_hardly_wait_are_not_shown() -> None:
    pairs = [(*pair, 1, 1000 if pair[1] == 3 else 7, 1) for pair in permutations(range(12), 2)]
    table = TABLES["waits"]
    chart = plots.waits(Summary(table, who(table, By.RANK), pairs))
    assert isinstance(chart, Matrix)
    assert (len(chart.rows), chart.columns) == (10, ("3",))


def test_ranks_stand_by_their_hosts_whatever_their_numbers(tmp_path: Path) -> None:
    """A host has one label, before its first rank; ranks that take turns between hosts stand together."""
    for rank in range(4):
        trace = TraceBuilder(rank, pid=16 + rank, host=f"host-{rank % 2}", machine="all", extdata={"mpi_rank": rank})
        trace.kernel("gemm", 1000 + 100 * rank, 2000).write(tmp_path / f"{rank}.db")
    with rocpd.connect(tmp_path, jobs=1) as session:
        table = session.summary("heat", bins=4)
    chart = plots.heat(table)
    assert isinstance(chart, Timeline)
    assert list(zip(chart.groups, chart.rows, strict=True)) == [
        ("host-0", "rank 0"),
        ("host-0", "rank 2"),
        ("host-1", "rank 1"),
        ("host-1", "rank 3"),
    ]
    lines = [line[:13] for line in pictures.heat(table, Screen(60))][:4]
    assert lines == ["host-0 rank 0", "       rank 2", "host-1 rank 1", "       rank 3"]
