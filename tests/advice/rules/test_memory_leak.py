"""When memory that nothing frees fills a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocpd.advice.rules.memory import MEMORY_LEAK
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.memory.memory import LEAK
from tests.advice.made import JOB, found, table


@pytest.mark.parametrize(
    ("steps", "lasts"),
    [
        (46, "46 more steps, in 46 seconds"),
        (119, "120 more steps, in 120 seconds"),
        (6_600, "6,600 more steps, in 110 minutes"),
        (720_000, "720,000 more steps, in 200 hours"),
    ],
)
def test_it_says_when_memory_is_full_in_plain_numbers(steps: int, lasts: str) -> None:
    evidence = {"held_bytes": 10, "ranks": 1, "steps": 10}
    leak = Finding("a call leaves 10 bytes", LEAK, Verdict.PROBLEM, Confidence.LIKELY, evidence=evidence)
    memory = table("memory", [{"level": "REAL", "capacity_bytes": 1000 + steps, "peak_bytes": 1000}])
    tables = {"allocation-sites": table("allocation-sites", [], [leak]), "memory": memory}
    (finding,) = found(MEMORY_LEAK, tables, replace(JOB, step_ns=1_000_000_000))
    assert finding.text == f"a call leaves 10 bytes; memory is full after about {lasts}"
