"""Which communication kernels belong together, worked out by hand for jobs with groups of ranks."""

from __future__ import annotations

import pytest

import rocpd
from rocpd.summary.communication.ranks import ranks
from rocpd.summary.reading import Reading, tables_alone
from tests.conftest import OpenJob
from tests.members import NCCL, Member
from tests.summary.cells import cells

LOST = "collectives: {} of {} communication kernels could not be matched with those of others ({})"
UNCLEAR = "{}: which ranks end them together is not clear"
ALONE = "{}: no other rank runs as many"


def groups(session: rocpd.Session) -> list[tuple[object, ...]]:
    return sorted(cells(session, "collectives", "group number straggler wait_ns"))


def test_a_communicator_that_all_ranks_know(open_job: OpenJob) -> None:
    """Pairs 0, 1 and 2, 3 do equally much at the same time; by number alone all four would be one collective."""
    session = open_job(
        Member(0).collective(100, 150, "east").collective(200, 250, "east"),
        Member(1).collective(120, 150, "east").collective(210, 250, "east"),
        Member(2).collective(101, 151, "west").collective(230, 251, "west"),
        Member(3).collective(141, 151, "west").collective(201, 251, "west"),
    )
    assert groups(session) == [("0-1", 1, 1, 20), ("0-1", 2, 1, 10), ("2-3", 1, 3, 40), ("2-3", 2, 2, 29)]
    assert session.notes == []


@pytest.mark.parametrize("communicator", [None, "0x7f01"], ids=["untraced", "address"])
def test_disjoint_groups_are_told_apart_by_time(communicator: str | None, open_job: OpenJob) -> None:
    """Equal numbers, but the pairs run one after the other. The same address stands for different communicators."""
    pairs = [(0, 0), (0, 20), (1_000_000, 0), (1_000_000, 40)]
    ranks = [
        Member(n).collective(100 + at + late, 150 + at, communicator).collective(300 + at, 350 + at, communicator)
        for n, (at, late) in enumerate(pairs)
    ]
    session = open_job(*ranks)
    assert groups(session) == [("0-1", 1, 1, 20), ("0-1", 2, None, 0), ("2-3", 1, 3, 40), ("2-3", 2, None, 0)]


def test_disjoint_groups_are_told_apart_by_number(open_job: OpenJob) -> None:
    """Ranks 0 and 2 run two, ranks 1 and 3 one."""
    ranks = [Member(n).collective(100, 150) for n in range(4)]
    for n in (0, 2):
        ranks[n].collective(300, 350 + n)
    session = open_job(*ranks)
    assert groups(session) == [("0,2", 1, None, 0), ("0,2", 2, None, 0), ("1,3", 1, None, 0)]


