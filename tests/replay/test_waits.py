"""What the host and operations wait for in small jobs worked out by hand, and who is to blame for them."""

from __future__ import annotations

import pytest

from rocpd.replay.causes import CauseKind
from rocpd.replay.job import read_job
from rocpd.replay.points import Edge
from rocpd.replay.whatif import read_replays
from tests.build import GPU, TraceBuilder
from tests.conftest import OpenJob
from tests.members import Member

US = 1_000
STEPS = 6


def _launched(rank: TraceBuilder, name: str, call: int, start: int, end: int, stream: int = 1) -> None:
    """Add a kernel with the call of 4 us that launches it."""
    rank.region("hipLaunchKernel", call, call + 4 * US, stack=call)
    rank.kernel(name, start, end, stack=call, stream=stream)


def _fetched_ahead(rank: TraceBuilder, layers: int) -> TraceBuilder:
    """Weights of the next layer are fetched, for 100 us, before the one that waits for its own computes for 50 us."""
    fetched, call = 100 * US, 1_000
    _launched(rank, "fetch", call, fetched, fetched + 100 * US, stream=2)
    for _ in range(layers):
        fetched += 100 * US
        _launched(rank, "fetch", call + 5 * US, fetched, fetched + 99 * US, stream=2)
        _launched(rank, "layer", call + 10 * US, fetched + US, fetched + 51 * US)
        call += 10 * US
    return rank


def test_a_layer_waits_for_its_own_weights_not_for_those_fetched_ahead(open_job: OpenJob) -> None:
    job = read_job(open_job(_fetched_ahead(TraceBuilder(0), 20)))
    edges, names = job.edges.every(), [job.names[name] for name in job.points.name.tolist()]
    waits = [
        (source, target)
        for source, target, kind in zip(edges.source.tolist(), edges.target.tolist(), edges.kind.tolist(), strict=True)
        if kind == Edge.BETWEEN_STREAMS and names[target] == "layer"
    ]
    assert len(waits) == 20
    for source, target in waits:
        assert names[source] == "fetch"
        begins = job.points.time[target] - job.points.work[target]
        assert 0 < begins - job.points.time[source] <= 2 * US


def test_a_job_gets_faster_with_what_it_fetches_ahead(open_job: OpenJob) -> None:
    """As fast as fetching is: 20 times 100 us, then 50 us of the last layer."""
    answer = open_job(_fetched_ahead(TraceBuilder(0), 20)).whatif(scale=["kernel:fetch=0.5"])
    assert answer.together.gain == pytest.approx(0.47, abs=0.03)


def _steps(rank: Member, call: int, pause: int = 0) -> Member:
    """Add steps of 6 small kernels, each launched by a call that takes so long, and an all-reduce.

    All ranks leave a step together, 500 us after it begins; the host notices 12 us later. It pauses before its copy.
    """
    for step in range(STEPS):
        begin = time = 1_000 * US + 600 * US * step
        rank.region("roctxRangePushA", begin, begin + 560 * US, tid=1, message=f"step {step}")
        time += pause
        rank.region("hipMemcpy", time, time + 30 * US, stack=time)
        rank.copy(time + 2 * US, time + 28 * US, stack=time)
        time += 32 * US
        for _ in range(6):
            rank.region("hipLaunchKernel", time, time + call, stack=time)
            time += call + 2 * US
            rank.kernel("small", time, time + 3 * US, stack=time - call - 2 * US)
        rank.collective(time + 5 * US, begin + 500 * US, "world")
        rank.region("hipStreamSynchronize", time + 8 * US, begin + 512 * US)
    return rank


def test_a_host_that_is_slow_in_all_launches_compares_with_others(open_job: OpenJob) -> None:
    """Its calls are no waits, long as they are, and it is late for them, not for the call that waits for the GPU."""
    ranks = [_steps(Member(number), 50 * US if number == 2 else 5 * US) for number in range(4)]
    replays = read_replays(open_job(*ranks))
    (cause,) = replays.blame.causes
    assert (cause.kind, cause.ranks) == (CauseKind.RANK, (2,))
    assert cause.takes["host"] == pytest.approx(6 * 45 * US, rel=0.05)
    assert cause.largest[0] == "host work before hipLaunchKernel"


def test_a_pause_that_begins_with_the_step_lies_in_it(open_job: OpenJob) -> None:
    """Others call in the very ns in which their step begins: they do not pause there."""
    ranks = [_steps(Member(number), 5 * US, 200 * US if number == 1 else 0) for number in range(4)]
    (cause,) = read_replays(open_job(*ranks)).blame.causes
    assert cause.ranks == (1,)
    assert cause.takes["host"] == pytest.approx(200 * US, rel=0.05)
    assert cause.largest[0] == "host work before hipMemcpy"


SIZE, ROUNDS = 4, 6


