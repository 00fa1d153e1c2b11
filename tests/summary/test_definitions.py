"""One word means one thing in all analyses, and one event counts as the same everywhere."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import rocpd
import rocpd.summary
from rocpd.base import entries
from rocpd.facts.rank import Options
from rocpd.summary.reading import Reading, planned, run_planned
from rocpd.summary.registry import SUMMARIES
from rocpd.summary.result import TableDefinition
from rocpd.table.human import Head, heading
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.members import Member
from tests.summary.cells import cells


def definitions() -> list[TableDefinition]:
    """Return the definitions of all tables of analyses and comparisons."""
    names = [module.name for module in pkgutil.walk_packages(rocpd.summary.__path__, "rocpd.summary.")]
    modules = map(importlib.import_module, [*names, "rocpd.compare.tables"])
    tables = [table for module in modules for table in getattr(module, "TABLES", {}).values()]
    found = [table for table in tables if isinstance(table, TableDefinition)]
    assert len(found) > 50
    return found


def test_people_see_no_heading_twice() -> None:
    """The console leaves units out of headings: `waited` and `waited_ns` would look alike."""
    for table in definitions():
        headings = [heading(Head(column.name, column.unit)) for column in table.fields]
        assert len(headings) == len(set(headings)), table.name


def test_charts_and_pictures_are_there() -> None:
    for table in definitions():
        homes = [table.chart, table.picture.home if table.picture else ""]
        assert all(callable(entries.load(home, table.name)) for home in homes if home)


def test_rows_name_tables_of_their_analysis() -> None:
    for name, analysis in SUMMARIES.items():
        named = {*analysis.by_launch, *analysis.of_one_job, *analysis.costly}
        assert named <= set(analysis.tables), name


@pytest.mark.parametrize("name", [name for name, analysis in SUMMARIES.items() if analysis.divided_by])
def test_what_is_divided_by_itself_is_divided_so(name: str, open_job: OpenJob) -> None:
    """Reports read such an analysis once, for rules of advice and for sections."""
    ranks = [Member(number, f"n{number}") for number in range(2)]
    for step in range(3):
        for number, rank in enumerate(ranks):
            rank.collective(1_000_000 * (step + 1) + 1000 * number, 1_000_000 * (step + 1) + 50_000)
            rank.alloc(1_000_000 * step + 1, 1_000_000 * step + 2, size=4096, address=step)
    session = open_job(*ranks)
    plan = planned([name])
    asked = [Reading(session, Options(by)) for by in (None, SUMMARIES[name].divided_by)]
    plain, divided = (
        {table.name: (table.columns, table.fetchall()) for _, found in run_planned(each, plan) for table in found}
        for each in asked
    )
    assert plain == divided


def test_compute_is_the_union_and_sums_are_called_so(open_job: OpenJob) -> None:
    """Two kernels overlap; time from first start to last end is called otherwise than time on agents."""
    trace = TraceBuilder().kernel("a", 100, 200).kernel("b", 150, 250, stream=2).kernel("late", 900, 1000)
    session = open_job(trace)
    assert cells(session, "ranks", "elapsed_ns compute_ns busy_ns kernel_sum_ns") == [(900, 250, 250, 300)]
    assert cells(session, "overlap", "compute_ns busy_ns") == [(250, 250)]
    assert cells(session, "gpu-time", "span_ns busy_ns sum_ns") == [(900, 250, 300)]


def test_of_two_calls_with_one_number_the_same_launches_in_all_analyses(open_job: OpenJob) -> None:
    """As in flows of traces: the innermost."""
    trace = TraceBuilder().region("outer", 100, 500, stack=7).region("inner", 110, 120, stack=7)
    session = open_job(trace.kernel("k", 1120, 1220, stack=7))
    assert cells(session, "launch", "launched mean_delay_ns api_ns") == [(1, 1000.0, 10)]
    assert cells(session, "calls", "name gpu_self_ns") == [("outer", 0), ("inner", 100)]


def test_the_slow_rank_of_two_pairs_on_two_machines(open_job: OpenJob) -> None:
    """Ranks 0, 1 and 2, 3, whose clocks say nothing of each other: rank 2 waits for rank 3, and for nobody else."""
    ranks = [Member(number, f"n{number // 2}") for number in range(4)]
    for step in range(20):
        at = 500_000 * (step + 1)
        for number, rank in enumerate(ranks):
            clock, late = 10**14 * (number // 2), 40_000 * (number == 3)
            end = at + clock + 100_000 + (step % 7) * 9_000 * (number // 2)
            rank.collective(at + clock + late, end)
    session = open_job(*ranks)
    assert set(cells(session, "collectives", "group straggler")) == {("0-1", None), ("2-3", 3)}
    assert cells(session, "waits", "waiter late wait_ns") == [(2, 3, 20 * 40_000)]


def test_machines_that_begin_at_another_time_are_in_one_step(open_job: OpenJob) -> None:
    """The second one begins 300 ms later, by another clock: a step is each rank's own, and collectives end together."""
    ranks = [TraceBuilder(number, host=f"n{number}", pid=10 + number) for number in range(2)]
    for step in range(12):
        at = 400_000_000 + 1_000_000 * step
        for number, rank in enumerate(ranks):
            start = at + 7 * 10**15 * number
            rank.region(f"step {step}", start, start + 900_000, category="MARKER_CORE_RANGE_API")
            rank.kernel("gemm", start + 10_000, start + 400_000 + 3_000 * number)
            rank.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + 410_000 + 3_000 * number, start + 500_000)
    ranks[0].kernel("early", 100_000_000, 100_001_000)
    session = open_job(*ranks)
    inside = session.within(rocpd.Window(start_marker="step 5", end_marker="step 5"))
    assert inside.sql("SELECT rank, COUNT(*) FROM kernels GROUP BY 1 ORDER BY 1").fetchall() == [(0, 2), (1, 2)]
    ends = "SELECT rank, MAX(\"end\") FROM kernels WHERE name GLOB 'nccl*' GROUP BY 1 ORDER BY 1"
    on_line = [inside.alignment.shift(rank).to_line(end) for rank, end in inside.sql(ends)]
    assert abs(on_line[0] - on_line[1]) <= 1
