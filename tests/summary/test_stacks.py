"""Call stacks: time by function and line, of calls, of samples and of traced functions; which of it GPUs were idle."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.rank import By, Options
from rocpd.facts.regions import frame_of, frames_of
from rocpd.summary.host.calls import folded_stacks, speedscope_stacks
from rocpd.summary.reading import Reading
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.importers.rpd import RpdBuilder
from tests.soak import sized
from tests.summary.cells import cells

MAIN, TRAIN, STEP = "app.py(9): main", "app.py(5): train", "app.py(3): step"


def stack(*frames: object) -> str:
    """Frames as files have them: the innermost first."""
    return json.dumps(list(reversed(frames)))


def with_stacks(trace: TraceBuilder, *stacks: str) -> TraceBuilder:
    """Give the events of a trace, which begin with these, their call stacks."""
    for event, text in zip(trace.rows["rocpd_event"], stacks, strict=False):
        event["call_stack"] = text
    return trace


def sampled(*samples: tuple[int, str], tid: int = 16) -> TraceBuilder:
    trace = TraceBuilder()
    for at, _ in samples:
        trace.sample("Python", at, tid=tid, category="PYTHON_SAMPLE")
    return with_stacks(trace, *(text for _, text in samples))


def test_samples_stand_for_the_time_between_two(open_job: OpenJob) -> None:
    """Every 10 ns, of which one comes late: train three times, of these twice in step; a recursive main counts once."""
    trace = sampled(
        (100, stack(MAIN, MAIN)),
        (110, stack(MAIN, TRAIN)),
        (120, stack(MAIN, TRAIN, STEP)),
        (135, stack(MAIN, TRAIN, "app.py(4): step")),
    )
    session = open_job(trace)
    assert cells(session, "stacks", "kind function file count total_ns self_ns percent gpu_ns") == [
        ("samples", "step", "app.py", 2, 20, 20, 50.0, None),
        ("samples", "main", "app.py", 4, 40, 10, 25.0, None),
        ("samples", "train", "app.py", 3, 30, 10, 25.0, None),
    ]
    assert cells(session, "stack-lines", "function line count self_ns")[2:] == [("step", 3, 1, 10), ("step", 4, 1, 10)]


def test_what_a_thread_does_while_gpus_wait(open_job: OpenJob) -> None:
    """Operations run at 100-110 and 120-130: only what is sampled in between is idle time."""
    trace = sampled(
        (90, stack(MAIN)), (100, stack(MAIN)), (110, stack(MAIN, TRAIN)), (120, stack(MAIN)), (130, stack(MAIN))
    )
    session = open_job(trace.kernel("a", 100, 110).kernel("b", 120, 130))
    assert cells(session, "stacks", "function total_ns idle_ns idle_self_ns") == [
        ("main", 50, 10, 0),
        ("train", 10, 10, 10),
    ]


def test_an_operation_without_length_is_the_first_or_last_one_too(open_job: OpenJob) -> None:
    trace = sampled((5, stack(MAIN)), (15, stack(MAIN)), (25, stack(MAIN)), (35, stack(MAIN)))
    session = open_job(trace.kernel("gemm", 10, 10).kernel("gemm", 20, 30).kernel("gemm", 40, 40))
    assert cells(session, "stacks", "total_ns idle_ns") == [(40, 20)]


def test_calls_with_frames(open_job: OpenJob) -> None:
    """Of two calls that lie in each other each has its own time; the inner one launches."""
    trace = TraceBuilder().region("hipGraphLaunch", 1, 101, stack=1).region("hipLaunchKernel", 11, 41, stack=2)
    trace = with_stacks(trace.kernel("k", 50, 57, stack=2), stack("main", "run()"), stack("main", "run()", "inner"))
    session = open_job(trace)
    assert cells(session, "stacks", "kind function count total_ns self_ns gpu_ns gpu_self_ns idle_ns") == [
        ("calls", "run()", 2, 100, 70, 7, 0, 0),
        ("calls", "inner", 1, 30, 30, 7, 7, 0),
        ("calls", "main", 2, 100, 0, 7, 0, 0),
    ]


def test_functions_of_python_are_frames(open_job: OpenJob) -> None:
    """main 0-100 calls train 10-60 and train 60-90, which call step; a launch in the first step."""
    trace = TraceBuilder()
    for name, start, end in ((MAIN, 1, 101), (TRAIN, 11, 61), (STEP, 21, 41), (TRAIN, 61, 91), (STEP, 61, 71)):
        trace.region(name, start, end, category="PYTHON_FUNCTION", stack=0)
    session = open_job(trace.region("hipLaunchKernel", 22, 23, stack=7).kernel("k", 200, 209, stack=7))
    assert cells(session, "stacks", "kind function count total_ns self_ns gpu_ns gpu_self_ns") == [
        ("functions", "train", 2, 80, 50, 9, 0),
        ("functions", "step", 2, 30, 30, 9, 9),
        ("functions", "main", 1, 100, 20, 9, 0),
    ]
    assert cells(session, "stack-lines", "function line") == [("train", 5), ("step", 3), ("main", 9)]


def test_by_marker_and_rank(open_job: OpenJob) -> None:
    trace = sampled((100, stack(MAIN)), (110, stack(MAIN, TRAIN)), (120, stack(MAIN, TRAIN)))
    trace.region("roctxRangePushA", 105, 125, message="epoch 3 batches")
    session = open_job(trace)
    assert cells(session, "stacks", "marker function self_ns", "marker") == [
        ("epoch # batches", "train", 20),
        ("epoch # batches", "main", 0),
        (None, "main", 10),
    ]
    assert cells(session, "stacks", "rank function self_ns", "rank") == [(0, "train", 20), (0, "main", 10)]


def test_divisions_add_up(open_job: OpenJob) -> None:
    chance, trace = Random(5), TraceBuilder()
    for at in range(100, 2000, 10):
        trace.sample("Python", at, tid=chance.randrange(5, 8), category="PYTHON_SAMPLE")
    with_stacks(trace, *(stack(*chance.choices([MAIN, TRAIN, STEP], k=3)) for _ in range(200)))
    for start in range(0, 1800, 300):
        trace.region("roctxRangePushA", start + 50, start + 250, tid=6, message=f"step {start}")
        trace.region(chance.choice([MAIN, TRAIN]), start + 20, start + 280, category="PYTHON_FUNCTION", stack=start)
        trace.kernel("k", start + 90, start + 120, stack=start)
    session = open_job(trace)
    whole = sums_by_kind(session, None)
    assert all(value > 0 for (kind, _), value in whole.items() if kind == "functions")
    for by in ("rank", "host", "step", "marker"):
        assert sums_by_kind(session, by) == whole


def sums_by_kind(session: rocpd.Session, by: str | None) -> Counter[tuple[str, str]]:
    """Own times of a table: on the CPU, of that with idle GPUs, of GPU work."""
    sums = Counter[tuple[str, str]]()
    for column in ("self_ns", "idle_self_ns", "gpu_self_ns"):
        for kind, value in cells(session, "stacks", f"kind {column}", by):
            sums[kind, column] += value or 0
    return sums


@settings(max_examples=sized(10, 400))
@given(sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=12))
def test_own_times_of_functions_are_the_time_that_any_covers(
    sizes: list[tuple[int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However they lie, touching and crossing ones too, no nanosecond of a thread counts twice or not at all."""
    trace = TraceBuilder()
    for start, length, name in sizes:
        trace.region("abc"[name], start, start + length, category="PYTHON_FUNCTION")
    with rocpd.connect(trace.write(tmp_path_factory.mktemp("s") / "a.db")) as session:
        rows = cells(session, "stacks", "count total_ns self_ns")
    covered = {at for start, length, _ in sizes for at in range(start, start + length)}
    assert sum(own for *_, own in rows) == len(covered)
    assert sum(count for count, *_ in rows) == len(sizes)
    assert all(total >= own >= 0 for _, total, own in rows)


