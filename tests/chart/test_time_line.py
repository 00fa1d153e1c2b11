"""The picture of a time line: its pixels say what is done in each slice, its shapes where to look."""

from __future__ import annotations

import zlib

from rocpd.chart.draw import SIZE, Word, draw, picture, svg
from rocpd.chart.model import WORK, Mark, Timeline
from rocpd.table.palette import colour_of


def chunk(png: bytes, name: bytes) -> bytes:
    """Return the data of a chunk."""
    at = png.index(name)
    return png[at + 4 : at + 4 + int.from_bytes(png[at - 4 : at], "big")]


def stacked(png: bytes, levels: int) -> list[list[int]]:
    """Return the pixels of each slice of one row, from the bottom; 0 is idle."""
    lines = zlib.decompress(chunk(png, b"IDAT"))
    width = len(lines) // levels
    return [[lines[level * width + 1 + at] for level in reversed(range(levels))] for at in range(width - 1)]


def test_only_idle_slices_have_no_pixel_and_busier_ones_never_less() -> None:
    shares = [share / 63 for share in range(64)]
    for work in range(len(WORK)):
        row = tuple(shares if part == work else [0.0] * len(shares) for part in range(len(WORK)))
        slices = stacked(picture(Timeline("", ("rank 0",), 0, 1, (row,)), 8), 8)
        heights = [sum(pixel == work + 1 for pixel in slice_) for slice_ in slices]
        assert (heights[0], heights[1], heights[-1]) == (0, 1, 8)
        assert heights == sorted(heights)


def test_states_stand_on_each_other_in_their_colours() -> None:
    """From the bottom: half compute, a quarter hidden, the rest exposed; a trace of copies has its pixel."""
    row = ((0.5, 0.9), (0.25, 0.0), (0.25, 0.0), (0.0, 0.01))
    png = picture(Timeline("", ("rank 0",), 0, 1, (row,)), 8)
    assert stacked(png, 8) == [[1, 1, 1, 1, 2, 2, 3, 3], [1] * 7 + [4]]
    palette = chunk(png, b"PLTE")
    assert [tuple(palette[3 * at : 3 * at + 3]) for at in range(1, 5)] == [colour_of(name) for name in WORK]


def test_findings_and_steps_are_drawn_where_they_are() -> None:
    """A mark frames its row and leads to what is said; its rank is named however many there are."""
    shares = tuple(((0.5,) * 10, (0.0,) * 10, (0.0,) * 10, (0.0,) * 10) for _ in range(200))
    names = tuple(f"rank {number}" for number in range(200))
    mark = Mark(20, 40, "late", (7, 8), "finding-0")
    chart = Timeline("", names, 0, 10, shares, ("a",) * 100 + ("b",) * 100, (("5", 0, 50),), (mark,))
    drawn = draw(chart)
    words = [shape for shape in drawn.shapes if isinstance(shape, Word)]
    assert {"rank 7", "a", "b", "5"} <= {word.text for word in words}
    assert [(word.text, word.span) for word in words if word.link] == [("1", (2.0, 4.0))]
    assert '<a href="#finding-0">' in svg(drawn, "", shown="broad")


def test_a_host_is_marked_by_its_name_and_marks_of_one_place_stand_apart() -> None:
    shares = tuple(((0.5,) * 10, (0.0,) * 10, (0.0,) * 10, (0.0,) * 10) for _ in range(8))
    names = tuple(f"rank {number}" for number in range(8))
    marks = Mark(20, 40, "late", (4, 8), "finding-0"), Mark(20, 40, "slow", None, "finding-1")
    drawn = draw(Timeline("", names, 0, 10, shares, ("a",) * 4 + ("b",) * 4, (), marks))
    words = [shape for shape in drawn.shapes if isinstance(shape, Word)]
    assert [word.text for word in words if word.colour and not word.link] == ["b"]
    first, second = (word.x + word.aside for word in words if word.link)
    assert second - first > SIZE
