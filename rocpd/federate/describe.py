"""Describes a session before any analysis: the job, its ranks, agents, numbers of rows and problems.

Only reads: problems, which make numbers doubtful, are counted and reported, and the rows stay as they are. Files do
not record the version of ROCm: it is in the paths of the process' environment. They have a date where their clock
counts the time of day; the time at which a file was written says nothing of the run, as files are copied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from rocpd.base import Answer, Row, amount, by_key
from rocpd.base.texts import json_object
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.result import Result, Rows
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.load import OPTIONAL_TABLES, TABLES, table
from rocpd.schema.quote import quote_name
from rocpd.schema.render import outside_of
from rocpd.schema.rules.events import SPANS, VALID_START, VALID_TIMES
from rocpd.schema.versions import LATER_TABLES

_MINUTE_NS = 60_000_000_000
_FEW = 3  # hosts, commands or versions are named
ROCM = re.compile(r"/rocm-(\d+\.\d+(?:\.\d+)?)")
"""Finds versions of ROCm in the environment of a process."""

_OURS = '"recorder"'  # in the extdata that rocpd's own recorder writes for a process
_LOCAL_MEMORY = (1, 2)  # heaps of a GPU, as KFD numbers them: public and private frame buffer
_AGENTS = """
SELECT type, name, product_name, COUNT(*) AS number, MIN(id) AS first FROM rocpd_info_agent GROUP BY 1, 2, 3"""
_DETAILS = "SELECT extdata FROM rocpd_info_agent WHERE id = ?"
_PROCESS = "SELECT environment, extdata FROM rocpd_info_process LIMIT 1"
_IMPORTER = "SELECT value FROM rocpd_metadata WHERE tag = 'import::importer'"


class Agents(NamedTuple):
    """The number of agents of one kind on a host, and the properties of one of them; None: the file does not say."""

    host: str | None
    type: str | None
    name: str | None
    product: str | None
    number: int
    units: int | None = None
    memory_gib: float | None = None
    mhz: int | None = None


class _Ranks:
    """The ranks of a session, each with all its answers: each is visited once, as thousands cannot all stay open.

    Args:
        session: the session to read.
        reads: functions that each read something of a rank.
    """

    def __init__(self, session: Federation, reads: Iterable[_Read]) -> None:
        self.session = session
        self._known: dict[_Read, dict[int, Any]] = {read: {} for read in reads}
        works = tuple(self._known)
        for rank, answers in session.map_ranks(partial(_read_in, works)) if works else ():
            for read, answer in zip(works, answers, strict=True):
                self._known[read][rank.number] = answer

    def __getitem__(self, read: Callable[[RankReader], Answer]) -> dict[int, Answer]:
        """Return rank number -> result of `read`."""
        return self._known[read]

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """The problems of all ranks."""
        return [*_problems_of(self)]


_Read: TypeAlias = Callable[[RankReader], Any]


def _read_in(reads: tuple[_Read, ...], reader: RankReader) -> list[Any]:
    return [read(reader) for read in reads]


def _listed_agents(reader: RankReader) -> list[Row]:
    return reader.rows(_AGENTS)


def _agents_of(ranks: _Ranks) -> list[Agents]:
    """Return the agents of all hosts; every rank of a host lists the agents of that host."""
    session = ranks.session
    most: dict[Row, tuple[int, Rank, int]] = {}
    for rank in session.ranks:
        for kind, name, product, number, first in ranks[_listed_agents][rank.number]:
            key = (rank.hostname, kind, name, product)
            if key not in most or number > most[key][0]:
                most[key] = number, rank, first
    return [_agents(session, key, *most[key]) for key in sorted(most, key=lambda key: tuple(map(str, key)))]


def _agents(session: Federation, key: Row, number: int, rank: Rank, first: int) -> Agents:
    """Return the agents of a key; the properties of one are read in the rank that lists most of them."""
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


def _facts_of(of_ranks: _Ranks) -> Iterator[tuple[str, str]]:
    """Yield the facts of the job: (fact, value)."""
    session = of_ranks.session
    hosts = sorted({rank.hostname or "?" for rank in session.ranks})
    ranks, is_known = amount(len(session.ranks), "rank"), all(rank.has_machine for rank in session.ranks)
    on, host, unknown = ("on", "host", "") if is_known else ("in", "file", ", machines not recorded")
    separate = f", {session.runs} separate runs, not one job" if session.runs > 1 else ""
    yield "ranks", f"{ranks} {on} {amount(len(hosts), host)} ({_some(hosts)}){unknown}{separate}"
    for ranks_of in session.job.programs:
        numbers = ", ".join(f"{number} is pass {k}" for k, number in enumerate(ranks_of, 1))
        yield "passes", f"{len(ranks_of)} of one program, for different counters: rank {numbers}"
    if commands := dict.fromkeys(rank.command for rank in session.ranks if rank.command):
        yield ("command" if len(commands) == 1 else f"{len(commands)} commands"), _some(commands, "; ")
    gpus = Counter(_described(each) for each in _agents_of(of_ranks) if each.type == "GPU")
    if gpus:
        hosts_of = {
            words: f"1 {host}" if number == 1 else f"each of {number} {host}s" for words, number in gpus.items()
        }
        yield "gpus", _some(f"{words} {on} {where}" for words, where in hosts_of.items())
    yield from _software(session)
    yield "date", _date(session)


def _date(session: Federation) -> str:
    """Return the date of the job, by clocks that count the time of day; dates of files don't count: they are copied."""
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
    """Return the names of the importers that made the files, read in one rank of each host; empty: no importer did."""
    readers = map(session.reader, _one_of_each_host(session))
    return frozenset("".join(str(name) for (name,) in reader.rows(_IMPORTER)) for reader in readers)


