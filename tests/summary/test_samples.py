"""Sampled values, worked out by hand."""

from __future__ import annotations

import json

import pytest

import rocpd
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

MEANS = "name samples mean mean_over_time"


def sampled(*values: tuple[int, float], ends: bool = False) -> TraceBuilder:
    """Values of one counter; with `ends` each holds for 10 ns."""
    trace = TraceBuilder()
    for at, value in values:
        trace.sample("clock", at, category="GPU_MONITOR").counter("sclk", value, units="MHz")
        if ends:
            trace.rows["rocpd_event"][-1]["extdata"] = json.dumps({"end": at + 10})
    return trace


def test_values_hold_until_the_next(open_job: OpenJob) -> None:
    """100 for 10 ns, 400 for 90 ns; the last one holds for no known time."""
    session = open_job(sampled((100, 100.0), (110, 400.0), (200, 1000.0)))
    assert cells(session, "samples", MEANS) == [("sclk", 3, 500.0, 370.0)]


@pytest.mark.parametrize("never", [0, None])
def test_a_value_without_time_is_left_out(never: int, open_job: OpenJob) -> None:
    """It would hold from 1970 to the first of the others."""
    session = open_job(sampled((never, 9.0), (100, 100.0), (110, 400.0), (200, 1000.0)))
    assert cells(session, "samples", MEANS) == [("sclk", 3, 500.0, 370.0)]
    assert any("1 samples left out" in note for note in session.notes)


def test_values_hold_until_the_end_that_was_recorded(open_job: OpenJob) -> None:
    session = open_job(sampled((100, 100.0), (110, 400.0), (200, 1000.0), ends=True))
    assert cells(session, "samples", MEANS) == [("sclk", 3, 500.0, 500.0)]


def test_the_end_of_a_window_ends_the_last_value(open_job: OpenJob) -> None:
    trace = sampled((100, 100.0), (110, 400.0), ends=True).region("f", 1, 1001)
    cut = open_job(trace).within(rocpd.Window(0, 114))
    assert cells(cut, "samples", MEANS) == [("sclk", 2, 250.0, (10 * 100 + 4 * 400) / 14)]


def test_one_value(open_job: OpenJob) -> None:
    assert cells(open_job(sampled((100, 7.0))), "samples", MEANS) == [("sclk", 1, 7.0, 7.0)]


@pytest.mark.parametrize(("by", "rho"), [(-1, -1.0), (1, 1.0), (0, None)])
def test_clocks_are_compared_with_the_times_of_kernels(by: int, rho: float | None, open_job: OpenJob) -> None:
    """24 samples 1 ms apart, from 1,000 MHz upwards: kernels take shorter, longer, or as long."""
    trace = TraceBuilder().kernel("other", 500, 700)
    for number in range(24):
        at = (number + 1) * 1_000_000
        trace.sample("clock", at, category="GPU_MONITOR").counter("sclk", 1000.0 + 40 * number, units="MHz")
        for start in (at + 1000, at + 300_000):
            trace.kernel("gemm", start, start + 200_000 + by * 4000 * number, grid=(64, 1, 1))
    session = open_job(trace)
    expected = (None, None) if rho is None else (pytest.approx(rho), 24)
    assert cells(session, "samples", "rho rho_samples") == [expected]
    found = {finding.rule: finding for finding in session.advise().findings}
    assert ("clock.throttle" in found) == (by < 0)
    if by < 0:
        assert "Spearman -1.00, 24 samples): 1460 MHz on average, 1920 at best" in found["clock.throttle"].text
        compute = 2 * (200_000 - 4000 * 11.5) / 1_000_000  # of the time
        assert found["clock.throttle"].gain_percent == pytest.approx(100 * compute * (1 - 1460 / 1920), rel=0.05)
