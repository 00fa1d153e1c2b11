"""A straggler: what to look at goes by what two files say of it."""

from __future__ import annotations

import pytest

from rocpd.advice.rules.communication import COMM_STRAGGLER
from rocpd.summary.findings import Finding
from tests.advice.made import found, table


@pytest.mark.parametrize(
    ("evidence", "hint"),
    [
        ({}, "`amd-smi metric --clock --power`"),
        ({"clock_lower_percent": 0.2}, " at the same clock"),
        ({"clock_lower_percent": 13.0}, "power cap"),
        ({"clock_lower_percent": 0.2, "more_work_items_percent": 8.0}, "equal work"),
        ({"later_ns": 400_000}, "Its host starts it late"),
        ({"stalls": [7], "clock_lower_percent": 0.0}, "--against others"),
        ({"stalls": [7], "later_ns": 3_000_000}, "garbage collection"),
    ],
)
def test_it_suggests_nothing_that_is_known_to_be_otherwise(evidence: dict[str, object], hint: str) -> None:
    verdict = Finding("rank 0 costs a lot", "comm.straggler", rank=0, evidence={"cost_percent": 9.0, **evidence})
    ranks = table("ranks", [{"rank": 0}], [verdict])
    (finding,) = found(COMM_STRAGGLER, {"ranks": ranks, "communication": [{"class": "transfer"}]})
    assert finding.action
    assert hint in finding.action
