"""Arguments of RCCL calls, from what PyTorch's profiler records of collectives; `facts.communication.rccl` reads them.

ProcessGroupNCCL records an operator `record_param_comms` with the arguments of a collective, and in it an annotation
`nccl:all_reduce` around the call of the library. The arguments go to the annotation, which is the innermost range
around the launch, or to the operator where there is none.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rocpd.base import by_key, frozen

OPERATOR, ANNOTATION = "record_param_comms", "nccl:"

_FUNCTIONS = (
    ("allreduce", "ncclAllReduce", "count"),
    ("allgather", "ncclAllGather", "sendcount"),
    ("reducescatter", "ncclReduceScatter", "recvcount"),
    ("alltoallv", "ncclAllToAllv", ""),
    ("alltoall", "ncclAllToAll", "count"),
    ("broadcast", "ncclBroadcast", "count"),
    ("reduce", "ncclReduce", "count"),
    ("gather", "ncclGather", "sendcount"),
    ("scatter", "ncclScatter", "recvcount"),
    ("send", "ncclSend", "count"),
    ("recv", "ncclRecv", "count"),
)
"""Start of the name of a collective, in small letters only -> the function of RCCL, and its argument for the count."""

_OF_ONE_SIZE = ("ncclAllReduce", "ncclBroadcast", "ncclReduce", "ncclSend", "ncclRecv")
"""Functions that give and get as much, however large the group is: annotations don't say that."""

_MEANS_BY_RANK = {
    "ncclBroadcast": "root", "ncclReduce": "root", "ncclGather": "root", "ncclScatter": "root",
    "ncclSend": "peer", "ncclRecv": "peer",
}  # fmt: skip
"""Function -> what the argument `Rank` of `record_param_comms` is, if not the rank itself; always within the group."""

_DATA_TYPES = {
    "bfloat16": "ncclBfloat16", "half": "ncclFloat16", "float": "ncclFloat32", "double": "ncclFloat64",
    "char": "ncclInt8", "signedchar": "ncclInt8", "byte": "ncclUint8", "unsignedchar": "ncclUint8", "bool": "ncclUint8",
    "int": "ncclInt32", "long": "ncclInt64", "longint": "ncclInt64",
    "float8_e4m3fn": "ncclFloat8e4m3", "float8_e4m3fnuz": "ncclFloat8e4m3", "float8_e5m2": "ncclFloat8e5m2",
    "float8_e5m2fnuz": "ncclFloat8e5m2",
}  # fmt: skip
"""Type of a tensor, as `_data_type` shortens it -> RCCL's."""


@frozen
class Range:
    """An operator or annotation of a collective: thread, start and end, as the file has them, name and arguments."""

    tid: object
    start: float
    end: float
    name: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> tuple[object, float, str]:
        """The key that finds it again."""
        return self.tid, self.start, self.name


def arguments_of_collectives(ranges: Sequence[Range]) -> dict[tuple[object, float, str], dict[str, str]]:
    """Return the arguments of RCCL calls by the ranges that carry them out.

    Args:
        ranges: the operators and annotations of a process.
    """
    operators = by_key((each.tid, each) for each in ranges if each.name == OPERATOR)
    annotations = [each for each in ranges if each.name != OPERATOR]
    for on_thread in operators.values():
        on_thread.sort(key=lambda operator: operator.start)
    result, used = {}, set()
    for annotation in annotations:
        if around := _around(operators.get(annotation.tid, ()), annotation):
            used.add(around.key)
        facts = _of_operator(around.arguments) if around and "Collective name" in around.arguments else {}
        result[annotation.key] = _of_annotation(annotation) | facts
    for operator in (operator for on_thread in operators.values() for operator in on_thread):
        if operator.key not in used and "Collective name" in operator.arguments:
            result[operator.key] = _of_operator(operator.arguments)
    return {key: facts for key, facts in result.items() if "function" in facts}


