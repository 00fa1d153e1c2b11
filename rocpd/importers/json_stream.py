"""Streams JSON of any size, so that memory stays flat. Knows no profiler.

`JsonWalk` goes through a document value by value: each is parsed only on request, by Python's own parser, which can
continue after the end of a value; msgspec, which is faster, takes only whole documents. `JsonEvents` has the events
of a trace (Chrome's "Trace Event Format", object or array form), some thousand at a time. It cuts the text between two
events and parses each piece at once: `}, {"ph":` never occurs inside a text of JSON, so such a place is between two
objects; and a piece that starts with an event and parses also ends with one. It reports damage, and the readable part
of a damaged file.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from rocpd.base import InputError

_WALK_BLOCK = 1 << 20
_BATCH = 1 << 13
_SPACE = " \t\r\n"
_AFTER = frozenset(f"{_SPACE},:]}}")  # characters that may follow a value
_DECODER = json.JSONDecoder(strict=False)


class JsonWalk:
    """A place in a document. A caller that gets a member or an item consumes it, by one of the methods.

    Args:
        stream: the document.
        path: its file, for messages.
        hint: advice for a damaged file.
    """

    def __init__(self, stream: BinaryIO, path: Path, hint: str) -> None:
        self._stream, self._path, self._hint = stream, path, hint
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text, self._at = "", 0
        self._before = 0  # characters that were dropped
        self._is_whole = False

    def members(self) -> Iterator[str]:
        """Yield the names of the members of an object, each before its value is read."""
        for _ in self._each("{", "}"):
            if self._next() != '"':
                raise self._damage()
            name = self.value()
            self._take(":")
            yield str(name)

    def items(self) -> Iterator[None]:
        """Yield before each item of an array, when its value comes next."""
        return self._each("[", "]")

    def _each(self, opening: str, closing: str) -> Iterator[None]:
        """Yield before each of the parts between two characters, which commas separate."""
        self._take(opening)
        if self._next() != closing:
            yield
            while self._next() == ",":
                self._take(",")
                yield
        self._take(closing)

    def batches(self) -> Iterator[list[Any]]:
        """Yield the items of an array, some thousand at a time; nothing for any other value."""
        if self._next() != "[":
            self.value()
            return
        batch = []
        for _ in self.items():
            batch.append(self.value())
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def value(self) -> Any:
        """Return the value that comes next.

        Raises:
            InputError: the value is damaged.
        """
        self._next()
        wanted = _WALK_BLOCK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._is_whole:
                    raise self._damage() from error
            else:
                if self._is_whole or self._text[end : end + 1] in _AFTER:  # else a number may continue
                    self._at = end
                    return value
            self._read(wanted)
            wanted *= 2

    def _next(self) -> str:
        """Return the next character that is no space, without taking it; an empty text at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if self._is_whole:
                return ""
            self._read(_WALK_BLOCK)

    def _take(self, character: str) -> None:
        if self._next() != character:
            raise self._damage()
        self._at += 1

    def _read(self, size: int) -> None:
        block = self._stream.read(size)
        self._is_whole = not block
        self._before += self._at
        self._text, self._at = self._text[self._at :] + self._decode(block, final=not block), 0

    def _damage(self) -> InputError:
        return InputError(f"{self._path}: damaged: no JSON from about byte {self._before + self._at:,} on", self._hint)


Event = dict[str, Any]
_Event = TypeVar("_Event")

_BLOCK = 1 << 20  # bytes that are read at once
_PIECE = 1 << 17  # bytes that are parsed at once: what they become, twelve times as much, stays in the cache of a core
_MOST_HEAD = 256 << 20
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|s|bp)"\s*:)')
_LAST = 1 << 12, 1 << 16  # bytes at the end that are searched for places between events, until there are enough
_MOST_UNPARSED = 32 << 20
_TRIED = 4  # last places that are tried: objects inside events, and after all events, may start as events do
_HINT = "it was damaged or is no trace; write it again, or --skip-bad"


