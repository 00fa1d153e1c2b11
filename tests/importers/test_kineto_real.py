"""Real PyTorch traces against their own JSON: counts and sums, launches, budgets, what takes no place."""

from __future__ import annotations

import functools
import gzip
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import rocpd
from tests.conftest import Cli, private
from tests.convert.conftest import to_perfetto
from tests.soak import paired, sample
from tests.summary.cells import cells

NAMES = (
    "h100_qwen1.5_0.5b", "hta_sampled_rank-0", "hta_sampled_rank-1", "mi250_minitoy", "mi300_qwen1.5_0.5b",
    "mi300_resnet_checkpoint",
)  # fmt: skip
PLACES = {
    "cpu_op": ("regions", "category = 'TORCH_OPERATOR'"),
    "python_function": ("regions", "category = 'PYTHON_FUNCTION'"),
    "user_annotation": ("markers", "category = 'MARKER_CORE_RANGE_API'"),
    "gpu_user_annotation": ("regions", "category = 'GPU_ANNOTATION'"),
    "cuda_runtime": ("regions", "category IN ('HIP_RUNTIME_API', 'CUDA_RUNTIME_API')"),
    "cuda_driver": ("regions", "category = 'CUDA_DRIVER_API'"),
    "kernel": ("kernels", "1"),
    "gpu_memcpy": ("memory_copies", "category = 'MEMORY_COPY'"),
    "gpu_memset": ("memory_copies", "category = 'MEMORY_SET'"),
}
Ranges = list[tuple[int, int]]


pytestmark = pytest.mark.slow  # whichever test comes first imports its trace for the others


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    return {path.name.removesuffix(".json.gz"): path for path in private("kineto/*.json.gz", len(NAMES))}


@functools.cache
def events_of(path: Path) -> list[dict[str, Any]]:
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return [event for event in loaded["traceEvents"] if event["ph"] != "M"]


def times(event: dict[str, Any]) -> tuple[int, int]:
    start = round(event["ts"] * 1000)
    return start, start + round(event["dur"] * 1000)


def covered(*groups: Iterable[tuple[int, int]]) -> int:
    total, reached = 0, -1
    for start, end in sorted(interval for group in groups for interval in group):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


@pytest.mark.soak
@pytest.mark.parametrize("name", sample(NAMES, 2))
def test_each_category_keeps_its_events_and_time(files: dict[str, Path], name: str) -> None:
    count, total = Counter[str](), Counter[str]()
    for event in events_of(files[name]):
        if event["ph"] == "X" and event["cat"] != "Trace":
            count[event["cat"]] += 1
            total[event["cat"]] += round(event["dur"] * 1000)
    assert set(count) <= set(PLACES)
    with rocpd.connect(files[name]) as session:
        for category, (view, condition) in PLACES.items():
            rows = session.sql(f"SELECT count(*), coalesce(sum(duration), 0) FROM {view} WHERE {condition}").fetchall()
            assert rows == [(count[category], total[category])], category
        (everything,) = session.sql("SELECT count(*) FROM regions").fetchall()
        assert everything[0] == sum(count.values()) - sum(count[c] for c in ("kernel", "gpu_memcpy", "gpu_memset"))


