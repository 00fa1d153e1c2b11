"""Writes a fact as bytes and reads it: its columns in as few bytes as their values need, the rest as JSON.

Never makes a value of a type that its definition does not list, whatever the bytes say: nothing in them is run. Values
that would not come back the same to the last bit are refused when written, and damaged bytes are refused when read.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import zlib
from collections.abc import Callable, Sequence
from itertools import compress, pairwise
from typing import Any

import numpy as np

from rocpd.base import NULL, Ints
from rocpd.base.identity import blake2b
from rocpd.federate.run.rank_reader import Fact

_DIGEST = 16
_PLAIN = (type(None), bool, int, float, str)
_MANY = 16
_SAMPLE = 2048  # bytes
_UNSIGNED = (np.uint8, np.uint16, np.uint32)
_OF_INTS = {(np.dtype(np.int64), 1)}


def packed(fact: Fact, value: object) -> bytes:
    """Return a value of a fact as bytes.

    Raises:
        TypeError: a part of it has a type that the fact does not list.
    """
    writing = _Writing(fact.types)
    shape = writing.part(value)
    planes = [plane for _, content in writing.columns for plane in content]
    is_even = [_is_even(plane) for plane in planes]
    described = [each for each, _ in writing.columns]
    head = json.dumps([shape, described, list(map(len, planes)), is_even], separators=(",", ":")).encode()
    squeezed = _squeezed(b"".join([len(head).to_bytes(8, "little"), head, *compress(planes, is_even)]))
    others = (plane for plane, is_squeezed in zip(planes, is_even, strict=True) if not is_squeezed)
    body = b"".join([len(squeezed).to_bytes(8, "little"), squeezed, *others])
    return blake2b(body, digest_size=_DIGEST).digest() + body


def unpacked(fact: Fact, content: bytes) -> Any:
    """Return the value of a fact from its bytes.

    Raises:
        ValueError: the bytes are damaged.
    """
    if blake2b(content[_DIGEST:], digest_size=_DIGEST).digest() != content[:_DIGEST]:
        raise ValueError("damaged")
    body = memoryview(content)[_DIGEST:]
    edge = 8 + int.from_bytes(body[:8], "little")
    even, others = memoryview(zlib.decompress(body[8:edge])), body[edge:]
    edge = 8 + int.from_bytes(even[:8], "little")
    shape, columns, sizes, is_even = json.loads(bytes(even[8:edge]))
    even, planes = even[edge:], list[memoryview]()
    for size, is_squeezed in zip(sizes, is_even, strict=True):
        source = even if is_squeezed else others
        planes.append(source[:size])
        even, others = (even[size:], others) if is_squeezed else (even, others[size:])
    return _Reading(fact.types, columns, planes).part(shape)


def _is_even(plane: bytes) -> bool:
    """Whether bytes are worth compressing: a sample from their middle shrinks to less than half."""
    sample = plane[len(plane) // 2 :][:_SAMPLE]
    return len(plane) <= _SAMPLE or len(_squeezed(sample)) * 2 < len(sample)


def _squeezed(content: bytes) -> bytes:
    squeezing = zlib.compressobj(1, zlib.DEFLATED, strategy=zlib.Z_RLE)  # half the time of looking further back
    return squeezing.compress(content) + squeezing.flush()


class _Writing:
    """Takes a value apart; a column that occurs twice is written once."""

    def __init__(self, types: Sequence[type]) -> None:
        self._types = {kind: number for number, kind in enumerate(types)}
        self._known: dict[int, int] = {}
        self._values: list[object] = []  # kept alive, so that no other object gets their id
        self.columns: list[tuple[list[Any], list[bytes]]] = []

    def part(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in self._types:
            return ["o", self._types[kind], [self.part(each) for each in _fields(value)]]
        if kind is np.ndarray:
            return ["c", self._column(value)]
        if kind in (tuple, list):
            return [kind.__name__[0], self._listed(value)]
        if kind is frozenset:
            return ["f", self._listed(list(value))]
        if kind is dict:
            return ["d", self._listed(list(value)), self._listed(list(value.values()))]
        raise TypeError(f"{kind.__qualname__} in a fact")

    def _listed(self, values: Sequence[Any]) -> list[Any]:
        """Return values as JSON: many of one type by columns, texts and numbers unchanged, others part by part."""
        kinds = set(map(type, values))
        if len(values) >= _MANY and len(kinds) == 1:
            (kind,) = kinds
            if kind is int and min(values) > NULL and max(values) < -NULL:
                return ["column", self._column(np.array(values, np.int64))]
            if kind is str and len(different := dict.fromkeys(values)) < len(values) // 2:
                codes = dict(zip(different, range(len(different)), strict=True))
                return ["texts", list(different), self._column(np.array([codes[each] for each in values], np.int64))]
            if kind in self._types and (rows := list(map(_fields, values))) and len(set(map(len, rows))) == 1:
                return ["rows", self._types[kind], list(map(self._listed, zip(*rows, strict=True)))]
            if kind is tuple and values[0] and len(set(map(len, values))) == 1:
                return ["tuples", list(map(self._listed, zip(*values, strict=True)))]
            if kind is np.ndarray and {(each.dtype, each.ndim) for each in values} == _OF_INTS:
                lengths = np.array(list(map(len, values)), np.int64)
                return ["arrays", self._column(lengths), self._column(np.concatenate(values))]
        return ["plain", list(values)] if kinds.issubset(_PLAIN) else ["parts", [self.part(each) for each in values]]

    def _column(self, values: Any) -> int:
        number = self._known.setdefault(id(values), len(self.columns))
        if number == len(self.columns):
            self._values.append(values)
            self.columns.append(_narrowed(values) if values.dtype == np.int64 else _as_it_is(values))
        return number


def _fields(value: Any) -> Sequence[Any]:
    """Return the arguments of an equal value: from its `parts`, a tuple, or the fields of a dataclass."""
    if hasattr(value, "parts"):
        return tuple(value.parts())
    if isinstance(value, enum.Enum):
        return (value.value,)
    return value if isinstance(value, tuple) else [getattr(value, each.name) for each in dataclasses.fields(value)]


def _as_it_is(values: Any) -> tuple[list[Any], list[bytes]]:
    if values.dtype.kind not in "bfiu":
        raise TypeError(f"a column of {values.dtype}")
    return [values.dtype.str, 1, list(values.shape)], [np.ascontiguousarray(values).tobytes()]


def _narrowed(values: Ints) -> tuple[list[Any], list[bytes]]:
    """Return whole numbers, or the steps between them, as distances above the least one; NULL as 0."""
    if values.ndim != 1 or not len(values):
        return _as_it_is(values)
    if (values == values[0]).all():
        return ["same", 0, len(values), int(values[0])], []
    by_step, plain = _above(np.diff(values[1:])), _above(values)  # without the first value, often `ALWAYS`
    if by_step and (not plain or by_step[0].itemsize < plain[0].itemsize):
        narrow, base = by_step
        return ["steps", narrow.itemsize, narrow.dtype.str, base, values[:2].tolist()], _in_planes(narrow)
    if plain:
        narrow, base = plain
        return ["above", narrow.itemsize, narrow.dtype.str, base], _in_planes(narrow)
    return _as_it_is(values)


def _above(values: Ints) -> tuple[Any, int] | None:
    """Return the distance of each value above a base, and that base; None: that would save no bytes."""
    known = values != NULL
    numbers = values if known.all() else values[known]
    base = (int(numbers.min()) if len(numbers) else 0) - 1
    span = (int(numbers.max()) if len(numbers) else 0) - base
    kind = next((kind for kind in _UNSIGNED if span <= np.iinfo(kind).max), None)
    return None if kind is None or base < -(1 << 63) else (np.where(known, values - base, 0).astype(kind), base)


def _in_planes(values: Any) -> list[bytes]:
    """Return the lowest bytes of all values, then the next higher ones, and so on: the highest hardly change."""
    each = values.view(np.uint8).reshape(-1, values.itemsize)
    return [each[:, place].tobytes() for place in range(values.itemsize)]


def _from_planes(planes: Sequence[memoryview], kind: str) -> Any:
    values = np.empty((len(planes[0]), len(planes)), np.uint8)
    for place, plane in enumerate(planes):
        values[:, place] = np.frombuffer(plane, np.uint8)
    return values.view(kind)[:, 0]


def _above_back(narrow: Any, base: int) -> Ints:
    values: Ints = narrow.astype(np.int64)
    is_null = values == 0
    values += base
    values[is_null] = NULL
    return values


class _Reading:
    """Puts a value together."""

    def __init__(self, types: Sequence[type], columns: Sequence[Sequence[Any]], planes: Sequence[memoryview]) -> None:
        self._types = types
        edges = np.cumsum([0, *(described[1] for described in columns)]).tolist()
        places = zip(columns, edges, edges[1:], strict=False)
        self._columns = [_column(described, planes[low:high]) for described, low, high in places]

    def part(self, shape: Any) -> Any:
        if not isinstance(shape, list):
            return shape
        how, *rest = shape
        if how == "o":
            return self._types[rest[0]](*(self.part(each) for each in rest[1]))
        if how == "c":
            return self._columns[rest[0]]
        if how == "d":
            return dict(zip(*map(self._listed, rest), strict=True))
        return _COLLECTIONS[how](self._listed(rest[0]))

    def _listed(self, shape: Sequence[Any]) -> list[Any]:
        how, *rest = shape
        if how == "column":
            values: list[Any] = self._columns[rest[0]].tolist()
        elif how == "texts":
            values = [rest[0][code] for code in self._columns[rest[1]].tolist()]
        elif how == "rows":
            values = list(map(self._types[rest[0]], *map(self._listed, rest[1])))
        elif how == "tuples":
            values = list(zip(*map(self._listed, rest[0]), strict=True))
        elif how == "arrays":
            edges = np.cumsum(self._columns[rest[0]]).tolist()
            values = [self._columns[rest[1]][low:high] for low, high in pairwise([0, *edges])]
        else:
            values = rest[0] if how == "plain" else [self.part(each) for each in rest[0]]
        return values


_COLLECTIONS: dict[str, Callable[[list[Any]], Any]] = {"t": tuple, "l": list, "f": frozenset}


def _column(described: Sequence[Any], planes: Sequence[memoryview]) -> Any:
    how, _, *rest = described
    if how == "same":
        return np.full(rest[0], rest[1], np.int64)
    if how == "above":
        return _above_back(_from_planes(planes, rest[0]), rest[1])
    if how == "steps":
        steps = _above_back(_from_planes(planes, rest[0]), rest[1])
        first, later = rest[2][:1], rest[2][1:]
        return np.append(first, np.cumsum(np.append(np.array(later, np.int64), steps)))
    return np.frombuffer(planes[0], how).reshape(rest[0]).copy()
