"""Which phase of training an operator belongs to: the optimizer, the backward pass, or all else, the forward pass.

Operators in a range called `Optimizer.…`, as PyTorch marks its optimizers, are the optimizer's, and so is what is
launched in it outside of any operator. Of all others the outermost operator decides: what a backward operator calls,
such as the forward pass of a checkpoint, is backward.
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
from rocpd.trace.nesting import Nesting, nest
from rocpd.types import Flags, Ints, Row

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
_OPTIMIZER = "Optimizer."

TABLE = TableDefinition(
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


def phase_rows(times: dict[str | None, PhaseTime]) -> list[Row]:
    """Return the rows of the table, in the order of a step."""
    whole = sum(each.gpu for each in times.values())
    some = [(phase, times[phase]) for phase in (FORWARD, BACKWARD, OPTIMIZER, None) if phase in times]
    return [
        (phase, each.operators, each.cpu, each.gpu, each.launches, each.gpu * 100 / whole if whole else None)
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
