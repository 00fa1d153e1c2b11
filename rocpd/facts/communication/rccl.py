"""Reads the collective calls of RCCL: their operation, and the bytes that each rank gives and gets.

Names, arguments and data types are those of RCCL's public header `nccl.h`. Operations are named as MPI names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum

from rocpd.base import frozen

GROUP_START, GROUP_END = "ncclGroupStart", "ncclGroupEnd"
BARRIER = "BARRIER"
"""The operation of a collective of which it is only known that ranks wait for each other."""
SENDRECV = "SENDRECV"
"""Sends and receives, which are no collective."""


@frozen
class RcclCall:
    """A call of RCCL: the function, and its arguments by name, as in the file.

    A range of a framework around a call names its function in the argument `function`.
    """

    name: str
    arguments: Mapping[str, str]

    @property
    def communicator(self) -> str | None:
        """The communicator of the call, None where the file does not say."""
        return self.arguments.get("comm") or None


class Waits(IntEnum):
    """The waits in a transfer: all ranks for all, the others for the root, the root for the others, or unknown."""

    ALL = 0
    FOR_ROOT = 1
    FOR_OTHERS = 2
    NOBODY = 3


@frozen
class Transfer:
    """The amount that a collective moves.

    Args:
        operation: as MPI names it, such as `ALLREDUCE`.
        size: size of the count that the call passes [bytes], 0 where unknown.
        root: root rank within the communicator, None where the operation has none or it is unknown.
    """

    operation: str
    size: int = 0
    root: int | None = None

    @property
    def shown(self) -> str:
        """The operation as people write it.

        >>> Transfer("ALLREDUCE").shown, Transfer("REDUCE_SCATTER_BLOCK").shown, Transfer("BCAST").shown
        ('all-reduce', 'reduce-scatter', 'broadcast')
        """
        name = self.operation.removesuffix("_BLOCK").replace("BCAST", "BROADCAST").lower().replace("_", "-")
        return re.sub("^all(?=[a-z])", "all-", name).replace("-to", "-to-")

    @property
    def waits(self) -> Waits:
        """The ranks that can't leave before others have come, by operation."""
        return _WAITS.get(self.operation, Waits.ALL)

    def sizes(self, ranks: int, is_root: bool) -> tuple[int, int]:
        """Return the bytes that a rank gives and gets.

        >>> Transfer("ALLGATHER", 8).sizes(4, False), Transfer("BCAST", 8, 0).sizes(4, True)
        ((8, 32), (8, 0))
        """
        factors = {"0": 0, "1": 1, "n": ranks}
        counts = _SIZES.get(self.operation, "0000")[2 if is_root else 0 :]
        return factors[counts[0]] * self.size, factors[counts[1]] * self.size

    def volume(self, ranks: int) -> int:
        """Return the size by which bandwidths of collectives compare: the whole result [bytes]; 0 where unknown.

        >>> Transfer("ALLGATHER", 8).volume(4), Transfer("ALLREDUCE", 8).volume(4)
        (32, 8)
        """
        return max(self.sizes(ranks, is_root=False) + self.sizes(ranks, is_root=True))

    def bus_factor(self, ranks: int) -> float | None:
        """Return the factor that makes a bandwidth comparable with that of links; None where unknown.

        As in rccl-tests (`doc/PERFORMANCE.md` there): an optimal all-reduce moves each byte twice except for one rank.

        >>> Transfer("ALLREDUCE", 8).bus_factor(4), Transfer("BCAST", 8).bus_factor(4)
        (1.5, 1.0)
        """
        factor = _BUS_FACTORS.get(self.operation)
        return None if factor is None else 1.0 if factor == 0 else factor * (ranks - 1) / ranks


_BUS_FACTORS = {"ALLREDUCE": 2, "ALLGATHER": 1, "REDUCE_SCATTER_BLOCK": 1, "ALLTOALL": 1, "BCAST": 0, "REDUCE": 0}
"""Operation -> how often an optimal algorithm moves each byte, except for one rank; 0: once, for every rank."""

_SIZES = {
    "ALLREDUCE": "1111",
    "BCAST": "0110",
    "REDUCE": "1011",
    "ALLGATHER": "1n1n",
    "REDUCE_SCATTER_BLOCK": "n1n1",
    "ALLTOALL": "nnnn",
    "GATHER": "101n",
    "SCATTER": "01n1",
}
"""Operation -> counts that a rank gives and gets, then the counts of the root; n: one for each rank."""

