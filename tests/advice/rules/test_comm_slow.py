"""Slow collectives of many groups are one finding, which says in which steps they are slow."""

from __future__ import annotations

from rocpd.advice.rules.communication import COMM_SLOW
from tests.advice.made import found

MS, MIB = 1_000_000, 1 << 20
STEPS = [{"step": f"step {at}", "is_warm_up": 0, "at_ns": at * MS} for at in range(12)]


def rows(group: str, slow: range, mib: int = 8) -> list[dict[str, object]]:
    """One collective a step, of which some take four times as long as the others."""
    return [
        {
            "name": "all",
            "number": at + 1,
            "group": group,
            "bytes": mib * MIB,
            "min_ns": 400_000 if at in slow else 100_000,
            "bus_gb_per_s": 50.0 if at in slow else 200.0,
        }
        for at in range(12)
    ]


def test_groups_alike_are_one_finding_with_the_steps_in_which_they_are_slow() -> None:
    few = range(1, 12, 4)
    every = [row for group in ("0-1", "2-3", "4-5") for row in rows(group, few)] + rows("0,2", range(3, 5), 48)
    large, small = sorted(found(COMM_SLOW, {"collectives": every, "steps": STEPS}), key=lambda each: len(each.text))
    assert small.text.endswith("; so are those of 2 more groups; in every 4th step: 1, 5, 9")
    assert (small.evidence["groups"], small.evidence["steps"]) == (3, [1, 5, 9])
    assert large.text.startswith("2 of 12 large collectives of ranks 0,2 are slow: ")
    assert large.text.endswith("; in steps 3, 4")
