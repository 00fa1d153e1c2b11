"""The open files of a job: their connections, and the executor that works on them, until they are closed.

Sessions that differ only in their selection share one `Files`; it is closed once.
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
from rocpd.federate.run.rank_reader import FactStore
from rocpd.federate.run.shares import Columnar, Pool

_MOST_KNOWN_BYTES = 1 << 28  # of all files together
_CARRIED_FROM_BYTES = 4 << 20  # of a file: the facts of a smaller one are derived again in a few ms
_MOST_CARRIED_BYTES = 1 << 26  # of all ranks together


class Closable(Protocol):
    """An object that is closed with the files."""

    def close(self) -> None:
        """Close it; idempotent."""


class Files:
    """The files of a job while they are open.

    Args:
        openings: the files.
        pool: connections to them, closed with the files.
        evidence: all inputs, including those left out; released when the files are closed.
        executor: works on ranks in parallel; None: the cores of this machine.
        jobs: threads and processes of this machine; None: one per core where that is faster.

    Attributes:
        index: answers statements that it can without reading the files; None: there is no index.
        fact_store: returns the store that keeps facts, for a job that is worth it; None where no store can.
        course: progress of the command that reads the files.
        known: number of a rank -> results that brief works read of it, until a long work takes them over.
        carried: number of a rank -> the small facts that a brief work derived in any process, packed, likewise.
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
        self.carried: dict[int, bytes] = {}
        self._carried_bytes = 0
        self._evidence = evidence
        self.pool = pool
        self.executor: Executor = executor or Local(pool, jobs, pool.limits)
        self._dependents: WeakSet[Closable] = WeakSet()
        self._closed = False
        self.turn = process.Turn()
        process.renew_when_forked(self)

    @cached_property
    def facts(self) -> FactStore | None:
        """The store of facts of ranks, for large files and for all indexed files; None: facts are not kept.

        For a smaller job, deriving facts takes no longer than starting the store and looking up its facts.
        """
        size, limits = sum(opening.size for opening in self.openings), self.limits
        is_large = size >= max(limits.small_bytes, len(self.openings) * limits.kept_bytes)
        return self.fact_store() if is_large or (self.index and not self.index.why_not) else None

    def known_of(self, rank: Rank, *, is_brief: bool) -> dict[object, Any] | None:
        """Return the results that brief works read of a small rank, for another brief work or the first long one.

        None: nothing is kept, as of growing files and of large jobs: the results take an eighth of a rank's file.
        """
        if rank.opening.is_live or not self._are_small:
            return None
        return self.known.setdefault(rank.number, {}) if is_brief else self.known.pop(rank.number, None)

    def carries(self, rank: Rank) -> bool:
        """Whether small facts that a brief work derives of a rank are held, where no store keeps facts."""
        return self.facts is None and not rank.opening.is_live and rank.opening.size >= _CARRIED_FROM_BYTES

    def carry(self, rank: Rank, facts: bytes) -> None:
        """Hold the small facts of a rank for the first long work, if they take little memory."""
        self._carried_bytes += len(facts)
        if self._carried_bytes <= _MOST_CARRIED_BYTES:
            self.carried[rank.number] = facts

    @cached_property
    def _are_small(self) -> bool:
        return sum(opening.size for opening in self.openings) <= _MOST_KNOWN_BYTES

    def renew(self) -> None:
        """Stay open in a forked child, unless another machine reads the files, which works for the parent only."""
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
            if facts := vars(self).get("facts"):  # set once they were asked for
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
