"""Describes a session before anything is asked of it: ranks, agents, rows, problems.

Only reads: problems are counted and reported, and the rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.result import Result, Rows
from rocpd.federate.select.align import Clock
from rocpd.schema.load import TABLES, table
from rocpd.schema.quote import quote_name
from rocpd.schema.render import outside_of
from rocpd.schema.versions import LATER_TABLES
from rocpd.trace.tables import SPANS
from rocpd.trace.times import VALID_START, VALID_TIMES
from rocpd.types import Row


class Description(dict[str, Result]):
    """What a job holds: the sections of `describe` by name, each a Result. A prompt or a notebook shows all of them."""

    def __repr__(self) -> str:
        """Return all sections as text tables."""
        return "\n\n".join(f"{name.upper()}\n{result!r}" for name, result in self.items())

    def _repr_html_(self) -> str:
        """Return all sections as HTML tables."""
        return "".join(f"<h4>{name}</h4>{result._repr_html_()}" for name, result in self.items())


def describe(session: Federation, only: str | None = None) -> Description:
    """Return all sections, or only one: ranks, agents, tables, clocks, problems.

    `ranks`: one row per process; `mb` is the size of its file in megabytes, `span_s` first start to last end in
    seconds, `clock_domain` a number that ranks with comparable clocks share, `run` one that those of a job share.
    `clocks`: one row per host, how its clock is laid on the time line that hosts share: `offset_ns` is added to its
    times (where a drift is taken out, at its first collective), which is right to `certain_ns`, and probably to
    `likely_ns`; `drift_ppm` is against the reference clock, `collectives` how many say so. `agents`: one row per kind
    of agent and host. `tables`: rows of all ranks together. `problems`: what makes numbers doubtful, by rank.
    """
    session.note_runs()
    return Description(
        {name: _result(columns, rows(session)) for name, (columns, rows) in _SECTIONS.items() if only in (None, name)}
    )


def _result(columns: str, rows: Iterable[Row]) -> Result:
    known = tuple(rows)
    return Result(lambda: Rows(columns.split(), iter(known)))


def _ranks(session: Federation) -> Iterator[Row]:
    domains = sorted(session.clock_domains, key=lambda domain: min(domain.ranks))
    domain_of = {rank: index for index, domain in enumerate(domains) for rank in domain.ranks}
    for rank in session.ranks:
        span = session.spans.get(rank.number)
        yield (
            rank.number,
            str(rank.opening.path),
            round(rank.opening.path.stat().st_size / 1e6, 3),
            rank.hostname,
            rank.pid,
            rank.command,
            rank.version,
            domain_of.get(rank.number),
            (span.end - span.start) / 1e9 if span else None,
            rank.run,
        )


def _clocks(session: Federation) -> Iterator[Row]:
    """Yield one row per host; its offset is NULL where ranks of it are moved by different ones."""
    hosts = {rank.number: rank.hostname for rank in session.ranks}
    by_host: dict[str | None, list[Clock]] = {}
    for clock in session.alignment.clocks:
        for host in {hosts[rank] for rank in clock.ranks}:
            by_host.setdefault(host, []).append(clock)
    for host, (clock, *others) in sorted(by_host.items(), key=lambda item: item[0] or ""):
        differ = any(other.shift != clock.shift for other in others)
        yield host, *(clock.facts | ({"offset_ns": None} if differ else {})).values()


def _agents(session: Federation) -> Iterator[Row]:
    sql = "SELECT type, name, product_name, COUNT(*) FROM rocpd_info_agent GROUP BY 1, 2, 3"
    counts: dict[Row, int] = {}
    for rank in session.ranks:
        for kind, name, product, count in session.reader(rank.number).rows(sql):
            key = (rank.hostname, kind, name, product)
            counts[key] = max(counts.get(key, 0), count)  # every rank of a host lists the agents of the host
    for key, count in sorted(counts.items(), key=lambda item: tuple(map(str, item[0]))):
        yield (*key, count)


def _tables(session: Federation) -> Iterator[Row]:
    names = dict.fromkeys((*TABLES, *(base for rank in session.ranks for base in sorted(rank.tables))))
    for base in names:
        counts = [session.count(rank.number, base) for rank in session.ranks if base in rank.tables]
        if counts:
            yield base, sum(counts)


def _problems(session: Federation) -> Iterator[Row]:
    for rank in session.ranks:
        if rank.number not in session.spans:
            yield rank.number, "no events with valid timestamps"
        for base in SPANS:
            if {"start", "end"} <= set(rank.tables.get(base, ())):
                for condition, problem in (
                    (f"({VALID_START}) IS NOT 1", "without a start"),
                    (f"{VALID_START} AND ({VALID_TIMES}) IS NOT 1", "without an end, or with one before the start"),
                ):
                    count = session.count(rank.number, base, condition)
                    if count:
                        yield rank.number, f"{base}: {count} row{'' if count == 1 else 's'} {problem}"
        yield from _missing(rank)
        yield from _repeated_ids(session, rank)
        yield from _streamed_values(session, rank)
        later = [f"{base} ({LATER_TABLES[base]})" for base in LATER_TABLES if base in rank.tables]
        if later:
            yield rank.number, f"tables of later schemas, in SQL only: {', '.join(later)}"
        if rank.window:
            work = ", GPU work by its launch" if rank.window.by_launch else ""
            yield rank.number, f"a window of its trace: {rank.window.start} to {rank.window.end} ns{work}"
        unknown = sorted(set(rank.tables) - {*TABLES, *LATER_TABLES, *map(outside_of, TABLES)})
        if unknown:
            yield rank.number, f"tables beyond the schema: {', '.join(unknown)}"
    yield from _recorded_twice(session)


def _missing(rank: Rank) -> Iterator[Row]:
    """Yield the tables and columns that every version of the schema has, and this rank lacks."""
    for contract in map(table, TABLES):
        if contract.since:
            continue
        if contract.name not in rank.tables:
            yield rank.number, f"{contract.name}: is missing, counts as empty"
            continue
        lacks = [c.name for c in contract.columns if not c.since and c.name not in rank.tables[contract.name]]
        if lacks:
            yield rank.number, f"{contract.name}: lacks {', '.join(lacks)}, taken as NULL"


def _streamed_values(session: Federation, rank: Rank) -> Iterator[Row]:
    """Yield how many counter values are those of streamed samples."""
    if "sample_id" in rank.tables.get("rocpd_pmc_event", ()):
        count = session.count(rank.number, "rocpd_pmc_event", "sample_id IS NOT NULL")
        if count:
            values = f"{count} streamed (SPM) value{'' if count == 1 else 's'}"
            yield rank.number, f"rocpd_pmc_event: {values}, in pmc_events but not in traces and tables of counters"


def _repeated_ids(session: Federation, rank: Rank) -> Iterator[Row]:
    """Yield tables with ids that occur more than once; in those with a primary key none does."""
    for base in sorted(rank.keyless):
        repeated = f"SELECT 1 FROM {quote_name(base)} WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1"
        ((count,),) = session.reader(rank.number).rows(f"SELECT COUNT(*) FROM ({repeated})")
        if count:
            yield rank.number, f"{base}: {count} id{' occurs' if count == 1 else 's occur'} more than once"


def _recorded_twice(session: Federation) -> Iterator[Row]:
    """Yield ranks with the pid, host and time of another: two recordings of one process under two GUIDs."""
    ranks = [rank for rank in session.ranks if rank.number in session.spans]
    for index, rank in enumerate(ranks):
        for other in ranks[:index]:
            same = (rank.machine_id, rank.hostname, rank.pid) == (other.machine_id, other.hostname, other.pid)
            span, other_span = session.spans[rank.number], session.spans[other.number]
            if same and span.start <= other_span.end and other_span.start <= span.end:
                yield rank.number, f"overlaps rank {other.number} in time, with the same host and pid"


_SECTIONS: Mapping[str, tuple[str, Callable[[Federation], Iterable[Row]]]] = {
    "ranks": ("rank file mb host pid command schema clock_domain span_s run", _ranks),
    "agents": ("host type agent product count", _agents),
    "tables": ("table rows", _tables),
    "clocks": ("host method offset_ns certain_ns likely_ns drift_ppm collectives", _clocks),
    "problems": ("rank what", _problems),
}
"""Section -> its columns, and what yields its rows."""
