"""What was sampled while kernels ran, worked out by hand and on real files."""

from __future__ import annotations

import pytest

import rocpd
from rocpd.base import RocpdError
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.summary.cells import cells

US = 1000


def job(number: int = 0) -> TraceBuilder:
    """Sample 100 W, 300 W and 200 W, a millisecond each; sgemm runs for 1.2 ms of the first two, relu for 0.2 ms."""
    trace = TraceBuilder(number).kernel("sgemm", 1000 * US, 1900 * US).kernel("sgemm", 2000 * US, 2300 * US)
    trace.kernel("relu", 2500 * US, 2700 * US).kernel("early", 1 * US, 2 * US)
    for at, power in ((1000, 100.0), (2000, 300.0), (3000, 200.0), (4000, 65535.0)):
        trace.sample("smi", at * US).counter("device_power", power, units="w")
    return trace


def test_means_are_over_the_time_of_the_kernel(open_job: OpenJob) -> None:
    """Energy of sgemm counts in the first millisecond alone, of which it takes most; that of relu nowhere."""
    columns = "kernel name units mean time_ns energy_j energy_percent"
    assert cells(open_job(job()), "kernel-samples", columns) == [
        ("sgemm", "device_power", "W", pytest.approx((100 * 900 + 300 * 300) / 1200), 1_200_000, 0.09, 75.0),
        ("relu", "device_power", "W", 300.0, 200_000, 0.0, 0.0),
    ]


def test_ranks_add_up(open_job: OpenJob) -> None:
    two = cells(open_job(job(0), job(1)), "kernel-samples", "kernel mean time_ns energy_j")
    one = cells(open_job(job(0)), "kernel-samples", "kernel mean time_ns energy_j")
    assert two == [(name, pytest.approx(mean), 2 * time, pytest.approx(2 * energy)) for name, mean, time, energy in one]
    by_rank = cells(open_job(job(0), job(1)), "kernel-samples", "rank kernel mean", "rank")
    assert by_rank == [(rank, name, pytest.approx(mean)) for rank in (0, 1) for name, mean, *_ in one]


def test_without_samples_it_says_so(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no samples of a GPU"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("kernel-samples")


def test_a_real_gpu() -> None:
    """One of eight GPUs runs a kernel for a second: its power rises from 162 W to 380 W."""
    (path,) = private("rocprofiler-systems/rocpd-484153.db", 1)
    with rocpd.connect(path) as session:
        rows = {row[:2]: row[2:] for row in session.summary("kernel-samples")}
    units, mean, time, energy, percent = rows["transpose_a(int*, int*, int, int) [clone .kd]", "device_power"]
    assert units == "W"
    assert 340 < mean < 380
    assert energy == pytest.approx(mean * time / 1e9, rel=0.01)
    assert percent > 99