def _one_of_each_host(session: Federation) -> Sequence[int]:
    return list({rank.hostname: rank.number for rank in reversed(session.ranks)}.values())


def _software(session: Federation) -> Iterator[tuple[str, str]]:
    """Yield the versions of ROCm, and the profilers that recorded the files, read in one rank of each host."""
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
    listed = list(words)
    return joined.join(listed[:_FEW]) + (f"{joined}… {len(listed) - _FEW} more" if len(listed) > _FEW else "")


_ROWS = "{rows}"


class Problem(NamedTuple):
    """A problem of a rank; in `what`, `{rows}` stands for the number of rows with the problem, if it is one of rows."""

    rank: int
    what: str
    rows: int = 0

    @property
    def text(self) -> str:
        """The problem in words."""
        return self.what.replace(_ROWS, amount(self.rows, "row"), 1) if self.rows else self.what


class SharedProblem(NamedTuple):
    """The same problem of several ranks; the number of rows is that of all of them together."""

    ranks: tuple[int, ...]
    text: str


def shared(problems: Iterable[Problem]) -> list[SharedProblem]:
    """Join equal problems of different ranks, in the order of the first of each."""
    return [
        SharedProblem(tuple(each.rank for each in same), same[0]._replace(rows=sum(each.rows for each in same)).text)
        for same in by_key((problem.what, problem) for problem in problems).values()
    ]


def _problems_of(ranks: _Ranks) -> Iterator[Problem]:
    session = ranks.session
    for rank in session.ranks:
        if rank.number not in session.spans:
            yield Problem(rank.number, "no events with valid timestamps")
        doubtful = ranks[_doubtful][rank.number]
        for (base, what), count in doubtful.items():
            if count and (base, what) != _STREAMED:
                yield Problem(rank.number, f"{base}: {_ROWS} {what}", count)
        yield from (Problem(rank.number, note.of_any) for note in (*filter(None, (rank.opening.note,)), *rank.notes))
        yield from _missing(rank)
        for base, count in ranks[_repeated_ids][rank.number].items():
            yield Problem(rank.number, f"{base}: {count} id{' occurs' if count == 1 else 's occur'} more than once")
        if streamed := doubtful.get(_STREAMED):
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
    """Yield the tables and columns that this rank lacks, though every version of the schema has them."""
    for contract in map(table, TABLES):
        if contract.since or contract.name in OPTIONAL_TABLES:
            continue
        if contract.name not in rank.tables:
            yield Problem(rank.number, f"{contract.name}: is missing, counts as empty")
            continue
        if lacks := [c.name for c in contract.columns if not c.since and c.name not in rank.tables[contract.name]]:
            yield Problem(rank.number, f"{contract.name}: lacks {', '.join(lacks)}, taken as NULL")


_STREAMED = ("rocpd_pmc_event", "streamed")


def _doubtful(reader: RankReader) -> dict[tuple[str, str], int]:
    """Return (table, problem of its rows) -> number of such rows; for counter values, the number of streamed ones."""
    conditions, tables = {}, reader.rank.tables
    for base in SPANS:
        if {"start", "end"} <= set(tables.get(base, ())):
            conditions[base, "without a start"] = f"({VALID_START}) IS NOT 1"
            no_end = f"{VALID_START} AND ({VALID_TIMES}) IS NOT 1"
            conditions[base, "without an end, or with one before the start"] = no_end
    if "sample_id" in tables.get(_STREAMED[0], ()):
        conditions[_STREAMED] = "sample_id IS NOT NULL"
    counts = reader.counts([(base, condition) for (base, _), condition in conditions.items()])
    return dict(zip(conditions, counts, strict=True))


def _repeated_ids(reader: RankReader) -> dict[str, int]:
    """Return table -> number of ids that occur more than once; tables with a primary key cannot have any."""
    repeated = {}
    for base in sorted(reader.rank.keyless):
        ids = f"SELECT 1 FROM {quote_name(base)} WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1"
        ((repeated[base],),) = reader.rows(f"SELECT COUNT(*) FROM ({ids})")
    return {base: count for base, count in repeated.items() if count}


