"""Owns what a terminal shows beside text: how wide it is, and colours as its escape sequences. Knows no table.

256 colours are xterm's: a cube of six levels each, then greys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rocpd.table.palette import Colour

FEW, MANY = 256, 1 << 24
_LEVELS = (0, 95, 135, 175, 215, 255)


class Screen(NamedTuple):
    """A terminal: its columns, and how many colours it has; 0: none are wanted.

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
        """Return a text that stands out."""
        return f"\x1b[1m{text}\x1b[0m" if self.colours and text else text

    def faint(self, text: str) -> str:
        """Return a text that stands back."""
        return f"\x1b[2m{text}\x1b[0m" if self.colours and text else text


def _in_cube(colour: Colour) -> int:
    """Return the number of the colour of 256 that is nearest."""
    red, green, blue = (min(range(6), key=lambda level: abs(_LEVELS[level] - part)) for part in colour)
    return 16 + 36 * red + 6 * green + blue
