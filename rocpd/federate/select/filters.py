"""Owns filters: which ranks, hosts, agents, streams, categories and kernels count, as conditions on rows of each rank.

Ranks are dropped as a whole, from the time line too. Agents, streams and kernels restrict what has them: CPU regions
stay. Names are looked up in each rank first, so the conditions hold numbers only. Never touches a row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from rocpd.errors import RocpdError, UsageError
from rocpd.federate.open.identify import Rank
from rocpd.trace.agents import GPUS, copy_agent_sql
from rocpd.trace.categories import domain_of, normalized
from rocpd.trace.kernel_names import names_of_kernels
from rocpd.trace.tables import CATEGORY_TABLES, DOMAIN_TABLES, ON_AGENTS, ON_STREAMS

if TYPE_CHECKING:
    from rocpd.federate.run.rank_reader import MapRanks, RankReader

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_AGENT = re.compile(r"(?i)(?:(agent|gpu|cpu|nic)[- ]?)?(\d+)")
_AGENTS = "SELECT id, type, type_index FROM rocpd_info_agent"
_CATEGORIES = "SELECT id, string FROM rocpd_string WHERE id IN (SELECT DISTINCT category_id FROM rocpd_event)"
_LISTED = """
SELECT C.string, COUNT(*) FROM {table} T LEFT JOIN rocpd_event E ON E.id = T.event_id
LEFT JOIN rocpd_string C ON C.id = E.category_id WHERE {condition} GROUP BY 1"""
_NOTHING = "0"

EVENTS = "{events}"
"""Stands for the rank's table of events in a condition."""


@dataclass(frozen=True)
class Filters:
    """What counts; None lets everything count. Several filters hold together.

    Args:
        ranks: rank numbers, such as `0-3,8`.
        hosts: host names, with commas between them.
        agents: agent ids as in the files (`4`), or by type (`GPU-0`), with commas between them.
        streams: HIP stream ids, such as `0,2-4`.
        categories: domains (`HIP`, `MARKER`, `KERNELS` …) or event categories (`HIP_RUNTIME_API`), with commas.
        kernel: regular expression, searched in the names of kernels; other operations stay.
        exclude_kernel: regular expression for kernels that do not count.
    """

    ranks: str | None = None
    hosts: str | None = None
    agents: str | None = None
    streams: str | None = None
    categories: str | None = None
    kernel: str | None = None
    exclude_kernel: str | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    @property
    def on_rows(self) -> bool:
        """Whether rows are filtered, not whole ranks alone."""
        rows = (self.agents, self.streams, self.categories, self.kernel, self.exclude_kernel)
        return any(text is not None for text in rows)


def numbers(text: str, option: str) -> tuple[range, ...]:
    """Read numbers and ranges of numbers.

    >>> numbers("0-3,8", "--rank")
    (range(0, 4), range(8, 9))

    Raises:
        UsageError: it is neither.
    """
    found = []
    for word in split_list(text):
        match = _RANGE.fullmatch(word)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"{option} {text}: neither numbers nor ranges of them", "such as 0-3,8")
        found.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if not found:
        raise UsageError(f"{option}: empty", "such as 0-3,8")
    return tuple(found)


def split_list(text: str) -> tuple[str, ...]:
    """Split at commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def expression(text: str, option: str) -> re.Pattern[str]:
    """Compile a regular expression.

    Raises:
        UsageError: it is none.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text}: not a regular expression: {error}") from error


def select_ranks(ranks: Sequence[Rank], filters: Filters) -> tuple[Rank, ...]:
    """Return the ranks that count; their numbers stay.

    Raises:
        RocpdError: none is left.
        UsageError: a filter that can't be read.
    """
    left = list(ranks)
    if filters.ranks is not None:
        wanted = numbers(filters.ranks, "--rank")
        left = [rank for rank in left if any(rank.number in some for some in wanted)]
        if not left:
            there = ", ".join(str(rank.number) for rank in ranks[:8]) + (" …" if len(ranks) > 8 else "")
            raise RocpdError(f"no rank is numbered {filters.ranks}; there are {there}")
    if filters.hosts is not None:
        hosts = set(split_list(filters.hosts))
        left = [rank for rank in left if rank.hostname in hosts]
        if not left:
            there = ", ".join(sorted({str(rank.hostname) for rank in ranks}))
            raise RocpdError(f"no rank of the selection ran on {filters.hosts}; hosts: {there}")
    return tuple(left)


def unmatched(ranks: Sequence[Rank], filters: Filters) -> list[str]:
    """Say which of the ranks and hosts that are asked for are not there."""
    found = []
    for some in numbers(filters.ranks, "--rank") if filters.ranks is not None else ():
        if not any(rank.number in some for rank in ranks):
            text = str(some.start) if len(some) == 1 else f"{some.start}-{some.stop - 1}"
            found.append(f"--rank: no rank is numbered {text}")
    hosts = {rank.hostname for rank in ranks}
    found += [f"--host: no rank ran on {host}" for host in split_list(filters.hosts or "") if host not in hosts]
    return found


