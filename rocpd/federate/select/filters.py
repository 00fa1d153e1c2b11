"""Filters: which ranks, hosts, agents, streams, categories and kernels count, as conditions on the rows of each rank.

Ranks are dropped entirely, from the time line too. Filters on agents, streams and kernels restrict the tables that
have these columns: CPU regions stay. Names are looked up in each rank first, so that conditions hold numbers only.
Never changes a row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from rocpd.base import RocpdError, UsageError, by_key, frozen
from rocpd.base.option import regular_expression
from rocpd.federate.open.identify import Rank
from rocpd.federate.select.selection import RANK_EVENTS
from rocpd.schema.rules.categories import domain_of, normalized
from rocpd.schema.rules.events import CATEGORY_TABLES, DOMAIN_TABLES, GPUS, ON_AGENTS, ON_STREAMS, copy_agent_sql
from rocpd.schema.rules.kernel_names import matches, names_of_kernels

if TYPE_CHECKING:
    from rocpd.federate.run.rank_reader import MapRanks, RankReader

_RANGE = r"(\d+)(?:-(\d+))?"
_AGENT = r"(?i)(?:(agent|gpu|cpu|nic)[- ]?)?(\d+)"
_AGENTS = "SELECT id, type, type_index FROM rocpd_info_agent"
_CATEGORIES = "SELECT id, string FROM rocpd_string WHERE id IN (SELECT DISTINCT category_id FROM rocpd_event)"
_COUNTS = """
SELECT C.string, COUNT(*) FROM {table} T LEFT JOIN rocpd_event E ON E.id = T.event_id
LEFT JOIN rocpd_string C ON C.id = E.category_id WHERE {condition} GROUP BY 1"""
_NOTHING = "0"


LEFT_OUT = "partners are left out by --rank or --host"
"""Reason why waits between ranks are unknown, where filters leave ranks of a job out."""


@frozen
class Filters:
    """Filters of events; None lets everything count. An event counts if it passes all filters.

    Args:
        ranks: rank numbers, such as `0-3,8`.
        hosts: host names, separated by commas.
        agents: agent ids as in the files (`4`), or by type (`GPU-0`), separated by commas.
        streams: HIP stream ids, such as `0,2-4`.
        categories: domains (`HIP`, `MARKER`, `KERNELS` …) or event categories (`HIP_RUNTIME_API`), separated by commas.
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
        """Whether rows are filtered, not only whole ranks."""
        row_filters = (self.agents, self.streams, self.categories, self.kernel, self.exclude_kernel)
        return any(text is not None for text in row_filters)


def number_ranges(text: str, option: str) -> tuple[range, ...]:
    """Parse numbers and ranges of numbers, separated by commas.

    >>> number_ranges("0-3,8", "--rank")
    (range(0, 4), range(8, 9))

    Raises:
        UsageError: the text is empty, or holds anything else.
    """
    ranges = []
    for word in _named(text, option, "0-3,8"):
        match = re.fullmatch(_RANGE, word)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"{option} {text}: neither numbers nor ranges of numbers", "such as 0-3,8")
        ranges.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(ranges)


