"""Owns doing one task per rank on all cores: a few processes, results in order, nothing left when it ends early.

Processes, because most of the work is Python's: threads take turns. They are plain children that run `serve`, no
`multiprocessing`: that would run the user's main module again. A child is killed when its parent dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")

MOST = 8
"""Processes at most: each holds one rank's columns."""

_ENOUGH_BYTES = 48 << 20
"""Input from which processes pay: they take 0.2 s to start, reading this much takes about twice that."""
_SERVE = """
import pickle, sys
try:
    sys.path[:] = pickle.load(sys.stdin.buffer)
except EOFError:  # the parent has changed its mind
    sys.exit()
from rocpd.convert.workers import serve
serve()
"""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def processes(tasks: int, input_bytes: int, wanted: int | None = None) -> int:
    """Give how many processes to use: 1 means none but this one.

    Args:
        tasks: how many there are.
        input_bytes: size of the files they read.
        wanted: what the user asks for; None: as many as there are cores, at most `MOST`, and 1 for small jobs.
    """
    if wanted is None:
        wanted = min(len(os.sched_getaffinity(0)), MOST) if input_bytes >= _ENOUGH_BYTES else 1
    return max(1, min(tasks, wanted)) if sys.executable else 1


def each(work: Callable[[Task], Answer], tasks: Sequence[Task], count: int) -> Generator[Answer, None, None]:
    """Give `work(task)` for each task, in order; at most `count + 1` are under way or wait to be taken.

    Args:
        work: a module-level function.
        tasks: picklable values.
        count: processes; with 1 the work is done in this one.

    Raises:
        what `work` raises.
    """
    if count <= 1:
        yield from map(work, tasks)
        return
    pool = SimpleQueue[_Child]()
    children: list[_Child] = []
    with contextlib.ExitStack() as stack:
        # Started here, not in the threads: a child is told of the death of the thread that started it.
        stack.callback(_kill, children)
        for _ in range(count):
            children.append(_Child())
            pool.put(children[-1])
        threads = ThreadPoolExecutor(count, "rocpd-convert")
        stack.callback(threads.shutdown, cancel_futures=True)
        stack.callback(_kill, children)

        def run(task: Task) -> Answer:
            child = pool.get()
            try:
                answer: Answer = child.run(work, task)
                return answer
            finally:
                pool.put(child)

        waiting: deque[Future[Answer]] = deque()
        for task in tasks:
            waiting.append(threads.submit(run, task))
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _Child:
    """A process that runs `serve`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own keeps 100 MB unused
            process_group=0,  # Ctrl-C is for the parent, which then ends its children
        )
        self._send(sys.path)

    def run(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        """Let the child do `work(task)`."""
        self._send((work, task))
        assert self._process.stdout
        try:
            good, answer = pickle.load(self._process.stdout)
        except EOFError:
            raise RuntimeError(f"a worker process ended with code {self._process.wait()}") from None
        if good:
            return answer  # type: ignore[no-any-return]
        raise answer

    def kill(self) -> None:
        """End the child at once; twice is fine."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, value: object) -> None:
        assert self._process.stdin
        pickle.dump(value, self._process.stdin)
        self._process.stdin.flush()


def _kill(children: Sequence[_Child]) -> None:
    for child in children:
        child.kill()


def serve() -> None:
    """Do tasks from stdin, answer on stdout, until stdin ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    tasks = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a library prints must not get between the answers
        while True:
            try:
                work, task = pickle.load(tasks)
            except EOFError:
                return
            pickle.dump(_answer(work, task), answers)
            answers.flush()


def _answer(work: Callable[[Any], Any], task: object) -> tuple[bool, Any]:
    try:
        return True, work(task)
    except Exception as error:  # noqa: BLE001 (it is raised in the parent)
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 (some errors cannot be sent)
            return False, RuntimeError("".join(traceback.format_exception(error)))
        return False, error
