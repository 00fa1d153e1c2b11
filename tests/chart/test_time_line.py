"""The picture of a time line: its pixels say how busy each slice is."""

from __future__ import annotations

import zlib

from rocpd.chart.draw import picture
from rocpd.chart.model import MOST, Timeline


def chunk(png: bytes, name: bytes) -> bytes:
    """Return the data of a chunk."""
    at = png.index(name)
    return png[at + 4 : at + 4 + int.from_bytes(png[at - 4 : at], "big")]


def test_only_idle_slices_have_no_colour_and_busier_ones_never_less() -> None:
    levels = bytes(range(MOST + 1))
    for mix in (0, MOST):
        png = picture(Timeline("", ("rank 0",), 0, 1, (levels,), (bytes([mix]) * len(levels),)))
        pixels = zlib.decompress(chunk(png, b"IDAT"))[1:]
        opacities = [chunk(png, b"tRNS")[pixel] for pixel in pixels]
        assert (opacities[0], opacities[-1]) == (0, 255)
        assert min(opacities[1:]) > 0
        assert opacities == sorted(opacities)
