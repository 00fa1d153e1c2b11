"""The screen at 80 x 24: its keys, and that it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from rocpd.base import OutputError
from rocpd.top.screen import WINDOWS, TopScreen
from tests.top.made import GLANCE
from tests.waiting import in_own_loop


class _Asked:
    """Notes what the screen asks."""

    def __init__(self) -> None:
        self.windows: list[int] = []
        self.reports: list[Path] = []

    def report(self, path: Path) -> None:
        self.reports.append(path)
        raise OutputError("the disk is full")

    def look_at(self, steps: int) -> None:
        self.windows.append(steps)

    def can_conclude(self) -> bool:
        return False


def _text(app: TopScreen) -> str:
    return "\n".join(str(part.render()) for part in app.query(Static).results())


async def _until(pilot: Pilot[None], app: TopScreen, text: str) -> None:
    while text not in _text(app):
        await pilot.pause(0.01)


async def _press(app: TopScreen, key: str) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_it_ends(key: str) -> None:
    app = TopScreen(lambda: GLANCE, _Asked(), 0.01, has_colours=False)
    in_own_loop(asyncio.run, _press(app, key))
    assert app.return_code == 0


async def _press_all(app: TopScreen, asked: _Asked) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await _until(pilot, app, "step 9: 20.0 ms, usually 10.0 ms")
        assert "silent 42 s" in _text(app)
        for key, text in (
            ("k", "gemm"),
            ("o", "node17"),
            ("g", "rank 3 has not come to ncclAllReduce 7"),
            ("r", "silent 42 s"),
            ("p", "paused"),
            ("question_mark", "p pause"),
        ):
            await pilot.press(key)
            await _until(pilot, app, text)
        await pilot.press("w", "s")
        await _until(pilot, app, "the disk is full")
        assert max(map(len, _text(app).splitlines())) <= 80
        await pilot.press("q")
    assert asked.windows == [WINDOWS[1]]
    assert asked.reports


def test_keys_show_pages_and_it_ends() -> None:
    asked = _Asked()
    app = TopScreen(lambda: GLANCE, asked, 0.01, has_colours=False)
    in_own_loop(asyncio.run, _press_all(app, asked))
    assert app.return_code == 0
