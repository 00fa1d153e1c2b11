"""Sends and receives are told from collectives, and put into pairs only where one partner fits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.facts.communication.collectives import listed
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import plan
from tests.conftest import OpenJob
from tests.members import Member
from tests.soak import sample
from tests.summary.cells import cells

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
PAIR = "name sender receiver is_directed transfers mean_ns sender_wait_ns receiver_wait_ns"


def test_sends_and_receives_of_two_ranks(open_job: OpenJob) -> None:
    """Rank 1 waits 40 us for rank 0, then rank 0 waits 10 us for rank 1; no collective comes of it."""
    first, second = Member(0), Member(1)
    for number in range(4):
        at = 1_000_000 * (number + 1)
        send, receive = {"peer": "1"}, {"peer": "0"}
        first.collective(at + 40_000, at + 100_000, "0xa", call="ncclSend", arguments=send)
        second.collective(at, at + 100_000, "0xb", call="ncclRecv", arguments=receive)
    session = open_job(first, second)
    kernel = "ncclDevKernel_Generic_1"
    assert cells(session, "transfers", PAIR) == [(kernel, 0, 1, 1, 4, 60_000.0, 0, 160_000)]
    assert cells(session, "communication", "class collectives time_ns wait_ns")[-2:] == [
        ("point-to-point", 4, 640_000, 160_000),
        ("unmatched", None, 0, None),
    ]
    with pytest.raises(rocpd.RocpdError):
        session.summary("collectives")


def test_the_name_of_a_kernel_says_that_it_sends_or_receives(open_job: OpenJob) -> None:
    """They overlap but end 300 to 900 us apart: no collective, in which rank 0 would be last each time."""
    first, second = Member(0), Member(1)
    for number in range(6):
        at = 1_000_000 * (number + 1)
        first.kernel(SENDRECV, at + 50_000, at + 80_000)
        second.kernel(SENDRECV, at, at + 380_000 + 100_000 * number)
    session = open_job(first, second)
    with pytest.raises(rocpd.RocpdError):
        session.summary("stragglers")
    assert any("12: no rank receives what is sent, or sends" in note for note in session.notes)


def test_kernels_that_end_far_apart_are_no_collective(open_job: OpenJob) -> None:
    """The same without a name that says so."""
    first, second = Member(0), Member(1)
    for number in range(6):
        at = 1_000_000 * (number + 1)
        first.collective(at + 50_000, at + 80_000)
        second.collective(at, at + 380_000 + 100_000 * number)
    session = open_job(first, second)
    with pytest.raises(rocpd.RocpdError):
        session.summary("stragglers")
    assert any("12: which ranks end them together is not clear" in note for note in session.notes)


@pytest.mark.parametrize("fits", ["by time", "by the name of the partner"])
def test_a_send_that_fits_two_receives_is_in_no_pair(fits: str, open_job: OpenJob) -> None:
    """Unless the partner that it names is one of them only."""
    ranks = [Member(0), Member(1), Member(2)]
    for own, rank in enumerate(ranks):
        rank.region("ncclCommInitRank", 1, 5, category="RCCL_API").arg("newcomm", "0xa").arg("nranks", "3")
        rank.arg("myrank", str(own if fits != "by time" else min(own, 1)))
    for number in range(8):
        at = 1_000_000 * (number + 1)
        ranks[0].collective(at, at + 50_000, "0xa", call="ncclSend", arguments={"peer": "1"})
        for rank in ranks[1:]:
            rank.collective(at, at + 50_000, "0xa", call="ncclRecv", arguments={"peer": "0"})
    session = open_job(*ranks)
    if fits == "by time":
        with pytest.raises(rocpd.RocpdError):
            session.summary("transfers")
        assert any("24: several partners fit equally well" in note for note in session.notes)
    else:
        assert cells(session, "transfers", "sender receiver transfers") == [(0, 1, 8)]


@pytest.mark.parametrize("nodes", [1, 4])
def test_pairs_of_a_pipeline_are_true(nodes: int, tmp_path: Path) -> None:
    options = JobOptions(tmp_path, ranks=4, nodes=nodes, pp=4, steps=6, plant="none", rccl="calls")
    with rocpd.connect(simulate(options)) as session:
        found = {(sender, receiver): count for sender, receiver, count in cells(session, "transfers", PAIRS)}
    assert found == Counter((each.sender, each.receiver) for each in plan(options).transfers())


@pytest.mark.soak
@pytest.mark.parametrize(
    "options", sample([{"ranks": 2, "nodes": 2}, {"ranks": 4, "noise": 0.05}, {"ranks": 4, "nodes": 2}], 2)
)
def test_transfers_under_a_name_that_says_nothing_are_no_collectives(options: dict[str, Any], tmp_path: Path) -> None:
    """No calls are recorded. A pipeline of two stages; a rank that waits for the other stage is held up by nobody."""
    job = JobOptions(tmp_path, pp=2, steps=12, plant="none", rccl="none", seed=31, **options)
    with rocpd.connect(simulate(job)) as session:
        pairs = {frozenset(pair[:2]): pair[2] for pair in cells(session, "transfers", PAIRS)}
        groups = Counter(cells(session, "collectives", "group"))
        (finding, *_) = session.summary("stragglers").findings
    assert pairs == Counter(frozenset((each.sender, each.receiver)) for each in plan(job).transfers())
    assert groups == Counter(listed(each.group.members) for each in plan(job).collectives())
    assert finding.verdict != "problem"


PAIRS = "sender receiver transfers"
