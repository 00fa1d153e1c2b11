"""Operators by name and by sizes: calls, CPU and GPU time, those inside others of their name, operations from sizes."""

from __future__ import annotations

import itertools

import pytest

import rocpd
from rocpd.facts.torch_operators import flops_of
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.summary.cells import cells


def operator(trace: TraceBuilder, name: str, start: int, end: int, sizes: str = "") -> None:
    trace.region(name, start, end, category="TORCH_OPERATOR", stack=0)
    if sizes:
        trace.arg("Input Dims", sizes)


def launch(trace: TraceBuilder, at: int, stack: int, length: int) -> None:
    trace.region("hipLaunchKernel", at, at + 1, stack=stack)
    trace.kernel("gemm", 1000 + 100 * stack, 1000 + 100 * stack + length, stack=stack)


@pytest.fixture
def job(open_job: OpenJob) -> rocpd.Session:
    """linear 10-60 holds addmm 20-40, which launches 5 ns; linear itself launches 3 ns; `to` 70-90 holds `to` 75-80."""
    trace = TraceBuilder()
    operator(trace, "aten::linear", 10, 60, "[[2,3],[4,3]]")
    operator(trace, "aten::addmm", 20, 40, "[[4],[2,3],[3,4]]")
    launch(trace, 30, 1, 5)
    launch(trace, 50, 2, 3)
    operator(trace, "aten::to", 70, 90)
    operator(trace, "aten::to", 75, 80)
    launch(trace, 76, 3, 2)
    return open_job(trace)


def test_times_of_operators_and_of_those_inside(job: rocpd.Session) -> None:
    columns = "operator calls cpu_ns cpu_self_ns gpu_ns gpu_self_ns launches percent"
    assert cells(job, "operators", columns) == [
        ("aten::addmm", 1, 20, 20, 5, 5, 1, 50.0),
        ("aten::linear", 1, 50, 30, 8, 3, 2, 30.0),
        ("aten::to", 2, 20, 20, 2, 2, 1, 20.0),
    ]


def test_time_that_two_inside_both_cover_is_taken_once(open_job: OpenJob) -> None:
    """Rounded times make neighbours overlap: of 100-110 are 101-109 covered, not 10 and more."""
    trace = TraceBuilder()
    for name, start, end in (("aten::outer", 100, 110), ("aten::a", 101, 107), ("aten::b", 103, 109)):
        operator(trace, name, start, end)
    assert cells(open_job(trace), "operators", "operator cpu_ns cpu_self_ns") == [
        ("aten::outer", 10, 2),
        ("aten::a", 6, 6),
        ("aten::b", 6, 6),
    ]


def test_sizes_say_how_much_is_calculated(job: rocpd.Session) -> None:
    assert cells(job, "operator-shapes", "operator sizes calls flops tflop_per_s") == [
        ("aten::addmm", "[[4],[2,3],[3,4]]", 1, 48, 48 / 5 / 1000),
        ("aten::linear", "[[2,3],[4,3]]", 1, None, None),
        ("aten::to", None, 2, None, None),
    ]


def test_in_a_window_calls_in_it_count(job: rocpd.Session) -> None:
    calls = {row[0]: row[1] for row in job.within(rocpd.Window(65, 85)).summary("operators")}
    assert calls == {"aten::to": 2}


def test_two_ranks_add_up(open_job: OpenJob) -> None:
    traces = []
    for rank in range(2):
        trace = TraceBuilder(pid=10 + rank)
        operator(trace, "aten::mm", 10, 20, "[[2,3],[3,4]]")
        launch(trace, 12, 1, 4 + rank)
        traces.append(trace)
    session = open_job(*traces)
    assert cells(session, "operator-shapes", "operator calls gpu_ns flops") == [("aten::mm", 2, 9, 96)]
    by_rank = session.summary("operators", "rank").fetchall()
    assert [row[:3] for row in by_rank] == [(0, "aten::mm", 1), (1, "aten::mm", 1)]


@pytest.mark.parametrize(("stride", "padding", "dilation"), list(itertools.product((1, 2), (0, 1), (1, 2))))
def test_a_convolution_counted_out(stride: int, padding: int, dilation: int) -> None:
    """Each output element of each image and channel multiplies and adds once for each weight of its channel."""
    images, inputs, outputs, size, kernel = 2, 3, 4, 7, 3
    at = range(-padding, size + padding - dilation * (kernel - 1), stride)
    operations = sum(2 for _ in itertools.product(range(images), range(outputs), at, at, range(inputs * kernel**2)))
    sizes = f"[[{images},{inputs},{size},{size}],[{outputs},{inputs},{kernel},{kernel}],[]]"
    values = '["","","",' + ",".join(f'"[{n}, {n}]"' for n in (padding, stride, dilation)) + "]"
    assert flops_of("aten::miopen_convolution", sizes, values) == operations
    gradient = f"[[{images},{outputs},{len(at)},{len(at)}],{sizes[1:]}"
    assert flops_of("aten::convolution_backward", gradient, '["[True, True, False]"]') == 2 * operations
    assert flops_of("aten::convolution_backward", gradient, '["[False, True, True]"]') == operations


def test_phases_of_training(open_job: OpenJob) -> None:
    """mm launches 5 ns; its backward operator on another thread 7 ns, with a forward one inside.

    The optimizer launches 3 ns in an operator and 10 ns outside; what another thread launches meanwhile is not its own.
    """
    trace = TraceBuilder()
    operator(trace, "aten::mm", 10, 60)
    launch(trace, 30, 1, 5)
    trace.region("autograd::engine::evaluate_function: MmBackward0", 100, 200, category="TORCH_OPERATOR", tid=7)
    trace.region("aten::mm", 110, 190, category="TORCH_OPERATOR", tid=7)
    trace.region("hipLaunchKernel", 120, 121, stack=2, tid=7).kernel("gemm", 1200, 1207, stack=2)
    trace.region("roctxRangePushA", 300, 400, message="Optimizer.step#SGD.step")
    operator(trace, "aten::add_", 310, 330)
    launch(trace, 320, 3, 3)
    launch(trace, 350, 4, 10)
    trace.region("hipLaunchKernel", 350, 351, stack=5, tid=7).kernel("gemm", 1500, 1509, stack=5)
    launch(trace, 500, 6, 6)
    session = open_job(trace)
    columns = "phase operators cpu_ns gpu_ns launches percent"
    assert cells(session, "operator-phases", columns) == [
        ("forward", 1, 50, 5, 1, 12.5),
        ("backward", 1, 100, 7, 1, 17.5),
        ("optimizer", 1, 20, 13, 2, 32.5),
        (None, 0, 0, 15, 2, 37.5),
    ]


def test_phases_of_a_real_trace_hold_all_gpu_work() -> None:
    """What its annotation holds is the optimizer's, and nothing else is in this trace without an operator."""
    (packed,) = private("kineto/hta_sampled_rank-0.json.gz", 1)
    with rocpd.connect(packed) as session:
        rows = dict(cells(session, "operator-phases", "phase gpu_ns"))
        whole = session.sql("SELECT (SELECT SUM(duration) FROM kernels) + (SELECT SUM(duration) FROM memory_copies)")
        annotated = dict(cells(session, "phases", "phase gpu_ns"))
        assert sum(rows.values()) == whole.fetchall()[0][0]
    assert set(rows) == {"forward", "backward", "optimizer"}
    assert rows["optimizer"] == sum(
        time for phase, time in annotated.items() if phase.startswith(("Optimizer.step", "Optimizer.zero_grad"))
    )
