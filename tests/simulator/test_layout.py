"""Groups of ranks: a partition each, in Megatron's order, with the communicators that files name."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import apsw
import numpy as np
import pytest

from rocpd.base import UsageError
from rocpd.simulator import JobOptions, Rccl, plan, simulate
from rocpd.simulator.layout import GroupKind, Layout
from tests.simulator.jobs import read, rows

SHAPES = [(4, 1, 1), (1, 4, 1), (1, 1, 4), (2, 2, 1), (2, 1, 2), (1, 2, 2), (3, 2, 4)]


@pytest.mark.parametrize(("dp", "tp", "pp", "ep"), [*((*shape, 1) for shape in SHAPES), (4, 1, 1, 4), (6, 2, 2, 3)])
def test_each_kind_of_group_is_a_partition(dp: int, tp: int, pp: int, ep: int) -> None:
    layout = Layout(dp, tp, pp, ep)
    for kind in layout.communicators():
        members = layout.members(kind)
        assert members.shape[1] == layout.size(kind)
        assert sorted(members.ravel().tolist()) == list(range(layout.ranks))
        assert all(list(row) == sorted(row) for row in members.tolist())


@pytest.mark.parametrize(("dp", "tp", "pp"), SHAPES)
def test_two_groups_share_at_most_one_rank(dp: int, tp: int, pp: int) -> None:
    divided = [group for group in Layout(dp, tp, pp).groups() if group.kind is not GroupKind.WORLD]
    for a in divided:
        for b in divided:
            assert a is b or len(set(a.members) & set(b.members)) <= 1


def test_ranks_count_by_tensor_then_data_then_pipeline() -> None:
    layout = Layout(dp=2, tp=2, pp=2)
    expected = {
        GroupKind.TENSOR: [(0, 1), (2, 3), (4, 5), (6, 7)],
        GroupKind.DATA: [(0, 2), (1, 3), (4, 6), (5, 7)],
        GroupKind.PIPELINE: [(0, 4), (1, 5), (2, 6), (3, 7)],
        GroupKind.WORLD: [tuple(range(8))],
    }
    for kind, members in expected.items():
        assert [group.members for group in layout.groups() if group.kind is kind] == members
    assert [layout.stage(rank) for rank in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_experts_are_shared_by_neighbours_that_share_the_data() -> None:
    layout = Layout(dp=4, tp=2, pp=1, ep=2)
    groups = [group.members for group in layout.groups() if group.kind is GroupKind.EXPERT]
    assert groups == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert GroupKind.EXPERT not in Layout(dp=4, tp=2).communicators()


def test_data_parallel_jobs_have_one_communicator() -> None:
    assert Layout(4).communicators() == (GroupKind.WORLD,)
    assert Layout(1).groups() == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tp": 3}, "4 ranks: not divisible into tp 3 x pp 1"),
        ({"tp": 2, "pp": 4}, "not divisible"),
        ({"tp": 0}, "tp: 0 is less than 1"),
        ({"tp": 2, "ep": 4}, "4 ranks: not divisible into tp 2 x pp 1 x ep 4"),
        ({"pp": 2, "profile": "hpc"}, "hpc is data-parallel only"),
        ({"ep": 2, "profile": "gemm"}, "gemm is data-parallel only"),
        ({"idle_ranks": -1}, "idle ranks: -1 is less than 0"),
        ({"rccl": "all"}, "rccl all: unknown"),
        ({"noise": 50.0}, "noise: 50.0 is more than 20"),
        ({"noise_memory": 1.0}, "noise memory: 1.0 is more than 0.99"),
        ({"jitter": -1.0}, "jitter: -1.0 is less than 0"),
        ({"drift": float("nan")}, "drift: nan"),
        ({"start_spread": -0.5}, "start spread: -0.5"),
    ],
)
def test_impossible_options_are_refused(change: dict[str, object], words: str, tmp_path: Path) -> None:
    options = dataclasses.replace(JobOptions(tmp_path / "new"), **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=words) as caught:
        plan(options)
    assert caught.value.hint


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[JobOptions, list[apsw.Connection]]:
    """Eight ranks, two ways each, and a process without GPU work."""
    options = JobOptions(tmp_path_factory.mktemp("job"), ranks=8, nodes=2, tp=2, pp=2, idle_ranks=1, steps=2)
    return options, [read(path) for path in simulate(options)]


def test_files_of_a_layout_are_valid(job: tuple[JobOptions, list[apsw.Connection]]) -> None:
    for connection in job[1]:
        assert connection.pragma("integrity_check") == "ok"
        assert rows(connection, "PRAGMA foreign_key_check") == []
        assert rows(connection, 'SELECT COUNT(*) FROM regions WHERE "end" < start') == [(0,)]
        badly = """SELECT COUNT(*) FROM kernels K LEFT JOIN regions R USING (stack_id)
            WHERE NOT (K.start >= R."end" AND K."end" > K.start) IS TRUE"""
        assert rows(connection, badly) == [(0,)]
        for (stream,) in rows(connection, "SELECT DISTINCT stream_id FROM kernels"):
            spans = rows(connection, f'SELECT start, "end" FROM kernels WHERE stream_id = {stream} ORDER BY start')
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_files_have_the_kernels_of_the_plan(job: tuple[JobOptions, list[apsw.Connection]]) -> None:
    """Every kernel of communication starts and ends when the plan says, on the clock of its node."""
    options, connections = job
    facts = plan(options)
    truth: dict[int, list[tuple[int, int]]] = {rank.number: [] for rank in facts.ranks}
    for collective in facts.collectives():
        for member, start, end in zip(collective.group.members, collective.starts, collective.ends, strict=True):
            truth[member].append((start, end))
    for transfer in facts.transfers():
        truth[transfer.sender].append(transfer.sent)
        truth[transfer.receiver].append(transfer.received)
    for rank, connection in zip(facts.ranks, connections, strict=True):
        times = np.array(sorted(truth[rank.number]), dtype=np.int64).reshape(-1, 2)
        found = rows(connection, """SELECT start, "end" FROM kernels WHERE name GLOB 'nccl*' ORDER BY start, "end" """)
        assert found == [tuple(row) for row in facts.nodes[rank.node].local(times).tolist()]


def test_process_without_gpu_work(job: tuple[JobOptions, list[apsw.Connection]]) -> None:
    options, connections = job
    idle = plan(options).ranks[-1]
    assert idle.idle
    assert idle.number == len(connections) - 1 == 8
    tables = ("kernels", "memory_copies", "regions")
    kernels, copies, regions = (rows(connections[-1], f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables)
    assert (kernels, copies) == (0, 0)
    assert regions > 0
    environments = [rows(connection, "SELECT environment FROM rocpd_info_process") for connection in connections]
    assert {json.loads(text)["WORLD_SIZE"] for ((text,),) in environments} == {"9"}


CALLS = """SELECT R.name, A.name, A.value FROM regions R JOIN rocpd_arg A USING (event_id)
    WHERE R.category = 'RCCL_API' AND A.name IN ('comm', 'nranks') ORDER BY R.start, A.position"""


@pytest.mark.parametrize("rccl", Rccl)
def test_calls_of_rccl(rccl: Rccl, tmp_path: Path) -> None:
    options = JobOptions(tmp_path, ranks=4, tp=2, pp=2, steps=1, rccl=rccl)
    for rank, path in enumerate(simulate(options)):
        connection = read(path)
        peers = "SELECT DISTINCT A.value FROM regions R JOIN rocpd_arg A USING (event_id) WHERE A.name = 'peer'"
        assert rows(connection, peers) == ([] if rccl is Rccl.NONE else [(str(1 - rank // 2),)])
        kernels = rows(connection, "SELECT COUNT(*) FROM kernels WHERE name GLOB 'nccl*'")[0][0]
        calls = rows(connection, "SELECT COUNT(*) FROM regions WHERE name GLOB 'nccl*'")[0][0]
        assert kernels > 20
        assert (calls > kernels) == (rccl is not Rccl.NONE)
        parents = """SELECT COUNT(*) FROM regions C LEFT JOIN regions P ON P.stack_id = C.parent_stack_id
            WHERE C.parent_stack_id AND NOT (P.start <= C.start AND C.end <= P.end AND P.tid = C.tid) IS TRUE"""
        assert rows(connection, parents) == [(0,)]
        alone = "SELECT COUNT(*) FROM regions WHERE name = 'hipExtLaunchKernel' AND NOT parent_stack_id"
        assert rows(connection, alone) == [(0,)]  # what is around a call that is not recorded is around what it calls
        said = rows(connection, CALLS)
        sizes = [int(value) for _, name, value in said if name == "nranks"]
        assert sizes == ([4, 2, 2] if rccl is Rccl.SIZES else [])
        made = [value for call, name, value in said if (call, name) == ("ncclCommInitRank", "comm")]
        used = {value for call, name, value in said if name == "comm" and call != "ncclCommInitRank"}
        assert used == set(made)
        assert len(made) == len(set(made)) == (0 if rccl is Rccl.NONE else 3)


@pytest.mark.parametrize("rccl", Rccl)
def test_all_to_alls_of_experts(rccl: Rccl, tmp_path: Path) -> None:
    """Two in each layer, forwards and backwards, as kernels of their own name; a group of sends and receives each."""
    options = JobOptions(tmp_path, ranks=4, ep=4, steps=2, rccl=rccl)
    exchanged = [c for c in plan(options).collectives() if c.group.kind is GroupKind.EXPERT]
    assert len(exchanged) == 2 * 3 * 2 * 2
    for rank, path in enumerate(simulate(options)):
        connection, clock = read(path), plan(options).nodes[0]
        times = rows(connection, """SELECT start, "end" FROM kernels WHERE name GLOB 'ncclDevKernel_SendRecv(*'""")
        true = np.array([(c.starts[rank], c.ends[rank]) for c in exchanged], dtype=np.int64)
        assert times == [tuple(row) for row in clock.local(true).tolist()]
        assert rows(connection, "SELECT COUNT(DISTINCT stream_id) FROM kernels WHERE name GLOB 'nccl*'") == [(2,)]
        sent = """SELECT A.value, COUNT(*) FROM regions R JOIN rocpd_arg A USING (event_id)
            WHERE R.name = 'ncclSend' AND A.name = 'peer' GROUP BY A.value ORDER BY A.value"""
        counts = [(str(peer), len(exchanged)) for peer in range(4)]
        assert rows(connection, sent) == ([] if rccl is Rccl.NONE else counts)
        groups = "SELECT COUNT(*) FROM regions WHERE name IN ('ncclGroupStart', 'ncclGroupEnd')"
        assert rows(connection, groups) == [(0 if rccl is Rccl.NONE else 2 * len(exchanged),)]


def test_what_is_recorded_of_rccl_changes_no_times(tmp_path: Path) -> None:
    plans = [plan(JobOptions(tmp_path, ranks=4, tp=2, steps=2, rccl=rccl)) for rccl in Rccl]
    assert plans[0].collectives() == plans[1].collectives() == plans[2].collectives()
