"""Writes one value as text, the same in all formats.

Rounds nothing: integers to the last digit, reals as the shortest text that reads back the same, blobs in hex.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rocpd.base import by_key
from rocpd.base.identity import blake2b
from rocpd.base.texts import visible

NULL = "NULL"
_DIGESTS = (2, 4, 32)  # bytes


def plain(value: Any) -> Any:
    """Return a value for csv and json: blobs become hex text, everything else stays."""
    return value.hex() if isinstance(value, bytes) else value


def one_line(value: Any) -> str:
    """Return a value as text on one line; NULL is written out, control characters are made visible.

    >>> one_line("a\\nb"), one_line(None), one_line(0.1), one_line(b"\\x01")
    ('a\\\\nb', 'NULL', '0.1', '01')
    """
    if value is None:
        return NULL
    return visible(value) if isinstance(value, str) else str(plain(value))


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a long text: names of kernels differ at both ends.

    >>> shorten("void gemm<float, 128>(int)", 16)
    'void ge…28>(int)'
    """
    if len(text) <= width:
        return text
    if width < 2:
        return text[:width]
    tail = width // 2
    return text[: width - tail - 1] + "…" + text[-tail:]


def shorten_apart(texts: Sequence[str], width: int) -> list[str]:
    """Shorten texts so that different ones stay different; if both ends are alike, the difference is kept.

    If that is too long for `width`, a digest of the text ends it; only widths smaller than the digest are exceeded.

    >>> shorten_apart(["void gemm<float, 128, true>(int)", "void gemm<float, 256, true>(int)"], 16)
    ['void…128, true>…', 'void…256, true>…']
    """
    short = {text: shorten(text, width) for text in texts}
    _part(sorted(short), width, short)
    for size in _DIGESTS:
        for group in alike(sorted(short), short):
            cut = [text for text in group if len(text) > width] if size < _DIGESTS[-1] else group
            short.update({text: _digested(text, width, size) for text in cut})
    return [short[text] for text in texts]


def alike(texts: Iterable[str], short: Mapping[str, str]) -> list[list[str]]:
    """Return groups of different texts with the same short form."""
    return [group for group in by_key((short[text], text) for text in texts).values() if len(group) > 1]


def _digested(text: str, width: int, size: int) -> str:
    """Return the start of a text, and a digest of all of it."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()
    return f"{text[: max(0, width - len(digest) - 1)]}~{digest}"


def _part(texts: Sequence[str], width: int, short: dict[str, str]) -> None:
    """Shorten texts with the same short form around the first place where they differ."""
    for group in alike(texts, short) if width >= 8 else ():
        # Sorted, so the first and the last differ first.
        pairs = enumerate(zip(group[0], group[-1], strict=False))
        differ = next((position for position, (a, b) in pairs if a != b), len(group[0]))
        for text in group:
            short[text] = _around(text, differ, width)
        if len({short[text] for text in group}) > 1:
            _part(group, width, short)


def _around(text: str, position: int, width: int) -> str:
    head = width // 4
    start = max(head, min(position, len(text) - (width - head - 1)))
    room = width - head - 1
    if start + room < len(text):
        return f"{text[:head]}…{text[start : start + room - 1]}…"
    return f"{text[:head]}…{text[start:]}"
