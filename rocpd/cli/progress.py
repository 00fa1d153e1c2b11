"""Owns progress: one line on the terminal of stderr, for whatever takes longer than a second.

rich draws bars too, and was measured: importing it takes 130 ms of the work's own time, each redraw 2.9 ms (this one:
0.02 ms), ten times a second; and it hides the cursor, which stays hidden when the process is killed or suspended.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rocpd.base.types import Progress
from rocpd.base.visible import visible

_PATIENCE_S = 1.0  # no bar for anything quicker
_REDRAW_S = 0.1  # at most so often
_BEAT_S = 1.0  # and at least so often, so that the time goes on


@contextlib.contextmanager
def progress(label: str, unit: str = "rows", size: Callable[[], int] | None = None) -> Iterator[Progress | None]:
    """Yield a callback (done, total) that draws a bar on a terminal after a second; None when stderr is no terminal.

    Args:
        label: what is going on.
        unit: what is counted.
        size: returns the bytes that `total` stands for; the bar then also shows MB/s.
    """
    if _is_quiet or not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label, unit, size() if size else 0)
    _bars.append(bar)
    try:
        yield bar.update
    finally:
        _bars.remove(bar)
        bar.end()


def clear_bars() -> None:
    """Remove all bars from their line, before something else is written there; the next step draws them again."""
    for bar in _bars:
        bar.clear()


def without_bars() -> None:
    """Draw no bar from now on: something else has the terminal."""
    global _is_quiet
    clear_bars()
    _is_quiet = True


class _Bar:
    """One line that is drawn over itself: label, bar, share, speed, time left."""

    def __init__(self, label: str, unit: str, size: int) -> None:
        self._label = visible(label)
        self._size = size
        self._unit = unit
        self._start = time.monotonic()
        self._next = self._start + _PATIENCE_S
        self._done, self._total = 0, 0
        self._drawn = False
        self._quiet = False  # somebody else writes to the terminal, until the next step
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="rocpd-bar", daemon=True).start()

    def update(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total, self._quiet = done, total, False
            if time.monotonic() >= self._next:
                self._draw()

    def _beat(self) -> None:
        """Draw the bar each second, whether or not a step is done."""
        while not self._ended.wait(_BEAT_S / 2):
            with self._lock:
                is_due = time.monotonic() >= self._next + _BEAT_S - _REDRAW_S
                if is_due and not self._quiet and not self._ended.is_set():
                    self._draw()

    def _draw(self) -> None:
        if _is_quiet:
            return
        self._next = time.monotonic() + _REDRAW_S
        self._drawn = True
        share = min(self._done / self._total, 1.0) if self._total > 0 else 0.0
        tail = self._tail(share)
        width = _width()
        room = max(10, width - len(self._label) - len(tail) - 2)
        filled = int(room * share)
        sys.stderr.write("\r" + f"{self._label} {'━' * filled}{' ' * (room - filled)}{tail}"[: width - 1])
        sys.stderr.flush()

    def _tail(self, share: float) -> str:
        """Return what stands after the bar."""
        passed = time.monotonic() - self._start
        rate = self._done / passed
        left = f"{(self._total - self._done) / rate:,.0f} s left" if rate else f"{passed:,.0f} s"
        if self._size:
            return f" {share:4.0%}  {self._done:,} {self._unit}  {share * self._size / passed / 1e6:,.0f} MB/s  {left}"
        return f" {share:4.0%}  {rate:,.0f} {self._unit}/s  {left}"

    def clear(self) -> None:
        with self._lock:
            self._quiet = True
            if self._drawn:
                self._drawn = False
                sys.stderr.write("\r" + " " * (_width() - 1) + "\r")
                sys.stderr.flush()

    def end(self) -> None:
        self._ended.set()
        self.clear()


_bars: list[_Bar] = []
_is_quiet = False


def _width() -> int:
    """Columns of stderr's terminal; stdout may be a file, or another terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        import shutil

        return shutil.get_terminal_size().columns
