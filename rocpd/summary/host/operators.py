"""Operators of PyTorch, and the GPU work launched in them: by name, sizes, phase and kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rocpd.base import Ints, Row
from rocpd.facts.columns import grouped
from rocpd.facts.operations import OperationNames, Ops, launch_calls, read_ops
from rocpd.facts.rank import Key, RankReading
from rocpd.facts.regions import own_times
from rocpd.facts.spread import total
from rocpd.facts.torch_operators import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    TorchOperators,
    flops_of,
    is_backward,
    read_operators,
)
from rocpd.federate.run.rank_reader import Fact
from rocpd.summary.grouping import Sums, merge, most_first, nothing, percent, ratio, rows_of
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, by_name, table_of

_OPERATOR = Field("operator", "", "operator of PyTorch")
_SIZES = Field("sizes", "", "of its inputs, NULL where not recorded")

_TIMES = (
    Field("calls", "", "calls"),
    Field("cpu_ns", "ns", "their time, operators inside included"),
    Field("cpu_self_ns", "ns", "without operators inside", True),
    Field("gpu_ns", "ns", "GPU work launched in them, or in operators inside"),
    Field("gpu_self_ns", "ns", "launched by no operator inside"),
    Field("launches", "", "kernels, copies and the like of gpu_ns", True),
)

_PERCENT = Field("percent", "%", "gpu_self_ns by the time of all GPU work in operators", is_share=True)

TABLES = by_name(
    table_of(
        "autograd",
        "Kernels by the operators in which they were launched; the operator with most GPU time first.",
        _OPERATOR,
        _SIZES,
        Field("kernel", "", "kernel, or direction of a copy", is_kernel=True),
        Field("launches", "", "times that it ran"),
        Field("gpu_ns", "ns", "their time, launched by the operator or by operators inside"),
        Field("self_launches", "", "of these, launched by no operator inside", True),
        Field("gpu_self_ns", "ns", "their time"),
        Field("mean_ns", "ns", "gpu_ns by launches", True),
        _PERCENT,
    ),
    table_of(
        "autograd-pairs",
        "Forward operators and their backward ones, by sequence number; those with most GPU time first.",
        Field("forward", "", "the last operator with the number that is not backward"),
        Field("backward", "", "the first backward operator with it"),
        Field("pairs", "", "numbers that they share"),
        Field("forward_gpu_ns", "ns", "GPU work launched in the forward operators"),
        Field("backward_gpu_ns", "ns", "GPU work launched in the backward operators"),
        Field("ratio", "", "backward by forward"),
    ),
    table_of(
        "operators", "Operators by name; those with most GPU time of their own first.", _OPERATOR, *_TIMES, _PERCENT
    ),
    table_of(
        "operator-shapes",
        "Operators by name and sizes of their inputs; those with most GPU time of their own first.",
        _OPERATOR,
        _SIZES,
        *_TIMES,
        _PERCENT,
        Field("flops", "", "floating-point operations of all calls, from the sizes; NULL where these don't say", True),
        Field("tflop_per_s", "TFLOP/s", "flops by gpu_ns"),
    ),
    table_of(
        "operator-phases",
        "Operators by forward pass, backward pass and optimizer.",
        Field("phase", "", "forward, backward or optimizer; NULL: GPU work launched in none, or by no recorded call"),
        Field("operators", "", "operators that lie in no other", True),
        Field("cpu_ns", "ns", "their time"),
        Field("gpu_ns", "ns", "GPU work launched in the phase"),
        Field("launches", "", "kernels, copies and the like of it"),
        Field("percent", "%", "share of the time of all GPU work", is_share=True),
    ),
)

_Kind: TypeAlias = "tuple[str | None, ...]"
"""Table, operator, and sizes and kernel if the table has them."""

_Work: TypeAlias = dict[_Kind, Sums]
"""Calls, their time, the part without operators inside [ns], floating-point operations, calls of which these are known;
launches, their time [ns], and both for the innermost operator."""


def _tables(reading: Reading, tables: tuple[str, ...]) -> Tables:
    """Return operators, or kernels by operator and pairs of forward and backward ones.

    Raises:
        RocpdError: no operators were recorded.
    """
    sums, pairs, phases, counts = yield from reading.summed(partial(_read, tables=tables), _OPERATORS, tables)
    if not (counts.get("operators") if "autograd" in tables else any(sums.values())):
        raise nothing("operators", "traces of PyTorch have them, and RPD's with autograd facts")
    if "autograd" in tables and counts["outside"]:
        launched = f"{counts['outside']} of {counts['operations']} operations were launched"
        reading.session.note(f"autograd: {launched} in no operator")
    others: dict[str, tuple[Any, Any]] = {
        "autograd": (sums, _kernel_rows),
        "autograd-pairs": (pairs, _pair_rows),
        "operator-phases": (phases, _phase_rows),
    }
    for table in tables:
        yield reading.summary(TABLES[table], rows_of(*others.get(table, (sums, partial(_operator_rows, table=table)))))


operators = partial(_tables, tables=("operators", "operator-shapes", "operator-phases"))
"""Operators by name, by name and sizes, and by phase."""

autograd = partial(_tables, tables=("autograd", "autograd-pairs"))
"""Kernels by operator, and pairs of forward and backward operators."""


_OfRank: TypeAlias = tuple[dict[Key, _Work], dict[Key, _Work], dict[Key, dict[str | None, Sums]], dict[str, int]]

_OPERATORS = Fact("operators", 1, (Sums,))


def _read(reading: RankReading, tables: Sequence[str]) -> _OfRank:
    """Return the operators of one rank by kind, pairs, phases, and the numbers of operations and operators."""
    names, operators = OperationNames(), read_operators(reading)
    ops = read_ops(reading, names, stacks=True)
    launched_at = launch_calls(reading.reader, ops.stack)
    inner = operators.nesting.innermost(*launched_at)
    sums: _Work = {}
    below: Counter[int] = Counter()
    for (row, kernel), rows in grouped([inner, ops.name]):
        ran = len(rows), total(ops.duration[rows])
        seen: set[_Kind] = set()
        for depth, around in enumerate(operators.nesting.path(row)):
            below[around] += ran[1]
            for kind in _kinds(operators, around, tables, names.texts[kernel]):
                once, outermost = (0, 0) if kind in seen else ran, (0, 0) if depth else ran
                merge(sums, {kind: Sums((0, 0, 0, 0, 0, *once, *outermost))})
                seen.add(kind)
    counts = {"operations": len(ops), "outside": int((inner < 0).sum()), "operators": len(operators.names)}
    key = reading.key()
    if "autograd" in tables:
        return {key: sums}, {key: _pairs(operators, below)}, {}, counts
    _add_calls(operators, sums, tables)
    phases = _times_of_phases(operators, ops, launched_at) if len(operators.names) else {}
    return {key: sums}, {}, {key: phases}, counts


def _kinds(operators: TorchOperators, row: int, tables: Sequence[str], *kernel: str | None) -> list[_Kind]:
    """Return the kinds that an operator counts for in some tables."""
    name, sizes = operators.names[row], operators.sizes[row]
    kinds = ("operators", name), ("operator-shapes", name, sizes), ("autograd", name, sizes, *kernel)
    return [kind for kind in kinds if kind[0] in tables]


def _pairs(operators: TorchOperators, below: dict[int, int]) -> _Work:
    """Return pairs by the names of both: their number, and the GPU time of each side [ns].

    An operator carries the number that the next differentiable one will take: of forward operators with the same number
    the last is the differentiable one, and of nested operators the outermost stands for all.
    """
    sides: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for row in np.lexsort((-operators.end, operators.start)).tolist():
        if (number := operators.sequence[row]) is not None:
            side = sides[is_backward(operators.names[row])]
            before = side.setdefault(number, row)
            if side is sides[False] and operators.start[row] >= operators.end[before]:
                side[number] = row
    pairs: _Work = {}
    for number, backward in sides[True].items():
        if (forward := sides[False].get(number)) is not None:
            names: _Kind = operators.names[forward], operators.names[backward]
            merge(pairs, {names: Sums((1, below.get(forward, 0), below.get(backward, 0)))})
    return pairs


def _kernel_rows(key: Key, work: _Work) -> Iterator[Row]:
    whole = sum(own_time for *_, own_time in work.values())
    of_operator: Counter[str | None] = Counter()
    for (_, operator, *_), (*_, time, _, _) in work.items():
        of_operator[operator] += time

    def order(item: tuple[_Kind, Sums]) -> Row:
        _, *texts = (text or "" for text in item[0])
        return -of_operator[item[0][1]], texts[0], -item[1][6], *texts

    for (_, *texts), (*_, launches, time, own_launches, own_time) in sorted(work.items(), key=order):
        shares = time / launches, percent(own_time, whole)
        yield (*key, *texts, launches, time, own_launches, own_time, *shares)


def _pair_rows(key: Key, pairs: _Work) -> Iterator[Row]:
    for names, (count, forward, backward) in most_first(pairs, lambda pair: pair[1] + pair[2]):
        yield (*key, *names, count, forward, backward, ratio(backward, forward))


def _times_of_phases(operators: TorchOperators, ops: Ops, launched_at: tuple[Ints, Ints]) -> dict[str | None, Sums]:
    """Return the phases of a rank: number of operators, their time, time of launched operations [ns], and their number.

    Args:
        operators: operators of the rank.
        ops: its operations.
        launched_at: thread and start of the call that launched each, as in `launch_calls`.
    """
    phases: list[str | None] = [*operators.phases()]
    times: dict[str | None, Sums] = {}
    for row in operators.counts.nonzero()[0].tolist():
        if operators.nesting.around[row] < 0:
            merge(times, {phases[row]: Sums((1, int(operators.end[row] - operators.start[row]), 0, 0))})
    places = [nesting.innermost(*launched_at) for nesting in (operators.nesting, operators.optimizers)]
    for (operator, optimizer), rows in grouped(places):
        phase = phases[operator] if operator >= 0 else OPTIMIZER if optimizer >= 0 else None
        merge(times, {phase: Sums((0, 0, total(ops.duration[rows]), len(rows)))})
    return times


def _phase_rows(key: Key, times: Mapping[str | None, Sums]) -> Iterator[Row]:
    """Yield the phases in the order of a step."""
    whole = sum(gpu for _, _, gpu, _ in times.values())
    for phase in (FORWARD, BACKWARD, OPTIMIZER, None):
        if phase in times:
            yield (*key, phase, *times[phase], percent(times[phase][2], whole))


def _add_calls(operators: TorchOperators, sums: _Work, tables: Sequence[str]) -> None:
    """Add calls and their time on the CPU; of nested operators of a kind, the outermost has the time."""
    length = (operators.end - operators.start).tolist()
    own_time = own_times(operators.start, operators.end, operators.nesting.around).tolist()
    for row in operators.counts.nonzero()[0].tolist():
        _, *around = operators.nesting.path(row)
        outer = {kind for each in around for kind in _kinds(operators, each, tables)}
        flops = flops_of(operators.names[row], operators.sizes[row], operators.values[row])
        for kind in _kinds(operators, row, tables):
            cpu = 0 if kind in outer else length[row]
            merge(sums, {kind: Sums((1, cpu, own_time[row], flops or 0, int(flops is not None), 0, 0, 0, 0))})


def _operator_rows(key: Key, sums: _Work, table: str) -> Iterator[Row]:
    of_table = [(texts, each) for (of, *texts), each in sums.items() if of == table]
    whole = sum(each[8] for _, each in of_table)
    of_table.sort(key=lambda item: (-item[1][8], -item[1][6], -item[1][1], *(text or "" for text in item[0])))
    for texts, (calls, cpu, own_cpu, flops, known, launches, gpu, _, own_gpu) in of_table:
        row = (*key, *texts, calls, cpu, own_cpu, gpu, own_gpu, launches, percent(own_gpu, whole))
        flops = flops if known and known == calls else None
        rates = (flops, flops / gpu / 1000 if flops and gpu else None)
        yield row if table == "operators" else (*row, *rates)