@pytest.mark.parametrize("name", ["hta_sampled_rank-1", "mi300_qwen1.5_0.5b"])
def test_calls_and_their_gpu_work_are_linked(files: dict[str, Path], name: str, tmp_path: Path) -> None:
    events = [event for event in events_of(files[name]) if event["ph"] == "X"]
    calls = {e["args"]["correlation"] for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")}
    work = [e["args"]["correlation"] for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    with rocpd.connect(files[name]) as session:
        engine = to_perfetto(session, tmp_path)
    ((flows,),) = engine.rows("SELECT count(*) FROM flow")
    assert flows == sum(correlation in calls for correlation in work) > 0


@pytest.mark.soak(2)
@pytest.mark.parametrize(("name", "everything"), [*paired(NAMES, [False, True]), ("mi250_minitoy", False)])
def test_the_budget_is_that_of_the_events(files: dict[str, Path], name: str, everything: bool) -> None:
    """In the steps where there are some, or in the active part; the second step of `mi250_minitoy` is empty."""
    events = events_of(files[name])
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    steps = [times(e) for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    has_steps = len(steps) > 1 and name != "mi250_minitoy"
    dispatched = [times(event) for event in work if event["cat"] == "kernel"]
    part = steps if has_steps and not everything else [*dispatched, *(steps if has_steps else [])]
    low, high = min(start for start, _ in part), max(end for _, end in part)

    def inside(some: list[dict[str, Any]]) -> Ranges:
        ranges = map(times, some)
        return [(max(start, low), min(end, high)) for start, end in ranges if start < high and end > low]

    every = inside(work)
    compute = inside([e for e in work if e["cat"] == "kernel" and "nccl" not in e["name"].lower()])
    communication = inside([e for e in work if "nccl" in e["name"].lower()])
    kernels = covered(compute, communication)
    expected = {
        "compute": covered(compute),
        "exposed communication": kernels - covered(compute),
        "exposed copies": covered(every) - kernels,
        "idle": high - low - covered(every),
    }
    with rocpd.connect(files[name]) as session:
        assert dict(cells(session, "budget", "part time_ns", everything=everything)) == expected


def test_memory_is_that_of_pytorch(files: dict[str, Path]) -> None:
    recorded = [e["args"] for e in events_of(files["mi300_qwen1.5_0.5b"]) if e["name"] == "[memory]"]
    with rocpd.connect(files["mi300_qwen1.5_0.5b"]) as session:
        kinds = session.sql("SELECT type, count(*), sum(size) FROM memory_allocations GROUP BY 1").fetchall()
        (reserved,) = session.sql(
            "SELECT max(value) FROM rocpd_pmc_event E JOIN rocpd_info_pmc P ON P.id = E.pmc_id AND P.guid = E.guid"
            " WHERE name LIKE '%reserved%'"
        ).fetchall()
        agents = session.sql("SELECT DISTINCT agent_abs_index FROM kernels").fetchall()
        held = session.sql(
            "SELECT DISTINCT agent_abs_index FROM memory_allocations WHERE agent_type = 'GPU'"
        ).fetchall()
    sizes = {kind: [a["Bytes"] for a in recorded if (a["Bytes"] < 0) == (kind == "FREE")] for kind in ("ALLOC", "FREE")}
    assert {kind: (n, size) for kind, n, size in kinds} == {
        kind: (len(of_kind), abs(sum(of_kind))) for kind, of_kind in sizes.items()
    }
    assert reserved[0] == max(a["Total Reserved"] for a in recorded)
    assert held == agents  # the allocator counts GPUs only, roctracer CPUs too


def test_forward_and_backward_are_linked(files: dict[str, Path]) -> None:
    name = "mi300_resnet_checkpoint"
    ends = Counter(e["id"] for e in events_of(files[name]) if e.get("cat") == "fwdbwd")
    with rocpd.connect(files[name]) as session:
        rows = session.sql("SELECT value, count(*) FROM region_args WHERE name = 'fwdbwd' GROUP BY 1").fetchall()
        pairs = session.sql(
            "SELECT a.value FROM region_args a JOIN region_args f USING (id) WHERE a.name = 'fwdbwd'"
            " AND f.name = 'Sequence number'"
        ).fetchall()
    assert {int(link): count for link, count in rows} == ends
    assert len(pairs) == sum(ends.values()) == 426


def test_arguments_of_collectives_are_those_of_rccl(files: dict[str, Path]) -> None:
    with rocpd.connect(files["mi300_resnet_checkpoint"]) as session:
        rows = session.sql(
            "SELECT DISTINCT name, value FROM region_args"
            " WHERE name IN ('function', 'comm', 'nranks', 'rank', 'datatype') ORDER BY 1, 2"
        ).fetchall()
        (rank,) = session.ranks
    assert rows == [
        ("comm", "group 0 of ranks 0-7"),
        ("datatype", "ncclBfloat16"),
        ("datatype", "ncclInt64"),
        ("function", "ncclAllReduce"),
        ("function", "ncclBroadcast"),
        ("nranks", "8"),
        ("rank", "0"),
    ]
    assert rank.mpi_rank == 0


def test_ranks_that_share_no_collective_stay_apart_with_the_reason(files: dict[str, Path], cli: Cli) -> None:
    """Of ten kernels each, the two all-gathers alone run at one time on the clock of both."""
    said = cli("summary", "collectives", "-f", "csv", files["hta_sampled_rank-0"], files["hta_sampled_rank-1"])
    assert len(said.out.splitlines()) == 3
    assert "16 of 20 communication kernels could not be matched" in said.err
    told = cli("summary", "trace", "-f", "csv", files["hta_sampled_rank-0"], files["hta_sampled_rank-1"])
    assert "126 of 128 ranks are not among the files" in told.out
    first = cli("summary", files["hta_sampled_rank-0"], files["hta_sampled_rank-1"])
    assert first.out.startswith("2 ranks; ")  # nothing says on how many machines they ran
    shown = cli("info", files["hta_sampled_rank-0"], files["hta_sampled_rank-1"], "--only", "job")
    assert "2 ranks in 2 files (" in shown.out


def test_gpus_are_described(files: dict[str, Path]) -> None:
    (device,) = json.loads(gzip.decompress(files["mi300_qwen1.5_0.5b"].read_bytes()))["deviceProperties"]
    with rocpd.connect(files["mi300_qwen1.5_0.5b"]) as session:
        rows = session.sql(
            "SELECT DISTINCT product, vendor, cu_count, wave_size, memory_size FROM agents JOIN kernels k"
            " ON k.agent_abs_index = absolute_index"
        ).fetchall()
    assert rows == [("AMD Instinct MI300X VF", "AMD", device["numSms"], 64, device["totalGlobalMem"])]