class JsonEvents(Generic[_Event]):
    """The events of one trace; the values of its other keys are known once all events are read.

    Args:
        path: the file, for messages.
        kind: class of an event, whose fields take any value and have defaults, or `Event`.
        on_damage: called with the unreadable part of a damaged file, such as `event at the end, which was cut`.
        exactly: whether numbers with decimals are returned as texts, as times have more digits than a float.

    Attributes:
        facts: the other keys of the object.
    """

    def __init__(
        self, path: object, kind: type[_Event], on_damage: Callable[[str], None], *, exactly: bool = False
    ) -> None:
        self.facts: dict[str, Any] = {}
        self._kind = kind
        hook = str if exactly else None
        self._decode_events = msgspec.json.Decoder(list[kind], float_hook=hook).decode  # type: ignore[valid-type]
        self._decode = msgspec.json.Decoder(float_hook=hook).decode
        self._path, self._tell = path, on_damage
        self._buffer = b""
        self._read = 0
        self._is_array = self._repaired = self._has_others = False

    def batches(self, stream: BinaryIO) -> Iterator[Iterator[list[_Event]]]:
        """Yield the events in order, those of a megabyte as a batch of pieces; a piece is parsed when it is asked for.

        Raises:
            InputError: it is no trace, or damaged elsewhere than at its end.
        """
        blocks = self._blocks(stream)
        self._read_head(blocks)
        for block in blocks:
            yield self._whole_events()
            self._append(block)
        yield self._whole_events()
        yield iter((self._events_of(self._rest()),))
        if self._has_others:
            self._tell("kind of entry in the list that is no event")
        if self._repaired:
            self._tell("kind of value that is no JSON: NaN, or text that is no Unicode")

    def _blocks(self, stream: BinaryIO) -> Iterator[bytes]:
        read = getattr(stream, "read1", stream.read)  # keeps the data decompressed before an error
        is_open = True
        while is_open:
            pieces: list[bytes] = []
            size = 0
            while is_open and size < _BLOCK:
                try:
                    pieces.append(read(_BLOCK - size))
                except (EOFError, zlib.error, gzip.BadGzipFile):
                    pieces.append(b"")  # the lack shows at the end of the text
                size += len(pieces[-1])
                is_open = bool(pieces[-1])
            yield b"".join(pieces)

    def _append(self, block: bytes) -> None:
        self._buffer += block
        self._read += len(block)

    def _read_head(self, blocks: Iterator[bytes]) -> None:
        """Read up to the first event, including the keys before it."""
        for block in blocks:
            self._append(block)
            text = self._buffer.removeprefix(b"\xef\xbb\xbf").lstrip()
            if text.startswith(b"["):
                self._is_array, self._buffer = True, text[1:]
                return
            if match := _EVENTS.search(text):
                head, self._buffer = text[: match.end()], text[match.end() :]
                self._take_facts(self._parsed(head + b"]}"))
                return
            if len(text) > _MOST_HEAD:
                break
        raise InputError(f"{self._path}: holds no list of trace events", _HINT)

    def _whole_events(self) -> Iterator[list[_Event]]:
        """Take whole events off the buffer, in pieces, as long as the end of a piece is clear."""
        start, end, size = 0, _PIECE, len(self._buffer)
        while start < size:
            end = end if size - end > _PIECE else size
            events, place = self._events_between(start, end)
            if place > start:
                yield events
                start, end = place, end + _PIECE
            elif end < size:
                end = size  # a damaged piece is tried again with all after it, and then with the next block
            else:
                break
            del events  # before the next ones are parsed: their memory is used again
        self._buffer = self._buffer[start:]
        if len(self._buffer) > _MOST_UNPARSED and _BETWEEN.search(self._buffer, len(self._buffer) - _LAST[-1]):
            raise self._error(0)

    def _events_between(self, start: int, end: int) -> tuple[list[_Event], int]:
        """Return as many events of a part of the buffer as one parse finds, and the place after them."""
        matches: list[re.Match[bytes]] = []
        for size in _LAST:
            if len(matches) < _TRIED:
                matches = list(_BETWEEN.finditer(self._buffer, max(start, end - size), end))
        for match in matches[: -_TRIED - 1 : -1]:
            text = b"".join((b"[", memoryview(self._buffer)[start : match.start() + 1], b"]"))
            with contextlib.suppress(ValueError):
                return self._decode_events(text), match.end()
            if (items := self._parsed(text)) is not None:
                return self._events_of(items), match.end()
        return [], start

    def _rest(self) -> Sequence[Any]:
        """Return the events of the last part of the text, and take the keys after them.

        Raises:
            InputError: the text is damaged before its end.
        """
        start = b"[" if self._is_array else b'{"traceEvents":['
        rest = self._parsed(start + self._buffer)
        if rest is None and self._is_array:  # the format lets writers leave the bracket out
            rest = self._parsed(start + self._buffer.rstrip(b", \t\r\n") + b"]")
        if rest is None:
            rest = self._first_document(start + self._buffer)
        if rest is None:
            return self._before_cut()
        if isinstance(rest, list):
            return rest
        events: list[Any] = rest.pop("traceEvents")
        self._take_facts(rest)
        return events

    def _first_document(self, text: bytes) -> Any:
        """Return the first of several documents; None if there is only one."""
        try:
            document, _ = _DECODER.raw_decode(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
        self._tell("part of the file after the end of the trace")
        return document

    def _before_cut(self) -> Sequence[Any]:
        """Return the events before the one that the end of the text cuts.

        Raises:
            InputError: the text is damaged elsewhere than at its end.
        """
        places = [0, *(match.start() + 1 for match in _BETWEEN.finditer(self._buffer))]
        low, high = 0, len(places)
        events: Sequence[Any] = []
        while high - low > 1:
            middle = (low + high) // 2
            parsed = self._parsed(b"[" + self._buffer[: places[middle]] + b"]")
            low, high = (low, middle) if parsed is None else (middle, high)
            events = events if parsed is None else parsed
        if len(places) - low > _TRIED or not (events or self._read > len(self._buffer)):
            raise self._error(places[low])
        self._tell("event at the end of the file, which was cut")
        return events

    def _error(self, place: int) -> InputError:
        at = self._read - len(self._buffer) + place
        return InputError(f"{self._path}: damaged: no JSON from about byte {at:,} on", _HINT)

    def _take_facts(self, facts: Any) -> None:
        self.facts |= {key: value for key, value in (facts or {}).items() if key != "traceEvents"}

    def _events_of(self, items: Sequence[Any]) -> list[_Event]:
        """Return the events among parsed items."""
        objects = [item for item in items if isinstance(item, dict)]
        self._has_others |= len(objects) < len(items)
        return msgspec.convert(objects, list[self._kind])  # type: ignore[name-defined]

    def _parsed(self, text: bytes) -> Any:
        """Return the value of a JSON text; None if it is malformed; invalid Unicode and NaN are repaired."""
        with contextlib.suppress(ValueError):
            return self._decode(text)
        try:
            parsed = json.loads(text.decode("utf-8", "replace"), strict=False, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            return None
        self._repaired = True
        return parsed
