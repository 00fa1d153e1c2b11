"""Executors, which work on ranks in parallel, and the executor of this machine.

Threads run SQL, which releases Python's lock; processes run Python. The answers never depend on the executor: they
come, and are merged, in the order of the shares or ranks, whichever finishes first.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from rocpd.base import Answer, Progress, Row, process
from rocpd.federate.limits import Limits, usable_cores
from rocpd.federate.run.rank_reader import STATEMENT_BYTES, RankTask, run_task
from rocpd.federate.run.shares import Pool, Request, Share

if TYPE_CHECKING:
    from rocpd.federate.run.workers import Workers

Item = TypeVar("Item")

_MOST_PROCESSES = 8  # each holds one rank's columns
_LONG_S = 0.001  # per statement: on a small file it takes a third of that
_BATCHES = 8  # per process, so that no process waits long for the last ones
_BATCH_BYTES = 8 << 20  # of files: sending a task takes as long as working on 0.1 MB
_MANY = 512  # ranks: even short work on them takes several times as long as starting processes
_SHORT_BYTES = 2 << 20  # of a rank: work on it that is no longer wanted ends soon, and leaves little memory in use


@runtime_checkable
class Executor(Protocol):
    """Works on ranks in parallel.

    Attributes:
        is_remote: work is done on other machines, which open the files by themselves.
    """

    is_remote: bool

    def rows(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        """Run a statement in every share; yield its rows in order of shares, or fewer rows that merge to the same.

        Raises:
            QueryError: SQLite refuses the statement; it may still run attached.
            InputError: a file cannot be read.
        """

    def each(self, tasks: Sequence[RankTask[Answer]]) -> Generator[Answer, None, None]:
        """Do tasks; yield the answers, in order, with only a few tasks under way ahead of the consumer.

        Args:
            tasks: they can be pickled, and so can the answers.

        Raises:
            any error that their work raises.
        """

    def rest(self) -> None:
        """Release resources that only further tasks need; these acquire them again."""

    def close(self) -> None:
        """Release everything started for this session; idempotent."""


class Local:
    """This machine.

    Args:
        pool: connections to shares.
        jobs: ranks worked on at a time, by threads or processes; None: one per core, but at most 8 processes, and only
            one for small jobs.
        limits: sizes from which threads and processes are faster.
    """

    is_remote = False

    def __init__(self, pool: Pool, jobs: int | None, limits: Limits) -> None:
        self._pool = pool
        self._threads = jobs or usable_cores()
        self._processes = jobs
        self._limits = limits
        self._workers: Workers | None = None
        self._turn = process.Turn()

    def rows(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        """Yield the rows of all shares, in order; errors as for `Request.chunks`."""
        collected = iter(self._on_threads(request, shares) if self._threads > 1 and len(shares) > 1 else ())
        for done, share in enumerate(shares, 1):
            rows = next(collected, None)
            if rows is not None:
                yield rows
            else:  # too many rows for threads: this and later shares are read one after the other
                with self._pool.lend(share) as database:
                    yield from request.chunks(database)
            if progress:
                progress(done, len(shares))

    def _on_threads(self, request: Request, shares: Sequence[Share]) -> Iterator[list[Row] | None]:
        """Yield the rows of each share until one has too many; a share starts when few results wait to be taken."""
        from rocpd.federate.run.threads import on_threads_if_long

        stopped = threading.Event()

        def run(share: Share) -> list[Row] | None:
            if stopped.is_set():
                return None
            with self._pool.lend(share) as database:
                if request.step.gives_few_rows:
                    return request.collect(database, stopped.is_set)
                return request.collect_up_to(database, self._limits.few_rows, stopped.is_set)

        answers = on_threads_if_long(self._threads, run, shares, self._long_s(shares), stopped.set)
        with contextlib.closing(answers):
            yield from itertools.takewhile(lambda rows: rows is not None, answers)

    def _long_s(self, shares: Sequence[Share]) -> float:
        """Return the duration of a statement from which threads are worth it [s]; 0 for large files."""
        return _LONG_S if sum(share.opening.size for share in shares) < STATEMENT_BYTES * len(shares) else 0.0

    def each(self, tasks: Sequence[RankTask[Answer]]) -> Generator[Answer, None, None]:
        """Yield the answers of tasks, in order; as `Executor.each`."""
        if self._process_count(tasks) == 1:
            for task in tasks:
                yield run_task(task, self._pool.lend)
            return
        with self._turn:
            if not self._workers:
                from rocpd.federate.run.workers import Here, Workers

                here = Here(self._pool.lend) if max(sizes_of(tasks)) < _SHORT_BYTES else None
                self._workers = Workers(self._processes or min(usable_cores(), _MOST_PROCESSES), here)
        if not self._workers.here:
            self._pool.keep_only(())  # other processes read now; a connection takes 0.4 MB, and its pages up to 2 MB
        process.give_back()
        sizes = sizes_of(tasks)
        batches = in_batches(tasks, sizes, min(sum(sizes) / (_BATCHES * self._workers.count), _BATCH_BYTES))
        with contextlib.closing(self._workers.each(_run_batch, batches)) as answers_of_batches:
            for answers in answers_of_batches:
                yield from answers

    def _process_count(self, tasks: Sequence[RankTask[Answer]]) -> int:
        count = self._processes
        size = sum(sizes_of(tasks))
        if len(tasks) < _MANY and size < sum(task.brief_bytes for task in tasks):
            return 1
        if count is None:
            count = min(usable_cores(), _MOST_PROCESSES) if size >= self._limits.process_bytes else 1
        return max(1, min(len(tasks), count)) if sys.executable else 1  # an embedded Python may not know its executable

    def rest(self) -> None:
        """End idle processes, which take some 40 MB each, and close files, which take 0.3 MB each."""
        self._pool.rest()
        if self._workers:
            self._workers.rest()

    def close(self) -> None:
        """End the processes."""
        if self._workers:
            self._workers.close()


def sizes_of(tasks: Sequence[RankTask[Answer]]) -> list[float]:
    """Return the size of each rank [bytes]: an equal part of its file."""
    ranks_of_file = Counter(task.rank.opening for task in tasks)
    return [task.rank.opening.size / ranks_of_file[task.rank.opening] for task in tasks]


def in_batches(items: Iterable[Item], sizes: Iterable[float], most: float) -> list[list[Item]]:
    """Put small neighbours into one batch: their worker is sent the arguments that they share only once.

    >>> in_batches("abcd", (1, 2, 3, 9), 3)
    [['a', 'b'], ['c'], ['d']]
    """
    batches: list[list[Item]] = []
    filled = 0.0
    for item, size in zip(items, sizes, strict=True):
        if not batches or filled + size > most:
            batches.append([])
            filled = 0.0
        batches[-1].append(item)
        filled += size
    return batches


def _run_batch(tasks: Sequence[RankTask[Answer]]) -> list[Answer]:
    return [run_task(task) for task in tasks]
