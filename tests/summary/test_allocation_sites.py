"""Who allocates, what steps leave behind: by hand, planted leaks and churn, any division."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

SITES = "call marker level allocations bytes held_bytes steps churn leaking_steps"


def job() -> TraceBuilder:
    """Each of five steps allocates 10 that it frees, and 3 that nobody frees; step 1 frees what came before them."""
    trace = TraceBuilder().region("hipMalloc", 10, 20, stack=1).alloc(12, 18, size=500, address=1, stack=1)
    for step in range(5):
        start, stack = 100 * (step + 1), 10 * (step + 1)
        trace.region("roctxRangePushA", start, start + 90, message=f"step {step}")
        trace.region("roctxRangePushA", start + 5, start + 40, message="forward")
        trace.region("hipMalloc", start + 10, start + 20, stack=stack)
        trace.alloc(start + 11, start + 19, size=10, address=100, stack=stack)
        trace.alloc(start + 60, start + 61, kind="FREE", size=0, address=100)
        trace.region("hipMallocAsync", start + 70, start + 75, stack=stack + 1)
        trace.alloc(start + 71, start + 72, size=3, address=1000 + step, stack=stack + 1)
    return trace.alloc(150, 151, kind="FREE", size=0, address=1).alloc(160, 161, level="SCRATCH", size=7)


def test_sites_and_steps(open_job: OpenJob) -> None:
    session = open_job(job())
    assert cells(session, "allocation-sites", SITES) == [
        ("hipMalloc", None, "REAL", 1, 500, 0, 0, 0, 0),
        ("hipMalloc", "forward", "REAL", 5, 50, 0, 5, 5, 0),
        ("hipMallocAsync", "step #", "REAL", 5, 15, 15, 5, 0, 5),
    ]
    columns = "step ranks allocations frees allocated_bytes freed_bytes growth_bytes"
    assert cells(session, "memory-steps", columns) == [
        (0, 1, 2, 2, 13, 510, -497),
        *((step, 1, 2, 1, 13, 10, 3) for step in range(1, 5)),
    ]
    leak, churn = session.summary("allocation-sites").findings
    assert session.summary("memory").findings == (leak, churn)
    assert (leak.rule, leak.rank, leak.confidence) == ("memory.leak", 0, "hint")
    assert leak.text == "leak candidate: hipMallocAsync in step # leaves 15 B behind, 3 B a step on rank 0"
    evidence = {"call": "hipMalloc", "marker": "forward", "churn": 5, "steps": 5}
    assert (churn.rule, churn.evidence) == ("alloc.steady", evidence)
    assert cells(session, "allocation-sites", "churn_call_ns") == [0, 5 * 10, 0]  # what frees has no call


@pytest.mark.parametrize("inclusive", [True, False])
def test_an_allocation_counts_by_its_start(inclusive: bool, open_job: OpenJob) -> None:
    """As in `memory`, one that crosses an edge of the window counts where it starts."""
    trace = TraceBuilder().alloc(8, 12, size=100, address=1).alloc(20, 25, size=5, address=2)
    session = open_job(trace.alloc(58, 63, size=1000, address=3)).within(rocpd.Window(10, 60, inclusive=inclusive))
    assert cells(session, "allocation-sites", "allocations bytes") == [(2, 1005)]
    assert cells(session, "memory", "allocations held_bytes") == [(2, 1105)]


def test_a_window_selects_allocations_and_not_frees(open_job: OpenJob) -> None:
    """The free of what a window allocates is found after it."""
    session = open_job(job()).within(rocpd.Window(200, 250))
    assert cells(session, "allocation-sites", SITES) == [("hipMalloc", "forward", "REAL", 1, 10, 0, 1, 1, 0)]


@pytest.mark.parametrize(
    ("plant", "rules"), [("none", []), ("leak", ["memory.leak"]), ("steady-allocation", ["alloc.steady"])]
)
def test_planted_facts(plant: str, rules: list[str], tmp_path: Path) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=3, nodes=2, steps=6, seed=734, plant=plant))
    with rocpd.connect(files) as session:
        findings = session.summary("allocation-sites").findings
        assert [finding.rule for finding in findings if finding.verdict == "problem"] == rules
        for column in SITES.split()[3:]:
            whole = sum(cells(session, "allocation-sites", column))
            assert all(sum(cells(session, "allocation-sites", column, by)) == whole for by in ("rank", "host", "agent"))
        held = sum(cells(session, "memory", "held_bytes"))
        assert sum(cells(session, "allocation-sites", "held_bytes")) == held
