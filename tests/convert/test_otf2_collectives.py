"""otf2: communicators and collectives, as the wheel's reader and Debian's otf2-print read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions, Split
from rocpd.simulator import JobOptions, simulate
from tests.conftest import OpenJob
from tests.convert.test_otf2 import Printed, otf2_print
from tests.members import NCCL, Member

otf2 = pytest.importorskip("otf2", reason="the otf2 wheel is not installed")

__all__ = ["otf2_print"]


class Taken(NamedTuple):
    """A collective on one location: times, communicator, operation, root, bytes given and got."""

    rank: int
    start: int
    end: int
    communicator: str
    operation: str
    root: int | None
    sent: int
    received: int


def write(session: rocpd.Session, folder: Path, **options: object) -> list[Path]:
    return list(FORMATS["otf2"].write(session, ConvertOptions(folder, **options)))  # type: ignore[arg-type]


def rank_of(location: Any) -> int:
    return int(re.match(r"rank (\d+) ", location.name)[1])  # type: ignore[index]


def communicators(path: Path) -> dict[str, list[int]]:
    """Return the ranks of each communicator."""
    with otf2.reader.open(str(path)) as trace:
        return {comm.name: [rank_of(member) for member in comm.group.members] for comm in trace.definitions.comms}


def collectives(path: Path) -> list[Taken]:
    """Return what was written; check that times go up, that each begin has its end, and that locations are members."""
    taken = []
    last: dict[Any, int] = {}
    begun: dict[Any, int] = {}
    with otf2.reader.open(str(path)) as trace:
        for location, event in trace.events:
            assert event.time >= last.get(location, 0)
            last[location] = event.time
            if isinstance(event, otf2.events.MpiCollectiveBegin):
                assert location not in begun
                begun[location] = event.time
            elif isinstance(event, otf2.events.MpiCollectiveEnd):
                assert location in event.communicator.group.members
                operation = str(event.collective_op).removeprefix("CollectiveOp.")
                root = None if event.root == 2**32 - 1 else event.root
                name, times = event.communicator.name, (begun.pop(location), event.time)
                sizes = event.size_sent, event.size_received
                taken.append(Taken(rank_of(location), *times, name, operation, root, *sizes))
    assert not begun
    return sorted(taken)


def test_a_communicator_that_all_ranks_know(open_job: OpenJob, tmp_path: Path) -> None:
    """Pairs 0, 1 and 2, 3 do equally much at the same time; the second calls don't say of which type their count is."""
    moved = {"count": "100", "datatype": "ncclFloat32"}
    session = open_job(
        Member(0).collective(100, 150, "east", arguments=moved).collective(200, 250, "east"),
        Member(1).collective(120, 150, "east", arguments=moved).collective(210, 250, "east"),
        Member(2).collective(101, 151, "west", arguments=moved).collective(230, 251, "west"),
        Member(3).collective(141, 151, "west", arguments=moved).collective(201, 251, "west"),
    )
    (path,) = write(session, tmp_path)
    assert communicators(path) == {"east": [0, 1], "west": [2, 3]}
    assert collectives(path) == [
        Taken(0, 100, 150, "east", "ALLREDUCE", None, 400, 400),
        Taken(0, 200, 250, "east", "ALLREDUCE", None, 0, 0),
        Taken(1, 120, 150, "east", "ALLREDUCE", None, 400, 400),
        Taken(1, 210, 250, "east", "ALLREDUCE", None, 0, 0),
        Taken(2, 101, 151, "west", "ALLREDUCE", None, 400, 400),
        Taken(2, 230, 251, "west", "ALLREDUCE", None, 0, 0),
        Taken(3, 141, 151, "west", "ALLREDUCE", None, 400, 400),
        Taken(3, 201, 251, "west", "ALLREDUCE", None, 0, 0),
    ]


@pytest.mark.parametrize(
    ("call", "arguments", "operation", "sizes"),
    [
        ("ncclAllReduce", {"count": "3", "datatype": "ncclBfloat16"}, "ALLREDUCE", [(6, 6), (6, 6)]),
        ("ncclAllGather", {"sendcount": "3", "datatype": "8"}, "ALLGATHER", [(24, 48), (24, 48)]),
        ("ncclReduceScatter", {"recvcount": "3", "datatype": "ncclHalf"}, "REDUCE_SCATTER_BLOCK", [(12, 6), (12, 6)]),
        ("ncclBroadcast", {"count": "3", "datatype": "ncclInt8", "root": "1"}, "BCAST", [(0, 3), (3, 0)]),
        ("ncclReduce", {"count": "3", "datatype": "ncclInt8", "root": "1"}, "REDUCE", [(3, 0), (3, 3)]),
        ("ncclAllToAll", {"count": "3", "datatype": "ncclFloat"}, "ALLTOALL", [(24, 24), (24, 24)]),
        ("ncclAllReduce", {"count": "many", "datatype": "ncclFloat"}, "ALLREDUCE", [(0, 0), (0, 0)]),
        ("ncclAllReduce", {"count": "3", "datatype": "ncclNew"}, "ALLREDUCE", [(0, 0), (0, 0)]),
    ],
)
def test_sizes_are_those_of_the_call(
    call: str, arguments: dict[str, str], operation: str, sizes: list[Any], open_job: OpenJob, tmp_path: Path
) -> None:
    session = open_job(*(Member(n).collective(100, 150, "all", call=call, arguments=arguments) for n in range(2)))
    taken = collectives(write(session, tmp_path)[0])
    assert [(each.sent, each.received) for each in taken] == sizes
    root = int(arguments["root"]) if "root" in arguments else None
    assert {(each.operation, each.root) for each in taken} == {(operation, root)}


