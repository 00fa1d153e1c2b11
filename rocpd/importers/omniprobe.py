"""What Omniprobe's outputs have in common: objects that may be damaged, counts that may be none, dispatches by kernel.

Its files are never closed, hold further lines in between, and do not escape names: what can be read is, and the rest is
counted. Knows none of the formats.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from rocpd.errors import InputError
from rocpd.trace.kernel_names import without_instrumentation

if TYPE_CHECKING:
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

Members: TypeAlias = Mapping[str, Any]
DispatchRows: TypeAlias = Sequence[Mapping[str, Any]]
"""Rows of one dispatch, as columns of the table that they go to."""

DAMAGED = "damaged lines or dispatches of Omniprobe"

_HINT = "was the program killed while it wrote? LOGDUR_LOG_FORMAT=json and LOGDUR_LOG_LOCATION=FILE write it anew"
_BLOCK = 1 << 20
_MOST = 1 << 26  # characters of one object: more is no object
_LONGEST_MARK = 100  # characters
_DECODER = json.JSONDecoder(strict=False)
_TEXT = re.compile(
    r'("(?:name|kernel|kernel_name|file|kernel_file_name|code_context|isa_instruction)"\s*:\s*)"(.*?)"'
    r'(?=\s*(?:,\s*"\w+"\s*:|\}))',
    re.S,
)
_ESCAPED = re.compile(r'(?:[^"\\\n]|\\["\\/bfnrtu])*')


class OmniprobeTable:
    """Writes what one output says to a table of a file of its own.

    Args:
        source: the output.
        target: where the file goes.
        table: name of the table.
        records: yields the rows of each dispatch, from a stream; for what is damaged None.
    """

    def __init__(
        self,
        source: TraceSource,
        target: TraceTarget,
        table: str,
        records: Callable[[BinaryIO], Iterator[DispatchRows | None]],
    ) -> None:
        self._source, self._target, self._table, self._records = source, target, table, records

    def write(self) -> None:
        """Write the file. The output is read twice: only its end says which dispatch of its kernel one is.

        Raises:
            InputError: nothing of it can be read.
        """
        from rocpd.schema.trace.infos import NodeInfo, ProcessInfo
        from rocpd.schema.trace.writer import TableRows

        numbers: dict[str, set[int]] = {}
        for rows in self._read():
            for row in rows or ():
                numbers.setdefault(row["kernel"], set()).add(row["dispatch_id"])
        if not numbers:
            raise InputError(f"{self._source.path}: damaged: no dispatch of it can be read", _HINT)
        ordinals = {
            kernel: {number: ordinal for ordinal, number in enumerate(sorted(dispatches), 1)}
            for kernel, dispatches in numbers.items()
        }
        node = NodeInfo(machine_id=f"omniprobe-{self._source.digest}", hostname="omniprobe")
        with self._target.rank(0, node, ProcessInfo(1, command="omniprobe")) as trace:
            for rows in self._read():
                if rows is None:
                    self._target.lose(DAMAGED)
                elif rows:
                    columns = {name: [row[name] for row in rows] for name in rows[0]}
                    columns["ordinal"] = [ordinals[row["kernel"]][row["dispatch_id"]] for row in rows]
                    trace.insert(TableRows(self._table, columns))

    def _read(self) -> Iterator[DispatchRows | None]:
        with self._source.stream() as stream:
            yield from self._records(stream)


def objects(stream: BinaryIO, start: str) -> Iterator[Members | None]:
    """Yield the objects that start with a member, as far as they can be read; None for one that cannot.

    Args:
        stream: the output; what stands between objects is passed over.
        start: name of the first member.
    """
    mark = re.compile(r"\{\s*" + re.escape(json.dumps(start)) + r"\s*:")
    characters = codecs.getincrementaldecoder("utf-8")("replace")  # one may lie in two blocks
    text, is_whole = "", False
    while not is_whole:
        block = stream.read(_BLOCK)
        is_whole = not block
        text += characters.decode(block, is_whole)
        starts = [match.start() for match in mark.finditer(text)]
        tail = max(0, len(text) - _LONGEST_MARK)
        edges = starts
        if is_whole:
            edges = [*starts, len(text)]
        elif starts and len(text) - starts[-1] > _MOST:
            edges = [*starts, tail]
        for first, end in pairwise(edges):
            yield members(text[first:end])
        text = text[edges[-1] if edges else tail :]


def members(text: str) -> Members | None:
    """Return the object that a text starts with, with its names escaped where need be; None where it is none."""
    for attempt in (text, _TEXT.sub(_escaped, text)):
        try:
            value, _ = _DECODER.raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, Mapping) else None
    return None


def _escaped(match: re.Match[str]) -> str:
    text = match[2] if _ESCAPED.fullmatch(match[2]) else json.dumps(match[2])[1:-1]
    return f'{match[1]}"{text}"'


def dispatch(record: Members, name: str, number: str) -> dict[str, Any] | None:
    """Return kernel and number of a dispatch as columns; None where one is missing."""
    kernel, dispatch_id = record.get(name), count(record.get(number))
    if not isinstance(kernel, str) or not kernel or dispatch_id is None:
        return None
    return {"kernel": without_instrumentation(kernel), "dispatch_id": dispatch_id}


def count(value: object) -> int | None:
    """Return a count; None for what is none: negative, not whole, no number, beyond 63 bits."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return int(value) if is_count else None  # type: ignore[call-overload]


def amount(value: object) -> float | None:
    """Return a number that is finite and not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def text(value: object) -> str | None:
    """Return a text; None for anything else, and for none."""
    return value if isinstance(value, str) and value else None


def inner(record: Members, *names: str) -> Members:
    """Return a member of a member …; an empty one where it is no object."""
    for name in names:
        value = record.get(name)
        record = value if isinstance(value, Mapping) else {}
    return record


def listed(record: Members, name: str) -> Iterable[Members]:
    """Return the objects in a list that is a member."""
    value = record.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else ()


def lines(stream: BinaryIO) -> Iterator[str]:
    """Yield the lines of an output without spaces around; a longer one than an object can be is passed over."""
    while line := stream.readline(_MOST):
        yield line.decode("utf-8", "replace").strip()
