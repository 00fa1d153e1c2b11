"""Texts in files: shown so that they cannot control a terminal, reorder a line or end it; and the JSON in them.

Every text for people passes through here, twice: writers put a cell, a heading or a note on one line, and all output of
the command line goes through a `VisibleStream`, which catches texts that a writer forgot. Data in files and pipes stays
as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, TextIO

_SHOWN: dict[int, str] = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_SHOWN |= {ord(char): text for char, text in zip("\n\r\t\0\x1b", ("\\n", "\\r", "\\t", "\\0", "\\e"), strict=True)}
_SHOWN |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029)}  # line ends to some readers
_SHOWN |= {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SHOWN |= {code: f"\\u{code:04x}" for code in (*range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF)}  # no characters: HTML, XML
_SHOWN |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}  # halves of a character: no UTF-8 has them
_IN_LINES = {code: text for code, text in _SHOWN.items() if chr(code) not in "\n\t"}


def visible(text: str) -> str:
    """Return a text on one line, with control characters and those that change the direction of writing made visible.

    Halves of characters, which stand for bytes of a file name that are no UTF-8, are made visible, too.

    >>> visible("a\\nb"), visible("\\x1b[31mred"), visible("\\u202egpj.exe"), visible("\\udcff.db")
    ('a\\\\nb', '\\\\e[31mred', '\\\\u202egpj.exe', '\\\\udcff.db')
    """
    return text.translate(_SHOWN)


def visible_lines(text: str) -> str:
    """Return a text as `visible` does, except for line ends and tabs."""
    return text.translate(_IN_LINES)


_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")


class VisibleStream:
    """A stream for people: of control characters only line ends and tabs pass.

    All output of the command line goes through one; data goes to the stream that `as_data` returns.

    Args:
        stream: the underlying stream.
        has_colours: let colours pass, too.
    """

    def __init__(self, stream: TextIO, has_colours: bool = False) -> None:
        self._stream = stream
        self._has_colours = has_colours

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        self._stream.write(self._shown(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def data(self) -> TextIO:
        """Return the stream for data: this one on a terminal, else the underlying stream."""
        return self if self._stream.isatty() else self._stream  # type: ignore[return-value]

    def _shown(self, text: str) -> str:
        if not self._has_colours:
            return visible_lines(text)
        parts = _COLOURS.split(text)
        parts[::2] = map(visible_lines, parts[::2])
        return "".join(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def as_data(out: TextIO) -> TextIO:
    """Return the stream for data, which passes unchanged except on a terminal, where control characters are shown."""
    return out.data() if isinstance(out, VisibleStream) else out


def json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object in a text; None if it is other JSON, damaged, or nested too deeply.

    >>> json_object('{"a": 1}'), json_object("[1]"), json_object("{")
    ({'a': 1}, None, None)
    """
    content = json_value(text)
    return content if isinstance(content, dict) else None


def json_value(text: object) -> Any:
    """Return the value of the JSON in a cell; None if it is no JSON, damaged, or nested too deeply.

    >>> json_value("[1]"), json_value("["), json_value("[" * 100_000), json_value(3)
    ([1], None, None, None)
    """
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
