"""Filters: only rows that pass count, in every table and view; if none passes, that is an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.base import Exit, RocpdError, UsageError
from rocpd.federate.select.filters import event_categories
from rocpd.federate.select.selection import Part
from tests.build import CPU, GPU, GPU2, TraceBuilder


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three ranks on two hosts with the same ids."""
    paths = []
    for number in range(3):
        trace = TraceBuilder(number, host=f"n{number // 2}", environment={"PMI_RANK": str(number)})
        trace.kernel("gemm", 100, 110).counter("waves", 4).kernel("it's (nccl)", 200, 230, agent=GPU2, stream=5)
        trace.copy(300, 310, src=CPU, dst=GPU).copy(320, 340, src=GPU2, dst=CPU, stream=5)
        trace.alloc(10, 20).alloc(30, 35, level="SCRATCH", agent=GPU2)
        trace.region("hipMalloc", 1, 30).arg("size", "5").region("hsa_init", 1, 3, category="HSA_CORE_API")
        trace.region("roctxRangePushA", 1, 90, message="step").region("bare", 5, 6, event_id=None)
        paths.append(trace.sample("mark", 50, message="here").write(tmp_path / f"{number}.db"))
    return paths


Counts = dict[str, int]
VIEWS = ("kernels", "memory_copies", "memory_allocations", "regions", "samples", "region_args", "pmc_events")
WHOLE: Counts = dict(zip(VIEWS, (6, 6, 6, 12, 3, 3, 3), strict=True))


def counts(files: list[Path], **filters: str) -> Counts:
    with rocpd.connect(files, filters=rocpd.Filters(**filters)) as session:
        rows = {view: session.sql(f"SELECT COUNT(*) FROM {view}").fetchall()[0][0] for view in VIEWS}
        attached = {
            v: session.execute(f"SELECT COUNT(*) FROM {v}", strategy="attached").fetchall()[0][0] for v in VIEWS
        }
        assert attached == rows
        return rows


@pytest.mark.parametrize(
    ("filters", "changed"),
    [
        ({}, {}),
        ({"ranks": "0-5"}, {}),
        ({"agents": "1"}, {"kernels": 3, "memory_copies": 3, "memory_allocations": 3}),
        ({"agents": "GPU-1"}, {"kernels": 3, "memory_copies": 3, "memory_allocations": 3, "pmc_events": 0}),
        ({"agents": "1,gpu 1"}, {}),
        ({"streams": "4-6"}, {"kernels": 3, "memory_copies": 3, "memory_allocations": 0, "pmc_events": 0}),
        ({"kernel": "^gemm"}, {"kernels": 3}),
        ({"kernel": "it's \\("}, {"kernels": 3, "pmc_events": 0}),
        ({"exclude_kernel": "nccl"}, {"kernels": 3}),
        ({"kernel": "e|i", "exclude_kernel": "e"}, {"kernels": 3, "pmc_events": 0}),
    ],
)
def test_gpu_work_is_chosen_and_regions_stay(filters: dict[str, str], changed: Counts, files: list[Path]) -> None:
    assert counts(files, **filters) == WHOLE | changed


@pytest.mark.parametrize(
    ("names", "remaining"),
    [
        ("HIP", {"regions": 3, "region_args": 3}),
        ("hip_runtime_api_ext", {"regions": 3, "region_args": 3}),
        ("MARKER", {"regions": 3, "samples": 3}),
        ("hsa,KERNELS", {"kernels": 6, "regions": 3, "pmc_events": 3}),
        ("KERNEL_DISPATCH,memory_copies", {"kernels": 6, "memory_copies": 6, "pmc_events": 3}),
        ("MEMORY_ALLOCATION", {"memory_allocations": 3}),
        ("scratch,OTHER", {"memory_allocations": 3, "regions": 3}),
    ],
)
def test_categories(names: str, remaining: Counts, files: list[Path]) -> None:
    assert counts(files, categories=names) == dict.fromkeys(VIEWS, 0) | remaining


