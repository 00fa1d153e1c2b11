"""The picture of a time line: its pixels say how busy each slice is."""

from __future__ import annotations

import zlib

from rocpd.chart.draw import picture
from rocpd.chart.model import WORK, Timeline
from rocpd.table.palette import colour_of


def chunk(png: bytes, name: bytes) -> bytes:
    """Return the data of a chunk."""
    at = png.index(name)
    return png[at + 4 : at + 4 + int.from_bytes(png[at - 4 : at], "big")]


def test_only_idle_slices_have_no_colour_and_busier_ones_never_less() -> None:
    levels = [share / 63 for share in range(64)]
    for work in range(len(WORK)):
        shares = tuple(levels if part == work else [0.0] * len(levels) for part in range(len(WORK)))
        png = picture(Timeline("", ("rank 0",), 0, 1, (shares,)))
        pixels = zlib.decompress(chunk(png, b"IDAT"))[1:]
        opacities = [chunk(png, b"tRNS")[pixel] for pixel in pixels]
        assert (opacities[0], opacities[-1]) == (0, 255)
        assert min(opacities[1:]) > 0
        assert opacities == sorted(opacities)


def test_each_kind_of_work_has_its_colour() -> None:
    """Copies look like copies; what is half and half lies between the colours."""
    shares = ((1.0, 0.0, 0.0, 0.5), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.5))
    png = picture(Timeline("", ("rank 0",), 0, 1, (shares,)))
    palette = chunk(png, b"PLTE")
    *pure, half = (tuple(palette[3 * pixel : 3 * pixel + 3]) for pixel in zlib.decompress(chunk(png, b"IDAT"))[1:])
    assert pure == [colour_of(name) for name in WORK]
    low, high = colour_of("compute"), colour_of("copies")
    assert all(min(pair) < part < max(pair) for part, *pair in zip(half, low, high, strict=True))
