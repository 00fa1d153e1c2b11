"""Processes that are kept for the next tasks, whatever happens to them or to their parent."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from rocpd.errors import RocpdError
from rocpd.federate.run.workers import Workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    started = Workers(2)
    yield started
    started.close()


def _pid(_: int) -> int:
    return os.getpid()


def test_they_outlive_the_thread_that_started_them(workers: Workers) -> None:
    seen: set[int] = set()
    thread = threading.Thread(target=lambda: seen.update(workers.each(_pid, range(8))))
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert set(workers.each(_pid, range(8))) <= seen
    assert os.getpid() not in seen


def test_those_that_were_killed_are_started_again(workers: Workers) -> None:
    before = set(workers.each(_pid, range(8)))
    for pid in before:
        os.kill(pid, 9)
    time.sleep(0.2)
    after = set(workers.each(_pid, range(8)))
    assert after
    assert not after & before


def test_a_process_that_is_killed_at_work_is_reported(workers: Workers) -> None:
    with pytest.raises(RocpdError, match="ended with code -9"):
        list(workers.each(_kill_itself, range(3)))


def _kill_itself(_: int) -> None:
    os.kill(os.getpid(), 9)
