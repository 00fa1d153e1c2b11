"""Means of samples in steps: each value by how much of the step it holds."""

from __future__ import annotations

import numpy as np
import pytest

from rocpd.base import NULL
from rocpd.summary.counters.samples import HeldValues, _means_in_steps
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

MS = 1_000_000


def _values(*pairs: tuple[int, float]) -> HeldValues:
    at, value = np.array([at for at, _ in pairs], np.int64), np.array([value for _, value in pairs])
    return HeldValues.of(at, np.full(len(at), NULL), value, None)


def test_values_hold_until_the_next_one() -> None:
    values = _values((0, 1.0), (10, 4.0), (30, 2.0))
    steps = {1: (0, 20), 2: (20, 30), 3: (-9, 5), 4: (30, 90), 5: (-9, 0)}
    assert _means_in_steps(values, steps) == {
        1: (2.5, 20, 100.0), 2: (4.0, 10, 100.0), 3: (1.0, 5, pytest.approx(500 / 14))
    }  # fmt: skip


def test_parts_of_a_step_add_up() -> None:
    values = _values(*((at, float(at % 7)) for at in range(0, 1000, 13)))
    whole, *_ = _means_in_steps(values, {0: (100, 900)})[0]
    parts = _means_in_steps(values, {number: (number, number + 50) for number in range(100, 900, 50)})
    assert abs(sum(mean * held for mean, held, _ in parts.values()) - whole * 800) < 1e-6


def _steps(count: int) -> TraceBuilder:
    """Steps of 2 ms, the first one from 1 ms on."""
    trace = TraceBuilder()
    for step in range(count):
        start = (2 * step + 1) * MS
        trace.region("roctxRangePushA", start, start + 2 * MS, message=f"step {step}").kernel("k", start, start + MS)
    return trace


def test_energy_of_steps(open_job: OpenJob) -> None:
    """Steps of 2 ms: 100 W and 300 W for a millisecond each, then 200 W throughout and a sample that is none."""
    trace = _steps(3)
    for at, power in ((1, 100.0), (2, 300.0), (3, 200.0), (4, 65535.0), (7, 200.0)):
        trace.sample("smi", at * MS).counter("device_power", power, units="W").counter("device_temp", 40.0, units="C")
    columns = "step name mean_over_time energy_j known_percent"
    rows = [row for row in cells(open_job(trace), "step-samples", columns) if row[1] == "device_power"]
    assert rows == [
        (0, "device_power", 200.0, pytest.approx(0.4), 100.0),
        (1, "device_power", 200.0, pytest.approx(0.4), 100.0),
        (2, "device_power", 200.0, pytest.approx(0.4), 100.0),
    ]


def test_the_last_value_of_steps_holds_until_the_next_one(open_job: OpenJob) -> None:
    """Steps from 1 to 3 ms and on to 5; the value of 4 ms holds until that of 7, which is after the steps."""
    trace = _steps(2)
    for at, power in ((1, 100.0), (4, 200.0), (6, 65535.0), (7, 300.0), (8, 900.0)):
        trace.sample("smi", at * MS).counter("device_power", power, units="W")
    session = open_job(trace)
    assert cells(session, "step-samples", "step mean_over_time known_percent") == [(0, 100.0, 100.0), (1, 150.0, 100.0)]
    assert cells(session, "samples", "samples max left_out") == [(2, 200.0, 0)]


def test_no_values() -> None:
    assert _means_in_steps(_values(), {1: (0, 9)}) == {}
