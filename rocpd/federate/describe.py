"""Describes a session before anything is asked of it: what the job is, ranks, agents, rows, problems.

Only reads: problems, which make numbers doubtful, are counted and reported, and the rows stay as they are. Files do
not have the version of ROCm: it is in the paths of the process' environment. They have a date where their clock counts
the time of day; when a file was written says nothing of the run, as files are copied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rocpd.base import Row, amount
from rocpd.base.documents import json_object
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.result import Result, Rows
from rocpd.federate.select.align import Clock
from rocpd.schema.load import OPTIONAL_TABLES, TABLES, table
from rocpd.schema.quote import quote_name
from rocpd.schema.render import outside_of
from rocpd.schema.rules.events import SPANS, VALID_START, VALID_TIMES
from rocpd.schema.versions import LATER_TABLES

_MINUTE_NS = 60_000_000_000
_FEW = 3  # hosts, commands, versions that are named
ROCM = re.compile(r"/rocm-(\d+\.\d+(?:\.\d+)?)")
"""Finds versions of ROCm in the environment of a process."""

_OURS = '"recorder"'  # in what our own recorder says of a process
_LOCAL_MEMORY = (1, 2)  # heaps of a GPU, as KFD numbers them: public and private frame buffer
_AGENTS = """
SELECT type, name, product_name, COUNT(*) AS number, MIN(id) AS first FROM rocpd_info_agent GROUP BY 1, 2, 3"""
_DETAILS = "SELECT extdata FROM rocpd_info_agent WHERE id = ?"
_PROCESS = "SELECT environment, extdata FROM rocpd_info_process LIMIT 1"
_IMPORTER = "SELECT value FROM rocpd_metadata WHERE tag = 'import::importer'"


class Agents(NamedTuple):
    """Agents of one kind on a host, and what one of them has; None: the file does not say."""

    host: str | None
    type: str | None
    name: str | None
    product: str | None
    number: int
    units: int | None = None
    memory_gib: float | None = None
    mhz: int | None = None


def agents_of(session: Federation) -> list[Agents]:
    """Return the agents of all hosts; every rank of a host lists those of the host."""
    most: dict[Row, tuple[int, Rank, int]] = {}
    for rank in session.ranks:
        for kind, name, product, number, first in session.reader(rank.number).rows(_AGENTS):
            key = (rank.hostname, kind, name, product)
            if key not in most or number > most[key][0]:
                most[key] = number, rank, first
    keys = sorted(most, key=lambda key: tuple(map(str, key)))
    return [_agents(session, key, *most[key]) for key in keys]


def _agents(session: Federation, key: Row, number: int, rank: Rank, first: int) -> Agents:
    """Return the agents of a key; what one has is read in the rank that lists most of them."""
    host, kind, name, product = key
    if kind != "GPU":
        return Agents(host, kind, name, product, number)
    (text,) = next(iter(session.reader(rank.number).rows(_DETAILS, (first,))), (None,))  # damaged: an id twice
    details = (json_object(text) if isinstance(text, (str, bytes)) else None) or {}
    banks = details.get("mem_banks")
    local = [bank for bank in banks if _whole(bank, "heap_type") in _LOCAL_MEMORY] if isinstance(banks, list) else []
    memory = round(sum(_whole(bank, "size_in_bytes") or 0 for bank in local) / 2**30, 1) or None
    units, clock = _whole(details, "cu_count") or None, _whole(details, "max_engine_clk_fcompute") or None
    return Agents(host, kind, name, product, number, units, memory, clock)


def _whole(details: Any, name: str) -> int | None:
    value = details.get(name) if isinstance(details, dict) else None
    return value if isinstance(value, int) else None


def facts_of(session: Federation) -> Iterator[tuple[str, str]]:
    """Yield what the job is: (fact, value)."""
    hosts = sorted({rank.hostname or "?" for rank in session.ranks})
    ranks = amount(len(session.ranks), "rank")
    separate = f", {session.runs} separate runs, not one job" if session.runs > 1 else ""
    yield "ranks", f"{ranks} on {amount(len(hosts), 'host')} ({_some(hosts)}){separate}"
    for ranks_of in session.job.programs:
        numbers = ", ".join(f"{number} is pass {k}" for k, number in enumerate(ranks_of, 1))
        yield "passes", f"{len(ranks_of)} of one program, for different counters: rank {numbers}"
    if commands := dict.fromkeys(rank.command for rank in session.ranks if rank.command):
        yield ("command" if len(commands) == 1 else f"{len(commands)} commands"), _some(commands, "; ")
    if gpus := Counter(_described(each) for each in agents_of(session) if each.type == "GPU"):
        hosts_of = {words: "1 host" if number == 1 else f"each of {number} hosts" for words, number in gpus.items()}
        yield "gpus", _some(f"{words} on {where}" for words, where in hosts_of.items())
    yield from _software(session)
    yield "date", _date(session)


def _date(session: Federation) -> str:
    """Return when the job ran, by clocks that count the time of day; files say nothing of it: they are copied."""
    spans = [session.job.spans[rank.number] for rank in session.ranks if rank.has_date and rank.number in session.spans]
    if not spans:
        return "not recorded: times count from the start of the machine"
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    start, end = (datetime.fromtimestamp(time // 10**9).astimezone() for time in (first, last))
    return f"{start:%Y-%m-%d %H:%M}" + (f" to {end:%Y-%m-%d %H:%M}" if last - first >= _MINUTE_NS else "")


def _described(agents: Agents) -> str:
    """Return the agents of a host in words: 8 × AMD Instinct MI300X (gfx942, 304 CUs, 192 GiB, 2100 MHz)."""
    details = [
        agents.name,
        *([f"{agents.units} CUs"] if agents.units else []),
        *([f"{agents.memory_gib:.0f} GiB"] if agents.memory_gib else []),
        *([f"{agents.mhz} MHz"] if agents.mhz else []),
    ]
    return f"{agents.number} × {agents.product or 'GPU'} ({', '.join(filter(None, details))})"


def importers_of(session: Federation) -> frozenset[str]:
    """Return the importers that made the files, as one rank of each host knows them; empty: none did."""
    readers = map(session.reader, _one_of_each_host(session))
    return frozenset("".join(str(name) for (name,) in reader.rows(_IMPORTER)) for reader in readers)


def _one_of_each_host(session: Federation) -> Sequence[int]:
    return list({rank.hostname: rank.number for rank in reversed(session.ranks)}.values())


def _software(session: Federation) -> Iterator[tuple[str, str]]:
    """Yield the versions of ROCm, and what recorded the files, as one rank of each host knows them."""
    rocm, profilers = set(), set()
    for reader in map(session.reader, _one_of_each_host(session)):
        ((environment, extdata),) = reader.rows(_PROCESS) or [(None, None)]
        environment, extdata = str(environment or ""), str(extdata or "")
        rocm.update(ROCM.findall(environment))
        imported = [f"imported from {importer}" for (importer,) in reader.rows(_IMPORTER)]
        profiler = "rocprofv3" if "rocprofv3" in environment else "rocpd record" if _OURS in extdata else "unknown"
        profilers.update(imported or [profiler])
    if rocm:
        yield "rocm", _some(sorted(rocm))
    schemas = sorted({rank.version for rank in session.ranks})
    yield "profiler", f"{_some(sorted(profilers))}, schema {_some(schemas)}"


def _some(words: Iterable[str], joined: str = ", ") -> str:
    every = list(words)
    return joined.join(every[:_FEW]) + (f"{joined}… {len(every) - _FEW} more" if len(every) > _FEW else "")


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
        doubtful = _doubtful_rows(rank)
        rows = dict(zip(doubtful, session.counts(rank.number, list(doubtful)), strict=True))
        streamed = rows.pop(_STREAMED, 0)
        for (base, condition), count in rows.items():
            if count:
                yield Problem(rank.number, f"{base}: {_ROWS} {doubtful[base, condition]}", count)
        yield from (Problem(rank.number, note.of_any) for note in (*filter(None, (rank.opening.note,)), *rank.notes))
        yield from _missing(rank)
        yield from _repeated_ids(session, rank)
        if streamed:
            values = amount(streamed, "streamed (SPM) value")
            yield Problem(rank.number, f"rocpd_pmc_event: {values}, in pmc_events but not in traces and tables")
        if later := [f"{base} ({LATER_TABLES[base]})" for base in LATER_TABLES if base in rank.tables]:
            yield Problem(rank.number, f"tables of later schemas, in SQL only: {', '.join(later)}")
        if rank.window:
            work = ", GPU work by its launch" if rank.window.by_launch else ""
            yield Problem(rank.number, f"a window of its trace: {rank.window.start} to {rank.window.end} ns{work}")
        if unknown := sorted(set(rank.tables) - {*TABLES, *LATER_TABLES, *map(outside_of, TABLES)}):
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
        if lacks := [c.name for c in contract.columns if not c.since and c.name not in rank.tables[contract.name]]:
            yield Problem(rank.number, f"{contract.name}: lacks {', '.join(lacks)}, taken as NULL")


_STREAMED = ("rocpd_pmc_event", "sample_id IS NOT NULL")


def _doubtful_rows(rank: Rank) -> dict[tuple[str, str], str]:
    """Return table and condition -> what rows lack that meet it; of counter values, that they are streamed."""
    rows = {}
    for base in SPANS:
        if {"start", "end"} <= set(rank.tables.get(base, ())):
            rows[base, f"({VALID_START}) IS NOT 1"] = "without a start"
            rows[base, f"{VALID_START} AND ({VALID_TIMES}) IS NOT 1"] = "without an end, or with one before the start"
    if "sample_id" in rank.tables.get(_STREAMED[0], ()):
        rows[_STREAMED] = "streamed"
    return rows


def _repeated_ids(session: Federation, rank: Rank) -> Iterator[Problem]:
    """Yield tables with ids that occur more than once; in those with a primary key none does."""
    for base in sorted(rank.keyless):
        repeated = f"SELECT 1 FROM {quote_name(base)} WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1"
        ((count,),) = session.reader(rank.number).rows(f"SELECT COUNT(*) FROM ({repeated})")
        if count:
            yield Problem(rank.number, f"{base}: {count} id{' occurs' if count == 1 else 's occur'} more than once")


def _recorded_twice(session: Federation) -> Iterator[Problem]:
    """Yield ranks with the pid, host and time of another: two recordings of one process under two GUIDs."""
    known: dict[tuple[object, ...], list[Rank]] = {}
    for rank in (rank for rank in session.ranks if rank.number in session.spans):
        others = known.setdefault(_process(rank), [])
        for other in others:
            span, other_span = session.spans[rank.number], session.spans[other.number]
            if span.start <= other_span.end and other_span.start <= span.end:
                yield Problem(rank.number, f"overlaps rank {other.number} in time, with the same host and pid")
        others.append(rank)


def _process(rank: Rank) -> tuple[object, ...]:
    """Return what tells a process from others: containers of one host count pids each by itself."""
    return rank.machine_id, rank.hostname, rank.pid_namespace, rank.pid


class Description(dict[str, Result]):
    """The content of a job: the sections of `describe` by name, each a Result. Prompts and notebooks show all."""

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


def _tables(session: Federation) -> Iterator[Row]:
    counts = Counter[str]()
    for rank in session.ranks:
        counts.update(session.table_rows(rank))
    names = dict.fromkeys((*TABLES, *(base for rank in session.ranks for base in sorted(rank.tables))))
    yield from ((base, counts[base]) for base in names if base in counts)


_SECTIONS: Mapping[str, tuple[str, Callable[[Federation], Iterable[Row]]]] = {
    "job": ("fact value", facts_of),
    "ranks": ("rank file mb host pid command schema clock_domain span_s run", _ranks),
    "agents": ("host type agent product count cus memory_gib mhz", agents_of),
    "tables": ("table rows", _tables),
    "clocks": ("host method offset_ns certain_ns likely_ns drift_ppm collectives", _clocks),
    "problems": ("rank what", lambda session: ((each.rank, each.text) for each in problems_of(session))),
}
"""Section -> its columns, and what yields its rows."""
