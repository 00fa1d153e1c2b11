"""Owns how text from files is shown where characters could steer a terminal, reorder a line or end it.

Everything that a person reads passes here: cells, headings, notes, errors, progress. Data in files and pipes does not.
"""

from __future__ import annotations

from typing import TextIO

_SHOWN: dict[int, str] = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_SHOWN |= {ord(char): text for char, text in zip("\n\r\t\0\x1b", ("\\n", "\\r", "\\t", "\\0", "\\e"), strict=True)}
_SHOWN |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029)}  # line ends to some readers
_SHOWN |= {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SHOWN |= {code: f"\\u{code:04x}" for code in (*range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF)}  # no characters: HTML, XML
_IN_LINES = {code: text for code, text in _SHOWN.items() if chr(code) not in "\n\t"}


def visible(text: str) -> str:
    """Return a text on one line, with control characters and those that turn the direction of writing made visible.

    >>> visible("a\\nb"), visible("\\x1b[31mred"), visible("\\u202egpj.exe")
    ('a\\\\nb', '\\\\e[31mred', '\\\\u202egpj.exe')
    """
    return text.translate(_SHOWN)


def visible_lines(text: str) -> str:
    """Return a text as `visible` does, but for its ends of lines and tabulators."""
    return text.translate(_IN_LINES)


class VisibleText:
    """A terminal to which text is written as `visible_lines` returns it.

    Args:
        terminal: where to.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        self._terminal.write(visible_lines(text))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._terminal, name)


def for_reading(out: TextIO) -> TextIO:
    """Return what data is written to: `out` itself, or where that is a terminal one that shows control characters."""
    return VisibleText(out) if out.isatty() else out  # type: ignore[return-value]
