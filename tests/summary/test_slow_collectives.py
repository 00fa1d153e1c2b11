"""Collectives are slow beside others of their kernel, group and size; small and rare ones compare with nothing."""

from __future__ import annotations

from rocpd.base import Row
from rocpd.summary.communication.slow import slow_collectives

MIB = 1 << 20


def rows(group: str, times: list[int], size: int = 4 * MIB) -> list[Row]:
    """Rows of the table of collectives, which take so long [us] and move their size at that rate."""
    return [
        ("all", number, group, 4, 0, 0, 0, time * 1000, time * 1000, "transfer", size, 1.0, size / time / 1000)
        for number, time in enumerate(times, 1)
    ]


def said(*every: list[Row]) -> list[str]:
    return [finding.text for finding in slow_collectives(row for some in every for row in some)]


def test_slow_ones_are_counted_with_what_they_reach() -> None:
    (finding,) = slow_collectives(rows("0-3", [100, 101, 99, 400, 300, 102]))
    assert finding.text == (
        "2 of 6 large collectives of ranks 0-3 are slow: 10 GB/s on the bus where the best of the same size (4.00 MiB) "
        "have more than twice that"
    )
    assert finding.evidence["lost_ns"] == (400 + 300 - 2 * 99) * 1000


def test_of_several_groups_the_one_that_loses_most_is_named() -> None:
    (text,) = said(rows("0,2", [100] * 5 + [300]), rows("1,3", [100] * 5 + [900]), rows("4,5", [100] * 6))
    assert text.startswith("1 of 6 large collectives of ranks 1,3 are slow: ")
    assert text.endswith("; so are those of 1 more group")


def test_nothing_is_said_of_small_or_rare_ones_and_of_usual_differences() -> None:
    assert said(rows("0-3", [10, 10, 10, 10, 90], MIB - 1)) == []
    assert said(rows("0-3", [100, 100, 100, 400])) == []
    assert said(rows("0-3", [100, 100, 100, 100, 200])) == []
    assert said(rows("0-3", [100] * 4), rows("0-3", [400] * 4, 16 * MIB)) == []  # sizes do not compare