def _around(operators: Any, inner: Range) -> Range | None:
    """Return the innermost of the operators of a thread, in order of start, in which a range lies."""
    at = bisect_right(operators, inner.start, key=lambda operator: operator.start) - 1
    return operators[at] if at >= 0 and operators[at].end >= inner.end else None


def _of_operator(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return what the arguments of `record_param_comms` say; see `init_tensor…` in PyTorch's ParamCommsUtils."""
    facts = _function_of(str(arguments.get("Collective name", "")))
    given, taken = (_whole_number(arguments.get(f"{side} msg nelems")) for side in ("In", "Out"))
    size, ranks = _whole_number(arguments.get("Group size")), _ranks_of(str(arguments.get("Process Group Ranks")))
    group, number = arguments.get("Process Group Name"), _whole_number(arguments.get("Rank"))
    if group is not None:
        facts["comm"] = f"group {group}" + (f" of ranks {ranks}" if ranks else "")
    if size:
        facts["nranks"] = str(size)
    if number is not None:
        facts[_MEANS_BY_RANK.get(facts.get("function", ""), "rank")] = str(number)
    _add_count(facts, given, taken, size)
    datatype = _data_type(str(arguments.get("dtype", "")))
    return facts | ({"datatype": datatype} if datatype else {})


def _of_annotation(annotation: Range) -> dict[str, str]:
    """Return what the name and the tensors of an annotation say, which is less than what its operator does."""
    facts = _function_of(annotation.name.removeprefix(ANNOTATION))
    if peers := re.search(r"(\d+)\s*(?:->|<-)\s*(\d+)", annotation.name):
        facts["rank"], facts["peer"] = peers.groups()
    shapes, types = annotation.arguments.get("Input Dims"), annotation.arguments.get("Input type")
    if isinstance(shapes, list) and shapes and isinstance(types, list) and types:
        datatype = _data_type(str(types[0]))
        try:
            count = sum(math.prod(shape) for shape in shapes)
        except TypeError:
            return facts
        if datatype and facts.get("function") in _OF_ONE_SIZE:
            _add_count(facts, count, None, None)
            facts["datatype"] = datatype
    return facts


def _function_of(name: str) -> dict[str, str]:
    letters = re.sub("[^a-z]", "", name)
    return next(({"function": function} for start, function, _ in _FUNCTIONS if letters.startswith(start)), {})


def _add_count(facts: dict[str, str], given: int | None, taken: int | None, ranks: int | None) -> None:
    """Add the argument that says how much is moved, as RCCL's function has it."""
    argument = next((count for _, function, count in _FUNCTIONS if function == facts.get("function")), "")
    count = taken if argument == "recvcount" else given
    if facts.get("function") == "ncclAllToAll":
        count = given // ranks if given is not None and ranks else None
    if argument and count is not None:
        facts[argument] = str(count)


@lru_cache(64)
def _data_type(name: str) -> str | None:
    """Return RCCL's name of the type of a tensor, None if it is unknown.

    >>> _data_type("c10::BFloat16"), _data_type("BFloat16"), _data_type("long int"), _data_type("Float8_e5m2")
    ('ncclBfloat16', 'ncclBfloat16', 'ncclInt64', 'ncclFloat8e5m2')
    """
    return _DATA_TYPES.get(name.rpartition("::")[2].lower().replace(" ", ""))


def _whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@lru_cache(64)
def _ranks_of(text: str) -> str | None:
    """Return how the ranks of a group are listed; PyTorch cuts long lists."""
    if not re.search(r"\d", text):
        return None
    parts = re.findall(r"\d+|\.\.\.", text)
    if "..." not in parts and len(parts) > 1:
        ranks = [int(word) for word in parts]
        if ranks == list(range(ranks[0], ranks[0] + len(ranks))):
            return f"{parts[0]}-{parts[-1]}"
    return ",".join(parts)
