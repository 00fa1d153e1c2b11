"""The job: its ranks, their files, when they ran, and whose clocks compare.

Never changes: fewer ranks are another job on the same files. Never decides which events count (`select` does).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from rocpd.federate.open.identify import Rank
from rocpd.federate.plan.steps import Scatter
from rocpd.federate.run.cores import usable_cores
from rocpd.federate.run.files import Files
from rocpd.federate.run.pool import Share, shares_of
from rocpd.federate.run.request import Request
from rocpd.federate.select.align import (
    SPAN,
    Align,
    Alignment,
    Domain,
    Span,
    TimeLine,
    align,
    clock_domains,
    fixed_offsets,
)
from rocpd.frozen import frozen
from rocpd.schema.load import TABLES, table
from rocpd.schema.render import RankTables


@frozen
class Job:
    """The ranks of a job and their files.

    Args:
        ranks: the processes, by rank number.
        files: the open files.
        how: how ranks are aligned on one time line.
        clock_offsets: host -> what is added to its times [ns]; if there are any, they replace `how`.
        kept_alignment: that of the job with more ranks, on which a window was resolved.
    """

    ranks: tuple[Rank, ...]
    files: Files
    how: Align = Align.AUTO
    clock_offsets: Mapping[str, int] = field(default_factory=dict)
    kept_alignment: Alignment | None = None

    def of_ranks(self, ranks: tuple[Rank, ...], *, keep_alignment: bool) -> Job:
        """Return the job of some of the ranks, aligned anew or as in this one."""
        if len(ranks) == len(self.ranks):
            return self
        return dataclasses.replace(self, ranks=ranks, kept_alignment=self.alignment if keep_alignment else None)

    @cached_property
    def rank_tables(self) -> dict[int, RankTables]:
        """Rank number -> its tables as a connection to its own file names them."""
        further = _further(self.ranks)
        return {
            rank.number: RankTables(
                rank.suffix,
                rank.tables,
                None,
                rank.number,
                rank.hostname,
                further,
                guid=rank.guid,
                keyless=rank.keyless,
            )
            for rank in self.ranks
        }

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The files, or blocks of ranks of a merged one, with all rows of their ranks."""
        return shares_of(self.ranks, self.rank_tables, usable_cores())

    @cached_property
    def spans(self) -> dict[int, Span]:
        """Rank number -> first start and last end of its events [ns, as recorded]; none for ranks without events."""
        self.files.check_open()
        request = Request(Scatter("spans", ("start", "end"), (), SPAN, gives_few_rows=True), {})
        rows = itertools.chain.from_iterable(self.files.executor.rows(request, self.shares, None))
        numbers = (number for share in self.shares for number in share.ranks)
        return {number: Span(*row) for number, row in zip(numbers, rows, strict=True) if row[0] is not None}

    @cached_property
    def clock_domains(self) -> tuple[Domain, ...]:
        """Sets of ranks whose timestamps compare."""
        return clock_domains(self.ranks, self.spans)

    @cached_property
    def alignment(self) -> Alignment:
        """What is added to each rank's timestamps to align all ranks on one time line [ns].

        Raises:
            UsageError: an offset is given for a host that no rank ran on.
        """
        if self.kept_alignment:
            return self.kept_alignment
        if self.clock_offsets:
            return fixed_offsets(self.clock_offsets, self.ranks)
        return align(self.how, self.clock_domains, self.spans)

    @cached_property
    def time_line(self) -> TimeLine | None:
        """All ranks on one time line; None without events."""
        return TimeLine.of(self.spans, self.alignment.offsets)

    @cached_property
    def rank_of(self) -> dict[int, Rank]:
        """Rank number -> rank."""
        return {rank.number: rank for rank in self.ranks}

    @cached_property
    def share_of(self) -> dict[int, Share]:
        """Rank number -> the share that holds it."""
        return {number: share for share in self.shares for number in share.ranks}


def _further(ranks: tuple[Rank, ...]) -> dict[str, tuple[str, ...]]:
    """Return base table -> columns beyond the contract, over all ranks in their order."""
    contract = {base: frozenset(column.name.lower() for column in table(base).columns) for base in TABLES}
    further: dict[str, dict[str, str]] = {}
    for shape in {id(rank.tables): rank.tables for rank in ranks}.values():
        for base, columns in shape.items():
            known = contract.get(base, frozenset())
            for column in columns:
                if column.lower() not in known:
                    further.setdefault(base, {}).setdefault(column.lower(), column)
    return {base: tuple(columns.values()) for base, columns in further.items()}
