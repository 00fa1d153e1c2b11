"""Copies that nothing hides, and those that are hidden."""

from __future__ import annotations

from dataclasses import replace

from rocpd.advice.rules.memory import COPY_EXPOSED
from tests.advice.made import JOB, found

SHARES = {0: {"compute": 60.0, "exposed copies": 25.0, "idle": 15.0}, 1: {"compute": 100.0}}
ROWS = [
    {"rank": 0, "name": "MEMORY_COPY_HOST_TO_DEVICE", "size": "1 MiB", "total_ns": 2_000_000, "median_gib_per_s": 20.5},
    {"rank": 0, "name": "MEMORY_COPY_DEVICE_TO_HOST", "size": "1 MiB", "total_ns": 500_000, "median_gib_per_s": 9.0},
]


def test_it_names_the_direction_that_takes_most() -> None:
    (finding,) = found(COPY_EXPOSED, {"copy-sizes": ROWS}, replace(JOB, shares=SHARES))
    assert finding.text == (
        "the GPU of rank 0 copies 25 % of the time while nothing else runs, most MEMORY_COPY_HOST_TO_DEVICE, "
        "20.5 GiB/s in the median for those of 1 MiB"
    )
    assert finding.gain_percent == 25.0


def test_hidden_copies_cost_nothing() -> None:
    assert found(COPY_EXPOSED, {"copy-sizes": ROWS}) == []
