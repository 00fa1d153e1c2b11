"""The index of a job: the entries of its ranks, looked up once, from which its statements may be answered.

Imports DuckDB and a parser only for an answer, and the module of entries only if the folder of the index exists.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocpd.base import InputError, OutputError, Row, UsageError, process
from rocpd.base.home import index_root
from rocpd.federate.limits import usable_cores
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import has_open_journal
from rocpd.federate.run.shares import RankQuestion, Share

if TYPE_CHECKING:
    from rocpd.index.answers import StoredAnswers
    from rocpd.index.entries import IndexEntry


class Index:
    """The entries of all ranks of a job; see `rocpd.federate.run.shares.Columnar`.

    It is used while every rank has an entry and its file is unchanged since the look-up.

    Args:
        ranks: ranks of the job.
        folder: folder of the entries; None: the one of `index_root`.
        threads: number of threads of DuckDB; None: one per core.
    """

    def __init__(self, ranks: Sequence[Rank], folder: Path | None = None, threads: int | None = None) -> None:
        self._ranks = ranks
        self._folder = folder
        self._threads = threads or usable_cores()
        self._entries: dict[int, IndexEntry] = {}
        self._stats: dict[Path, tuple[int, ...]] = {}
        self._why_not: str | None = None
        self._made: StoredAnswers | None = None
        self._lock = threading.Lock()
        process.renew_when_forked(self)

    def renew(self) -> None:
        """Open the database anew in a forked child."""
        self._lock = threading.Lock()
        self._made = None

    @property
    def why_not(self) -> str:
        """Why the current files of all ranks have no index; empty: they have one."""
        with self._lock:
            if self._why_not is None:
                self._why_not = self._look_up()
            elif not self._why_not and (path := next(self._changed(), None)):
                self._why_not = f"{path.name} is being changed"
            return self._why_not

    def _changed(self) -> Iterator[Path]:
        from rocpd.index.entries import stat_of

        return (path for path, known in self._stats.items() if stat_of(path) != known or has_open_journal(path))

    def rows(
        self, question: RankQuestion, shares: Sequence[Share], *, insists: bool = False
    ) -> Iterator[list[Row]] | None:
        """Return the rows that ranks would return for a question; see `Columnar.rows`."""
        answer = self.why_not or self._answers().answer(question, shares)
        if not isinstance(answer, str):
            return answer
        if insists:
            raise UsageError(f"the index can't answer this: {answer}", "--strategy auto reads the files")
        return None

    def can_answer(self, question: RankQuestion, shares: Sequence[Share]) -> str:
        """Return why the ranks have to be asked; see `Columnar.can_answer`."""
        return self.why_not or self._answers().why_not(question, shares)

    def of_ranks(self, numbers: Collection[int]) -> Index:
        """Return the index of some ranks; see `Columnar.of_ranks`."""
        return Index([rank for rank in self._ranks if rank.number in numbers], self._folder)

    def __reduce__(self) -> tuple[type[Index], tuple[Sequence[Rank], Path | None]]:
        return Index, (self._ranks, self._folder)

    def close(self) -> None:
        """Close the database; idempotent."""
        if self._made:
            self._made.close()

    def _answers(self) -> StoredAnswers:
        from rocpd.index.answers import StoredAnswers

        with self._lock:
            if self._made is None:
                self._made = StoredAnswers(self._entries, self._threads)
            return self._made

    def _look_up(self) -> str:
        """Look up the entries of all ranks; return why one has no entry, or an empty text."""
        try:
            if not index_root(self._folder).is_dir():
                return "nothing is indexed yet"
            from rocpd.index.entries import cannot_index, indexes, stat_of, state_of

            cache = indexes(self._folder)
            for rank in self._ranks:
                path = rank.opening.path
                self._stats[path] = stat_of(path)
                if why_not := cannot_index(rank):
                    return f"{path.name}: {why_not}"
                if (entry := cache.entry(state_of(rank))) is None:
                    return f"{path.name}: no index of it as it is now"
                self._entries[rank.number] = entry
        except (InputError, OutputError, OSError) as error:
            return str(error)
        for entry in self._entries.values():
            cache.touch(entry.folder)
        return ""
