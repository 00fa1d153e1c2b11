"""Reads texts that are written in another way: UTF-16, and words in base64, hexadecimal digits and escapes.

Each word is read once, in time that grows with it. Never knows what a text gives away.
"""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse
from collections.abc import Iterator

_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}")
_LONG = re.compile(r"[\w+/-]{16}")
_UNICODE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){12,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def decoded(raw: bytes, errors: str = "backslashreplace") -> str:
    """Return the text of bytes, which some programs write as UTF-16.

    >>> decoded(b"abc"), decoded("abc".encode("utf-16-le")), decoded(b"a\\xff")
    ('abc', 'abc', 'a\\\\xff')
    """
    encoding = "utf-8"
    if raw.count(0) > len(raw) // 3:
        encoding = "utf-16-be" if raw[::2].count(0) > raw[1::2].count(0) else "utf-16-le"
    return raw.decode(encoding, errors)


def may_be_encoded(text: str) -> bool:
    """Whether a word of a text may be written in another way."""
    return bool(_ESCAPED.search(text) or _LONG.search(text))


def readings(word: str) -> Iterator[str]:
    """Yield what a word, or a part of it, says where it is written in another way.

    >>> list(readings("%61%62c")), list(readings("key=aGVsbG8gd29ybGQhIQ==")), list(readings("_Z16kernel_with_namePf"))
    (['abc'], ['key=hello world!!'], [])
    """
    if _ESCAPED.search(word):
        read = _UNICODE.sub(lambda escape: chr(int(escape[1], 16)), urllib.parse.unquote(word))
        yield read.encode("utf-8", "replace").decode()
    read = _BASE64.sub(lambda part: _read(part[0]) or part[0], word)
    if read != word:
        yield read


def _read(word: str) -> str | None:
    """Return the text that a word is in hexadecimal digits or base64; None where it is no printable one."""
    try:
        raw = bytes.fromhex(word) if _HEX.fullmatch(word) else _of_base64(word)
        text = decoded(raw, "replace").strip("\0").replace("\ufffd", "?")  # escapes would be four times as long
    except (ValueError, binascii.Error):
        return None
    return text if text.isascii() and text.replace("\n", " ").isprintable() else None


def _of_base64(word: str) -> bytes:
    plain = word.rstrip("=")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), b"-_" if "-" in plain or "_" in plain else None)
