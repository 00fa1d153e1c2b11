"""A GPU that two processes use: each has its own time of it, and the job the time of both together, once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

import rocpd
from rocpd.simulator import JobOptions, simulate
from tests.build import GPU, GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def process(number: int, address: int = 4096, host: str = "node0") -> TraceBuilder:
    """A process whose GPUs have an address."""
    trace = TraceBuilder(number, pid=16 + number, host=host)
    for row in trace.rows["rocpd_info_agent"]:
        facts = {"location_id": address + row["id"], "domain": 0} if row["id"] in (GPU, GPU2) else {}
        row["extdata"] = json.dumps(facts)
    return trace


def first() -> TraceBuilder:
    """Computes 10-40, communicates until 50, copies nothing; its last kernel ends the job at 100."""
    trace = process(0).kernel("gemm", 10, 40).kernel("ncclDevKernel_Generic_1", 40, 50)
    return trace.kernel("gemm", 90, 100)


def second() -> TraceBuilder:
    """Computes 30-60, the last 10 of it while the other one idles."""
    return process(1).kernel("softmax", 30, 60)


def test_the_job_counts_it_once(open_job: OpenJob) -> None:
    job = open_job(first(), second())
    assert cells(job, "budget", "part time_ns") == [
        ("compute", 60), ("exposed communication", 0), ("exposed copies", 0), ("idle", 30),
    ]  # fmt: skip
    by_rank = cells(job, "budget", "rank part time_ns", "rank")
    assert [row for row in by_rank if row[2]] == [
        (0, "compute", 40), (0, "exposed communication", 10), (0, "idle", 40), (1, "compute", 30), (1, "idle", 60),
    ]  # fmt: skip
    assert sum(cells(job, "idle", "idle_ns")) == 30
    assert cells(job, "gpu-time", "rank span_ns") == [(0, 90), (1, 90)]
    assert any("ranks 0, 1 share a GPU" in note for note in job.notes)


def test_who_has_it_when(open_job: OpenJob) -> None:
    sql = "SELECT rank, part, start, duration FROM agent_time WHERE taken AND part != 'idle' ORDER BY rank, start"
    assert open_job(first(), second()).sql(sql).fetchall() == [
        (0, "exposed communication", 40, 10),  # the other one computes
        (1, "compute", 30, 10),  # both compute: the first one has it
    ]


@pytest.mark.parametrize(
    "other",
    [
        process(1, address=8192).kernel("softmax", 30, 60),
        process(1, host="node1").kernel("softmax", 30, 60),
        TraceBuilder(1).kernel("softmax", 30, 60),
        process(1).kernel("softmax", 30, 60, agent_id=GPU2),
        process(1).kernel("softmax", 30_000, 60_000),
    ],
    ids=["another address", "another machine", "no address", "another agent", "not at the same time"],
)
def test_other_gpus_are_counted_apart(other: TraceBuilder, open_job: OpenJob) -> None:
    assert open_job(first(), other).sql("SELECT sum(taken) FROM agent_time").fetchall() == [(0,)]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    """A node with more ranks than its eight GPUs."""
    with rocpd.connect(simulate(JobOptions(tmp_path_factory.mktemp("job"), ranks=10, steps=3, seed=31))) as opened:
        yield opened


@pytest.mark.parametrize("part", ["all", "window", "kernels", "ranks"])
def test_the_time_of_a_job_is_that_of_its_gpus(part: str, crowded: rocpd.Session) -> None:
    """Once each: agent_time without what is taken, budget and idle are equal, and every GPU has as much time."""
    job = {
        "all": lambda: crowded,
        "window": lambda: crowded.within(rocpd.Window("30%", "60%")),
        "kernels": lambda: crowded.where(rocpd.Filters(kernel="Cijk|nccl")),
        "ranks": lambda: crowded.where(rocpd.Filters(ranks="0,1,8")),
    }[part]()
    times = job.sql("SELECT part, sum(duration) FROM agent_time WHERE NOT taken GROUP BY 1").fetchall()
    budget = Counter(dict(cells(job, "budget", "part time_ns", everything=True)))
    assert Counter(dict(times)) == budget
    assert sum(cells(job, "idle", "idle_ns", everything=True)) == budget["idle"]
    assert sum(cells(job, "gpu-time", "span_ns", everything=True)) * min(8, len(job.ranks) - 1) == budget.total() * len(
        job.ranks
    )
