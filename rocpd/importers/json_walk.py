"""Walks through a JSON document of any size, value by value: only what is asked for is parsed, and lies in memory.

Python's own parser, which goes on from where a value ends; orjson, which is faster, takes whole documents only. Knows
no profiler.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from rocpd.errors import InputError

_BLOCK = 1 << 20
_BATCH = 1 << 13
_SPACE = " \t\r\n"
_AFTER = frozenset(f"{_SPACE},:]}}")  # what may follow a value
_DECODER = json.JSONDecoder(strict=False)


class JsonWalk:
    """A place in a document. A caller that gets a member or an item consumes it, by one of the methods.

    Args:
        stream: the document.
        path: its file, for messages.
        hint: what to do where it is damaged.
    """

    def __init__(self, stream: BinaryIO, path: Path, hint: str) -> None:
        self._stream, self._path, self._hint = stream, path, hint
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text, self._at = "", 0
        self._before = 0  # characters that are dropped
        self._is_whole = False

    def members(self) -> Iterator[str]:
        """Yield the names of the members of an object, each when its value comes next."""
        self._take("{")
        if self._next() != "}":
            while True:
                if self._next() != '"':
                    raise self._damage()
                name = self.value()
                self._take(":")
                yield str(name)
                if self._next() != ",":
                    break
                self._take(",")
        self._take("}")

    def items(self) -> Iterator[None]:
        """Yield for each item of an array, when its value comes next."""
        self._take("[")
        if self._next() != "]":
            while True:
                yield
                if self._next() != ",":
                    break
                self._take(",")
        self._take("]")

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
            InputError: it is damaged.
        """
        self._next()
        wanted = _BLOCK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._is_whole:
                    raise self._damage() from error
            else:
                if self._is_whole or self._text[end : end + 1] in _AFTER:  # else a number may go on
                    self._at = end
                    return value
            self._read(wanted)
            wanted *= 2

    def _next(self) -> str:
        """Return the next character that is no space, without taking it; at the end an empty text."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if self._is_whole:
                return ""
            self._read(_BLOCK)

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
