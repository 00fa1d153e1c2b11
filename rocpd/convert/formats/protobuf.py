"""Encodes protobuf bytes: single fields, and many messages of equal length at once as rows of a byte matrix.

A varint may carry redundant continuation bytes (https://protobuf.dev/programming-guides/encoding/#varints), so a column
of numbers takes one width and every message of a group has the same length: numpy then writes a column of all messages
at once. Knows no meaning of messages.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"
Part: TypeAlias = "bytes | Bytes"
"""Bytes that all messages share, or one row of bytes per message."""

_SPREAD = [
    (least, np.uint64(keep), ~np.uint64(keep), np.uint64(shift))
    for least, keep, shift in ((4, 0x0FFFFFFF, 4), (2, 0x00003FFF00003FFF, 2), (0, 0x007F007F007F007F, 1))
]
_MORE = [np.uint64(0x8080808080808080 & (1 << 8 * max(width - 1, 0)) - 1) for width in range(9)]  # by width


@functools.lru_cache(1 << 14)  # field numbers and lengths repeat often
def varint(value: int) -> bytes:
    """Encode one number, 0 <= value < 2^64, in the fewest bytes."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encode a varint field."""
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    """Encode a length-delimited field: a string, bytes or a message."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def numbers(field: int, values: npt.NDArray[np.int64]) -> list[Part]:
    """Encode a varint field of each message; negative numbers take ten bytes."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if low == high >= 0:
        return [varint(field << 3) + varint(low)]
    return [varint(field << 3), varints(values, 10 if low < 0 else len(varint(high)))]


def fixed(field: int, values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> list[Part]:
    """Encode a 64-bit field (fixed64 or double) of each message."""
    little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    return [varint(field << 3 | 1), little.view(np.uint8).reshape(-1, 8)]


def message(field: int, parts: Sequence[Part]) -> list[Part]:
    """Encode a message field of each message; `parts` are its fields."""
    return [varint(field << 3 | 2) + varint(length(parts)), *parts]


def length(parts: Sequence[Part]) -> int:
    """Return the length of each message [bytes]."""
    return sum([len(part) if isinstance(part, bytes) else part.shape[1] for part in parts])


def rows(parts: Sequence[Part], count: int) -> Bytes:
    """Return `count` messages as rows of a byte matrix."""
    template, columns, at = [], [], 0
    for part in parts:
        if isinstance(part, bytes):
            template.append(part)
            at += len(part)
        else:
            width = part.shape[1]
            template.append(bytes(width))
            columns.append((slice(at, at + width), part))
            at += width
    matrix = np.empty((count, at), np.uint8)
    matrix[:] = np.frombuffer(b"".join(template), np.uint8)
    for place, part in columns:
        matrix[:, place] = part
    return matrix


def varints(values: npt.NDArray[np.int64], width: int) -> Bytes:
    """Encode numbers as varints of one width."""
    if width == 1:
        return values.astype(np.uint8).reshape(-1, 1)
    if width > 8:  # more than a word of 64 bits
        return _slow(values, width)
    # Spread groups of 7 bits over bytes: halves, quarters, eighths of a 64-bit word.
    v = values.view(np.uint64) if values.flags.c_contiguous else np.ascontiguousarray(values).view(np.uint64)
    for least, keep, move, shift in _SPREAD:
        if width > least:  # the upper half of the bits of each field goes to where the next one's lower half starts
            v = (v & keep) | ((v & move) << shift)
    v |= _MORE[width]
    return v.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)[:, :width]


def _slow(values: npt.NDArray[np.int64], width: int) -> Bytes:
    rest = values.astype(np.uint64)
    out = np.empty((len(values), width), np.uint8)
    for i in range(width):
        out[:, i] = (rest & 0x7F) | (0x80 if i + 1 < width else 0)
        rest >>= 7
    return out
