"""Draws what commands print on a terminal of 100 columns, as SVG: the pictures of docs/gallery.md that hold text."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import NamedTuple

from textual.widgets import Static

from rocpd.top.glance import Glance, JobState
from rocpd.top.screen import TopScreen
from rocpd.top.watch import Watch, WatchOptions

SCREENS: dict[str, tuple[str, ...]] = {
    "summary": ("summary", "job"),
    "advise": ("advise", "job"),
    "heat": ("summary", "heat", "job", "--bins", "80"),
    "diff": ("diff", "before", "job"),
}
"""Name of the picture -> the command that it shows."""

TOP_SCREENS = {"top": ("r", True), "top-plain": ("k", False), "top-hang": ("g", True)}
"""Name of the picture of `rocpd top` -> key of the page, and whether there are colours."""

_COLUMNS, _WIDE, _HIGH, _MARGIN = 100, 8.4, 18, 14
_INK, _PAPER = "#d8dadd", "#1b1d1e"
_CODES = re.compile(r"\x1b\[([\d;]*)m")
_JOBS = {"job": ("--seed", "42"), "before": ("--seed", "42", "--plant", "none")}


class _Piece(NamedTuple):
    """Part of a line in one style."""

    column: int
    text: str
    colour: str
    is_bold: bool


def screens() -> dict[str, Callable[[], str]]:
    """Return path -> what draws it, below the root of the project."""
    drawn = {f"docs/images/{name}.svg": functools.partial(screen, name) for name in SCREENS}
    return drawn | {f"docs/images/{name}.svg": functools.partial(top_screen, name) for name in TOP_SCREENS}


def screen(name: str) -> str:
    """Return a picture of `SCREENS`."""
    title = " ".join(["rocpd", *SCREENS[name]])
    return picture(title, _printed(SCREENS[name]))


def top_screen(name: str) -> str:
    """Return a picture of `TOP_SCREENS`: 80 x 24 characters of the example job, as if it ran."""
    key, has_colours = TOP_SCREENS[name]
    return picture("rocpd top job", asyncio.run(_shown(_glance(hangs=key == "g"), key, has_colours)))


def _glance(hangs: bool) -> Glance:
    """Return the job at its end as if it ran; if it hangs, as docs/hang.md says."""
    job = Path(_folder().name) / "job"
    for path in job.glob("*.db"):
        os.utime(path, (0, 0))  # of a job that was over long ago all is shown
    with Watch([str(job)], WatchOptions()) as watch:
        glance = watch.look()
    ranks = tuple(replace(rank, state=JobState.RUNNING) for rank in glance.ranks)
    page = (Path(__file__).parent / "hang.md").read_text(encoding="utf-8")
    lines = page.partition("$ rocpd hang job\n")[2].partition("```")[0].strip().split("\n")
    return replace(glance, state=JobState.RUNNING, ranks=ranks, hangs=hangs, hang=tuple(lines) if hangs else ())


async def _shown(glance: Glance, key: str, has_colours: bool) -> str:
    """Return a page of the screen as a terminal gets it."""

    class Idle:
        def report(self, path: Path) -> None:
            """Nobody asks."""

        def look_at(self, steps: int) -> None:
            """Nobody asks."""

        def can_conclude(self) -> bool:
            return False

    app = TopScreen(lambda: glance, Idle(), 60.0, has_colours=has_colours)
    async with app.run_test(size=(80, 24)) as pilot:
        while glance.step_line() not in str(app.query_one("#top", Static).render()):
            await pilot.pause(0.05)
        await pilot.press(key)
        await pilot.pause(0.1)
        strips = app.screen._compositor.render_strips()
        return "\n".join(strip.render(app.console) for strip in strips)


def picture(title: str, printed: str) -> str:
    """Return the SVG of a command and of what it printed, with the escape sequences of colours and bold text."""
    lines = [[_Piece(0, f"$ {title}", _INK, False)], *map(list, map(_pieces, _wrapped(printed)))]
    width, height = _COLUMNS * _WIDE + 2 * _MARGIN, len(lines) * _HIGH + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" font-size="14"'
        " font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">",
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>',
    ]
    for number, pieces in enumerate(lines):
        for piece in pieces:
            x, y = _MARGIN + piece.column * _WIDE, _MARGIN + number * _HIGH + 13
            bold = ' font-weight="bold"' if piece.is_bold else ""
            # The length holds columns together whatever font the reader has.
            parts.append(
                f'<text x="{x:.1f}" y="{y}" textLength="{len(piece.text) * _WIDE:.1f}" fill="{piece.colour}"{bold}'
                f' xml:space="preserve">{escape(piece.text)}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _wrapped(printed: str) -> Iterator[str]:
    """Yield the lines as a terminal shows them; those with colours fit."""
    for line in printed.rstrip().split("\n"):
        yield from [line] if _CODES.search(line) or not line else textwrap.wrap(line, _COLUMNS, drop_whitespace=False)


def _pieces(line: str) -> Iterator[_Piece]:
    column, colour, is_bold = 0, _INK, False
    for index, part in enumerate(_CODES.split(line)):
        if index % 2:
            colour, is_bold = _style(part, colour, is_bold)
            continue
        if part.strip():
            lead = len(part) - len(part.lstrip())
            yield _Piece(column + lead, part.strip(), colour, is_bold)
        column += len(part)


def _style(codes: str, colour: str, is_bold: bool) -> tuple[str, bool]:
    """Return the style after an escape sequence (ECMA-48, SGR)."""
    numbers = [int(code or 0) for code in codes.split(";")]
    if numbers[:2] == [38, 2]:
        return "#{:02x}{:02x}{:02x}".format(*numbers[2:5]), is_bold
    for number in numbers:
        if number == 0:
            colour, is_bold = _INK, False
        elif number == 1:
            is_bold = True
        elif number == 2:
            colour = "#8b9198"
    return colour, is_bold


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Make the jobs that pictures are of; the folder goes when Python ends."""
    folder = tempfile.TemporaryDirectory(prefix="rocpd-screens-")
    for name, options in _JOBS.items():
        _run(["simulate", "-o", name, "--ranks", "8", "--nodes", "2", "--steps", "12", *options], Path(folder.name))
    return folder


def _printed(words: tuple[str, ...]) -> str:
    return _run([*words, "--color", "always"], Path(_folder().name))


def _run(words: list[str], folder: Path) -> str:
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "rocpd", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout
