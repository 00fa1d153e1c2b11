"""Kernels that take longer while communication runs beside them on their agent."""

from __future__ import annotations

import pytest

from tests.build import GPU, GPU2, TraceBuilder
from tests.conftest import OpenJob

TALKS = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def job(length: int, alone: int = 6, agent: int = GPU) -> TraceBuilder:
    """Runs of 100 us alone, and four of some length, of which communication lies beside the second half."""
    trace, now = TraceBuilder(), 1_000_000
    for number in range(alone + 4):
        takes = 100_000 if number < alone else length
        trace.kernel("gemm", now, now + takes)
        if number >= alone:
            trace.kernel(TALKS, now + takes // 2, now + takes, agent=agent, stream=7)
        now += takes + 1_000
    return trace


@pytest.mark.parametrize(
    ("trace", "longer"),
    [
        (job(130_000), 4 * 30_000),
        (job(100_000), 0),
        (job(90_000), -4 * 10_000),
        (
            job(100_000).kernel("gemm", 90_000_000, 92_000_000).kernel(TALKS, 90_000_000, 92_000_000, stream=7),
            0,
        ),  # once
        (job(130_000, alone=4), None),  # nobody knows how long it takes alone
        (job(130_000, agent=GPU2), None),  # another agent talks
    ],
)
def test_runs_beside_communication_compare_with_those_alone(
    trace: TraceBuilder, longer: int | None, open_job: OpenJob
) -> None:
    table = open_job(trace).summary("kernel-shapes")
    known = {row[0]: row[-1] for row in table}
    assert known["gemm"] == longer
    assert [value for name, value in known.items() if name.startswith("nccl")] == [None]
    said = [finding.text for finding in table.findings]
    if longer is None or longer <= 0:
        assert said == []
    else:
        assert said == [
            "kernels take 120 us longer beside communication than alone, 8.7 % of the time of all kernels, most in gemm"
        ]


def test_advice_says_as_much(open_job: OpenJob) -> None:
    (finding,) = [each for each in open_job(job(130_000)).advise().findings if each.rule == "kernel.beside"]
    assert finding.text == (
        "kernels of rank 0 take 120 us longer beside communication than alone, 11 % of the compute time, most in gemm"
    )