def _exchanged(rank: Member, number: int, call: int, start: int, end: int) -> None:
    """Add a kernel that sends to the next rank of a ring and receives from the one before, with its calls."""
    rank.region("ncclGroupStart", call, call + US, category="RCCL_API")
    for at, (name, peer) in enumerate((("ncclSend", number + 1), ("ncclRecv", number - 1)), 1):
        rank.region(name, call + 2 * US * at, call + 2 * US * at + US, category="RCCL_API")
        rank.arg("comm", "0x7f00").arg("peer", str(peer % SIZE)).arg("count", "4096").arg("datatype", "ncclFloat")
    rank.region("ncclGroupEnd", call + 8 * US, call + 14 * US, category="RCCL_API")
    rank.region("hipExtLaunchKernel", call + 9 * US, call + 13 * US, stack=call)
    rank.kernel("ncclDevKernel_SendRecv", start, end, stack=call, stream=2)


def _ring(slow: int) -> list[Member]:
    """Return ranks that compute for 60 us and exchange, six times a step; from 2 to 3 that takes so long, else 50 us.

    All is launched as a step begins. A kernel ends when both of its transfers are done, each of which begins when both
    ranks have come.
    """
    ranks = [Member(number) for number in range(SIZE)]
    for number, rank in enumerate(ranks):
        rank.region("ncclCommInitRank", 10, 20, category="RCCL_API")
        rank.arg("comm", "0x7f00").arg("nranks", str(SIZE)).arg("myrank", str(number))
    begin = [1_000 * US] * SIZE
    for step in range(STEPS):
        time = [each + 30 * US for each in begin]
        for turn in range(ROUNDS):
            for number, rank in enumerate(ranks):
                call = begin[number] + (5 + 25 * turn) * US
                _launched(rank, "attention", call, time[number] + US, time[number] + 61 * US)
            came = [each + 62 * US for each in time]
            takes = [slow if number == 2 else 50 * US for number in range(SIZE)]  # from it to the next one
            done = [max(came[n], came[(n + 1) % SIZE]) + takes[n] for n in range(SIZE)]
            time = [max(done[number], done[number - 1]) for number in range(SIZE)]
            for number, rank in enumerate(ranks):
                _exchanged(rank, number, begin[number] + (10 + 25 * turn) * US, came[number], time[number])
        for number, rank in enumerate(ranks):
            rank.region("hipDeviceSynchronize", begin[number] + 25 * ROUNDS * US, time[number] + 5 * US)
            rank.region("roctxRangePushA", begin[number], time[number] + 10 * US, tid=1, message=f"step {step}")
        begin = [each + 11 * US for each in time]
    return ranks


def test_ranks_of_a_ring_wait_for_both_neighbours(open_job: OpenJob) -> None:
    session = open_job(*_ring(50 * US))
    rows = session.summary("transfers")
    where = [rows.columns.index(name) for name in ("sender", "receiver", "is_directed", "transfers")]
    found = sorted(tuple(row[at] for at in where) for row in rows)
    assert found == [(0, 1, 1, 36), (1, 2, 1, 36), (2, 3, 1, 36), (3, 0, 1, 36)]
    parts = session.summary("communication")
    columns = parts.columns
    kernels = {row[columns.index("class")]: row[columns.index("kernels")] for row in parts}
    assert (kernels["point-to-point"], kernels["unmatched"]) == (4 * 36, 0)
    assert read_job(session).matched == 1


def test_a_slow_link_of_a_ring_is_named_at_what_it_costs(open_job: OpenJob) -> None:
    """Each round takes 100 us longer: the ranks at its ends wait for it, and the others for these."""
    replays = read_replays(open_job(*_ring(150 * US)))
    (cause,) = replays.blame.causes
    assert (cause.kind, cause.ranks) == (CauseKind.LINK, (2, 3))
    assert cause.cost == pytest.approx(ROUNDS * 100 * US, rel=0.1)


def test_of_the_links_between_gpus_of_the_same_ranks_the_slow_one_is_named(open_job: OpenJob) -> None:
    """Each rank has two GPUs, each of which communicates with its like."""
    ranks = []
    for number in range(4):
        rank = Member(number)
        for step in range(STEPS):
            begin, late = (1_000 + 600 * step) * US, (step * (number + 3)) % 5 * US
            for agent, takes in ((GPU, 100), (GPU + 1, 300)):
                came, gone = begin + (100 + 10 * agent) * US + late, begin + (120 + takes) * US
                rank.kernel("gemm", begin + 10 * US, came - US, agent=agent, stream=agent, queue=agent)
                rank.collective(came, gone, f"of {agent}", agent=agent, stream=agent, queue=agent)
            rank.region("hipDeviceSynchronize", begin + 150 * US, begin + 425 * US)
            rank.region("roctxRangePushA", begin, begin + 430 * US, tid=1, message=f"step {step}")
        ranks.append(rank)
    job = open_job(*ranks)
    (cause,) = read_replays(job).blame.causes
    assert (cause.kind, cause.ranks) == (CauseKind.LINK, (0, 1, 2, 3))
    assert cause.cost == pytest.approx(200 * US, rel=0.1)
    answer = job.whatif(without=["link:0-3"]).together
    assert answer.gain * answer.step_ns == pytest.approx(cause.cost, rel=0.01)