@pytest.mark.parametrize(
    ("filters", "ranks"),
    [
        ({"ranks": "0,2"}, [0, 2]),
        ({"ranks": "1-7"}, [1, 2]),
        ({"hosts": "n0"}, [0, 1]),
        ({"ranks": "1-2", "hosts": "n1,x"}, [2]),
    ],
)
def test_ranks_are_left_out_entirely(filters: dict[str, str], ranks: list[int], files: list[Path]) -> None:
    with rocpd.connect(files, filters=rocpd.Filters(**filters)) as session:
        assert [rank.number for rank in session.ranks] == ranks
        assert session.sql("SELECT DISTINCT rank FROM kernels ORDER BY rank").fetchall() == [(n,) for n in ranks]
        assert sorted(session.spans) == ranks


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"ranks": "7"}, "no rank is numbered 7; there are 0, 1, 2"),
        ({"hosts": "n7"}, "no rank of the selection ran on n7; hosts: n0, n1"),
        ({"agents": "7"}, "no event passes the filters"),
        ({"streams": "7"}, "no event passes the filters"),
        ({"kernel": "nothing"}, "no event passes the filters"),
        ({"exclude_kernel": "."}, "no event passes the filters"),
        ({"categories": "RCCL"}, "no event passes the filters"),
    ],
)
def test_a_selection_without_rows_is_an_error(filters: dict[str, str], message: str, files: list[Path]) -> None:
    with pytest.raises(RocpdError, match=message) as raised:
        counts(files, **filters)
    assert raised.value.exit_code == Exit.FAILED


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"ranks": "a"}, "--rank a: neither numbers nor ranges"),
        ({"ranks": "3-1"}, "neither numbers"),
        ({"ranks": ","}, "--rank: empty"),
        ({"hosts": ""}, "--host: empty"),
        ({"agents": ""}, "--agent: empty"),
        ({"categories": ","}, "--category: empty"),
        ({"streams": "1;DROP"}, "--stream 1;DROP: neither"),
        ({"agents": "big"}, "--agent big: not an agent"),
        ({"kernel": "("}, "--kernel \\(: not a regular expression"),
        ({"exclude_kernel": "("}, "not a regular expression"),
    ],
)
def test_what_cannot_be_read(filters: dict[str, str], message: str, files: list[Path]) -> None:
    with pytest.raises(UsageError, match=message):
        counts(files, **filters)


def test_filters_and_windows_hold_together(files: list[Path]) -> None:
    with rocpd.connect(files, filters=rocpd.Filters(kernel="gemm"), window=rocpd.Window(end="105")) as session:
        assert session.sql("SELECT name, COUNT(*) FROM kernels GROUP BY name").fetchall() == [("gemm", 3)]
        assert session.sql("SELECT COUNT(*) FROM memory_copies").fetchall() == [(0,)]
    with pytest.raises(RocpdError, match="no event lies in the window and passes the filters"):
        rocpd.connect(files, filters=rocpd.Filters(kernel="nccl"), window=rocpd.Window(end="105"))


@pytest.fixture
def session(files: list[Path]) -> Iterator[rocpd.Session]:
    with rocpd.connect(files) as opened:
        yield opened


def test_listing(session: rocpd.Session) -> None:
    assert event_categories(session.map_ranks) == [
        ("HIP", "HIP_RUNTIME_API_EXT", 3),
        ("HSA", "HSA_CORE_API", 3),
        ("KERNELS", "KERNEL_DISPATCH", 6),
        ("MARKERS", "MARKER_CORE_API", 3),
        ("MARKERS", "MARKER_CORE_RANGE_API", 3),
        ("MEMORY_ALLOCATIONS", "MEMORY_ALLOCATION", 3),
        ("MEMORY_COPIES", "MEMORY_COPY", 6),
        ("OTHER", None, 3),
        ("SCRATCH_MEMORY", "SCRATCH_MEMORY", 3),
    ]


def test_unknown_ranks_and_hosts_are_noted(tmp_path: Path) -> None:
    files = [TraceBuilder(n, host=f"node{n}").kernel("k", 1, 5).write(tmp_path / f"{n}.db") for n in range(2)]
    with rocpd.connect(files, filters=rocpd.Filters(ranks="0-3,8,10-12", hosts="node0,node7")) as session:
        assert [rank.number for rank in session.ranks] == [0]
        assert session.notes == [
            "--rank: no rank is numbered 8",
            "--rank: no rank is numbered 10-12",
            "--host: no rank ran on node7",
        ]


def test_unknown_agents_and_categories_are_noted(files: list[Path]) -> None:
    filters = rocpd.Filters(agents="GPU-0,1,GPU-77,7", categories="KERNEL,HIP,hsa_core_api,SCRATCH,other,nosuch,RCCL")
    with rocpd.connect(files, filters=filters) as session:
        assert session.notes == [
            "--agent: no rank of the selection lists GPU-77",
            "--agent: no rank of the selection lists 7",
            "--category: no rank of the selection has nosuch",
            "--category: no rank of the selection has RCCL",
        ]


def test_what_one_rank_has_is_not_noted(tmp_path: Path) -> None:
    one = TraceBuilder(0).kernel("k", 1, 5).write(tmp_path / "0.db")
    other = TraceBuilder(1).kernel("k", 1, 5).copy(6, 7).write(tmp_path / "1.db")
    with rocpd.connect([one, other], filters=rocpd.Filters(categories="KERNELS,COPIES")) as session:
        assert session.notes == []


def test_text_where_a_time_belongs_is_no_time(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel("k", 100, 200).region("step", 90, 300, category="MARKER_CORE_API", message="step")
    trace.kernel("k", 400, 500).kernel("other", 600, 700)
    trace.sql("UPDATE rocpd_kernel_dispatch{uuid} SET \"end\" = 'never' WHERE start = 400")
    trace.sql("UPDATE rocpd_kernel_dispatch{uuid} SET start = x'00ff' WHERE start = 600")
    path = trace.write(tmp_path / "a.db")
    with rocpd.connect([path], window=rocpd.Window(kernel="k|other")) as session:
        assert session.time_range == (90, 300)
        assert session.window
        assert session.window.part(0) == Part(100, 200)
