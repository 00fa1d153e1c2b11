"""The operators of PyTorch of one rank: what they are, how they lie in each other, in which phase of a step each is.

Operators are regions of a category of their own; their arguments are the sizes of inputs and the sequence number by
which a backward operator knows its forward one. Those with invalid times are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.base import Flags, Ints, frozen
from rocpd.facts.columns import as_text, columns, statement
from rocpd.facts.operations import string_texts, timed_columns
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import Nesting, nest, nest_times, read_ranges

_COLUMNS = ("name", "start", "end", "thread", "event")
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
"""Phases of a step, in their order."""

_OPTIMIZER = "Optimizer."


@frozen
class TorchOperators:
    """The operators of a rank, of the whole trace whatever the selection: `counts` says which it has.

    Args:
        names: of each.
        sizes: texts of the sizes of its inputs, None where they were not recorded.
        values: texts of the inputs that are no tensors, None where they were not recorded.
        sequence: its sequence number, None where it has none.
        start, end: [ns].
        thread: id.
        nesting: which lies in which.
        counts: whether it passes window and filters.
        optimizers: the ranges of optimizers, which may be markers and no operators.
    """

    names: Sequence[str | None]
    sizes: Sequence[str | None]
    values: Sequence[str | None]
    sequence: Sequence[int | None]
    start: Ints
    end: Ints
    thread: Ints
    nesting: Nesting
    counts: Flags
    optimizers: Nesting

    def phases(self) -> list[str]:
        """Return the phase of each operator."""
        in_optimizer = self.optimizers.innermost(self.thread, self.start) >= 0
        phases = []
        for row, is_optimizer in enumerate(in_optimizer.tolist()):
            *_, outermost = self.nesting.path(row)
            name = self.names[outermost] or ""
            if is_optimizer or name.startswith(_OPTIMIZER):
                phases.append(OPTIMIZER)
            else:
                phases.append(BACKWARD if is_backward(name) else FORWARD)
        return phases


def read_operators(reading: RankReading) -> TorchOperators:
    """Read the operators of a rank."""
    whole = reading.whole()
    name, start, end, thread, event = timed_columns(whole, "rocpd_region", "operators", _COLUMNS)
    rows = whole.reader.rows(statement("operator_facts")) if len(event) else []
    facts = {(number, argument): as_text(value) or "" for number, argument, value in rows}
    texts, events = string_texts(whole.reader, name), event.tolist()
    counts = np.ones(len(event), bool)
    if reading.reader.selects("rocpd_region"):
        (selected,) = columns(reading.reader, "rocpd_region", statement("operators"), ("event",))
        counts = np.isin(event, selected)
    ranges = read_ranges(whole.reader).every if len(event) else []
    return TorchOperators(
        [texts.get(number) for number in name.tolist()],
        [facts.get((number, "Input Dims")) for number in events],
        [facts.get((number, "Concrete Inputs")) for number in events],
        [_whole(facts.get((number, "Sequence number"))) for number in events],
        start,
        end,
        thread,
        nest_times(start, end, thread),
        counts,
        nest([each for each in ranges if each.text.startswith(_OPTIMIZER)]),
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def is_backward(operator: str | None) -> bool:
    """Whether an operator is one of the backward pass, by its name.

    >>> is_backward("autograd::engine::evaluate_function: MulBackward0"), is_backward("AddmmBackward0")
    (True, True)
    >>> is_backward("aten::convolution_backward"), is_backward("aten::conv2d")
    (False, False)
    """
    return operator is not None and ("Backward" in operator or operator.startswith(("autograd::", "torch::autograd::")))