_WAITS = {
    "BCAST": Waits.FOR_ROOT, "SCATTER": Waits.FOR_ROOT, "REDUCE": Waits.FOR_OTHERS, "GATHER": Waits.FOR_OTHERS,
    SENDRECV: Waits.NOBODY,
}  # fmt: skip

_CALLS = {
    "ncclAllReduce": ("ALLREDUCE", "count"),
    "ncclAllReduceWithBias": ("ALLREDUCE", "count"),
    "ncclBroadcast": ("BCAST", "count"),
    "ncclBcast": ("BCAST", "count"),
    "ncclReduce": ("REDUCE", "count"),
    "ncclAllGather": ("ALLGATHER", "sendcount"),
    "ncclReduceScatter": ("REDUCE_SCATTER_BLOCK", "recvcount"),
    "ncclAllToAll": ("ALLTOALL", "count"),
    "ncclAlltoAll": ("ALLTOALL", "count"),
    "ncclAllToAllv": ("ALLTOALLV", ""),
    "ncclGather": ("GATHER", "sendcount"),
    "ncclScatter": ("SCATTER", "recvcount"),
}
"""Function -> operation, and the argument that holds the count of elements."""

ARGUMENTS = (
    "function",
    "comm",
    "newcomm",
    "nranks",
    "myrank",
    "rank",
    "peer",
    "datatype",
    "root",
    "count",
    "sendcount",
    "recvcount",
)
"""The arguments that identify the communicator that a call creates or uses, and the data that it moves."""

_TYPES = (
    (1, ("Int8", "Char")), (1, ("Uint8",)), (4, ("Int32", "Int")), (4, ("Uint32",)), (8, ("Int64",)), (8, ("Uint64",)),
    (2, ("Float16", "Half")), (4, ("Float32", "Float")), (8, ("Float64", "Double")), (2, ("Bfloat16",)),
    (1, ("Float8e4m3", "Fp8E4M3")), (1, ("Float8e5m2", "Fp8E5M2")),
)  # fmt: skip
"""`ncclDataType_t` in order of its numbers: size [bytes] and names, without `nccl`."""
_TYPE_SIZES = {str(number): size for number, (size, _) in enumerate(_TYPES)} | {
    f"nccl{name}".lower(): size for size, names in _TYPES for name in names
}

_KERNELS = (
    (SENDRECV, "send_?recv"),
    ("ALLTOALL", "all_?to_?all"),
    ("ALLGATHER", "all_?gather"),
    ("REDUCE_SCATTER_BLOCK", "reduce_?scatter"),
    ("ALLREDUCE", "all_?reduce|cross_device_reduce|quick_?reduce"),
    ("BCAST", "broadcast"),
    ("REDUCE", "reduce"),
)
"""Operation -> pattern in names of its kernels; the first match counts."""


_DIRECTIONS = {"ncclSend": "send", "ncclRecv": "receive"}


def is_all_to_all(calls: Sequence[RcclCall], size: int | None) -> bool:
    """Whether sends and receives that one kernel carries out go to all ranks of the communicator, and come from all.

    Args:
        calls: the calls that the kernel carries out.
        size: number of ranks of the communicator; None: unknown, then three partners in a row are taken for all.

    >>> calls = [RcclCall(name, {"peer": str(peer)}) for peer in range(4) for name in ("ncclSend", "ncclRecv")]
    >>> is_all_to_all(calls, 4), is_all_to_all(calls, 8), is_all_to_all(calls[:2], 2), is_all_to_all(calls, None)
    (True, False, False, True)
    """
    sent, received = (_peers_of(calls, name) for name in _DIRECTIONS)
    if any(call.name not in _DIRECTIONS for call in calls) or sent != received or None in sent or len(sent) < 2:
        return False
    last = max(peer for peer in sent if peer is not None)
    return len(sent) >= size - 1 and last < size if size else len(sent) > 2 and len(sent) >= last


