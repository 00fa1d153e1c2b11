"""Operators of PyTorch, and the GPU work that was launched in them: by name, sizes, phase and kernel.

Operators are regions of a category of their own, from PyTorch's traces or from RPD's; their arguments are the sizes of
inputs and the sequence number by which a backward operator knows its forward one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.types import Flags, Ints, Row
from rocpd.facts.columns import as_text, columns, grouped, statement
from rocpd.facts.operations import OperationNames, Ops, launch_calls, read_ops, string_texts
from rocpd.facts.operator_flops import flops_of
from rocpd.facts.rank import Key, RankReading, key_of
from rocpd.facts.regions import Nesting, nest, nest_times, read_ranges
from rocpd.facts.spread import total
from rocpd.schema.rules.events import valid_times
from rocpd.summary.grouping import Total, merge, merge_groups, most_first, percent, ratio, rows_of
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, TableDefinition, by_name

PHASES = TableDefinition(
    "operator-phases",
    "Operators by forward pass, backward pass and optimizer.",
    (
        Field("phase", "", "forward, backward or optimizer; NULL: GPU work launched in none, or by no recorded call"),
        Field("operators", "", "operators that lie in no other", True),
        Field("cpu_ns", "ns", "their time"),
        Field("gpu_ns", "ns", "GPU work launched in the phase"),
        Field("launches", "", "kernels, copies and the like of it"),
        Field("percent", "%", "share of the time of all GPU work", is_share=True),
    ),
)

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
    TableDefinition(
        "operators",
        "Operators by name; those with most GPU time of their own first.",
        (Field("operator", "", "operator of PyTorch"), *_TIMES, _PERCENT),
    ),
    TableDefinition(
        "operator-shapes",
        "Operators by name and sizes of their inputs; those with most GPU time of their own first.",
        (
            Field("operator", "", "operator of PyTorch"),
            Field("sizes", "", "of its inputs, NULL where not recorded"),
            *_TIMES,
            _PERCENT,
            Field(
                "flops", "", "floating-point operations of all calls, from the sizes; NULL where these don't say", True
            ),
            Field("tflop_per_s", "TFLOP/s", "flops by gpu_ns"),
        ),
    ),
    PHASES,
)

_COLUMNS = ("name", "start", "end", "thread", "event")


@frozen
class TorchOperators:
    """The operators of a rank, of the whole trace.

    Args:
        names: of each.
        sizes: texts of the sizes of its inputs, None where they were not recorded.
        values: texts of the inputs that are no tensors, None where they were not recorded.
        sequence: its sequence number, None where it has none.
        start, end: [ns].
        thread: id.
        event: id of its event.
        nesting: which lies in which.
    """

    names: Sequence[str | None]
    sizes: Sequence[str | None]
    values: Sequence[str | None]
    sequence: Sequence[int | None]
    start: Ints
    end: Ints
    thread: Ints
    event: Ints
    nesting: Nesting

    def around(self, row: int) -> Iterator[int]:
        """Yield an operator and those around it, from the inside out; nothing for -1."""
        return self.nesting.path(row)


def read_operators(reading: RankReading) -> TorchOperators:
    """Read the operators of a rank; those with invalid times are left out."""
    reader = reading.reader.whole()
    name, start, end, thread, event = columns(reader, "rocpd_region", statement("operators"), _COLUMNS)
    valid = np.flatnonzero(valid_times(start, end))
    name, start, end, thread, event = (column[valid] for column in (name, start, end, thread, event))
    facts = _facts(reading) if len(event) else {}
    events = event.tolist()
    texts = string_texts(reader, name)
    return TorchOperators(
        [texts.get(number) for number in name.tolist()],
        [facts.get((number, "Input Dims")) for number in events],
        [facts.get((number, "Concrete Inputs")) for number in events],
        [_whole(facts.get((number, "Sequence number"))) for number in events],
        start,
        end,
        thread,
        event,
        nest_times(start, end, thread),
    )


def _facts(reading: RankReading) -> Mapping[tuple[int, str], str]:
    rows = reading.reader.whole().rows(statement("operator_facts"))
    return {(event, name): as_text(value) or "" for event, name, value in rows}


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def launched_by(reading: RankReading, operators: TorchOperators, ops: Ops) -> Ints:
    """Return the innermost operator around the call that launched each operation, -1 where there is none."""
    return operators.nesting.innermost(*launch_calls(reading.reader, ops.stack))


_Launched: TypeAlias = "tuple[str | None, str | None, str | None]"  # operator, sizes, kernel
_Pair: TypeAlias = "tuple[str | None, str | None]"


@frozen
class _Work(Total):
    """Operations of a kernel: how often, and their time [ns], in all and by the operator itself."""

    launches: int = 0
    time: int = 0
    own_launches: int = 0
    own_time: int = 0


@frozen
class _Pairs(Total):
    """Pairs of a forward and a backward operator, and the GPU time of each side [ns]."""

    count: int = 0
    forward: int = 0
    backward: int = 0


@frozen
class _Counts(Total):
    """Operations, how many of them no operator launched, and operators."""

    operations: int = 0
    outside: int = 0
    operators: int = 0


def autograd(reading: Reading) -> Tables:
    """Return kernels by operator, and pairs of forward and backward operators.

    Raises:
        RocpdError: no operators were recorded.
    """
    work: dict[Key, dict[_Launched, _Work]] = {}
    pairs: dict[Key, dict[_Pair, _Pairs]] = {}
    counts = _Counts()
    yield (answers := reading.each(_of_rank))
    for rank, (work_of_rank, pairs_of_rank, counts_of_rank) in answers:
        key = key_of(reading.by, rank)
        merge_groups(work, {key: work_of_rank})
        merge_groups(pairs, {key: pairs_of_rank})
        counts += counts_of_rank
    if not counts.operators:
        raise RocpdError("no operators in the selection", "traces of PyTorch have them, and RPD's with autograd facts")
    if counts.outside:
        outside = f"{counts.outside} of {counts.operations} operations"
        reading.session.note(f"autograd: {outside} were launched in no operator")
    yield reading.summary(TABLES["autograd"], rows_of(work, _kernel_rows))
    yield reading.summary(TABLES["autograd-pairs"], rows_of(pairs, _pair_rows))


def _of_rank(reading: RankReading) -> tuple[dict[_Launched, _Work], dict[_Pair, _Pairs], _Counts]:
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
                merge(work, {launched: _Work(0, 0, len(rows), time)})
            if launched not in named:
                named.add(launched)
                merge(work, {launched: _Work(len(rows), time)})
    counts = _Counts(len(ops), int((inner < 0).sum()), len(operators.names))
    return work, _pairs(operators, below), counts


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
            names = operators.names[forward], operators.names[backward]
            merge(pairs, {names: _Pairs(1, below.get(forward, 0), below.get(backward, 0))})
    return pairs


def is_backward(operator: str | None) -> bool:
    """Whether an operator is one of the backward pass, by its name.

    >>> is_backward("autograd::engine::evaluate_function: MulBackward0"), is_backward("AddmmBackward0")
    (True, True)
    >>> is_backward("aten::convolution_backward"), is_backward("aten::conv2d")
    (False, False)
    """
    return operator is not None and ("Backward" in operator or operator.startswith(("autograd::", "torch::autograd::")))


def _kernel_rows(key: Key, work: Mapping[_Launched, _Work]) -> Iterator[Row]:
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
        shares = (kernel.time / kernel.launches, percent(kernel.own_time, whole))
        yield (*key, operator, sizes, name, *times, *shares)


def _pair_rows(key: Key, pairs: Mapping[_Pair, _Pairs]) -> Iterator[Row]:
    for names, pair in most_first(pairs, lambda pair: pair.forward + pair.backward):
        yield (*key, *names, pair.count, pair.forward, pair.backward, ratio(pair.backward, pair.forward))


FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
_OPTIMIZER = "Optimizer."


@frozen
class PhaseTime(Total):
    """Operators of a phase, their time, and that of what they launched [ns]."""

    operators: int = 0
    cpu: int = 0
    gpu: int = 0
    launches: int = 0


def times_of_phases(
    reading: RankReading, operators: TorchOperators, counting: Flags, ops: Ops, launched_at: tuple[Ints, Ints]
) -> dict[str | None, PhaseTime]:
    """Return the phases of a rank.

    Args:
        reading: reads the rank.
        operators: of the rank.
        counting: which of them the selection has.
        ops: its operations.
        launched_at: thread and start of the call that launched each, as `launch_calls` has them.
    """
    optimizers = nest([each for each in read_ranges(reading.reader.whole()).every if each.text.startswith(_OPTIMIZER)])
    phases: list[str | None] = [*_phases(operators, optimizers)]
    times: dict[str | None, PhaseTime] = {}
    for row in np.flatnonzero(counting).tolist():
        if row not in operators.nesting.parents:
            merge(times, {phases[row]: PhaseTime(1, int(operators.end[row] - operators.start[row]))})
    places = [operators.nesting.innermost(*launched_at), optimizers.innermost(*launched_at)]
    for (operator, optimizer), rows in grouped(places):
        phase = phases[operator] if operator >= 0 else OPTIMIZER if optimizer >= 0 else None
        merge(times, {phase: PhaseTime(gpu=total(ops.duration[rows]), launches=len(rows))})
    return times


def phase_rows(key: Key, times: Mapping[str | None, PhaseTime]) -> list[Row]:
    """Return the rows of the table, in the order of a step."""
    whole = sum(each.gpu for each in times.values())
    some = [(phase, times[phase]) for phase in (FORWARD, BACKWARD, OPTIMIZER, None) if phase in times]
    return [
        (*key, phase, each.operators, each.cpu, each.gpu, each.launches, percent(each.gpu, whole))
        for phase, each in some
    ]


def _phases(operators: TorchOperators, optimizers: Nesting) -> list[str]:
    """Return the phase of each operator."""
    in_optimizer = optimizers.innermost(operators.thread, operators.start) >= 0
    phases = []
    for row, is_optimizer in enumerate(in_optimizer.tolist()):
        *_, outermost = operators.around(row)
        name = operators.names[outermost] or ""
        if is_optimizer or name.startswith(_OPTIMIZER):
            phases.append(OPTIMIZER)
        else:
            phases.append(BACKWARD if is_backward(name) else FORWARD)
    return phases


_Kind: TypeAlias = "tuple[str | None, str | None]"  # operator, sizes


@frozen
class _Sum(Total):
    """Calls and times [ns] of an operator; `known` calls have operations."""

    calls: int = 0
    cpu: int = 0
    own_cpu: int = 0
    gpu: int = 0
    own_gpu: int = 0
    launches: int = 0
    flops: int = 0
    known: int = 0


def operators(reading: Reading) -> Tables:
    """Return operators by name, by name and sizes, and by phase.

    Raises:
        RocpdError: no operators were recorded.
    """
    names: dict[Key, dict[_Kind, _Sum]] = {}
    shapes: dict[Key, dict[_Kind, _Sum]] = {}
    phases: dict[Key, dict[str | None, PhaseTime]] = {}
    yield (answers := reading.each(_operators_of_rank))
    for rank, (names_of_rank, shapes_of_rank, phases_of_rank) in answers:
        key = key_of(reading.by, rank)
        merge_groups(names, {key: names_of_rank})
        merge_groups(shapes, {key: shapes_of_rank})
        merge_groups(phases, {key: phases_of_rank})
    if not any(names.values()):
        raise RocpdError("no operators in the selection", "traces of PyTorch have them, and RPD's with autograd facts")
    for table, sums in (("operators", names), ("operator-shapes", shapes)):
        yield reading.summary(TABLES[table], rows_of(sums, partial(_operator_rows, table=table)))
    yield reading.summary(PHASES, rows_of(phases, phase_rows))


def _operators_of_rank(
    reading: RankReading,
) -> tuple[dict[_Kind, _Sum], dict[_Kind, _Sum], dict[str | None, PhaseTime]]:
    operators = read_operators(reading)
    names: dict[_Kind, _Sum] = {}
    shapes: dict[_Kind, _Sum] = {}
    counting = _counting(reading, operators)
    _add_calls(operators, counting, names, shapes)
    ops = read_ops(reading, OperationNames(), stacks=True)
    launched_at = launch_calls(reading.reader, ops.stack)
    launched_in = operators.nesting.innermost(*launched_at)
    for (inner,), rows in grouped([launched_in]):
        time = total(ops.duration[rows])
        seen: set[tuple[int, _Kind]] = set()
        for depth, row in enumerate(operators.around(inner)):
            own_time = time if depth == 0 else 0
            for number, (sums, kind) in enumerate(
                ((names, (operators.names[row], None)), (shapes, _shape(operators, row)))
            ):
                is_outer = (number, kind) in seen
                seen.add((number, kind))
                more = _Sum(gpu=0 if is_outer else time, own_gpu=own_time, launches=0 if is_outer else len(rows))
                merge(sums, {kind: more})
    phases = times_of_phases(reading, operators, counting, ops, launched_at) if len(operators.names) else {}
    return names, shapes, phases


def _shape(operators: TorchOperators, row: int) -> _Kind:
    return operators.names[row], operators.sizes[row]


def _counting(reading: RankReading, operators: TorchOperators) -> Flags:
    """Return which operators the selection has."""
    reader = reading.reader
    if not reader.selects("rocpd_region"):
        return np.ones(len(operators.names), bool)
    (event,) = columns(reader, "rocpd_region", statement("operators"), ("event",))
    return np.isin(operators.event, event)


def _add_calls(operators: TorchOperators, counting: Flags, names: dict[_Kind, _Sum], shapes: dict[_Kind, _Sum]) -> None:
    """Add calls and their time on the CPU; of operators in others of their name the outermost has the time."""
    duration = (operators.end - operators.start).tolist()
    self_times = _self_times(operators)
    for row in np.flatnonzero(counting).tolist():
        name, sizes = _shape(operators, row)
        around = list(operators.around(row))[1:]
        flops = flops_of(name, sizes, operators.values[row])
        for sums, kind, is_inner in (
            (names, (name, None), any(operators.names[outer] == name for outer in around)),
            (shapes, (name, sizes), any(_shape(operators, outer) == (name, sizes) for outer in around)),
        ):
            cpu = 0 if is_inner else duration[row]
            merge(sums, {kind: _Sum(1, cpu, self_times[row], flops=flops or 0, known=int(flops is not None))})


def _self_times(operators: TorchOperators) -> list[int]:
    """Return the time of each operator in which it has none inside; what two inside both cover counts once [ns]."""
    times: list[int] = (operators.end - operators.start).tolist()
    covered = operators.start.tolist()
    for row, parent in operators.nesting.parents.items():  # in the order of their starts
        start, end = max(int(operators.start[row]), covered[parent]), int(operators.end[row])
        times[parent] -= max(end - start, 0)
        covered[parent] = max(end, covered[parent])
    return times


def _operator_rows(key: Key, sums: Mapping[_Kind, _Sum], table: str) -> Iterator[Row]:
    whole = sum(each.own_gpu for each in sums.values())
    in_order = sorted(
        sums.items(), key=lambda item: (-item[1].own_gpu, -item[1].gpu, -item[1].cpu, *(t or "" for t in item[0]))
    )
    for (name, sizes), each in in_order:
        times = (each.calls, each.cpu, each.own_cpu, each.gpu, each.own_gpu, each.launches)
        share = percent(each.own_gpu, whole)
        if table == "operators":
            yield (*key, name, *times, share)
        else:
            flops = each.flops if each.known and each.known == each.calls else None
            rate = flops / each.gpu / 1000 if flops and each.gpu else None
            yield (*key, name, sizes, *times, share, flops, rate)