def test_sends_are_no_collective(open_job: OpenJob, tmp_path: Path) -> None:
    """Neither are they between collectives of the same communicator."""
    ranks = [
        Member(n).collective(100, 150, "all").collective(200, 250, "all", call="ncclSend").collective(300, 350, "all")
        for n in range(2)
    ]
    taken = collectives(write(open_job(*ranks), tmp_path)[0])
    assert [(each.rank, each.start) for each in taken] == [(0, 100), (0, 300), (1, 100), (1, 300)]


def test_what_one_rank_knows_to_be_a_send_is_no_collective(open_job: OpenJob, tmp_path: Path) -> None:
    """Of the other nothing is known but the kernel, which alone would be a barrier."""
    sender = Member(0).collective(100, 150, "0x1", call="ncclSend")
    (path,) = write(open_job(sender, Member(1).kernel(NCCL, 100, 150)), tmp_path)
    assert (communicators(path), collectives(path)) == ({}, [])


def test_a_collective_lies_inside_its_kernel(open_job: OpenJob, tmp_path: Path) -> None:
    """Also where a kernel starts when the one before it ends."""
    ranks = [Member(n).collective(100, 150, "all").collective(150, 200, "all") for n in range(2)]
    (path,) = write(open_job(*ranks), tmp_path)
    with otf2.reader.open(str(path)) as trace:
        events = [type(event).__name__ for location, event in trace.events if "rank 0 · GPU 0" in location.name]
    assert events == ["Enter", "MpiCollectiveBegin", "MpiCollectiveEnd", "Leave"] * 2


def test_a_group_of_calls_is_one_collective(open_job: OpenJob, tmp_path: Path) -> None:
    ranks = []
    for n in range(2):
        trace = Member(n).region("ncclGroupStart", 10, 12, category="RCCL_API")
        for at, count in ((13, "5"), (16, "7")):
            trace.region("ncclAllReduce", at, at + 2, category="RCCL_API")
            trace.arg("comm", "all").arg("count", count).arg("datatype", "ncclFloat64")
        trace.region("ncclGroupEnd", 20, 40, category="RCCL_API").region("hipLaunchKernel", 22, 30, stack=7)
        ranks.append(trace.kernel(NCCL, 50, 60 + n, stack=7))
    taken = collectives(write(open_job(*ranks), tmp_path)[0])
    assert taken == [Taken(n, 50, 60 + n, "all", "ALLREDUCE", None, 96, 96) for n in range(2)]


def test_groups_that_are_inferred_say_so(open_job: OpenJob, tmp_path: Path) -> None:
    """The calls name addresses; what is known of kernels without calls is that they wait for each other."""
    ranks = [Member(n).collective(100, 150, f"0x{n}").kernel(NCCL, 200, 250, stream=5) for n in range(3)]
    (path,) = write(open_job(*ranks), tmp_path)
    assert communicators(path) == {"RCCL 0-2 (inferred)": [0, 1, 2]}
    assert Counter(each.operation for each in collectives(path)) == {"ALLREDUCE": 3, "BARRIER": 3}


def test_nothing_is_written_where_no_group_is_known(open_job: OpenJob, tmp_path: Path) -> None:
    alone = open_job(Member(0).collective(100, 150, "all"))
    apart = open_job(Member(0).collective(100, 150).collective(200, 250), Member(1).collective(100, 150))
    for number, session in enumerate((alone, apart)):
        (path,) = write(session, tmp_path / str(number))
        assert (communicators(path), collectives(path)) == ({}, [])
    assert apart.notes == ["collectives: 3 of 3 communication kernels could not be matched with those of others"]
    assert alone.notes == []


def test_a_window_keeps_collectives_that_all_members_are_in(open_job: OpenJob, tmp_path: Path) -> None:
    """The first is before the window on rank 1 alone; readers match the n-th of all members."""
    session = open_job(
        Member(0).collective(100, 300, "all").collective(400, 500, "all"),
        Member(1).collective(100, 150, "all").collective(450, 500, "all"),
    ).within(rocpd.Window(200, 600))
    (path,) = write(session, tmp_path)
    assert [(each.rank, each.start, each.end) for each in collectives(path)] == [(0, 400, 500), (1, 450, 500)]


