"""Trees of calls, worked out by hand, for every way in which ranges lie."""

from __future__ import annotations

import io
import json

import pytest

from rocpd.base import Ints
from rocpd.facts.rank import By, Options
from rocpd.facts.regions import Nesting, nest_times
from rocpd.federate.select.filters import Filters
from rocpd.summary.host.calls import folded, speedscope
from rocpd.summary.reading import Reading
from rocpd.table.palette import Screen
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

COLUMNS = "depth name calls cpu_ns cpu_self_ns gpu_ns gpu_self_ns"


def job() -> TraceBuilder:
    """main 0-100 holds f 10-40 and g 40-90, which touch; g holds h, which launches 7 ns; f launches 5 ns."""
    trace = TraceBuilder().region("main", 1, 101, stack=1).region("f", 11, 41, stack=2).region("g", 41, 91, stack=3)
    trace.region("h", 51, 61, stack=4)
    return trace.kernel("k", 200, 207, stack=4).kernel("k", 300, 305, stack=2)


def test_inclusive_and_exclusive(open_job: OpenJob) -> None:
    assert cells(open_job(job()), "calls", COLUMNS) == [
        (0, "main", 1, 100, 20, 12, 0),
        (1, "g", 1, 50, 40, 7, 0),
        (2, "h", 1, 10, 10, 7, 7),
        (1, "f", 1, 30, 30, 5, 5),
    ]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        pytest.param([(0, 50, "a"), (50, 100, "b")], [(0, "a", 50, 50), (0, "b", 50, 50)], id="touching"),
        pytest.param([(0, 100, "a"), (50, 100, "b")], [(0, "a", 100, 50), (1, "b", 50, 50)], id="equal end"),
        pytest.param([(0, 100, "a"), (0, 40, "b")], [(0, "a", 100, 60), (1, "b", 40, 40)], id="equal start"),
        pytest.param(
            [(0, 40, "b"), (0, 100, "a")], [(0, "a", 100, 60), (1, "b", 40, 40)], id="equal start, inner first"
        ),
        pytest.param([(0, 100, "a"), (0, 100, "b")], [(0, "a", 100, 0), (1, "b", 100, 100)], id="equal"),
        pytest.param([(0, 100, "a"), (50, 150, "b")], [(0, "a", 100, 100), (0, "b", 100, 100)], id="badly nested"),
        pytest.param(
            [(0, 100, "m"), (10, 60, "a"), (50, 90, "b")],
            [(0, "m", 100, 20), (1, "a", 50, 50), (1, "b", 40, 40)],
            id="neighbours that overlap",
        ),
        pytest.param(
            [(0, 100, "a"), (50, 150, "b"), (60, 90, "c"), (110, 120, "d")],
            [(0, "a", 100, 100), (0, "b", 100, 60), (1, "c", 30, 30), (1, "d", 10, 10)],
            id="inside the latest that holds it",
        ),
        pytest.param([(0, 100, "a"), (50, 50, "m")], [(0, "a", 100, 100), (1, "m", 0, 0)], id="without length"),
        pytest.param(
            [(0, 50, "a"), (50, 50, "m"), (50, 60, "b")],
            [(0, "a", 50, 50), (0, "b", 10, 10), (1, "m", 0, 0)],
            id="without length where two touch",
        ),
        pytest.param([(5, 5, "m"), (5, 5, "n")], [(0, "m", 0, 0), (0, "n", 0, 0)], id="both without length"),
    ],
)
def test_every_way_to_lie(ranges: list[tuple[int, int, str]], expected: list[object], open_job: OpenJob) -> None:
    trace = TraceBuilder()
    for stack, (start, end, name) in enumerate(ranges, 1):
        trace.region(name, start + 1, end + 1, stack=stack)
    assert cells(open_job(trace), "calls", "depth name cpu_ns cpu_self_ns") == expected


def test_threads_and_ranks(open_job: OpenJob) -> None:
    """Equal times on two threads are no nesting; markers go by their message."""
    first = TraceBuilder(0).region("f", 1, 11, tid=5).region("roctxRangePushA", 1, 21, tid=6, message="step")
    session = open_job(first, TraceBuilder(1, host="node1").region("f", 1, 4, tid=5))
    assert cells(session, "calls", "depth name calls cpu_ns") == [(0, "step", 1, 20), (0, "f", 2, 13)]
    assert cells(session, "calls", "rank thread name", "rank") == [(0, 5, "f"), (0, 6, "step"), (1, 5, "f")]
    assert cells(session, "calls", "hostname name cpu_ns", "host")[-1] == ("node1", "f", 3)


def test_steps_and_calls_are_one_row(open_job: OpenJob) -> None:
    """Markers differ in a number that follows the steps: a name that stands for one text is that text."""

    def rank(number: int, steps: range) -> TraceBuilder:
        trace = TraceBuilder(number)
        for step in steps:
            at = 100 * step
            trace.region("roctxRangePushA", at, at + 50, message=f"step {step}")
            trace.region("roctxRangePushA", at + 10, at + 20, message=f"step {step} of layer 7")
            trace.region("roctxRangePushA", at + 30, at + 35, message=f"aten::mm, seq = {step}")
            trace.region("f4", at + 60, at + 62)
            trace.region("roctxRangePushA", at + 70, at + 71, message="layer 7")
        return trace

    inner, after = [(1, "step # of layer #", 4, 40), (1, "aten::mm", 4, 20)], [(0, "f4", 4, 8), (0, "layer 7", 4, 4)]
    session = open_job(rank(0, range(1, 4)), rank(1, range(2, 3)))
    assert cells(session, "calls", "depth name calls cpu_ns") == [(0, "step #", 4, 200), *inner, *after]
    assert ("step 2", 2) in cells(session, "functions", "name calls")
    second = session.where(Filters(ranks="1"))
    assert cells(second, "calls", "name")[:2] == ["step 2", "step 2 of layer 7"]


