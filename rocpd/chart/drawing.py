"""Drawings: shapes with places, sizes and colours, which SVG, PDF and pictures are made of. Knows no chart."""

from __future__ import annotations

from typing import TypeAlias

from rocpd.frozen import frozen
from rocpd.table.palette import Colour

WIDTH = 860.0
"""Of every chart [px]."""

SIZE = 12.0
"""Of text [px]."""

_NARROW, _WIDE, _LARGE, _USUAL = 0.38, 0.97, 0.68, 0.61  # widths of characters, by the size of the text


@frozen
class Rect:
    """A filled rectangle; `tip` is said where somebody points at it."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour
    tip: str = ""
    opacity: float = 1.0


@frozen
class Stroke:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: Colour
    width: float = 1.0
    tip: str = ""


@frozen
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float
    colour: Colour
    tip: str = ""


@frozen
class Word:
    """Text; `x` and `y` are those of its baseline's start, middle or end.

    One that `is_faint` matters less; one that `is_tick` stands below a time line, and changes where that can be zoomed.
    """

    x: float
    y: float
    text: str
    anchor: str = "start"
    is_faint: bool = False
    is_tick: bool = False


@frozen
class Pixels:
    """A picture as PNG, of so many columns and rows of pixels."""

    x: float
    y: float
    width: float
    height: float
    png: bytes
    columns: int
    rows: int


Shape: TypeAlias = Rect | Stroke | Dot | Word | Pixels


@frozen
class Drawing:
    """A chart as shapes, from the back to the front; sizes in px."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


def width_of(text: str) -> float:
    """Return about how wide a text is [px]; fonts differ."""
    return SIZE * sum(map(_share, text))


def _share(character: str) -> float:
    if character in "iljtf.,:;|!()[]' ":
        return _NARROW
    return _WIDE if character in "mwMW%@" else _LARGE if character.isupper() or character.isdigit() else _USUAL