def row_conditions(filters: Filters, reader: RankReader) -> dict[str, str]:
    """Give base table -> condition on its rows, for one rank; tables that are not named are whole.

    `EVENTS` in a condition stands for the rank's events, whose name depends on the connection.
    """
    found: dict[str, list[str]] = {}
    for base, condition in _all(filters, reader):
        if base in reader.part.tables:
            found.setdefault(base, []).append(condition)
    return {base: " AND ".join(f"({one})" for one in own) for base, own in found.items()}


def _all(filters: Filters, reader: RankReader) -> Iterator[tuple[str, str]]:
    if filters.agents is not None:
        yield from _of_agents(_agent_ids(reader, filters.agents), reader)
    if filters.streams is not None:
        some = numbers(filters.streams, "--stream")
        chosen = " OR ".join(f"stream_id BETWEEN {one.start} AND {one.stop - 1}" for one in some)
        yield from ((base, chosen) for base in ON_STREAMS)
    if filters.categories is not None:
        yield from _of_categories(reader, filters.categories)
    if filters.kernel is not None:
        ids = _kernel_ids(reader, expression(filters.kernel, "--kernel"))
        yield "rocpd_kernel_dispatch", f"kernel_id IN ({_listed(ids)})"
    if filters.exclude_kernel is not None:
        ids = _kernel_ids(reader, expression(filters.exclude_kernel, "--exclude-kernel"))
        yield "rocpd_kernel_dispatch", f"kernel_id IS NULL OR kernel_id NOT IN ({_listed(ids)})"


def _kernel_ids(reader: RankReader, pattern: re.Pattern[str]) -> list[int]:
    return [number for number, name in reader.rows(names_of_kernels()) if name is not None and pattern.search(name)]


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in sorted(ids))


def _agent_ids(reader: RankReader, text: str) -> list[int]:
    found: list[int] = []
    known = reader.rows(_AGENTS)
    for word in split_list(text):
        match = _AGENT.fullmatch(word)
        if not match:
            raise UsageError(f"--agent {word}: not an agent", "an id such as 4, or GPU-0")
        kind, number = (match[1] or "agent").upper(), int(match[2])
        if kind == "AGENT":
            found.append(number)
        else:
            found += [row[0] for row in known if row[1] == kind and row[2] == number]
    return found


def _of_agents(ids: list[int], reader: RankReader) -> Iterator[tuple[str, str]]:
    among = f"IN ({_listed(ids)})"
    for base in ON_AGENTS:
        if "agent_id" in reader.part.tables.get(base, ()):
            yield base, f"agent_id {among}"
    gpus = _listed(number for (number,) in reader.rows(GPUS))
    yield "rocpd_memory_copy", f"{copy_agent_sql(gpus)} {among}"


def _of_categories(reader: RankReader, text: str) -> Iterator[tuple[str, str]]:
    """What is wanted by domain or by category; what ran on a GPU has its domain from its table, damaged or not."""
    wanted = {normalized(word) for word in split_list(text)}
    known = reader.rows(_CATEGORIES)
    chosen = _of_events(number for number, name in known if {normalized(name), domain_of(name)} & wanted)
    if "OTHER" in wanted:
        chosen += f" OR event_id IS NULL OR NOT {_of_events(number for number, name in known if name)}"
    yield from ((base, chosen) for base in CATEGORY_TABLES)
    named = [number for number, name in known if normalized(name) in wanted - set(DOMAIN_TABLES)]
    kept: dict[str, list[str]] = {base: [_of_events(named)] if named else [] for base, _ in DOMAIN_TABLES.values()}
    for domain, (base, condition) in DOMAIN_TABLES.items():
        kept[base] += [condition] if domain in wanted else []
    yield from ((base, " OR ".join(conditions) or _NOTHING) for base, conditions in kept.items())


def _of_events(categories: Iterable[int]) -> str:
    return f"event_id IN (SELECT id FROM {EVENTS} WHERE category_id IN ({_listed(categories)}))"


def categories(map_ranks: MapRanks) -> list[tuple[str, str | None, int]]:
    """Give domain, event category and number of events of all ranks, sorted by domain and category."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for _, own in map_ranks(_counted):
        counts.update(own)
    return [(*key, counts[key]) for key in sorted(counts, key=lambda key: (key[0], key[1] or ""))]


def _counted(reader: RankReader) -> dict[tuple[str, str | None], int]:
    sources = [
        *((domain, *source) for domain, source in DOMAIN_TABLES.items()),
        *((None, base, "1") for base in CATEGORY_TABLES),
    ]
    counts: Counter[tuple[str, str | None]] = Counter()
    for domain, base, condition in sources:
        for name, count in reader.rows(_LISTED.format(table=base, condition=condition)):
            counts[domain or domain_of(name), name] += count
    return counts
