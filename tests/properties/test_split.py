"""The law of federation: how the ranks of a job lie in files, and in which order, changes no row of any view."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rocpd
from rocpd.federate.merge import merge
from rocpd.schema.load import VIEWS
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.real.rows import Rows, multiset
from tests.soak import sized

TIMES = st.integers(0, 5000)
LENGTHS = st.integers(-3, 900)
NAMES = st.sampled_from(["gemm", "relu", "copy<int>", "it's"])
MAYBE = st.sampled_from([GPU, GPU2, CPU, None, 99])
STEP = st.tuples(st.sampled_from("krcaspg"), NAMES, TIMES, LENGTHS, MAYBE)
RANK = st.lists(STEP, max_size=8)

Steps: TypeAlias = Sequence[tuple[str, str, int, int, int | None]]
Split: TypeAlias = tuple[list[TraceBuilder], list[str], list[list[int]]]


def build(number: int, steps: Steps, version: str, mpi: bool) -> TraceBuilder:
    """Make one rank; pid, tid, host and all ids are equal in every rank of the job."""
    trace = TraceBuilder(number, environment={"PMI_RANK": str(9 - number)} if mpi else {})
    for stack, (kind, name, start, length, agent) in enumerate(steps):
        end = start + length
        match kind:
            case "k":
                trace.kernel(name, start, end, agent=agent, stack=stack, region=name if length % 2 else None)
            case "r":
                trace.region(name, start, end, stack=stack, event_id=None if agent is None else stack + 1)
                trace.arg("stream", "1", extdata='{"stream_id":0}')
            case "c":
                trace.copy(start, end, name=name, dst=agent, size=length * 10)
            case "a":
                trace.alloc(start, end, agent=agent, level="SCRATCH" if length % 2 else "REAL", queue=agent)
            case "s":
                trace.sample(name, start, message=name)
            case "p":
                trace.kernel(name, start, end).counter(name, length / 7)
            case _:
                trace.region("roctxRangePushA", start, end, message=name)
                if version >= "3.0.2":
                    trace.graph_launch(start, end)
    return trace


def everything(paths: Sequence[Path]) -> tuple[dict[str, Rows], list[tuple[int, str]]]:
    """Read every row of every view, and which rank is which."""
    with rocpd.connect(paths) as session:
        rows = {name: multiset(session.sql(f"SELECT * FROM {name}")) for name in VIEWS}
        return rows, [(rank.number, rank.guid) for rank in session.ranks]


@st.composite
def splits(draw: st.DrawFn) -> Split:
    """Return ranks, the schema version of each, and the files they are put into, in some order."""
    versions = draw(st.lists(st.sampled_from(["3.0.0", "3.0.2", "3.0.3"]), min_size=1, max_size=5))
    mpi = draw(st.booleans())
    ranks = [build(number, draw(RANK), version, mpi) for number, version in enumerate(versions)]
    order = draw(st.permutations(range(len(ranks))))
    files: list[list[int]] = []
    for number in order:
        together = draw(st.booleans())
        if files and together:
            files[draw(st.integers(0, len(files) - 1))].append(number)
        else:
            files.append([number])
    return ranks, versions, files


@pytest.mark.soak(107)
@settings(max_examples=sized(2, 320), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(splits())
def test_splitting_a_job_changes_no_row(split: Split) -> None:
    ranks, versions, files = split
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [r.write(folder / f"{n}.db", v) for n, (r, v) in enumerate(zip(ranks, versions, strict=True))]
        expected = everything(parts)
        given_files = []
        for number, members in enumerate(files):
            if len(members) == 1:
                given_files.append(parts[members[0]])
            else:
                given_files.append(folder / f"merged{number}.db")
                with rocpd.connect([parts[member] for member in members]) as session:
                    merge(session, given_files[-1])
        assert everything(given_files) == expected


def test_equal_ranks_stay_apart_and_double_nothing(tmp_path: Path) -> None:
    """Two ranks that differ in nothing but their GUID."""
    steps: Steps = [("k", "gemm", 10, 30, GPU), ("r", "relu", 5, 50, GPU), ("c", "in", 1, 2, GPU), ("a", "", 1, 3, GPU)]
    first, second = (build(n, steps, "3.0.3", False).write(tmp_path / f"{n}.db") for n in (0, 1))
    (alone, _), (both, ranks) = everything([first]), everything([first, second])
    assert [number for number, _ in ranks] == [0, 1]
    for name in ("kernels", "regions", "memory_copies", "memory_allocations", "threads", "processes", "region_args"):
        assert both[name].total() == 2 * alone[name].total() > 0, name
    # busy ends with rank and hostname.
    assert both["busy"] == alone["busy"] + Counter({(*row[:-2], 1, row[-1]): n for row, n in alone["busy"].items()})
    with rocpd.connect([first, second]) as session:
        by_rank = """
            SELECT p.rank, p.pid, t.tid, k.name, count(*), sum(k.duration) FROM kernels k
            JOIN processes p USING (guid) JOIN threads t ON t.guid = k.guid AND t.tid = k.tid GROUP BY p.rank"""
        assert session.sql(by_rank).fetchall() == [(0, 16, 16, "gemm", 1, 30), (1, 16, 16, "gemm", 1, 30)]
        assert session.sql("SELECT total_calls, total_duration, percentage FROM top_kernels").fetchall() == [
            (2, 0.06, 100.0)
        ]


@pytest.mark.parametrize("name", ["top_kernels", "top", "kernel_summary", "memory_copy_summary"])
def test_aggregates_come_in_one_order(name: str, tmp_path: Path) -> None:
    """Equal totals are ordered by name, so that files in any order print the same."""
    names = ["b", "c", "a"]
    jobs = [TraceBuilder(n).kernel(name, 0, 5).copy(0, 5, name=name) for n, name in enumerate(names)]
    paths = [job.write(tmp_path / f"{n}.db") for n, job in enumerate(jobs)]
    orders: list[list[tuple[Any, ...]]] = []
    for given_paths in (paths, paths[::-1], paths[1:] + paths[:1]):
        with rocpd.connect(given_paths) as session:
            orders.append(session.sql(f"SELECT * FROM {name}").fetchall())
    assert orders[0] == orders[1] == orders[2]
    assert [row[0] for row in orders[0]] == ["a", "b", "c"]
