"""The open files of a job: their connections, and the executor that works on them, until they are closed.

Sessions that differ in their selection share one of these; it is closed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakSet

from rocpd.base import ClosedError, process
from rocpd.base.evidence import Evidence
from rocpd.base.sqlite import apsw
from rocpd.base.stages import Stages
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import Opening, raise_for_damaged_file
from rocpd.federate.run.local import Executor, Local
from rocpd.federate.run.pool import Pool
from rocpd.federate.run.rank_reader import FactStore
from rocpd.federate.run.request import Columnar

_MOST_KNOWN_BYTES = 1 << 28  # of files


class Closable(Protocol):
    """An object that is closed with the files."""

    def close(self) -> None:
        """Close it; idempotent."""


class Files:
    """The files of a job while they are open.

    Args:
        openings: the files.
        pool: connections to them, closed with the files.
        evidence: all inputs, those that were left out too; released when the files are closed.
        executor: works on ranks in parallel; None: the cores of this machine.
        jobs: threads and processes of this machine; None: one per core where that is faster.

    Attributes:
        index: answers what it can without reading the files; None: nothing does.
        fact_store: returns what keeps facts, of a job that is worth it; None where nothing can.
        course: of the command that reads them.
        known: number of a rank -> what brief works read of it, until a long one has it.
        turn: held by the thread that uses a connection which several threads share.
    """

    def __init__(
        self, openings: Iterable[Opening], pool: Pool, evidence: Evidence, executor: Executor | None, jobs: int | None
    ) -> None:
        self.openings = tuple(dict.fromkeys(openings))
        self.limits = pool.limits
        self.index: Columnar | None = None
        self.fact_store: Callable[[], FactStore | None] = lambda: None
        self.course = Stages(None)
        self.known: dict[int, dict[object, Any]] = {}
        self._evidence = evidence
        self.pool = pool
        self.executor: Executor = executor or Local(pool, jobs, pool.limits)
        self._dependents: WeakSet[Closable] = WeakSet()
        self._closed = False
        self.turn = process.Turn()
        process.renew_when_forked(self)

    @cached_property
    def facts(self) -> FactStore | None:
        """The store of facts of ranks: of large files, and of all that are indexed; None: nothing keeps them.

        To derive those of a smaller job takes as long as looking for what was kept of it, and starting.
        """
        size, limits = sum(opening.size for opening in self.openings), self.limits
        is_large = size >= max(limits.small_bytes, len(self.openings) * limits.kept_bytes)
        return self.fact_store() if is_large or (self.index and not self.index.why_not) else None

    def known_of(self, rank: Rank, *, is_brief: bool) -> dict[object, Any] | None:
        """Return what brief works on a small rank read, for another one, or for the first long one after them.

        None: nothing is kept, as of files that grow, and of many: a rank takes an eighth of its file.
        """
        if rank.opening.is_live or not self._are_small:
            return None
        return self.known.setdefault(rank.number, {}) if is_brief else self.known.pop(rank.number, None)

    @cached_property
    def _are_small(self) -> bool:
        return sum(opening.size for opening in self.openings) <= _MOST_KNOWN_BYTES

    def renew(self) -> None:
        """Stay open in a forked child, unless another machine reads the files: that works for the parent alone."""
        if self.executor.is_remote:
            process.abandon(self.executor)
            self._closed = True

    def close_with(self, dependent: Closable) -> None:
        """Close `dependent`, which reads these files in its own way, together with them."""
        self._dependents.add(dependent)

    def check_open(self) -> None:
        """Refuse to work on closed files.

        Raises:
            ClosedError: they were closed.
        """
        if self._closed:
            raise ClosedError("the session is closed", "open a new one with rocpd.connect(...)")

    def raise_for_damaged_file(self, error: BaseException | None) -> None:
        """Raise the error that names the unreadable file if `error` is about one; else do nothing.

        Raises:
            InputError: naming the file.
            ClosedError: the files were closed meanwhile.
        """
        if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError, apsw.InterruptError)):
            self.check_open()
        raise_for_damaged_file(self.openings, error)

    def close(self) -> None:
        """Close the files and delete recovered copies; idempotent."""
        if not self._closed:
            self._release()
            if self.index:
                self.index.close()
            if facts := vars(self).get("facts"):  # looked for
                facts.close()
            self.pool.close()
            for dependent in list(self._dependents):
                dependent.close()

    def _release(self) -> None:
        self._closed = True
        self._evidence.release()
        self.executor.close()
        for opening in self.openings:
            opening.discard()

    def __del__(self) -> None:
        # Connections close by themselves: during garbage collection apsw's close() never returns while a cursor,
        # garbage as well, is open.
        if not getattr(self, "_closed", True):
            self._release()
