"""Waiting for what other processes and threads do, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Made = TypeVar("Made")

PATIENCE = 900.0
"""After so long it is a hang [s]: no load of a machine explains that."""


def until(holds: Callable[[], object], what: str = "", pause: float = 0.01) -> None:
    """Wait until something holds; `what` says in an error what did not happen, `pause` is between two looks [s]."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"it did not happen in {PATIENCE:.0f} s: {what}"
        time.sleep(pause)


def in_own_loop(run: Callable[..., Made], *arguments: Any) -> Made:
    """Return what `asyncio.run`, or anyio's, gives in a thread of its own: Playwright's loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run, *arguments).result()
