"""Which phase of training an operator belongs to: the optimizer, the backward pass, or all else, the forward pass.

An operator in a range called `Optimizer.…`, as PyTorch marks its optimizers, is the optimizer's. Of all others the
outermost operator decides: what a backward operator calls, such as the forward pass of a checkpoint, is backward.
"""

from __future__ import annotations

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.autograd import is_backward
from rocpd.summary.ops import Ops
from rocpd.summary.reading import RankReading
from rocpd.summary.result import Field, TableDefinition
from rocpd.summary.spread import total
from rocpd.summary.steps import read_ranges
from rocpd.summary.sums import Total, merge
from rocpd.summary.torch_operators import TorchOperators
from rocpd.trace.nesting import nest
from rocpd.types import Flags, Ints, Row

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
_OPTIMIZER = "Optimizer."

TABLE = TableDefinition(
    "operator-phases",
    "Operators by forward pass, backward pass and optimizer.",
    (
        Field("phase", "", "forward, backward or optimizer; NULL: GPU work launched by no operator"),
        Field("operators", "", "operators that lie in no other", True),
        Field("cpu_ns", "ns", "their time"),
        Field("gpu_ns", "ns", "GPU work launched in them"),
        Field("launches", "", "kernels, copies and the like of it"),
        Field("percent", "%", "share of the time of all GPU work", is_share=True),
    ),
)


@frozen
class PhaseTime(Total):
    """Operators of a phase, their time, and that of what they launched [ns]."""

    operators: int = 0
    cpu: int = 0
    gpu: int = 0
    launches: int = 0


def times_of_phases(
    reading: RankReading, operators: TorchOperators, counting: Flags, ops: Ops, launched_in: Ints
) -> dict[str | None, PhaseTime]:
    """Return the phases of a rank.

    Args:
        reading: reads the rank.
        operators: of the rank.
        counting: which of them the selection has.
        ops: its operations.
        launched_in: the innermost operator around the launch of each, -1 where there is none.
    """
    phases: list[str | None] = list(_phases(reading, operators))
    times: dict[str | None, PhaseTime] = {}
    for row in np.flatnonzero(counting).tolist():
        if row not in operators.nesting.parents:
            merge(times, {phases[row]: PhaseTime(1, int(operators.end[row] - operators.start[row]))})
    for (inner,), rows in grouped([launched_in]):
        merge(
            times, {phases[inner] if inner >= 0 else None: PhaseTime(gpu=total(ops.duration[rows]), launches=len(rows))}
        )
    return times


def phase_rows(times: dict[str | None, PhaseTime]) -> list[Row]:
    """Return the rows of the table, in the order of a step."""
    whole = sum(each.gpu for each in times.values())
    some = [(phase, times[phase]) for phase in (FORWARD, BACKWARD, OPTIMIZER, None) if phase in times]
    return [
        (phase, each.operators, each.cpu, each.gpu, each.launches, each.gpu * 100 / whole if whole else None)
        for phase, each in some
    ]


def _phases(reading: RankReading, operators: TorchOperators) -> list[str]:
    """Return the phase of each operator."""
    ranges = [each for each in read_ranges(reading.reader.whole()).every if each.text.startswith(_OPTIMIZER)]
    in_optimizer = nest(ranges).innermost(operators.thread, operators.start) >= 0
    phases = []
    for row, is_optimizer in enumerate(in_optimizer.tolist()):
        *_, outermost = operators.around(row)
        name = operators.names[outermost] or ""
        if is_optimizer or name.startswith(_OPTIMIZER):
            phases.append(OPTIMIZER)
        else:
            phases.append(BACKWARD if is_backward(name) else FORWARD)
    return phases
