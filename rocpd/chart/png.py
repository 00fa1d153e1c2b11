"""Owns pictures made of few colours, as PNG: a palette with opacity, one byte a pixel.

Format: PNG specification, third edition, sections 5 and 11.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

Rgba = tuple[int, int, int, int]


def png(width: int, rows: Sequence[bytes], palette: Iterable[Rgba]) -> bytes:
    """Return a picture.

    Args:
        width: pixels of a row.
        rows: from the top, one index into the palette per pixel.
        palette: up to 256 colours: red, green, blue and opacity, each 0 to 255.
    """
    colours = list(palette)
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", head),
        (b"PLTE", bytes(value for colour in colours for value in colour[:3])),
        (b"tRNS", bytes(colour[3] for colour in colours)),
        (b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
