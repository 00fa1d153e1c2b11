"""Collectives are slow beside others of their kernel, group and size; small and rare ones compare with nothing."""

from __future__ import annotations

from rocpd.summary.communication.slow import SizedCollective, comparable, slow_collectives, slow_groups

MIB = 1 << 20


def sized(group: str, times: list[int], size: int = 4 * MIB) -> list[SizedCollective]:
    """Collectives that take so long [us] and move their size at that rate."""
    return [SizedCollective("all", group, size, time * 1000, size / time / 1000) for time in times]


def said(*every: list[SizedCollective]) -> list[str]:
    return [finding.text for finding in slow_collectives(each for some in every for each in some)]


def test_slow_ones_are_counted_with_what_they_reach() -> None:
    (finding,) = slow_collectives(sized("0-3", [100, 101, 99, 400, 300, 102]))
    assert finding.text == (
        "2 of 6 large collectives of ranks 0-3 are slow: 10 GB/s on the bus where the best of the same size (4.00 MiB) "
        "have more than twice that"
    )
    assert finding.evidence["lost_ns"] == (400 + 300 - 2 * 99) * 1000


def test_of_several_groups_the_one_that_loses_most_is_named() -> None:
    (text,) = said(sized("0,2", [100] * 5 + [300]), sized("1,3", [100] * 5 + [900]), sized("4,5", [100] * 6))
    assert text.startswith("1 of 6 large collectives of ranks 1,3 are slow: ")
    assert text.endswith("; so are those of 1 more group")


def test_it_is_known_in_which_steps_they_are_slow_where_all_have_equally_many() -> None:
    times = [100, 100, 100, 400, 100, 100, 400, 100]
    numbered = [each._replace(number=3 * at + 1) for at, each in enumerate(sized("0-3", times))]
    (group,) = slow_groups(comparable(numbered))
    assert [group.periods(count) for count in (4, 8, 3, 0)] == [[1, 3], [3, 6], [], []]


def test_nothing_is_said_of_small_or_rare_ones_and_of_usual_differences() -> None:
    assert said(sized("0-3", [10, 10, 10, 10, 90], MIB - 1)) == []
    assert said(sized("0-3", [100, 100, 100, 400])) == []
    assert said(sized("0-3", [100, 100, 100, 100, 200])) == []
    assert said(sized("0-3", [100] * 4), sized("0-3", [400] * 4, 16 * MIB)) == []  # sizes do not compare