def test_damaged_stacks_and_times(open_job: OpenJob) -> None:
    trace = sampled((100, '["a" 1]'), (110, '[{"function": "f", "file": "x.py", "line": 2}, 7, null]'), (0, stack("z")))
    trace.region("call", 50, 40, category="PYTHON_FUNCTION").region(
        "f", 1, 2**63 - 1, category="PYTHON_FUNCTION", tid=7
    )
    trace.region("f", 1, 2**63 - 1, category="PYTHON_FUNCTION", tid=8)
    session = open_job(trace)
    rows = cells(session, "stacks", "kind function total_ns")
    assert rows == [
        ("functions", "f", 2 * (2**63 - 2)),
        ("samples", "?", 20),
        ("samples", "f", 10),
        ("samples", "7", 10),
    ]
    assert sorted(session.notes) == [
        "1 functions left out: invalid timestamps (start 0, or end before start)",
        "1 samples of call stacks left out: invalid timestamps (start 0, or end before start)",
    ]


def test_flame_graphs(open_job: OpenJob) -> None:
    trace = sampled((100, stack(MAIN)), (110, stack(MAIN, TRAIN)), (120, stack(MAIN, TRAIN)))
    session = open_job(trace)
    assert list(folded_stacks(Reading(session))) == [f"samples;{MAIN} 10\n", f"samples;{MAIN};{TRAIN} 20\n"]
    by_rank = list(folded_stacks(Reading(session, Options(by=By.RANK))))
    assert by_rank[0] == f"rank 0;samples;{MAIN} 10\n"
    page = json.loads("".join(speedscope_stacks(Reading(session))))
    (profile,) = page["profiles"]
    frames = [frame["name"] for frame in page["shared"]["frames"]]
    assert profile["name"] == "samples, CPU"
    assert [
        ([frames[at] for at in path], weight)
        for path, weight in zip(profile["samples"], profile["weights"], strict=True)
    ] == [
        ([MAIN], 10),
        ([MAIN, TRAIN], 20),
    ]


