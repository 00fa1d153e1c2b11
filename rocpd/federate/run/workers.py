"""Processes that do tasks in Python: results in order, no process left when they end early.

Processes, because threads take turns at Python. They are plain children that run `serve`, not `multiprocessing`, which
would run the user's main module again. A child ends when its parent is gone. Linux could signal that
(PR_SET_PDEATHSIG), but goes by the thread that started the child, which may end long before a session does.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from queue import SimpleQueue
from typing import Any

from rocpd.base.errors import RocpdError
from rocpd.base.types import Answer
from rocpd.federate.run.pool import ConnectionCache
from rocpd.federate.run.threads import Task, on_threads

_SERVE = """
import pickle, sys
try:
    parent, sys.path[:] = pickle.load(sys.stdin.buffer)
except EOFError:  # the parent no longer needs this process
    sys.exit()
from rocpd.federate.run.workers import serve
serve(parent)
"""
_POLL_S = 0.2  # how often a child checks that its parent is alive


class Workers:
    """`count` processes, started when first needed and kept for the next tasks."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._children: list[Child] = []

    def each(self, work: Callable[[Task], Answer], tasks: Sequence[Task]) -> Generator[Answer, None, None]:
        """Yield `work(task)` for each task, in order; at most `count + 1` are under way or not yet yielded.

        Raises:
            what `work` raises.
        """
        if not all(child.is_alive() for child in self._children):
            self.close()
        while len(self._children) < self.count:  # each is known as soon as it runs: an interrupt ends it
            self._children.append(Child())
        free = SimpleQueue[Child]()
        for child in self._children:
            free.put(child)

        def run(task: Task) -> Answer:
            child = free.get()
            try:
                answer: Answer = child.run(work, task)
                return answer
            finally:
                free.put(child)

        yield from on_threads(self.count, run, tasks, self.count + 1, stop=self.close)

    def close(self) -> None:
        """End the processes at once; idempotent."""
        for child in self._children:
            child.kill()
        self._children = []


class Child:
    """A process that runs `serve`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *(["-X", "utf8"] if sys.flags.utf8_mode else []), "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own keeps 100 MB unused
            process_group=0,  # Ctrl-C is for the parent, which then ends its children
        )
        with contextlib.suppress(BrokenPipeError):  # it ended at once: `run` says how
            self._send((os.getpid(), sys.path))

    def is_alive(self) -> bool:
        """Whether it can take tasks; it may have been killed from outside."""
        return self._process.poll() is None

    def run(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        """Return the child's `work(task)`, or raise what it raised."""
        assert self._process.stdout
        try:
            self._send((work, task))
            succeeded, answer = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = self._process.wait()
            hint = "out of memory? fewer processes (--jobs) need less" if code == -signal.SIGKILL else None
            raise RocpdError(f"a worker process ended with code {code}", hint) from None
        if succeeded:
            return answer  # type: ignore[no-any-return]
        raise answer

    def kill(self) -> None:
        """End the child at once; idempotent."""
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


def serve(parent: int) -> None:
    """Do tasks from stdin, answer on stdout, until stdin ends or the process `parent` is gone."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    tasks = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # output of a library must not mix with the answers
        cache = ConnectionCache()
        while True:
            try:
                work, task = pickle.load(tasks)
            except EOFError:
                return
            pickle.dump(_answer(cache, work, task), answers)
            answers.flush()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os._exit(1)


def _answer(cache: ConnectionCache, work: Callable[[Any], Any], task: object) -> tuple[bool, Any]:
    try:
        return True, cache.run(work, task)
    except Exception as error:  # noqa: BLE001 (it is raised in the parent)
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 (some errors cannot be sent)
            return False, RuntimeError("".join(traceback.format_exception(error)))
        return False, error
