"""The screen of `rocpd top`: a page of text that is drawn anew, and keys. Knows no file and calculates nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Protocol

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from rocpd.base import RocpdError
from rocpd.base.texts import visible
from rocpd.table.palette import Screen
from rocpd.top.glance import Glance, TopPage

WINDOWS = (20, 50, 100, 10)
"""Numbers of steps that conclusions cover, by the key w."""

_HELP = """r ranks, those first that cost most     o hosts     k kernels     g who waits
p pause, and go on                      w so many steps: 10, 20, 50, 100
s write a report of these steps         ? this            q end"""


class Watched(Protocol):
    """The questions of the screen, beside the look at the job."""

    def report(self, path: Path) -> None:
        """Write a report."""

    def look_at(self, steps: int) -> None:
        """Set the number of last steps to look at."""

    def can_conclude(self) -> bool:
        """Whether the first conclusions can be drawn now."""


class TopScreen(App[None]):
    """The screen.

    Args:
        look: returns the current state of the job; called in a thread, one call at a time.
        watched: writes reports.
        interval: time between two looks [s].
        has_colours: whether to use colours.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "end"),
        Binding("ctrl+c", "quit", show=False, priority=True),  # textual would copy, and ask for another key
        Binding("r", "page('ranks')", "ranks"),
        Binding("o", "page('hosts')", "hosts"),
        Binding("k", "page('kernels')", "kernels"),
        Binding("g", "page('hang')", "hang"),
        Binding("p", "pause", "pause"),
        Binding("w", "window", "window"),
        Binding("s", "report", "report"),
        Binding("question_mark,h", "help", "keys", key_display="?"),
    ]
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #top { height: auto; }
    #note { height: auto; }
    #page { margin-top: 1; }
    """

    def __init__(
        self, look: Callable[[], Glance], watched: Watched, interval: float, *, has_colours: bool = True
    ) -> None:
        super().__init__(ansi_color=has_colours)
        self.ansi_color = has_colours
        self._look, self._watched, self._interval = look, watched, interval
        self._glance: Glance | None = None
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._page, self._window, self._note = TopPage.RANKS, 0, "looking …"
        self._is_paused, self._has_help = False, False

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        yield Static(id="top", markup=False)
        with VerticalScroll():
            yield Static(id="page", markup=False)
        yield Static(id="note", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self._event_loop = asyncio.get_running_loop()
        self.draw()
        self.run_worker(self._keep_looking, thread=True, exclusive=True)

    def end(self) -> bool:
        """End soon; callable from a handler of signals. Return whether a screen is running."""
        if self._event_loop is None or not self.is_running:
            return False
        self._event_loop.call_soon_threadsafe(self.exit)
        return True

    def on_resize(self) -> None:
        """Draw again."""
        self.draw()

    def draw(self) -> None:
        """Draw the last glance."""
        width = max(20, self.size.width)
        head, body = self._texts(width) if self._glance else ("", "")
        for name, text in (("top", head), ("page", body), ("note", "\n".join(self._notes()))):
            for part in self.query(f"#{name}").results(Static):
                part.update(text)

    def action_page(self, name: str) -> None:
        """Show another page."""
        self._page = TopPage(name)
        self.draw()

    def action_pause(self) -> None:
        """Pause, or go on."""
        self._is_paused = not self._is_paused
        self.draw()

    def action_window(self) -> None:
        """Look at another number of steps."""
        self._window = (self._window + 1) % len(WINDOWS)
        self._watched.look_at(WINDOWS[self._window])
        self._note = f"the last {WINDOWS[self._window]} steps, from the next look on"
        self.draw()

    def action_help(self) -> None:
        """Show or hide the keys."""
        self._has_help = not self._has_help
        self.draw()

    def action_report(self) -> None:
        """Write a report, between two looks."""
        self._wants_report = True
        self._note = "the report is written …"
        self.draw()

    _wants_report = False

    def _keep_looking(self) -> None:
        """Look, in a separate thread, as long as there is a screen."""
        while self.is_running:
            end = time.monotonic() + self._interval
            if self._wants_report:
                self._wants_report = False
                self._note = self._reported()
            if not self._is_paused:
                self._glance = self._look()
                self._note = "" if self._note.startswith("looking") else self._note
            if self.is_running:
                self.call_from_thread(self.draw)
            while self.is_running and not self._wants_report and time.monotonic() < end:
                time.sleep(0.05)
                if not self._is_paused and self._watched.can_conclude():
                    break

    def _reported(self) -> str:
        path = Path(time.strftime("rocpd-top-%H%M%S.html"))
        try:
            self._watched.report(path)
        except RocpdError as error:
            return error.message
        return f"wrote {path}"

    def _texts(self, width: int) -> tuple[str, str]:
        """Return the head and the page."""
        assert self._glance
        screen = Screen(width, 0)
        head = [line for text in self._glance.head(width) for line in (visible(text),)]
        return "\n".join(head), "\n".join(map(visible, self._glance.page(self._page, screen)))

    def _notes(self) -> Iterator[str]:
        if self._has_help:
            yield _HELP
        if self._is_paused:
            yield "paused: p goes on"
        if self._note:
            yield self._note