def test_overlapping_groups(open_job: OpenJob) -> None:
    """Tensor groups 0, 1 and 2, 3 on one stream, data groups 0, 2 and 1, 3 on another: each rank is in two."""
    ranks = []
    for n in range(4):
        pair, half = 1_000_000 * (n // 2), 1_000_000 * (n % 2)
        member = Member(n).collective(100 + pair + n, 200 + pair, stream=1).collective(300 + pair, 400 + pair, stream=1)
        ranks.append(member.collective(5_000_000 + half + 10 * n, 5_000_100 + half, stream=2))
    session = open_job(*ranks)
    assert groups(session) == [
        ("0,2", 1, 2, 20),
        ("0-1", 1, None, 1),
        ("0-1", 2, None, 0),
        ("1,3", 1, 3, 20),
        ("2-3", 1, None, 1),
        ("2-3", 2, None, 0),
    ]
    assert not any("could not be matched" in note for note in session.notes)


def test_overlapping_groups_of_equal_numbers(open_job: OpenJob) -> None:
    """Which communicator is which says the order in which a rank begins with them."""
    ranks = []
    for n in range(4):
        pair, half = 1_000_000 * (n // 2), 1_000_000 * (n % 2)
        first = Member(n).collective(100 + pair, 200 + pair, f"0x{n}1")
        ranks.append(first.collective(5_000_000 + half, 5_000_100 + half, f"0x{n}2"))
    assert [group for group, *_ in groups(open_job(*ranks))] == ["0,2", "0-1", "1,3", "2-3"]


def test_what_cannot_be_told_apart_is_not_mixed(open_job: OpenJob) -> None:
    """Pairs in step on one clock: four ranks where a communicator has two. Nothing is matched, and it is said."""
    ranks = [Member(n).init("0x1", 2).collective(100, 150, "0x1") for n in range(4)]
    session = open_job(*ranks)
    with pytest.raises(rocpd.RocpdError):
        cells(session, "collectives", "group")
    assert LOST.format(4, 4, UNCLEAR.format(4)) in session.notes


def test_what_is_taken_for_a_group_is_told(open_job: OpenJob) -> None:
    """The same pairs without communicators: nothing shows that they are two groups, so the user is told of one."""
    session = open_job(*(Member(n).collective(100, 150) for n in range(4)))
    assert [group for group, *_ in groups(session)] == ["0-3"]
    reported = "collectives: communicators unknown; groups run equally often at the same time: 0-3"
    assert session.notes == [reported]


def test_a_group_that_not_all_belong_to_is_not_mixed(open_job: OpenJob) -> None:
    """0 runs with 1 and 1 with 2, but 0 not with 2: that is no collective."""
    session = open_job(*(Member(n).collective(100 + 60_000 * n, 90_100 + 60_000 * n) for n in range(3)))
    with pytest.raises(rocpd.RocpdError):
        cells(session, "collectives", "group")
    assert LOST.format(3, 3, UNCLEAR.format(3)) in session.notes


def test_a_rank_that_lost_some(open_job: OpenJob) -> None:
    session = open_job(
        Member(0).collective(100, 150).collective(300, 350),
        Member(1).collective(120, 150).collective(300, 350),
        Member(2).collective(310, 350),
    )
    assert groups(session) == [("0-1", 1, 1, 20), ("0-1", 2, None, 0)]
    assert LOST.format(1, 5, ALONE.format(1)) in session.notes


def test_clocks_that_do_not_compare(open_job: OpenJob) -> None:
    """On two machines equal numbers are all there is, unless one of them shows several groups."""
    apart = [Member(n, host=f"n{n}").collective(100 + 10**9 * n, 150 + 10**9 * n) for n in range(3)]
    assert [group for group, *_ in groups(open_job(*apart))] == ["0-2"]
    twice = [Member(n, host=f"n{n // 2}").collective(100 + 10**6 * (n % 2), 150 + 10**6 * (n % 2)) for n in range(4)]
    session = open_job(*twice)
    with pytest.raises(rocpd.RocpdError):
        cells(session, "collectives", "group")
    assert LOST.format(4, 4, UNCLEAR.format(4)) in session.notes


def test_a_group_call_launches_at_its_end(open_job: OpenJob) -> None:
    """Both calls of the group name the communicator of the kernel that its end launches."""
    ranks = []
    for n, name in enumerate(("east", "west", "east", "west")):
        trace = Member(n).region("ncclGroupStart", 10, 12, category="RCCL_API")
        trace.region("ncclAllReduce", 13, 15, category="RCCL_API").arg("comm", name)
        trace.region("ncclAllReduce", 16, 18, category="RCCL_API").arg("comm", name)
        trace.region("ncclGroupEnd", 20, 40, category="RCCL_API").region("hipLaunchKernel", 22, 30, stack=7)
        ranks.append(trace.kernel(NCCL, 50, 60 + n, stack=7))
    assert [group for group, *_ in groups(open_job(*ranks))] == ["0,2", "1,3"]


def test_the_innermost_call_launches(open_job: OpenJob) -> None:
    """A wrapper that started before the RCCL call has the stack id of the launch inside it."""
    ranks = []
    for n, name in enumerate(("east", "west", "east", "west")):
        trace = Member(n).region("wrapper", 10, 50, stack=7).region("ncclAllReduce", 20, 40, category="RCCL_API")
        trace.arg("comm", name).region("hipLaunchKernel", 22, 30, stack=7)
        ranks.append(trace.kernel(NCCL, 50, 60 + n, stack=7))
    assert [group for group, *_ in groups(open_job(*ranks))] == ["0,2", "1,3"]


def test_a_window_does_not_shift_numbers(open_job: OpenJob) -> None:
    """The window begins inside the second collective of rank 0 and before that of rank 1, which came last to it."""
    session = open_job(
        Member(0).collective(100, 150).collective(200, 290).collective(300, 390),
        Member(1).collective(100, 150).collective(280, 290).collective(310, 390),
    )
    session = session.within(rocpd.Window(260, 400, inclusive=False))
    assert cells(session, "collectives", "number ranks straggler wait_ns") == [(2, 2, 1, 80), (3, 2, 1, 10)]


def test_a_member_outside_the_window_is_still_the_one_that_came_last(open_job: OpenJob) -> None:
    """Rank 2 starts when the window has ended: without it rank 1 would be the last. The collective is not of it."""
    ranks = [Member(n).collective(100, 150).collective(200 + 40 * n, 300) for n in range(3)]
    session = open_job(*ranks)
    for clip in (False, True):
        assert cells(session.within(rocpd.Window(90, 270, clip=clip)), "collectives", "number") == [1]
        late = cells(session.within(rocpd.Window(270, 310, clip=clip)), "collectives", "number ranks straggler wait_ns")
        assert late == [(2, 3, 2, 120)]


def test_who_waits_for_whom_is_found_where_a_table_shows_it(open_job: OpenJob) -> None:
    session = open_job(*(Member(n).collective(100 + n, 150) for n in range(2)))
    pairs = {"stragglers", "waits"}

    def told(*wanted: str) -> set[str]:
        return {table.name for table in tables_alone(ranks(Reading(session, wanted=frozenset(wanted))))}

    assert told("waits") - told("steps") == pairs