def transfer_of(kernel: str | None, calls: Sequence[RcclCall], size: int | None = None) -> Transfer | None:
    """Return the transfer of a communication kernel; None if it sends and receives and is no collective.

    Several calls of a group that one kernel carries out are one transfer with the operation of the first call. Where
    neither a call nor the name gives the operation, only the wait of ranks for each other is known: a barrier.

    Args:
        kernel: name of the kernel.
        calls: the calls that it carries out, as far as they were recorded.
        size: number of ranks of the communicator, None where unknown.

    >>> call = RcclCall("ncclAllReduce", {"count": "10", "datatype": "ncclBfloat16"})
    >>> transfer_of("ncclDevKernel_Generic_1", [call, call])
    Transfer(operation='ALLREDUCE', size=40, root=None)
    >>> transfer_of("ncclDevKernel_Generic_1", []), transfer_of("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", [])
    (Transfer(operation='BARRIER', size=0, root=None), None)
    """
    collectives = [call for call in calls if is_collective(call)]
    if collectives:
        operation, _ = _CALLS[collectives[0].name]
        root = whole_number(collectives[0].arguments.get("root", ""))
        return Transfer(operation, sum(map(_size, collectives)), root)
    if is_all_to_all(calls, size):
        return Transfer("ALLTOALL", sum(map(_size, calls)) // len(calls))
    known = next((word for word, pattern in _KERNELS if re.search(f"(?i){pattern}", kernel or "")), BARRIER)
    return None if calls or known == SENDRECV else Transfer(known)


@frozen
class SendRole:
    """The role of a kernel that sends or receives.

    Args:
        direction: `send`, `receive`, `both`, or `unknown`.
        peer: rank of the partner in the communicator, None where there are several or it is unknown.
        source: rank that a kernel receives from if it sends to a different `peer`, as in a ring.
    """

    direction: str
    peer: int | None = None
    source: int | None = None


def role_of(kernel: str | None, calls: Sequence[RcclCall], size: int | None = None) -> SendRole | None:
    """Return the role of a communication kernel that sends or receives; None for collectives and unknown kernels.

    Args:
        kernel: name of the kernel.
        calls: the calls that it carries out, as far as they were recorded.
        size: number of ranks of the communicator, None where unknown.

    >>> role_of("ncclDevKernel_Generic_1", [RcclCall("ncclSend", {"peer": "3"})])
    SendRole(direction='send', peer=3, source=None)
    >>> role_of("ncclDevKernel_SendRecv", [RcclCall("ncclSend", {"peer": "3"}), RcclCall("ncclRecv", {"peer": "1"})])
    SendRole(direction='both', peer=3, source=1)
    >>> role_of("ncclDevKernel_SendRecv", []), role_of("ncclDevKernel_Generic_1", [])
    (SendRole(direction='unknown', peer=None, source=None), None)
    """
    directions = {_DIRECTIONS.get(call.name, "") for call in calls}
    if not calls:
        return SendRole("unknown") if re.search("(?i)send_?recv", kernel or "") else None
    if "" in directions or is_all_to_all(calls, size):
        return None
    peers = {direction: _peers_of(calls, name) for name, direction in _DIRECTIONS.items()}
    named = peers["send"] | peers["receive"]
    if len(directions) == 1 or len(named) == 1:
        return SendRole(directions.pop() if len(directions) == 1 else "both", named.pop() if len(named) == 1 else None)
    is_ring = len(peers["send"]) == len(peers["receive"]) == 1 and None not in named
    return SendRole("both", peers["send"].pop(), peers["receive"].pop()) if is_ring else SendRole("both")


def _peers_of(calls: Sequence[RcclCall], name: str) -> set[int | None]:
    return {whole_number(call.arguments.get("peer", "")) for call in calls if call.name == name}


def is_collective(call: RcclCall) -> bool:
    """Whether a call is a collective."""
    return call.name in _CALLS


def _size(call: RcclCall) -> int:
    """Return the size of the count of a call [bytes], 0 where count or type are unknown.

    >>> _size(RcclCall("ncclAllGather", {"sendcount": "3", "datatype": "7"})), _size(RcclCall("ncclAllGather", {}))
    (12, 0)
    """
    argument = _CALLS[call.name][1] if call.name in _CALLS else "count"
    count = whole_number(call.arguments.get(argument, ""))
    return (count or 0) * _TYPE_SIZES.get(call.arguments.get("datatype", "").lower(), 0)


def whole_number(text: str) -> int | None:
    """Return the value of an argument, None if it is no whole number from 0 to 10^13.

    >>> whole_number("12"), whole_number("-1"), whole_number("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 14 else None
