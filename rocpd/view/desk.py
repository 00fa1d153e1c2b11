"""Answers questions about a job in processes, so that a question that takes too much time or memory can be stopped.

Each process keeps the job open and opens it anew when its files have changed. Does not decide which questions are
allowed.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from queue import LifoQueue
from typing import Any, NamedTuple, TypeAlias

from rocpd.base import ClosedError, InputError, RocpdError, frozen
from rocpd.federate.open.source import find_sources
from rocpd.federate.run.workers import Child
from rocpd.federate.select.align import Align, GivenOffset
from rocpd.federate.select.filters import Filters
from rocpd.federate.select.window import Window
from rocpd.live.tail import FileSignature
from rocpd.session import Session, connect
from rocpd.view.questions import Question, Statement

Stamp: TypeAlias = tuple[tuple[Path, FileSignature], ...]


@frozen
class ViewedJob:
    """A job with the arguments of `rocpd.connect`. A value that can be sent to a process."""

    inputs: tuple[str, ...]
    skip_bad: bool = False
    align: Align = Align.AUTO
    clock_offsets: Mapping[str, GivenOffset] = field(default_factory=dict)
    window: Window | None = None
    filters: Filters | None = None
    jobs: int | None = None

    def connect(self) -> Session:
        """Open the files. Errors as `rocpd.connect`."""
        return connect(**{field.name: getattr(self, field.name) for field in fields(self)})

    def stamp(self) -> Stamp:
        """Return the stamps of the files, which differ between two states of them; missing files have none."""
        return tuple(stamps_of(self.inputs))


def stamps_of(inputs: Sequence[str]) -> Iterator[tuple[Path, FileSignature]]:
    """Yield each file of the inputs, with what changes when rows come."""
    with contextlib.suppress(InputError):
        for path in find_sources(inputs).paths:
            if signature := FileSignature.of(path):
                yield path, signature


class Answer(NamedTuple):
    """An answer, and the notes on the job."""

    value: Any
    notes: tuple[str, ...]


class Desk:
    """Processes that answer, each one question at a time.

    Args:
        job: the viewed job.
        seats: number of questions answered at the same time, one fewer for statements; others wait.
    """

    def __init__(self, job: ViewedJob, seats: int = 4) -> None:
        self._job = job
        self._statements = threading.BoundedSemaphore(max(1, seats - 1))  # seats for pages remain, whatever SQL runs
        self._children = [Child() for _ in range(seats)]
        self._free = LifoQueue[Child]()  # the process that answered last has the job open
        for child in self._children:
            self._free.put(child)

    def start(self) -> None:
        """Start a process, which loads the modules for answers and opens the job; errors as `rocpd.connect`."""
        child = self._free.get()
        try:
            child.run(_start, self._job)
        finally:
            self._free.put(child)

    def ask(self, question: Question, limit_s: float, job: ViewedJob | None = None) -> Answer:
        """Return the answer to a question.

        Args:
            question: it is sent to the process, and its answer comes back.
            limit_s: time after which the process is ended [s].
            job: the job to ask; None: the viewed job.

            Raises:
            RocpdError: it took too long, the viewer has ended, or an error of the answer.
        """
        with self._statements if isinstance(question, Statement) else contextlib.nullcontext():
            return self._ask((job or self._job, question), limit_s)

    def _ask(self, task: tuple[ViewedJob, Question], limit_s: float) -> Answer:
        child, is_over = self._free.get(), threading.Event()
        try:
            deadline = threading.Timer(limit_s, _end, (child, is_over))
            deadline.daemon = True
            deadline.start()
            try:
                answer: Answer = child.run(_answer, task)
            except ClosedError as error:
                raise ClosedError("the viewer has ended") from error
            except (RocpdError, OSError) as error:  # of the pipes, if the process was ended meanwhile
                if not is_over.is_set():
                    raise
                hint = "a smaller part of the time line, or fewer rows, take less"
                raise RocpdError(f"stopped after {limit_s:g} s", hint) from error
            finally:
                deadline.cancel()
            return answer
        finally:
            self._free.put(child)

    def close(self) -> None:
        """End all processes at once; further calls do nothing."""
        for child in self._children:
            child.close()


def _end(child: Child, is_over: threading.Event) -> None:
    """End a process after its time limit."""
    is_over.set()
    child.kill()


@dataclass
class HeldJob:
    """An open job, which is opened anew when its files have changed."""

    job: ViewedJob | None = None
    stamp: Stamp = ()
    session: Session | None = None

    def take(self, job: ViewedJob, session: Session) -> None:
        """Hold a job that is open already; its session is then closed by this object."""
        self.job, self.stamp, self.session = job, job.stamp(), session

    def open(self, job: ViewedJob) -> Session:
        """Return the session of a job, opened anew if its files have changed. Errors as `rocpd.connect`."""
        stamp = job.stamp()
        if self.session is None or (self.job, self.stamp) != (job, stamp):
            self.close()
            self.job, self.stamp, self.session = job, stamp, job.connect()
        return self.session

    def close(self) -> None:
        """Close the open job; further calls do nothing."""
        session, self.session = self.session, None
        if session:
            session.close()


_HELD = HeldJob()


def _start(job: ViewedJob) -> None:
    """Prepare the process for questions about a job."""
    importlib.import_module("rocpd.view.outlines").line_of(_HELD.open(job))
    importlib.import_module("rocpd.view.lines")


def _answer(task: tuple[ViewedJob, Question]) -> Answer:
    """Answer a question in the process."""
    job, question = task
    session = _HELD.open(job)
    try:
        return Answer(question.of(session), tuple(session.notes))
    except RocpdError:
        if _HELD.stamp != job.stamp():  # the file changed while it was read
            _HELD.close()
        raise