def split_list(text: str) -> tuple[str, ...]:
    """Split at commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _named(text: str, option: str, example: str) -> tuple[str, ...]:
    """Split a text at commas; refuse one without words."""
    if not (words := split_list(text)):
        raise UsageError(f"{option}: empty", f"such as {example}")
    return words


def select_ranks(ranks: Sequence[Rank], filters: Filters) -> tuple[Rank, ...]:
    """Return the ranks that count; their numbers stay.

    Raises:
        RocpdError: no rank is left.
        UsageError: a filter cannot be parsed.
    """
    selected = list(ranks)
    if filters.ranks is not None:
        ranges = number_ranges(filters.ranks, "--rank")
        selected = [rank for rank in selected if any(rank.number in numbers for numbers in ranges)]
        if not selected:
            known = ", ".join(str(rank.number) for rank in ranks[:8]) + (" …" if len(ranks) > 8 else "")
            raise RocpdError(f"no rank is numbered {filters.ranks}; there are {known}")
    if filters.hosts is not None:
        hosts = set(_named(filters.hosts, "--host", "node-0,node-1"))
        selected = [rank for rank in selected if rank.hostname in hosts]
        if not selected:
            known = ", ".join(sorted({str(rank.hostname) for rank in ranks}))
            raise RocpdError(f"no rank of the selection ran on {filters.hosts}; hosts: {known}")
    return tuple(selected)


def unmatched(ranks: Sequence[Rank], filters: Filters) -> list[str]:
    """Return a note on each rank number and host in the filters that no rank has."""
    notes = []
    for numbers in number_ranges(filters.ranks, "--rank") if filters.ranks is not None else ():
        if not any(rank.number in numbers for rank in ranks):
            text = str(numbers.start) if len(numbers) == 1 else f"{numbers.start}-{numbers.stop - 1}"
            notes.append(f"--rank: no rank is numbered {text}")
    hosts = {rank.hostname for rank in ranks}
    notes += [f"--host: no rank ran on {host}" for host in split_list(filters.hosts or "") if host not in hosts]
    return notes


def of_rank(filters: Filters, reader: RankReader) -> tuple[dict[str, str], list[str]]:
    """Return the conditions of filters on one rank, and notes on agents and categories that the rank lacks.

    Conditions are on rows of base tables; all rows count in tables that are not named. `RANK_EVENTS` stands for the
    rank's events, whose name depends on the connection.
    """
    kept = reader.keeping()
    by_base = by_key(each for each in _conditions(filters, kept) if each[0] in kept.tables.columns)
    conditions = {base: " AND ".join(f"({each})" for each in all_of) for base, all_of in by_base.items()}
    return conditions, [*_unmatched_words(filters, kept)]


def _conditions(filters: Filters, reader: RankReader) -> Iterator[tuple[str, str]]:
    if filters.agents is not None:
        yield from _agent_conditions(_agent_ids(reader, filters.agents), reader)
    if filters.streams is not None:
        ranges = number_ranges(filters.streams, "--stream")
        condition = " OR ".join(f"stream_id BETWEEN {ids.start} AND {ids.stop - 1}" for ids in ranges)
        yield from ((base, condition) for base in ON_STREAMS)
    if filters.categories is not None:
        yield from _category_conditions(reader, filters.categories)
    if filters.kernel is not None:
        kernels = _kernel_ids(reader, regular_expression(filters.kernel, "--kernel"))
        yield "rocpd_kernel_dispatch", f"kernel_id IN ({_listed(kernels)})"
    if filters.exclude_kernel is not None:
        kernels = _kernel_ids(reader, regular_expression(filters.exclude_kernel, "--exclude-kernel"))
        yield "rocpd_kernel_dispatch", f"kernel_id IS NULL OR kernel_id NOT IN ({_listed(kernels)})"


def _unmatched_words(filters: Filters, reader: RankReader) -> Iterator[str]:
    for word in split_list(filters.agents or ""):
        ids = set(_agent_ids(reader, word))
        if not any(number in ids for number, *_ in reader.rows(_AGENTS)):
            yield f"--agent: no rank of the selection lists {word}"
    for word in split_list(filters.categories or ""):
        if not _has_events(reader, normalized(word)):
            yield f"--category: no rank of the selection has {word}"


def _has_events(reader: RankReader, wanted: str) -> bool:
    """Whether a rank has events of a domain or category; events without category are not looked for."""
    if wanted == "OTHER" or any(wanted in (normalized(name), domain_of(name)) for _, name in _categories(reader)):
        return True
    base, condition = DOMAIN_TABLES.get(wanted, ("", ""))
    return base in reader.tables.columns and bool(reader.rows(f"SELECT 1 FROM {base} WHERE {condition} LIMIT 1"))


def _categories(reader: RankReader) -> list[tuple[int, str]]:
    return reader.once(_CATEGORIES, lambda: reader.rows(_CATEGORIES))


def _kernel_ids(reader: RankReader, pattern: re.Pattern[str]) -> list[int]:
    return [number for number, name in reader.rows(names_of_kernels()) if matches(pattern, name)]


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in sorted(ids))


def _agent_ids(reader: RankReader, text: str) -> list[int]:
    ids: list[int] = []
    agents = reader.rows(_AGENTS)
    for word in _named(text, "--agent", "4, or GPU-0"):
        if not (match := re.fullmatch(_AGENT, word)):
            raise UsageError(f"--agent {word}: not an agent", "an id such as 4, or GPU-0")
        kind, number = (match[1] or "agent").upper(), int(match[2])
        if kind == "AGENT":
            ids.append(number)
        else:
            ids += [row[0] for row in agents if row[1] == kind and row[2] == number]
    return ids


def _agent_conditions(ids: list[int], reader: RankReader) -> Iterator[tuple[str, str]]:
    among = f"IN ({_listed(ids)})"
    for base in ON_AGENTS:
        if "agent_id" in reader.tables.columns.get(base, ()):
            yield base, f"agent_id {among}"
    gpus = _listed(number for (number,) in reader.rows(GPUS))
    yield "rocpd_memory_copy", f"{copy_agent_sql(gpus)} {among}"


def _category_conditions(reader: RankReader, text: str) -> Iterator[tuple[str, str]]:
    """Yield conditions on domain or category; GPU operations get their domain from their table, even if damaged."""
    wanted = {normalized(word) for word in _named(text, "--category", "HIP,KERNELS")}
    categories = _categories(reader)
    selected = _has_category(number for number, name in categories if {normalized(name), domain_of(name)} & wanted)
    if "OTHER" in wanted:
        selected += f" OR event_id IS NULL OR NOT {_has_category(number for number, name in categories if name)}"
    yield from ((base, selected) for base in CATEGORY_TABLES)
    named = [number for number, name in categories if normalized(name) in wanted - set(DOMAIN_TABLES)]
    any_of: dict[str, list[str]] = {base: [_has_category(named)] if named else [] for base, _ in DOMAIN_TABLES.values()}
    for domain, (base, condition) in DOMAIN_TABLES.items():
        any_of[base] += [condition] if domain in wanted else []
    yield from ((base, " OR ".join(conditions) or _NOTHING) for base, conditions in any_of.items())


def _has_category(categories: Iterable[int]) -> str:
    return f"event_id IN (SELECT id FROM {RANK_EVENTS} WHERE category_id IN ({_listed(categories)}))"


def event_categories(map_ranks: MapRanks) -> list[tuple[str, str | None, int]]:
    """Return domain, event category and number of events of all ranks, sorted by domain and category."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for _, of_rank in map_ranks(_count_categories):
        counts.update(of_rank)
    return [(*key, counts[key]) for key in sorted(counts, key=lambda key: (key[0], key[1] or ""))]


def _count_categories(reader: RankReader) -> dict[tuple[str, str | None], int]:
    sources = [
        *((domain, *source) for domain, source in DOMAIN_TABLES.items()),
        *((None, base, "1") for base in CATEGORY_TABLES),
    ]
    counts: Counter[tuple[str, str | None]] = Counter()
    for domain, base, condition in sources:
        for name, count in reader.rows(_COUNTS.format(table=base, condition=condition)):
            counts[domain or domain_of(name), name] += count
    return counts
