"""Threads do tasks in order, and end when they are no longer wanted: at whatever step an interrupt comes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rocpd.federate.run.threads import on_threads

ROOT = Path(__file__).parents[2]

# Signals are handled when a function is entered, and when one of C has returned. Where no thread may go on, it hangs.
AT_EVERY_STEP = """
import faulthandler, sys, time
from rocpd.federate.run.threads import on_threads

busy = set()

def work(number):
    busy.add(number)
    time.sleep(0.0005)
    busy.discard(number)
    return number

def interrupt_at(step):
    passed = 0
    def interrupt(frame, event, argument):
        nonlocal passed
        if event in ("call", "c_return"):
            passed += 1
            if passed == step:
                sys.setprofile(None)
                raise KeyboardInterrupt
    sys.setprofile(interrupt)
    try:
        return list(on_threads(2, work, range(4), 3, lambda: None))
    finally:
        sys.setprofile(None)

interrupts = 0
while True:
    faulthandler.dump_traceback_later(900, exit=True)
    try:
        answers = interrupt_at(interrupts + 1)
        break
    except KeyboardInterrupt:
        interrupts += 1
        assert not busy, (interrupts, busy)
print(interrupts > 50, answers)
"""

ABANDONED = """
import sys, time
from rocpd.federate.run.threads import on_threads

def work(number):
    time.sleep(0.05)
    return number

def abandon():
    answers = on_threads(2, work, range(50), 6, lambda: None)
    print(next(answers))
    time.answers = answers  # they live as long as Python does

abandon()
"""


@pytest.mark.parametrize(("program", "said"), [(AT_EVERY_STEP, "True [0, 1, 2, 3]\n"), (ABANDONED, "0\n")])
def test_it_ends(program: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_answers_come_in_order_and_few_are_ahead() -> None:
    started: list[int] = []

    def work(number: int) -> int:
        started.append(number)
        time.sleep(0.01 * (3 - number % 3))
        return -number

    answers = on_threads(3, work, range(20), 5, lambda: None)
    for expected in range(20):
        assert next(answers) == -expected
        assert len(started) <= expected + 5
    assert list(answers) == []


def test_an_error_ends_it_and_what_waits_is_dropped() -> None:
    stopped = threading.Event()
    done: list[int] = []

    def work(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        done.append(number)
        return number

    with pytest.raises(ValueError, match="two"):
        list(on_threads(1, work, range(100), 8, stopped.set))
    assert stopped.is_set()
    assert len(done) < 12


def test_nothing_is_stopped_after_the_last_answer() -> None:
    def stop() -> None:
        raise AssertionError

    answers = on_threads(2, lambda number: number, range(2), 2, stop)
    assert [next(answers), next(answers)] == [0, 1]
    answers.close()