def test_each_output_has_the_communicators_that_lie_in_it(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(
        *(
            Member(n, host=f"n{n // 2}").collective(100, 150, f"host {n // 2}").collective(300, 350, "all")
            for n in range(4)
        )
    )
    by_node = write(session, tmp_path, split=Split.NODE)
    assert [communicators(path) for path in by_node] == [{"host 0": [0, 1]}, {"host 1": [2, 3]}]
    assert [len(collectives(path)) for path in by_node] == [2, 2]
    assert [communicators(path) for path in write(session, tmp_path, split=Split.RANK)] == [{}] * 4


@pytest.mark.parametrize("by_queue", [False, True])
def test_a_communicator_has_one_location_per_member(by_queue: bool, open_job: OpenJob, tmp_path: Path) -> None:
    """The second collective runs on another stream, or all on one queue: the communicator is there once for each."""
    ranks = [
        Member(n).collective(100, 150, "all", 3, queue=7).collective(200, 250, "all", 4, queue=7) for n in range(2)
    ]
    (path,) = write(open_job(*ranks), tmp_path, group_by_queue=by_queue)
    with otf2.reader.open(str(path)) as trace:
        members = [(comm.name, [rank_of(each) for each in comm.group.members]) for comm in trace.definitions.comms]
    assert members == [("all", [0, 1])] * (1 if by_queue else 2)
    assert [(each.rank, each.start) for each in collectives(path)] == [(0, 100), (0, 200), (1, 100), (1, 200)]


def test_kernels_that_overlap_on_a_stream_take_turns(open_job: OpenJob, tmp_path: Path) -> None:
    """One starts before the one before it has ended, one has no length."""
    ranks = [
        Member(n).collective(100, 150, "all").collective(140, 200, "all").collective(200, 200, "all") for n in range(2)
    ]
    taken = collectives(write(open_job(*ranks), tmp_path)[0])
    assert [(each.start, each.end) for each in taken if each.rank == 0] == [(100, 150), (150, 200), (200, 200)]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=3, nodes=2, steps=2))
    with rocpd.connect(folder / "job") as written:
        yield written


def bytes_reduced(job: rocpd.Session) -> int:
    """Return the sum over the calls of the simulated job, whose data are of three types."""
    ((total,),) = job.execute(
        "SELECT SUM(C.value * CASE T.value "
        "WHEN 'ncclBfloat16' THEN 2 WHEN 'ncclFloat32' THEN 4 WHEN 'ncclFloat64' THEN 8 END) "
        "FROM rocpd_arg C JOIN rocpd_arg T ON T.guid = C.guid AND T.event_id = C.event_id AND T.name = 'datatype' "
        "WHERE C.name = 'count'"
    ).fetchall()
    return int(total)


def test_every_recorded_collective_call_is_one(job: rocpd.Session, tmp_path: Path, otf2_print: Printed) -> None:
    """Each ends on all ranks at one time, in the kernel that the call launched."""
    (path,) = write(job, tmp_path)
    calls = "SELECT rank, COUNT(*) FROM regions WHERE name = 'ncclAllReduce' GROUP BY rank"
    taken = collectives(path)
    assert dict(Counter(each.rank for each in taken)) == dict(job.execute(calls).fetchall()) != {}
    kernels = job.execute("SELECT rank, start, \"end\" FROM kernels WHERE name GLOB 'nccl*'").fetchall()
    offsets = job.alignment.offsets
    shifted = Counter((rank, start + offsets[rank], end + offsets[rank]) for rank, start, end in kernels)
    assert Counter((each.rank, each.start, each.end) for each in taken) == shifted
    assert list(communicators(path).values()) == [[0, 1, 2]]
    assert {each.operation for each in taken} == {"ALLREDUCE"}
    assert sum(each.sent for each in taken) == sum(each.received for each in taken) == bytes_reduced(job)

    printed = otf2_print(path)
    assert printed.count("MPI_COLLECTIVE_BEGIN") == printed.count("MPI_COLLECTIVE_END") == len(taken)
    definitions = otf2_print(path, "-G")
    assert len(re.findall(r"^COMM ", definitions, re.M)) == 1
    assert "PARADIGM" in definitions


def test_regions_are_in_a_group_per_category(job: rocpd.Session, tmp_path: Path) -> None:
    (path,) = write(job, tmp_path)
    with otf2.reader.open(str(path)) as trace:
        definitions = trace.definitions
        groups = {
            group.name: {region.name for region in group.members}
            for group in definitions.groups
            if group.group_type == otf2.GroupType.REGIONS
        }
        every = {region.name for region in definitions.regions}
        paradigms = {each.name: each.paradigm_class for each in definitions.paradigms}
        of_rccl = {region.paradigm for region in definitions.regions if region.name.startswith("nccl")}
    kernels = {name for (name,) in job.execute("SELECT DISTINCT name FROM kernels").fetchall()}
    assert groups["kernel_dispatch"] == kernels
    assert "ncclAllReduce" in groups["rccl_api"]
    assert set().union(*groups.values()) == every
    assert paradigms["HIP"] == otf2.ParadigmClass.ACCELERATOR
    assert of_rccl == {otf2.Paradigm.HIP}
