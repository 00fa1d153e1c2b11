"""Owns which calls of RCCL a rank makes for an exchange, and with which arguments. Never knows times."""

from __future__ import annotations

from typing import TypeAlias

from rocpd.frozen import frozen
from rocpd.simulator.layout import GroupKind
from rocpd.simulator.template import Arg, ExchangeKind

Call: TypeAlias = tuple[str, tuple[Arg, ...]]
"""A function and its arguments."""

_TYPES = {4: ("ncclFloat32", 4), 8: ("ncclFloat64", 8)}
_BUFFERS = Arg("void const*", "sendbuff", "0x7f2a40000000"), Arg("void*", "recvbuff", "0x7f2a40000000")


@frozen
class ExchangeRequest:
    """What a rank asks for.

    Args:
        kind: what is done.
        group: the kind of group that does it.
        size: bytes.
        blocks: whether the computation waits for it.
        peer: stages to the partner of a send or receive, -1 or 1.
        connects: whether the group sets up its connections first.
    """

    kind: ExchangeKind
    group: GroupKind
    size: int
    blocks: bool = False
    peer: int = 0
    connects: bool = False

    @property
    def receives(self) -> bool:
        """Whether it can start before anything is computed."""
        return self.kind is ExchangeKind.RECEIVE


def word(group: GroupKind, fact: str) -> str:
    """Return what stands in an argument for a fact about a rank's communicator: `comm`, `size`, `rank`, `-1`, `1`."""
    return f"{{{group}.{fact}}}"


def initialisation(group: GroupKind) -> Call:
    """Return the call that makes a communicator."""
    return "ncclCommInitRank", (
        Arg("ncclComm**", "comm", word(group, "comm")),
        Arg("int", "nranks", word(group, "size")),
        Arg("int", "myrank", word(group, "rank")),
    )


def destruction(group: GroupKind) -> Call:
    """Return the call that ends a communicator."""
    return "ncclCommDestroy", (_communicator(group),)


def calls_of(request: ExchangeRequest, stream: Arg) -> tuple[tuple[Call, ...], Call]:
    """Return the calls before the one that launches the kernel, and that one."""
    communicator = _communicator(request.group)
    datatype, width = _TYPES.get(request.size, ("ncclBfloat16", 2))
    count = Arg("unsigned long", "count", str(max(1, request.size // width)))
    kind = Arg("ncclDataType_t", "datatype", datatype)
    if request.peer:
        is_send = request.kind is ExchangeKind.SEND
        name, buffer = ("ncclSend", _BUFFERS[0]) if is_send else ("ncclRecv", _BUFFERS[1])
        peer = Arg("int", "peer", word(request.group, str(request.peer)))
        return (("ncclGroupStart", ()), (name, (buffer, count, kind, peer, communicator, stream))), _GROUP_END
    if request.kind is ExchangeKind.ALL_GATHER:
        sent = count._replace(name="sendcount")
        return (), ("ncclAllGather", (*_BUFFERS, sent, kind, communicator, stream))
    operation = Arg("ncclRedOp_t", "op", "ncclSum")
    return (), ("ncclAllReduce", (*_BUFFERS, count, kind, operation, communicator, stream))


_GROUP_END: Call = ("ncclGroupEnd", ())


def _communicator(group: GroupKind) -> Arg:
    return Arg("ncclComm*", "comm", word(group, "comm"))
