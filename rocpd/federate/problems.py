"""What makes the numbers of a job doubtful, rank by rank. Counts and reports; the rows stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rocpd.base.amount import amount
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.schema.load import OPTIONAL_TABLES, TABLES, table
from rocpd.schema.quote import quote_name
from rocpd.schema.render import outside_of
from rocpd.schema.rules.tables import SPANS
from rocpd.schema.rules.times import VALID_START, VALID_TIMES
from rocpd.schema.versions import LATER_TABLES

_ROWS = "{rows}"


class Problem(NamedTuple):
    """A problem of a rank: in `what`, `{rows}` stands for how many rows have it, if it is one of rows."""

    rank: int
    what: str
    rows: int = 0

    @property
    def text(self) -> str:
        """The problem in words."""
        rows = amount(self.rows, "row")
        return self.what.replace(_ROWS, rows, 1) if self.rows else self.what


class SharedProblem(NamedTuple):
    """The same problem of several ranks; rows of all of them together."""

    ranks: tuple[int, ...]
    text: str


def shared(problems: Iterable[Problem]) -> list[SharedProblem]:
    """Put the same problems of different ranks together, in the order in which they come."""
    by_what: dict[str, list[Problem]] = {}
    for problem in problems:
        by_what.setdefault(problem.what, []).append(problem)
    return [
        SharedProblem(tuple(each.rank for each in same), same[0]._replace(rows=sum(each.rows for each in same)).text)
        for same in by_what.values()
    ]


def problems_of(session: Federation) -> Iterator[Problem]:
    """Yield the problems of all ranks."""
    for rank in session.ranks:
        if rank.number not in session.spans:
            yield Problem(rank.number, "no events with valid timestamps")
        for base in SPANS:
            if {"start", "end"} <= set(rank.tables.get(base, ())):
                for condition, problem in (
                    (f"({VALID_START}) IS NOT 1", "without a start"),
                    (f"{VALID_START} AND ({VALID_TIMES}) IS NOT 1", "without an end, or with one before the start"),
                ):
                    count = session.count(rank.number, base, condition)
                    if count:
                        yield Problem(rank.number, f"{base}: {_ROWS} {problem}", count)
        yield from (Problem(rank.number, note.of_any) for note in (*filter(None, (rank.opening.note,)), *rank.notes))
        yield from _missing(rank)
        yield from _repeated_ids(session, rank)
        yield from _streamed_values(session, rank)
        later = [f"{base} ({LATER_TABLES[base]})" for base in LATER_TABLES if base in rank.tables]
        if later:
            yield Problem(rank.number, f"tables of later schemas, in SQL only: {', '.join(later)}")
        if rank.window:
            work = ", GPU work by its launch" if rank.window.by_launch else ""
            yield Problem(rank.number, f"a window of its trace: {rank.window.start} to {rank.window.end} ns{work}")
        unknown = sorted(set(rank.tables) - {*TABLES, *LATER_TABLES, *map(outside_of, TABLES)})
        if unknown:
            yield Problem(rank.number, f"tables beyond the schema: {', '.join(unknown)}")
    yield from _recorded_twice(session)


def _missing(rank: Rank) -> Iterator[Problem]:
    """Yield the tables and columns that every version of the schema has, and this rank lacks."""
    for contract in map(table, TABLES):
        if contract.since or contract.name in OPTIONAL_TABLES:
            continue
        if contract.name not in rank.tables:
            yield Problem(rank.number, f"{contract.name}: is missing, counts as empty")
            continue
        lacks = [c.name for c in contract.columns if not c.since and c.name not in rank.tables[contract.name]]
        if lacks:
            yield Problem(rank.number, f"{contract.name}: lacks {', '.join(lacks)}, taken as NULL")


def _streamed_values(session: Federation, rank: Rank) -> Iterator[Problem]:
    """Yield how many counter values are those of streamed samples."""
    if "sample_id" in rank.tables.get("rocpd_pmc_event", ()):
        count = session.count(rank.number, "rocpd_pmc_event", "sample_id IS NOT NULL")
        if count:
            values = amount(count, "streamed (SPM) value")
            yield Problem(rank.number, f"rocpd_pmc_event: {values}, in pmc_events but not in traces and tables")


def _repeated_ids(session: Federation, rank: Rank) -> Iterator[Problem]:
    """Yield tables with ids that occur more than once; in those with a primary key none does."""
    for base in sorted(rank.keyless):
        repeated = f"SELECT 1 FROM {quote_name(base)} WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1"
        ((count,),) = session.reader(rank.number).rows(f"SELECT COUNT(*) FROM ({repeated})")
        if count:
            yield Problem(rank.number, f"{base}: {count} id{' occurs' if count == 1 else 's occur'} more than once")


def _recorded_twice(session: Federation) -> Iterator[Problem]:
    """Yield ranks with the pid, host and time of another: two recordings of one process under two GUIDs."""
    ranks = [rank for rank in session.ranks if rank.number in session.spans]
    for index, rank in enumerate(ranks):
        for other in ranks[:index]:
            same = _process(rank) == _process(other)
            span, other_span = session.spans[rank.number], session.spans[other.number]
            if same and span.start <= other_span.end and other_span.start <= span.end:
                yield Problem(rank.number, f"overlaps rank {other.number} in time, with the same host and pid")


def _process(rank: Rank) -> tuple[object, ...]:
    """Return what tells a process from others: containers of one host count pids each by itself."""
    return rank.machine_id, rank.hostname, rank.pid_namespace, rank.pid
