"""Works on all cores of this machine: threads for SQL, which releases Python's lock, processes for Python.

Results come in the order of the shares or ranks, whichever finishes first.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from rocpd.base.types import Answer, Progress, Row
from rocpd.federate.limits import Limits
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.connection_cache import StatementConnections
from rocpd.federate.run.cores import usable_cores
from rocpd.federate.run.executor import Task
from rocpd.federate.run.pool import Pool, Share
from rocpd.federate.run.request import Request

if TYPE_CHECKING:
    from rocpd.federate.run.workers import Workers

_MOST_PROCESSES = 8  # each holds one rank's columns


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

    def rows(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        """Yield the rows of all shares, in order; errors as for `Request.chunks`."""
        collected = iter(self._on_threads(request, shares) if self._threads > 1 and len(shares) > 1 else ())
        for done, share in enumerate(shares, 1):
            rows = next(collected, None)
            if rows is not None:
                yield rows
            else:  # too many rows for threads: one share after the other
                with self._pool.lend(share) as database:
                    yield from request.chunks(database)
            if progress:
                progress(done, len(shares))

    def _on_threads(self, request: Request, shares: Sequence[Share]) -> Iterator[list[Row] | None]:
        """Yield the rows of each share until one has too many; a share starts when few results wait to be taken."""
        from rocpd.federate.run.threads import on_threads

        stopped = threading.Event()

        def run(share: Share) -> list[Row] | None:
            if stopped.is_set():
                return None
            with self._pool.lend(share) as database:
                if request.step.gives_few_rows:
                    return request.collect(database, stopped.is_set)
                return request.collect_up_to(database, self._limits.few_rows, stopped.is_set)

        with contextlib.closing(on_threads(self._threads, run, shares, 2 * self._threads, stopped.set)) as answers:
            yield from itertools.takewhile(lambda rows: rows is not None, answers)

    def each(
        self, work: Callable[[Task], Answer], tasks: Sequence[Task], ranks: Sequence[Rank]
    ) -> Generator[Answer, None, None]:
        """Yield `work(task)` for each task, in order; as `Executor.each`."""
        count = self._process_count(len(tasks), ranks)
        if count == 1:
            connections = StatementConnections(self._pool)
            for task in tasks:
                yield connections.run(work, task)
            return
        if not self._workers or self._workers.count != count:
            from rocpd.federate.run.workers import Workers

            self.close()
            self._workers = Workers(count)
        yield from self._workers.each(work, tasks)

    def _process_count(self, tasks: int, ranks: Sequence[Rank]) -> int:
        count = self._processes
        if count is None:
            size = sum(opening.size for opening in {rank.opening for rank in ranks})
            count = min(usable_cores(), _MOST_PROCESSES) if size >= self._limits.process_bytes else 1
        return max(1, min(tasks, count)) if sys.executable else 1  # an embedded Python may not know its executable

    def close(self) -> None:
        """End the processes."""
        if self._workers:
            self._workers.close()
            self._workers = None
