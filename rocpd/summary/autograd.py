"""GPU time by operator of PyTorch: which kernels each launches, itself and through operators inside, for which sizes.

Graph launches count with all their kernels. A kernel counts once for each operator and sizes around its launch. Forward
and backward operators are pairs by their sequence number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.groups import grouped
from rocpd.summary.ops import OperationNames, read_ops
from rocpd.summary.reading import Key, RankReading, Reading, key_of, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import total
from rocpd.summary.torch_operators import TorchOperators, launched_by, read_operators
from rocpd.types import Row

TABLES = by_name(
    TableDefinition(
        "autograd",
        "Kernels by the operators in which they were launched; the operator with most GPU time first.",
        (
            Field("operator", "", "operator of PyTorch"),
            Field("sizes", "", "of its inputs, NULL where not recorded"),
            Field("kernel", "", "kernel, or direction of a copy", is_kernel=True),
            Field("launches", "", "times that it ran"),
            Field("gpu_ns", "ns", "their time, launched by the operator or by operators inside"),
            Field("self_launches", "", "of these, launched by no operator inside", True),
            Field("gpu_self_ns", "ns", "their time"),
            Field("mean_ns", "ns", "gpu_ns by launches", True),
            Field("percent", "%", "gpu_self_ns by the time of all GPU work in operators", is_share=True),
        ),
    ),
    TableDefinition(
        "autograd-pairs",
        "Forward operators and their backward ones, by sequence number; those with most GPU time first.",
        (
            Field("forward", "", "the last operator with the number that is not backward"),
            Field("backward", "", "the first backward operator with it"),
            Field("pairs", "", "numbers that they share"),
            Field("forward_gpu_ns", "ns", "GPU work launched in the forward operators"),
            Field("backward_gpu_ns", "ns", "GPU work launched in the backward operators"),
            Field("ratio", "", "backward by forward"),
        ),
    ),
)

_Launched: TypeAlias = "tuple[str | None, str | None, str | None]"  # operator, sizes, kernel
_Pair: TypeAlias = "tuple[str | None, str | None]"


@dataclass(slots=True)
class _Work:
    """Operations of a kernel: how often, and their time [ns], in all and by the operator itself."""

    launches: int = 0
    time: int = 0
    own_launches: int = 0
    own_time: int = 0

    def add(self, other: _Work) -> None:
        self.launches += other.launches
        self.time += other.time
        self.own_launches += other.own_launches
        self.own_time += other.own_time


@dataclass(slots=True)
class _Pairs:
    """Pairs of a forward and a backward operator, and the GPU time of each side [ns]."""

    count: int = 0
    forward: int = 0
    backward: int = 0


@dataclass(slots=True)
class _OfRank:
    """What one rank adds: kernels of operators, pairs, operations, and how many of them no operator launched."""

    work: dict[_Launched, _Work]
    pairs: dict[_Pair, _Pairs]
    operations: int
    outside: int
    operators: int


def autograd(reading: Reading) -> Iterator[Summary]:
    """Return kernels by operator, and pairs of forward and backward operators.

    Raises:
        RocpdError: no operators were recorded.
    """
    work: dict[Key, dict[_Launched, _Work]] = {}
    pairs: dict[Key, dict[_Pair, _Pairs]] = {}
    operations = outside = operators = 0
    for rank, answer in reading.each(_of_rank):
        key = key_of(reading.by, rank)
        for launched, more in answer.work.items():
            work.setdefault(key, {}).setdefault(launched, _Work()).add(more)
        for names, pair in answer.pairs.items():
            known = pairs.setdefault(key, {}).setdefault(names, _Pairs())
            known.count, known.forward = known.count + pair.count, known.forward + pair.forward
            known.backward += pair.backward
        operations, outside = operations + answer.operations, outside + answer.outside
        operators += answer.operators
    if not operators:
        raise RocpdError("no operators in the selection", "traces of PyTorch have them, and RPD's with autograd facts")
    if outside:
        reading.session.note(f"autograd: {outside} of {operations} operations were launched in no operator")
    yield reading.summary(
        TABLES["autograd"], [row for key in sorted(work, key=order_of) for row in _rows(key, work[key])]
    )
    yield reading.summary(
        TABLES["autograd-pairs"], [row for key in sorted(pairs, key=order_of) for row in _pair_rows(key, pairs[key])]
    )


def _of_rank(reading: RankReading) -> _OfRank:
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    operators = read_operators(reading)
    inner = launched_by(reading, operators, ops)
    work: dict[_Launched, _Work] = {}
    below: dict[int, int] = {}
    for (row, kernel), rows in grouped([inner, ops.name]):
        time = total(ops.duration[rows])
        named: set[_Launched] = set()
        for depth, around in enumerate(operators.around(row)):
            below[around] = below.get(around, 0) + time
            launched = operators.names[around], operators.sizes[around], names.texts[kernel]
            if depth == 0:
                work.setdefault(launched, _Work()).add(_Work(0, 0, len(rows), time))
            if launched not in named:
                named.add(launched)
                work.setdefault(launched, _Work()).add(_Work(len(rows), time))
    return _OfRank(work, _pairs(operators, below), len(ops), int((inner < 0).sum()), len(operators.names))


def _pairs(operators: TorchOperators, below: dict[int, int]) -> dict[_Pair, _Pairs]:
    """Return pairs by the names of both.

    An operator carries the number that the next differentiable one will take: of forward operators with one number that
    one is the last, and of operators that lie in each other the outermost stands for all.
    """
    sides: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for row in np.lexsort((-operators.end, operators.start)).tolist():
        number = operators.sequence[row]
        if number is not None:
            side = sides[is_backward(operators.names[row])]
            before = side.setdefault(number, row)
            if side is sides[False] and operators.start[row] >= operators.end[before]:
                side[number] = row
    pairs: dict[_Pair, _Pairs] = {}
    for number, backward in sides[True].items():
        forward = sides[False].get(number)
        if forward is not None:
            pair = pairs.setdefault((operators.names[forward], operators.names[backward]), _Pairs())
            pair.count += 1
            pair.forward += below.get(forward, 0)
            pair.backward += below.get(backward, 0)
    return pairs


def is_backward(operator: str | None) -> bool:
    """Whether an operator is one of the backward pass, by its name.

    >>> is_backward("autograd::engine::evaluate_function: MulBackward0"), is_backward("AddmmBackward0")
    (True, True)
    >>> is_backward("aten::convolution_backward"), is_backward("aten::conv2d")
    (False, False)
    """
    return operator is not None and ("Backward" in operator or operator.startswith(("autograd::", "torch::autograd::")))


def _rows(key: Key, work: dict[_Launched, _Work]) -> Iterator[Row]:
    whole = sum(kernel.own_time for kernel in work.values())
    of_operator: dict[str | None, int] = {}
    for (operator, _, _), kernel in work.items():
        of_operator[operator] = of_operator.get(operator, 0) + kernel.time
    in_order = sorted(
        work.items(),
        key=lambda item: (-of_operator[item[0][0]], item[0][0] or "", -item[1].time, *(text or "" for text in item[0])),
    )
    for (operator, sizes, name), kernel in in_order:
        times = (kernel.launches, kernel.time, kernel.own_launches, kernel.own_time)
        share = kernel.own_time * 100 / whole if whole else None
        yield (*key, operator, sizes, name, *times, kernel.time / kernel.launches, share)


def _pair_rows(key: Key, pairs: dict[_Pair, _Pairs]) -> Iterator[Row]:
    in_order = sorted(
        pairs.items(), key=lambda item: (-item[1].forward - item[1].backward, *(t or "" for t in item[0]))
    )
    for names, pair in in_order:
        ratio = pair.backward / pair.forward if pair.forward else None
        yield (*key, *names, pair.count, pair.forward, pair.backward, ratio)