def test_none_were_recorded(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no call stacks in the selection"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("stacks")


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("/srv/a (1)/model.py(88): decode", ("decode", "/srv/a (1)/model.py", 88)),
        ("<built-in method mm of type object at 0x7f>", ("<built-in method mm of type object at 0x7f>", None, None)),
        ("0x00007f12 in run(int, char**) at /src/run.cpp:12:3", ("run(int, char**)", "/src/run.cpp", 12)),
        ("operator()(at::Tensor) at /src/a.cpp:7", ("operator()(at::Tensor)", "/src/a.cpp", 7)),
        ("x.py(0): f", ("f", "x.py", None)),
        ("", ("", None, None)),
    ],
)
def test_frames(text: str, frame: tuple[object, ...]) -> None:
    assert frame_of(text) == frame


@settings(max_examples=sized(10, 400))
@given(
    st.lists(st.none() | st.integers() | st.text(max_size=5) | st.dictionaries(st.text(max_size=3), st.none()))
    | st.text()
)
def test_any_json_is_a_stack_or_none(value: object) -> None:
    frames = frames_of(json.dumps(value))
    assert len(frames) == (len(value) if isinstance(value, list) else 0)


def test_frames_of_rpd(tmp_path: Path) -> None:
    """RPD records the frames of each API call, the innermost first."""
    rpd = RpdBuilder(tmp_path / "a.rpd")
    first, second = rpd.api("hipLaunchKernel", 1000, 1100), rpd.api("hipMalloc", 2000, 2050)
    rpd.op(1200, 1500, "k", api=first)
    rpd.frames(first, "forward() at net.cpp:7:2", "main at net.cpp:40:1")
    rpd.frames(second, "main at net.cpp:38:1")
    rpd.close()
    with rocpd.connect(tmp_path / "a.rpd") as session:
        assert cells(session, "stack-lines", "function file line count total_ns self_ns gpu_ns") == [
            ("forward()", "net.cpp", 7, 1, 100, 100, 300),
            ("main", "net.cpp", 38, 1, 50, 50, 0),
            ("main", "net.cpp", 40, 1, 100, 0, 300),
        ]


def test_python_functions_of_pytorch() -> None:
    """Real traces: numbers of functions are those of the file, and the time of one that does not recur."""
    (packed,) = private("kineto/mi300_qwen1.5_0.5b.json.gz", 1)
    with rocpd.connect(packed) as session:
        rows = cells(session, "stacks", "kind function file count total_ns self_ns")
        calls = session.sql("SELECT COUNT(*) FROM regions WHERE category = 'PYTHON_FUNCTION'").fetchall()
        outer = session.sql(
            "SELECT SUM(duration) FROM regions WHERE name LIKE 'threading.py(%): _bootstrap'"
        ).fetchall()
    assert {row[0] for row in rows} == {"functions"}
    assert (sum(row[3] for row in rows),) == calls[0]
    assert [row[4] for row in rows if row[1:3] == ("_bootstrap", "threading.py")] == [outer[0][0]]
