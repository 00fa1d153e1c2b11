"""Counts the floating-point operations of an operator of PyTorch, by the sizes of its inputs.

Only operators that launch the work themselves count, so those around them add nothing. A multiplication and an addition
are two operations; what is added or scaled afterwards does not count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rocpd.base.documents import json_value

_Sizes = Sequence[Sequence[int]]


@functools.lru_cache(maxsize=8192)
def flops_of(operator: str | None, sizes: str | None, values: str | None = None) -> int | None:
    """Return the operations of one call, None where the operator is none of these or sizes are missing.

    Args:
        operator: name, such as `aten::mm`.
        sizes: JSON of the sizes of its inputs, as PyTorch records them (`Input Dims`).
        values: JSON of those inputs that are no tensors (`Concrete Inputs`); forward convolutions need it.

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
    """Return the rule of a product of the inputs `first` and the one after it, each a matrix or a batch of them."""

    def rule(sizes: _Sizes, _: Any) -> int:
        *batch, rows, inner = sizes[first]
        other, columns = sizes[first + 1][-2:]
        if other != inner:
            raise ValueError(sizes)
        return 2 * math.prod(batch) * rows * inner * columns

    return rule


def _attention(heads: int, length: int) -> Callable[[_Sizes, Any], int]:
    """Return the rule of attention, whose inputs have heads and length at these dimensions: two products."""

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
    """Count the gradients of input and weights, those that are asked for; each costs as much as the forward pass."""
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