def _recorded_twice(session: Federation) -> Iterator[Problem]:
    """Yield ranks with the pid, host and time of another rank: one process recorded twice, under two GUIDs."""
    known: dict[tuple[object, ...], list[Rank]] = {}
    for rank in (rank for rank in session.ranks if rank.number in session.spans):
        others = known.setdefault(_process(rank), [])
        for other in others:
            span, other_span = session.spans[rank.number], session.spans[other.number]
            if span.start <= other_span.end and other_span.start <= span.end:
                yield Problem(rank.number, f"overlaps rank {other.number} in time, with the same host and pid")
        others.append(rank)


def _process(rank: Rank) -> tuple[object, ...]:
    """Return the identity of a process; it has the pid namespace, as each container of a host counts its own pids."""
    return rank.machine_id, rank.hostname, rank.pid_namespace, rank.pid


class Description(dict[str, Result]):
    """The content of a job: the sections of `describe` by name, each a Result. Prompts and notebooks show all sections.

    Attributes:
        problems: the rows of the section `problems`.
    """

    problems: Sequence[Problem] = ()

    def __repr__(self) -> str:
        """Return all sections as text tables."""
        return "\n\n".join(f"{name.upper()}\n{result!r}" for name, result in self.items())

    def _repr_html_(self) -> str:
        """Return all sections as HTML tables."""
        return "".join(f"<h4>{name}</h4>{result._repr_html_()}" for name, result in self.items())


def describe(session: Federation, only: Collection[str] = ()) -> Description:
    """Return the sections job, ranks, agents, tables, clocks and problems: the named ones, or all.

    `job`: one fact of the job per row. `ranks`: one row per process; `mb` is the size of its file in megabytes,
    `span_s` first start to last end in seconds, `clock_domain` a number that ranks with comparable clocks share, `run`
    a number that the ranks of a job share. `clocks`: one row per host, how its clock is laid on the time line that
    hosts share: `offset_ns` is added to its times (where a drift is taken out, at its first collective); it is right to
    `certain_ns`, and probably to `likely_ns`; `drift_ppm` is against the reference clock, `collectives` the number of
    collectives that this was measured by. `agents`: one row per kind of agent and host; `cus` (compute units),
    `memory_gib` and `mhz` (highest clock) are those of a single agent. `tables`: number of rows of all ranks together.
    `problems`: problems that make numbers doubtful, by rank.
    """
    session.note_runs()
    chosen = {name: section for name, section in _SECTIONS.items() if name in (only or _SECTIONS)}
    ranks = _Ranks(session, dict.fromkeys(chain.from_iterable(section.reads for section in chosen.values())))
    described = Description({name: _result(each.columns, each.rows(ranks)) for name, each in chosen.items()})
    described.problems = ranks.problems if "problems" in chosen else ()
    return described


def _result(columns: str, rows: Iterable[Row]) -> Result:
    known = tuple(rows)
    return Result(lambda: Rows(columns.split(), iter(known)))


def _ranks(ranks: _Ranks) -> Iterator[Row]:
    session = ranks.session
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


def _clocks(ranks: _Ranks) -> Iterator[Row]:
    """Yield one row per host; its offset is NULL where its ranks have different offsets."""
    session = ranks.session
    hosts = {rank.number: rank.hostname for rank in session.ranks}
    clocks = session.alignment.clocks
    by_host = by_key((host, clock) for clock in clocks for host in {hosts[rank] for rank in clock.ranks})
    for host, (clock, *others) in sorted(by_host.items(), key=lambda item: item[0] or ""):
        differ = any(other.shift != clock.shift for other in others)
        yield host, *(clock.facts | ({"offset_ns": None} if differ else {})).values()


def _tables(ranks: _Ranks) -> Iterator[Row]:
    counts = Counter[str]()
    for rows in ranks[RankReader.table_rows].values():
        counts.update(rows)
    names = dict.fromkeys((*TABLES, *(base for rank in ranks.session.ranks for base in sorted(rank.tables))))
    yield from ((base, counts[base]) for base in names if base in counts)


class _Section(NamedTuple):
    """A section: its columns, the function that yields its rows, and the functions that read each rank for it."""

    columns: str
    rows: Callable[[_Ranks], Iterable[Row]]
    reads: tuple[_Read, ...] = ()


_SECTIONS: Mapping[str, _Section] = {
    "job": _Section("fact value", _facts_of, (_listed_agents,)),
    "ranks": _Section("rank file mb host pid command schema clock_domain span_s run", _ranks),
    "agents": _Section("host type agent product count cus memory_gib mhz", _agents_of, (_listed_agents,)),
    "tables": _Section("table rows", _tables, (RankReader.table_rows,)),
    "clocks": _Section("host method offset_ns certain_ns likely_ns drift_ppm collectives", _clocks),
    "problems": _Section(
        "rank what", lambda ranks: ((each.rank, each.text) for each in ranks.problems), (_doubtful, _repeated_ids)
    ),
}
