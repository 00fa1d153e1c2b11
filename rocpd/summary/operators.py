"""Operators of PyTorch: how often, with which sizes, their time on the CPU, and that of the GPU work they launched.

Of an operator that lies in another of its name the outer one has the time. Operations and rates of matrix products,
attention and convolutions come from the sizes of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.groups import grouped
from rocpd.summary.links import launch_calls
from rocpd.summary.operator_phases import TABLE as PHASES
from rocpd.summary.operator_phases import PhaseTime, phase_rows, times_of_phases
from rocpd.summary.ops import OperationNames, read_ops
from rocpd.summary.reading import Key, RankReading, Reading, key_of, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import total
from rocpd.summary.statements import statement
from rocpd.summary.sums import Total, merge
from rocpd.summary.torch_operators import TorchOperators, read_operators
from rocpd.trace.operator_flops import flops_of
from rocpd.types import Flags, Row

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


def operators(reading: Reading) -> Iterator[Summary]:
    """Return operators by name, by name and sizes, and by phase.

    Raises:
        RocpdError: no operators were recorded.
    """
    names: dict[Key, dict[_Kind, _Sum]] = {}
    shapes: dict[Key, dict[_Kind, _Sum]] = {}
    phases: dict[Key, dict[str | None, PhaseTime]] = {}
    for rank, (by_name_of_rank, by_shape, by_phase) in reading.each(_of_rank):
        key = key_of(reading.by, rank)
        merge(phases.setdefault(key, {}), by_phase)
        merge(names.setdefault(key, {}), by_name_of_rank)
        merge(shapes.setdefault(key, {}), by_shape)
    if not any(names.values()):
        raise RocpdError("no operators in the selection", "traces of PyTorch have them, and RPD's with autograd facts")
    for table, sums in (("operators", names), ("operator-shapes", shapes)):
        rows = (row for key in sorted(sums, key=order_of) for row in _rows(key, sums[key], table))
        yield reading.summary(TABLES[table], rows)
    in_order = sorted(phases.items(), key=lambda item: order_of(item[0]))
    yield reading.summary(PHASES, [(*key, *row) for key, times in in_order for row in phase_rows(times)])


def _of_rank(
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


def _rows(key: Key, sums: dict[_Kind, _Sum], table: str) -> Iterator[Row]:
    whole = sum(each.own_gpu for each in sums.values())
    in_order = sorted(
        sums.items(), key=lambda item: (-item[1].own_gpu, -item[1].gpu, -item[1].cpu, *(t or "" for t in item[0]))
    )
    for (name, sizes), each in in_order:
        times = (each.calls, each.cpu, each.own_cpu, each.gpu, each.own_gpu, each.launches)
        share = each.own_gpu * 100 / whole if whole else None
        if table == "operators":
            yield (*key, name, *times, share)
        else:
            flops = each.flops if each.known and each.known == each.calls else None
            rate = flops / each.gpu / 1000 if flops and each.gpu else None
            yield (*key, name, sizes, *times, share, flops, rate)
