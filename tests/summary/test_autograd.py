"""Kernels by operator: nested ones, graph launches, sizes, forward and backward; RPD's own table where it is right."""

from __future__ import annotations

import gzip
from pathlib import Path

import apsw

import rocpd
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.summary.cells import cells


def operator(trace: TraceBuilder, name: str, start: int, end: int, sizes: str = "", seq: int | None = None) -> None:
    trace.region(name, start, end, category="TORCH_OPERATOR", stack=0)
    if sizes:
        trace.arg("Input Dims", sizes)
    if seq is not None:
        trace.arg("Sequence number", str(seq))


def launch(trace: TraceBuilder, at: int, stack: int, *lengths: int, name: str = "gemm") -> None:
    """A call at a time that launches kernels: several are a graph's."""
    trace.region("hipLaunchKernel" if len(lengths) == 1 else "hipGraphLaunch", at, at + 1, stack=stack)
    for number, length in enumerate(lengths):
        trace.kernel(name, 1000 + 100 * stack + 10 * number, 1000 + 100 * stack + 10 * number + length, stack=stack)


def test_kernels_count_for_each_operator_around_their_launch(open_job: OpenJob) -> None:
    """linear 10-60 holds addmm 20-40, which launches 5 ns; then linear itself launches a graph of 2 and 3 ns."""
    trace = TraceBuilder()
    operator(trace, "linear", 10, 60, "[[4]]")
    operator(trace, "addmm", 20, 40, "[[2]]")
    launch(trace, 30, 1, 5)
    launch(trace, 50, 2, 2, 3)
    launch(trace, 70, 3, 9)
    session = open_job(trace)
    columns = "operator sizes kernel launches gpu_ns self_launches gpu_self_ns percent"
    assert cells(session, "autograd", columns) == [
        ("linear", "[[4]]", "gemm", 3, 10, 2, 5, 50.0),
        ("addmm", "[[2]]", "gemm", 1, 5, 1, 5, 50.0),
    ]
    assert "autograd: 1 of 4 operations were launched in no operator" in session.notes


def test_an_operator_inside_its_like_counts_a_kernel_once(open_job: OpenJob) -> None:
    trace = TraceBuilder()
    operator(trace, "to", 10, 60)
    operator(trace, "to", 20, 40)
    launch(trace, 30, 1, 5)
    assert cells(open_job(trace), "autograd", "operator launches gpu_ns gpu_self_ns") == [("to", 1, 5, 5)]


def test_backward_operators_know_their_forward_ones(open_job: OpenJob) -> None:
    """`to` carries the number that mse_loss takes; evaluate_function holds the backward operator."""
    trace = TraceBuilder()
    operator(trace, "to", 10, 20, seq=7)
    operator(trace, "mse_loss", 30, 60, seq=7)
    operator(trace, "mse_loss_out", 40, 50, seq=7)
    launch(trace, 45, 1, 5)
    operator(trace, "autograd::engine::evaluate_function: MseLossBackward0", 70, 100, seq=7)
    operator(trace, "MseLossBackward0", 80, 90, seq=7)
    launch(trace, 85, 2, 10)
    assert cells(open_job(trace), "autograd-pairs", "forward backward pairs forward_gpu_ns backward_gpu_ns ratio") == [
        ("mse_loss", "autograd::engine::evaluate_function: MseLossBackward0", 1, 5, 10, 2.0)
    ]


def test_rpds_own_table_where_it_is_right(tmp_path: Path) -> None:
    """It lacks copies, and what graphs launch; of kernels launched by operators themselves it has the same 28 rows."""
    (packed,) = private("rpd/mytrace.rpd.gz", 1)
    plain = tmp_path / "mytrace.rpd"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    connection = apsw.Connection(str(plain), flags=apsw.SQLITE_OPEN_READONLY)
    expected = connection.execute("SELECT autogradName, kernelName, calls, total_gpu FROM autogradKernel").fetchall()
    connection.close()
    with rocpd.connect(plain) as session:
        rows = cells(session, "autograd", "operator kernel self_launches gpu_self_ns", kernel_names="full")
    launched = [row for row in rows if row[2] and not row[1].startswith("MEMORY_COPY")]
    assert len(launched) == 28
    assert sorted(launched) == sorted(expected)