def test_folded_and_speedscope(open_job: OpenJob) -> None:
    session = open_job(job())
    assert list(folded(Reading(session))) == ["main 20\n", "main;f 30\n", "main;g 40\n", "main;g;h 10\n"]
    by_rank = list(folded(Reading(session, Options(by=By.RANK))))
    assert by_rank[0] == "rank 0;thread 16;main 20\n"
    page = json.loads("".join(speedscope(Reading(session))))
    frames = [frame["name"] for frame in page["shared"]["frames"]]
    cpu, gpu = page["profiles"]
    assert [([frames[i] for i in path], w) for path, w in zip(gpu["samples"], gpu["weights"], strict=True)] == [
        (["main", "f"], 5),
        (["main", "g", "h"], 7),
    ]
    assert (cpu["unit"], sum(cpu["weights"]), cpu["endValue"]) == ("nanoseconds", 100, 100)


def test_a_tree_on_a_terminal(open_job: OpenJob) -> None:
    """Indenting says what node, parent and depth say: the name has their room."""
    out = io.StringIO()
    open_job(job()).summary("calls").write_readable(out, screen=Screen(60))
    head, _, *rows = out.getvalue().splitlines()
    assert head.split() == ["name", "calls", "cpu", "cpu_self", "gpu", "gpu_self", "percent"]
    assert [row[:7].rstrip() for row in rows] == ["main", "· g", "· · h", "· f"]


def test_profiles_without_samples_are_left_out(open_job: OpenJob) -> None:
    session = open_job(
        TraceBuilder().region("f", 1, 9, tid=None).region("g", 1, 9, stack=1).kernel("k", 10, 15, stack=1)
    )
    page = json.loads("".join(speedscope(Reading(session, Options(by=By.RANK)))))
    assert [profile["name"] for profile in page["profiles"]] == [
        "rank 0 thread 16, CPU",
        "rank 0 thread 16, GPU",
        "rank 0 unknown thread, CPU",
    ]


def test_gpu_time_by_agent_and_stream(open_job: OpenJob) -> None:
    """g launches 7 ns through h, f 5 ns, and itself 3 ns on another agent and stream."""
    session = open_job(job().kernel("k", 400, 403, stack=3, agent=GPU2, stream=9))
    sizes = cells(session, "calls", "rank agent depth name calls cpu_ns gpu_ns gpu_self_ns percent", "agent")
    assert sizes == [
        (0, 1, 0, "main", None, None, 12, 0, 100.0),
        (0, 1, 1, "g", None, None, 7, 0, 700 / 12),
        (0, 1, 2, "h", None, None, 7, 7, 700 / 12),
        (0, 1, 1, "f", None, None, 5, 5, 500 / 12),
        (0, 2, 0, "main", None, None, 3, 0, 100.0),
        (0, 2, 1, "g", None, None, 3, 3, 100.0),
        (0, None, 0, "main", 1, 100, 0, 0, 100.0),
        (0, None, 1, "g", 1, 50, 0, 0, 50.0),
        (0, None, 2, "h", 1, 10, 0, 0, 10.0),
        (0, None, 1, "f", 1, 30, 0, 0, 30.0),
    ]
    assert (9, "g", 3) in cells(session, "calls", "stream name gpu_ns", "stream")
    lines = list(folded(Reading(session, Options(by=By.AGENT))))
    assert {"rank 0;CPU;main 20\n", "rank 0;agent 2;main;g 3\n"} <= {*lines}


def test_trees_of_streams_are_parts_of_one(open_job: OpenJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions are nested once, however many streams there are, and streams have the time of the whole together."""
    trace = TraceBuilder()
    for stack in range(1, 41):
        trace.region("fg"[stack % 2], 10 * stack, 10 * stack + 9, stack=stack)
        trace.kernel("k", 1000, 1000 + stack, stack=stack, stream=stack % 20 + 1)
    threads: list[int] = []

    def counted(start: Ints, end: Ints, thread: Ints) -> Nesting:
        threads.append(1)
        return nest_times(start, end, thread)

    monkeypatch.setattr("rocpd.summary.host.calls.nest_times", counted)
    rows = cells(open_job(trace), "calls", "stream name gpu_ns", "stream")
    assert len(threads) == 1
    assert len(rows) == 2 + 20
    assert sum(gpu for stream, _, gpu in rows if stream is not None) == sum(range(1, 41))
    assert [gpu for stream, name, gpu in rows if (stream, name) == (3, "f")] == [2 + 22]


def test_work_without_a_call_is_told(open_job: OpenJob) -> None:
    session = open_job(job().kernel("k", 1, 9, stack=77))
    assert cells(session, "calls", "gpu_ns")[0] == 12
    assert session.notes == ["calls: 1 of 3 operations were launched by no region of the selection"]
