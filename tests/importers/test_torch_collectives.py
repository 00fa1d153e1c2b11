"""What PyTorch records of collectives becomes arguments of RCCL's calls: ranks and roots are those within the group."""

from __future__ import annotations

import pytest

from rocpd.importers.torch_collectives import OPERATOR, Range, arguments_of_collectives

GROUP = {
    "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 16, "Group size": 2, "Process Group Name": "3",
    "Process Group Ranks": "[1, 3]",
}  # fmt: skip
"""The group of ranks 1 and 3 of a job."""


def call(collective: str, rank: int, annotation: str = "", **facts: object) -> dict[str, str]:
    """Return the arguments of a collective, without those that all calls of the group have."""
    operator = Range(5, 0, 100, OPERATOR, {**GROUP, "Collective name": collective, "Rank": rank, **facts})
    ranges = [operator, *([Range(5, 10, 20, annotation, {})] if annotation else [])]
    (arguments,) = arguments_of_collectives(ranges).values()
    common = {"comm": "group 3 of ranks 1,3", "nranks": "2", "datatype": "ncclFloat32"}
    assert arguments.items() >= common.items()
    return {name: value for name, value in arguments.items() if name not in common}


@pytest.mark.parametrize("rank", [0, 1])
def test_the_rank_is_that_within_the_group(rank: int) -> None:
    assert call("allreduce", rank) == {"function": "ncclAllReduce", "rank": str(rank), "count": "8"}


@pytest.mark.parametrize(
    ("collective", "function", "count"),
    [
        ("broadcast", "ncclBroadcast", {"count": "8"}),
        ("reduce", "ncclReduce", {"count": "8"}),
        ("gather", "ncclGather", {"sendcount": "8"}),
        ("scatter", "ncclScatter", {"recvcount": "16"}),
    ],
)
def test_where_there_is_a_root_its_rank_is_recorded(collective: str, function: str, count: dict[str, str]) -> None:
    assert call(collective, 1) == {"function": function, "root": "1", **count}


def test_sends_and_receives_name_their_peer_within_the_group() -> None:
    assert call("send", 1, "nccl:send 0->1", **{"Dst Rank": 3}) == {
        "function": "ncclSend", "rank": "0", "peer": "1", "count": "8",
    }  # fmt: skip
    assert call("recv", 0, "nccl:recv 1<-0", **{"Src Rank": 1}) == {
        "function": "ncclRecv", "rank": "1", "peer": "0", "count": "8",
    }  # fmt: skip


def test_types_that_rccl_does_not_have_are_unknown() -> None:
    operator = Range(5, 0, 9, OPERATOR, {**GROUP, "Collective name": "broadcast", "dtype": "Int16"})
    (arguments,) = arguments_of_collectives([operator]).values()
    assert "datatype" not in arguments
