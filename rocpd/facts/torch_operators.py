"""The operators of PyTorch of one rank: their names and inputs, their nesting, and the phase of a step of each.

Operators are regions of a category of their own; their arguments are the sizes of inputs, and the sequence number that
links a backward operator to its forward one. Operators with invalid times are left out and counted.

Floating-point operations are counted by the sizes of inputs, and only for operators that launch the work themselves, so
that operators around them add nothing. A multiplication and an addition are two operations; adding or scaling the
result afterwards does not count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rocpd.base import Flags, Ints, frozen
from rocpd.base.texts import json_value
from rocpd.facts.columns import as_text, columns, statement
from rocpd.facts.operations import string_texts, timed_columns
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import Nesting, nest, nest_times, read_ranges

_COLUMNS = ("name", "start", "end", "thread", "event")
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
"""Phases of a step, in their order."""

_OPTIMIZER = "Optimizer."
_Sizes = Sequence[Sequence[int]]


@frozen
class TorchOperators:
    """The operators of a rank in the whole trace, regardless of the selection; `counts` marks the selected ones.

    Args:
        names: name of each.
        sizes: texts of the sizes of its inputs, None where they were not recorded.
        values: texts of the inputs that are no tensors, None where they were not recorded.
        sequence: its sequence number, None if it has none.
        start, end: [ns].
        thread: id.
        nesting: nesting of the operators.
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
    """Whether an operator belongs to the backward pass, by its name.

    >>> is_backward("autograd::engine::evaluate_function: MulBackward0"), is_backward("AddmmBackward0")
    (True, True)
    >>> is_backward("aten::convolution_backward"), is_backward("aten::conv2d")
    (False, False)
    """
    return operator is not None and ("Backward" in operator or operator.startswith(("autograd::", "torch::autograd::")))


@functools.lru_cache(maxsize=8192)
def flops_of(operator: str | None, sizes: str | None, values: str | None = None) -> int | None:
    """Return the floating-point operations of one call, None where the operator has no rule or sizes are missing.

    Args:
        operator: name, such as `aten::mm`.
        sizes: JSON of the sizes of its inputs, as PyTorch records them (`Input Dims`).
        values: JSON of the inputs that are no tensors (`Concrete Inputs`); forward convolutions need it.

    >>> flops_of("aten::addmm", "[[8], [4, 16], [16, 8]]"), flops_of("aten::bmm", "[[2, 4, 16], [2, 16, 8]]")
    (1024, 2048)
    >>> flops_of("aten::_flash_attention_forward", "[[1, 64, 2, 32], [1, 64, 2, 32], [1, 64, 2, 32]]")
    1048576
    >>> padding_stride_dilation = '["", "", "", "[1, 1]", "[2, 2]", "[1, 1]"]'
    >>> flops_of("aten::miopen_convolution", "[[1, 3, 8, 8], [16, 3, 3, 3], []]", padding_stride_dilation)
    13824
    >>> flops_of("aten::linear", "[[4, 16], [8, 16]]"), flops_of("aten::mm", None), flops_of("aten::mm", "[[4]]")
    (None, None, None)
    """
    rule = _RULES.get(operator or "")
    if rule is None or not sizes:
        return None
    try:
        return rule(json_value(sizes), json_value(values) if values else [])
    except (ValueError, IndexError, TypeError):
        return None


def _matrices(first: int) -> Callable[[_Sizes, Any], int]:
    """Return the rule for a product of input `first` and the next one, each a matrix or a batch of matrices."""

    def rule(sizes: _Sizes, _: Any) -> int:
        *batch, rows, inner = sizes[first]
        other, columns = sizes[first + 1][-2:]
        if other != inner:
            raise ValueError(sizes)
        return 2 * math.prod(batch) * rows * inner * columns

    return rule


def _attention(heads: int, length: int) -> Callable[[_Sizes, Any], int]:
    """Return the rule for attention, two products; `heads`, `length`: dimensions of its inputs."""

    def rule(sizes: _Sizes, _: Any) -> int:
        query, key, value = sizes[:3]
        both = query[-1] + value[-1]
        return 2 * query[0] * query[heads] * query[length] * key[length] * both

    return rule


def _convolution(sizes: _Sizes, values: Sequence[Any]) -> int:
    image, weight = sizes[:2]
    lists = [json_value(text) for text in values if isinstance(text, str) and text.startswith("[")]
    padding, stride, dilation = lists[:3]
    spatial = zip(image[2:], weight[2:], padding, stride, dilation, strict=True)
    out = [(size + 2 * pad - spread * (kernel - 1) - 1) // step + 1 for size, kernel, pad, step, spread in spatial]
    return int(2 * image[0] * math.prod(out) * math.prod(weight))


def _convolution_backward(sizes: _Sizes, values: Sequence[Any]) -> int:
    """Return the operations for the requested gradients of input and weights; each costs as much as a forward pass."""
    gradient, _, weight = sizes[:3]
    masks = [text for text in values if isinstance(text, str) and ("True" in text or "False" in text)]
    asked = masks[-1].replace(" ", "").strip("[]").split(",")[:2] if masks and "[" in masks[-1] else ["True"] * 2
    return 2 * gradient[0] * math.prod(gradient[2:]) * math.prod(weight) * asked.count("True")


_RULES: Mapping[str, Callable[[Any, Any], int]] = {
    "aten::mm": _matrices(0),
    "aten::bmm": _matrices(0),
    "aten::_scaled_mm": _matrices(0),
    "aten::addmm": _matrices(1),
    "aten::baddbmm": _matrices(1),
    "aten::_flash_attention_forward": _attention(2, 1),
    "aten::_efficient_attention_forward": _attention(2, 1),
    "aten::_scaled_dot_product_cudnn_attention": _attention(1, 2),
    "aten::miopen_convolution": _convolution,
    "aten::cudnn_convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
}
