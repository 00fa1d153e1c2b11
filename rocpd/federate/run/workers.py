"""Processes that do tasks in Python: results come in order, and no process is left when they end early.

Processes, because threads take turns at Python. They are plain children that run `serve`, not `multiprocessing`, which
would run the user's main module again. A child ends when its parent is gone. Linux could signal that
(PR_SET_PDEATHSIG), but does so when the thread that started the child ends, perhaps long before the session.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from rocpd.base import Answer, ClosedError, RocpdError, leftovers, process
from rocpd.base.packing import pack
from rocpd.federate.run.shares import ConnectionCache, Lend, run_lending
from rocpd.federate.run.threads import Task, on_threads

_SERVE = """
import pickle, sys
try:
    parent, sys.path[:] = pickle.load(sys.stdin.buffer)
except EOFError:  # the parent no longer needs this process
    sys.exit()
from rocpd.base import process
process.claim()
from rocpd.federate.run.workers import serve
serve(parent)
"""
_POLL_S = 0.2  # how often a child checks that its parent is alive
_PROTOCOL = 5  # arrays are not copied to be written


class Workers:
    """`count` processes, each started when first needed and kept for the next tasks of any thread.

    Args:
        count: number of processes.
        here: this process, if it is one of them; None: all are other processes.
    """

    def __init__(self, count: int, here: Here | None = None) -> None:
        self.count, self.here = count, here
        self._children: list[Child] = []
        self.renew()
        process.renew_when_forked(self)

    def renew(self) -> None:
        """Start with no process running; processes of a parent are left to it."""
        process.abandon(*self._children)
        self._children = [Child() for _ in range(self.count - (1 if self.here else 0))]
        self._free = SimpleQueue[Child | Here]()
        if self.here:
            self._free.put(self.here)
        for child in self._children:
            self._free.put(child)
        self._lock = threading.Lock()

    def each(self, work: Callable[[Task], Answer], tasks: Sequence[Task]) -> Generator[Answer, None, None]:
        """Yield `work(task)` for each task, in order; at most `count + 1` tasks are under way or not yet yielded.

        Raises:
            any error that `work` raises.
        """
        at_work: set[Child | Here] = set()
        free, lock = self._free, self._lock

        def run(task: Task) -> Answer:
            worker = free.get()
            with lock:
                at_work.add(worker)
            try:
                return worker.run(work, task)
            finally:
                with lock:
                    at_work.discard(worker)
                free.put(worker)

        def stop() -> None:
            with lock:
                for worker in at_work:
                    worker.kill()

        yield from on_threads(min(self.count, len(tasks)), run, tasks, self.count + 1, stop)

    def rest(self) -> None:
        """End the idle processes; each starts again with its next task."""
        for _ in range(self._free.qsize()):
            with contextlib.suppress(Empty):
                worker = self._free.get_nowait()
                worker.kill()
                self._free.put(worker)

    def close(self) -> None:
        """End the processes at once; idempotent."""
        for child in self._children:
            child.close()


class Here:
    """This process as a worker, for short tasks: its modules are imported, its files open, and it pickles no answer."""

    def __init__(self, lend: Lend) -> None:
        self._lend = lend

    def run(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        """Return `work(task)`."""
        return run_lending(self._lend, work, task)

    def kill(self) -> None:
        """Let the task end by itself, as it is short."""


class Child:
    """A process that runs `serve`, started with its first task, and started again after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._maker = process.number()
        self._is_closed = False
        self._lock = threading.Lock()
        self._at_pipes = threading.RLock()  # a pipe closed while another thread reads it breaks that thread's buffer

    def run(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        """Return the child's `work(task)`, or raise the error that it raised.

        Raises:
            ClosedError: the child was closed, perhaps meanwhile.
        """
        try:
            with self._at_pipes:
                return self._run(work, task)
        finally:
            if self._process and self._process.poll() is not None:  # killed meanwhile: this call closes its pipes
                self._close_pipes()

    def _run(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        child = self._started()
        assert child.stdout
        try:
            _send(child, (work, task))
            succeeded, answer = pickle.load(child.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = child.wait()
            self._check_open()
            hint = "out of memory? fewer processes (--jobs) need less" if code == -signal.SIGKILL else None
            raise RocpdError(f"a worker process ended with code {code}", hint) from None
        if succeeded:
            return answer  # type: ignore[no-any-return]
        raise answer

    def close(self) -> None:
        """End the process at once and for good; idempotent."""
        with self._lock:
            self._is_closed = True
        self.kill()

    def kill(self) -> None:
        """End the process at once, unless it belongs to a parent process; idempotent."""
        if self._process is None or self._maker != process.number():
            return
        self._process.kill()
        self._process.wait()
        leftovers.sweep(Path(tempfile.gettempdir()))  # recovered copies, which the killed process could not remove
        self._close_pipes()

    def _close_pipes(self) -> None:
        """Close the pipes of an ended process, unless a call uses them, which then closes them itself."""
        if not self._process or not self._at_pipes.acquire(blocking=False):
            return
        try:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    with contextlib.suppress(OSError):
                        pipe.close()
        finally:
            self._at_pipes.release()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the session is closed", "open a new one with rocpd.connect(...)")

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            self._check_open()
            if self._process is None or self._process.poll() is not None:
                self.kill()  # its pipes are open
                self._process = _start()
            return self._process


def _start() -> subprocess.Popen[bytes]:
    utf8 = ["-X", "utf8"] if sys.flags.utf8_mode else []
    started = subprocess.Popen(
        [sys.executable, "-P", *utf8, "-c", _SERVE],  # -P: no modules of the working folder, such as a queue.py
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own keeps 100 MB unused
        process_group=0,  # Ctrl-C is for the parent, which then ends its children
    )
    with contextlib.suppress(BrokenPipeError):  # it ended at once: `run` says how
        _send(started, (os.getpid(), sys.path))
    return started


def _send(child: subprocess.Popen[bytes], value: object) -> None:
    assert child.stdin
    child.stdin.write(pickle.dumps(value, _PROTOCOL))  # as one value: half of a task would spoil the next task
    child.stdin.flush()


def serve(parent: int) -> None:
    """Do tasks from stdin and answer on stdout, until stdin ends or the process `parent` is gone."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    process.keep_freed()
    tasks = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # output of a library must not mix with the answers
        cache = ConnectionCache()
        while True:
            try:
                work, task = pickle.load(tasks)
            except EOFError:
                return
            pack(_answer(cache.lend, work, task), answers)
            answers.flush()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os._exit(1)


def _answer(lend: Lend, work: Callable[[Any], Any], task: object) -> tuple[bool, Any]:
    try:
        return True, run_lending(lend, work, task)
    except Exception as error:  # noqa: BLE001 (it is raised in the parent)
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 (some errors cannot be sent)
            return False, RuntimeError("".join(traceback.format_exception(error)))
        return False, error
