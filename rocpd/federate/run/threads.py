"""Threads that do tasks: results come in order, and no thread stays at work when they end early, at any time.

In the main thread a signal may raise an exception between any two steps. `ThreadPoolExecutor`, `Future` and `Event` are
written in Python over locks: interrupted right after it took a lock, the main thread keeps it, and the threads wait for
it for ever. The same holds for `threading.Thread.start`, which waits for the thread. Here threads and the main thread
share `SimpleQueue`s and a list, whose operations are atomic.
"""

from __future__ import annotations

import _thread
import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from rocpd.base import Answer, ClosedError, process

Task = TypeVar("Task")

_TRIED = 8  # tasks, before threads are started


def in_order(
    submit: Callable[[Task], Any], tasks: Iterable[Task], most: int, running: deque[Any]
) -> Generator[Any, None, None]:
    """Yield the results of tasks in their order, with only a few tasks under way ahead of the consumer.

    Args:
        submit: starts a task and returns its future.
        tasks: the tasks.
        most: number of tasks that are under way, or finished but not yet yielded.
        running: holds their futures, including the one that is waited for.
    """
    for task in tasks:
        running.append(submit(task))
        if len(running) >= most:
            yield _first(running)
    while running:
        yield _first(running)


def _first(running: deque[Any]) -> Any:
    result = running[0].result()
    running.popleft()
    return result


def on_threads(
    count: int, work: Callable[[Task], Answer], tasks: Sequence[Task], most: int, stop: Callable[[], None]
) -> Generator[Answer, None, None]:
    """Yield `work(task)` for each task, in order, done by threads that end with the generator.

    Args:
        count: number of threads.
        work: function that threads call with each task.
        tasks: the tasks.
        most: number of tasks that are under way, or finished but not yet yielded.
        stop: called when the remaining tasks are not wanted: on Ctrl-C, an error, an abandoned result.
    """
    threads = _Threads(count, work)
    left = len(tasks)
    try:
        for answer in in_order(threads.submit, tasks, most, deque()):
            left -= 1
            yield answer
    except BaseException:
        if left and threads.are_here:  # a generator closed after its last answer has nothing to stop
            stop()
        raise
    finally:
        threads.end()


def on_threads_if_long(
    count: int, work: Callable[[Task], Answer], tasks: Sequence[Task], long_s: float, stop: Callable[[], None]
) -> Generator[Answer, None, None]:
    """Yield `work(task)` for each task, in order, by threads where the first few take long; arguments as `on_threads`.

    Short tasks that run beside each other wait for Python's lock more than for SQLite: with files in the page cache,
    threads take 1.6 times the CPU time and save no time.

    Args:
        long_s: average duration from which tasks count as long [s]; 0: all tasks do.
    """
    tried, spent = _TRIED if long_s else 0, 0.0
    for task in tasks[:tried]:
        begun = time.perf_counter()
        answer = work(task)
        spent += time.perf_counter() - begun
        yield answer
    rest = tasks[tried:]
    if spent < long_s * tried:
        yield from map(work, rest)
    elif rest:
        yield from on_threads(count, work, rest, 2 * count, stop)


class _Pending(Generic[Task]):
    """A task and its outcome."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._maker = process.number()
        self._outcome = SimpleQueue[tuple[bool, Any]]()

    def settle(self, work: Callable[[Task], Any]) -> None:
        """Do the task, in a thread."""
        try:
            self._outcome.put((True, work(self.task)))
        except BaseException as error:  # noqa: BLE001 (it is raised where the result is wanted)
            self._outcome.put((False, error))

    def result(self) -> Any:
        """Wait for the answer and return it once, or raise the error of `work`.

        Raises:
            ClosedError: in a forked child, which does not have these threads.
        """
        if self._maker != process.number():
            raise ClosedError("this answer is the parent process's", "ask again in this one")
        succeeded, outcome = self._outcome.get()
        if succeeded:
            return outcome
        try:
            raise outcome
        finally:
            del outcome  # its traceback holds this frame


class _Threads(Generic[Task]):
    """Up to `count` threads, one started with each task.

    A thread draws a permit before anything else. `end` takes back the remaining permits, and so knows the number of
    threads to wait for, even if an exception came while a thread was started.
    """

    def __init__(self, count: int, work: Callable[[Task], Any]) -> None:
        self._count = count
        self._work = work
        self._number = process.number  # modules are emptied before the last generators when Python ends
        self._maker = process.number()
        self._started = 0
        self._permits = [True] * count
        self._tasks = SimpleQueue[_Pending[Task] | None]()
        self._ended = SimpleQueue[bool]()

    @property
    def are_here(self) -> bool:
        """Whether the threads are of this process: a forked child has none."""
        return self._maker == self._number()

    def submit(self, task: Task) -> _Pending[Task]:
        """Let a thread do a task."""
        pending = _Pending(task)
        self._tasks.put(pending)
        if self._started < self._count:
            self._started += 1
            _thread.start_new_thread(self._serve, ())
        return pending

    def end(self) -> None:
        """Drop the waiting tasks, and return when no thread is at work; at once where no thread exists any more."""
        if sys.is_finalizing() or not self.are_here:  # Python has stopped all threads
            return
        unused = 0
        with contextlib.suppress(IndexError):
            while self._permits.pop():
                unused += 1
        with contextlib.suppress(Empty):
            while self._tasks.get_nowait():
                pass
        for _ in range(self._count):
            self._tasks.put(None)
        for _ in range(self._count - unused):
            self._ended.get()

    def _serve(self) -> None:
        try:
            self._permits.pop()
        except IndexError:  # nobody waits for this thread
            return
        while pending := self._tasks.get():
            pending.settle(self._work)
            del pending  # an answer may hold a rank's columns
        self._ended.put(True)
