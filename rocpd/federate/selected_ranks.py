"""The ranks of a job with their selected rows: their tables, and work on each of them.

Never changes, never plans a statement. Another selection is another value on the same files.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import cast

from rocpd.federate.job import Job
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.attach import schemas_of
from rocpd.federate.run.executor import Executor
from rocpd.federate.run.pool import Share
from rocpd.federate.run.rank_reader import RankReader, RankTask, run_task
from rocpd.federate.select.align import Domain, Span
from rocpd.federate.select.selection import Selection
from rocpd.federate.select.window import Interval
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables
from rocpd.types import Answer


class SelectedRanks:
    """The ranks of a job and their selected rows.

    Args:
        job: the ranks and their files.
        selection: the rows that count.
    """

    def __init__(self, job: Job, selection: Selection) -> None:
        self.job = job
        self.selection = selection

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """The processes, by rank number."""
        return self.job.ranks

    @property
    def window(self) -> Interval | None:
        """The part of the time line that counts, None for all of it."""
        return self.selection.window

    @property
    def executor(self) -> Executor:
        """What works on ranks in parallel."""
        return self.job.files.executor

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The files, or blocks of ranks of a merged one, with the selected rows of their ranks."""
        return tuple(
            dataclasses.replace(share, tables=tuple(map(self.selection.apply, share.ranks, share.tables)))
            for share in self.job.shares
        )

    @cached_property
    def attached_tables(self) -> tuple[RankTables, ...]:
        """Each rank's tables, with the selected rows, as the attached connection names them."""
        schemas = schemas_of(self.ranks)
        return tuple(self.rank_tables(rank.number, schemas[rank.opening]) for rank in self.ranks)

    def rank_tables(self, rank: int, schema: str | None = None) -> RankTables:
        """Return a rank's tables, with the selected rows, as a connection names them.

        Args:
            rank: its number.
            schema: the name under which the connection has the rank's file attached; None: a connection to that file.
        """
        tables = self.job.rank_tables[rank]
        return self.selection.apply(rank, dataclasses.replace(tables, schema=schema) if schema else tables)

    @property
    def spans(self) -> dict[int, Span]:
        """Rank number -> first start and last end of its events [ns, as recorded]; none for ranks without events."""
        self.job.files.check_open()
        return self.job.spans

    @property
    def clock_domains(self) -> tuple[Domain, ...]:
        """Sets of ranks whose timestamps compare."""
        self.job.files.check_open()
        return self.job.clock_domains

    def reader(self, rank: int) -> RankReader:
        """Return the reader of one rank, by its number."""
        self.job.files.check_open()
        lend = partial(self.job.files.pool.lend, self.job.share_of[rank])
        return RankReader(self.job.rank_of[rank], self.rank_tables(rank), lend)

    def map_ranks(self, work: Callable[[RankReader], Answer]) -> Iterator[tuple[Rank, Answer]]:
        """Do `work` for each rank, on all cores where that is faster; yield the answers in rank order.

        Args:
            work: a module-level function or a `functools.partial` of one; it and what it returns can be pickled.

        Raises:
            what `work` raises.
        """
        files = self.job.files
        files.check_open()
        tasks = [RankTask(rank, self.rank_tables(rank.number), work) for rank in self.ranks]
        with contextlib.closing(files.executor.each(run_task, tasks, self.ranks)) as answers:
            yield from zip(self.ranks, answers, strict=True)

    def count(self, rank: int, base: str, condition: str = "1") -> int:
        """Return the number of selected rows of a rank's table; `condition` is SQL on its columns."""
        sql = f"SELECT COUNT(*) FROM {quote_name(base)} WHERE {condition}"
        return cast("int", self.reader(rank).rows(sql)[0][0])

    def require_rows(self) -> None:
        """Refuse a selection without rows in the tables that filters name, if any, or else in all tables.

        Raises:
            RocpdError: no row is left.
        """
        if self.window is None and not self.selection.filtered:
            return
        for share in self.shares:
            for number, tables in zip(share.ranks, share.tables, strict=True):
                reader = self.reader(number)
                for base in self.selection.tables_to_check(number, tables):
                    if reader.rows(f"SELECT 1 FROM {quote_name(base)} LIMIT 1"):
                        return
        raise self.selection.empty_error()
