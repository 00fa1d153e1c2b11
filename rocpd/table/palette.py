"""Colours, one for each category and part of time, the same in traces, reports and on the console; and terminals.

The colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which are distinct for colour-blind people,
too, and a grey. No colour is the only sign: a name, a sign or a length stands beside it. A terminal has its columns,
and shows colours by escape sequences; the 256 colours are xterm's: a cube of six levels each, then greys.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple


class Colour(NamedTuple):
    """A colour, 0 to 255 each."""

    red: int
    green: int
    blue: int

    @property
    def hex(self) -> str:
        """The colour in the form for pages.

        >>> BLUE.hex
        '#0072b2'
        """
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


BLUE = Colour(0, 114, 178)
SKY = Colour(86, 180, 233)
GREEN = Colour(0, 158, 115)
YELLOW = Colour(240, 228, 66)
ORANGE = Colour(230, 159, 0)
RED = Colour(213, 94, 0)
PURPLE = Colour(204, 121, 167)
BROWN = Colour(153, 107, 61)  # for lines, where YELLOW is too faint on white
GREY = Colour(190, 190, 190)

COLOURS: Mapping[str, Colour] = {
    # categories of kernels, as in schema/rules/data/categories.json
    "GEMM": BLUE, "attention": GREEN, "communication": RED, "elementwise": SKY, "reduction": PURPLE, "copy": ORANGE,
    "other": GREY,
    # parts of the time of a GPU, and of a step
    "compute": BLUE, "exposed communication": RED, "hidden communication": PURPLE, "exposed copies": ORANGE,
    "copies": ORANGE, "idle": GREY,
    # domains of events
    "KERNELS": BLUE, "MEMORY_COPIES": ORANGE, "MEMORY_ALLOCATIONS": YELLOW, "SCRATCH_MEMORY": PURPLE, "HIP": SKY,
    "HSA": GREY, "RCCL": RED, "MARKERS": GREEN,
}  # fmt: skip
"""Name of a category of kernels, a part of time or a domain -> its colour."""

_OTHERS = (YELLOW, SKY, PURPLE, ORANGE, GREEN)
_VIRIDIS = (Colour(68, 1, 84), Colour(59, 82, 139), Colour(33, 145, 140), Colour(94, 201, 98), Colour(253, 231, 37))


def colour_of(name: str | None) -> Colour:
    """Return the colour of a category, a part of time or a domain; each other name has a fixed colour, too.

    >>> colour_of("GEMM").hex, colour_of("GEMM") == colour_of("compute"), colour_of(None) == GREY
    ('#0072b2', True, True)
    """
    if not name:
        return GREY
    if name in COLOURS:
        return COLOURS[name]
    from zlib import crc32

    return _OTHERS[crc32(name.encode("utf-8", "surrogatepass")) % len(_OTHERS)]


def on_scale(share: float) -> Colour:
    """Return the colour of a cell of a heat map, of viridis: 0 is dark violet, 1 is yellow.

    >>> on_scale(0).hex, on_scale(0.5).hex, on_scale(7).hex
    ('#440154', '#21918c', '#fde725')
    """
    position = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    below = min(int(position), len(_VIRIDIS) - 2)
    (low, high), part = list(pairwise(_VIRIDIS))[below], position - below
    return Colour(*(round(a + (b - a) * part) for a, b in zip(low, high, strict=True)))


FEW, MANY = 256, 1 << 24
_LEVELS = (0, 95, 135, 175, 215, 255)


class Screen(NamedTuple):
    """A terminal: its columns, and its number of colours; 0: none are wanted.

    >>> from rocpd.table.palette import Colour
    >>> Screen(80, MANY).paint("abc", Colour(0, 114, 178)), Screen(80).paint("abc", Colour(0, 114, 178))
    ('\\x1b[38;2;0;114;178mabc\\x1b[0m', 'abc')
    """

    width: int
    colours: int = 0

    def paint(self, text: str, colour: Colour | None) -> str:
        """Return a text in a colour."""
        if not self.colours or colour is None:
            return text
        code = f"2;{colour.red};{colour.green};{colour.blue}" if self.colours > FEW else f"5;{_in_cube(colour)}"
        return f"\x1b[38;{code}m{text}\x1b[0m"

    def bold(self, text: str) -> str:
        """Return a bold text."""
        return f"\x1b[1m{text}\x1b[0m" if self.colours and text else text

    def faint(self, text: str) -> str:
        """Return a faint text."""
        return f"\x1b[2m{text}\x1b[0m" if self.colours and text else text


def _in_cube(colour: Colour) -> int:
    """Return the number of the nearest of the 256 colours."""
    red, green, blue = (min(range(6), key=lambda level: abs(_LEVELS[level] - part)) for part in colour)
    return 16 + 36 * red + 6 * green + blue
