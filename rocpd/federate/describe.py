"""Describes a session before anything is asked of it: what the job is, ranks, agents, rows, problems.

Only reads: problems are counted and reported, and the rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from rocpd.base.types import Row
from rocpd.federate.facts import agents_of, facts_of
from rocpd.federate.federation import Federation
from rocpd.federate.problems import problems_of
from rocpd.federate.result import Result, Rows
from rocpd.federate.select.align import Clock
from rocpd.schema.load import TABLES


class Description(dict[str, Result]):
    """What a job holds: the sections of `describe` by name, each a Result. A prompt or a notebook shows all of them."""

    def __repr__(self) -> str:
        """Return all sections as text tables."""
        return "\n\n".join(f"{name.upper()}\n{result!r}" for name, result in self.items())

    def _repr_html_(self) -> str:
        """Return all sections as HTML tables."""
        return "".join(f"<h4>{name}</h4>{result._repr_html_()}" for name, result in self.items())


def describe(session: Federation, only: Collection[str] = ()) -> Description:
    """Return sections of job, ranks, agents, tables, clocks and problems: those that are named, or all.

    `job`: what the job is, a fact per row. `ranks`: one row per process; `mb` is the size of its file in megabytes,
    `span_s` first start to last end in seconds, `clock_domain` a number that ranks with comparable clocks share, `run`
    one that those of a job share. `clocks`: one row per host, how its clock is laid on the time line that hosts share:
    `offset_ns` is added to its times (where a drift is taken out, at its first collective), which is right to
    `certain_ns`, and probably to `likely_ns`; `drift_ppm` is against the reference clock, `collectives` how many say
    so. `agents`: one row per kind of agent and host; `cus` (compute units), `memory_gib` and `mhz` (highest clock) are
    those of one of them. `tables`: rows of all ranks together. `problems`: what makes numbers doubtful, by rank.
    """
    session.note_runs()
    chosen = {name: section for name, section in _SECTIONS.items() if name in (only or _SECTIONS)}
    return Description({name: _result(columns, rows(session)) for name, (columns, rows) in chosen.items()})


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
    for a in agents_of(session):
        yield a.host, a.type, a.name, a.product, a.number, a.units, a.memory_gib, a.mhz


def _tables(session: Federation) -> Iterator[Row]:
    names = dict.fromkeys((*TABLES, *(base for rank in session.ranks for base in sorted(rank.tables))))
    for base in names:
        counts = [session.count(rank.number, base) for rank in session.ranks if base in rank.tables]
        if counts:
            yield base, sum(counts)


_SECTIONS: Mapping[str, tuple[str, Callable[[Federation], Iterable[Row]]]] = {
    "job": ("fact value", facts_of),
    "ranks": ("rank file mb host pid command schema clock_domain span_s run", _ranks),
    "agents": ("host type agent product count cus memory_gib mhz", _agents),
    "tables": ("table rows", _tables),
    "clocks": ("host method offset_ns certain_ns likely_ns drift_ppm collectives", _clocks),
    "problems": ("rank what", lambda session: ((each.rank, each.text) for each in problems_of(session))),
}
"""Section -> its columns, and what yields its rows."""
