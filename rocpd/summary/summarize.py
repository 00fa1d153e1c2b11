"""The summary tables that AMD's users know: the tables of a session, their order, and AMD's column heads.

Durations are plain ns, on the console too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from rocpd.base import AmdVersion, Progress, Row, by_key, frozen
from rocpd.base.stages import Stage
from rocpd.facts.rank import Options, RankReading
from rocpd.facts.spread import Moments, moments_by_group
from rocpd.federate.federation import Federation
from rocpd.schema.rules.categories import normalized
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.summary.grouping import percent
from rocpd.summary.kernels.totals import KINDS, EventsByGroup, Label, totals_by_label
from rocpd.summary.reading import Reading
from rocpd.summary.registry import GPU_DOMAINS
from rocpd.summary.result import Field, Summary, table_of

FIELDS = (
    Field("Name", "", "kernel, direction, operation, function, message or domain"),
    Field("Calls", "", "events"),
    Field("DURATION (nsec)", "ns", "sum of durations"),
    Field("AVERAGE (nsec)", "ns", "mean duration"),
    Field("PERCENT (INC)", "%", "share of the total time of the table, by rank of the rank"),
    Field("MIN (nsec)", "ns", "shortest"),
    Field("MAX (nsec)", "ns", "longest"),
    Field("STD_DEV", "ns", "sample deviation (n - 1), NULL for one call"),
)
"""Columns of every table."""

BY_RANK = (Field("ProcessID", "", "process id"), Field("Hostname", "", "host name"))
"""Columns in front of a table by rank."""

_GROUPS = {"MEMORY": ("MEMORY_COPIES", "MEMORY_ALLOCATIONS")}
"""Words of AMD's command line for several domains."""

_RANK = Field("Rank", "", "rank number, where process and host do not tell the ranks apart")


@frozen
class SummaryOptions:
    """Options of AMD's tables.

    Args:
        by_rank: also one table per rank and name.
        domains: also time by domain.
        region_categories: domains to include (`HIP`, `MARKERS` …), None for all; kernels and memory (`KERNEL`,
            `MEMORY_COPY` …) are left out only if one of them is named.
        kernel_names: display names, mangled ones, or bare function names.
        amd_version: with that of 2026, categories leave out unnamed kernels and memory as well, and the words of heads
            are capitalised.
    """

    by_rank: bool = False
    domains: bool = False
    region_categories: Collection[str] | None = None
    kernel_names: KernelNames = KernelNames.DISPLAY
    amd_version: AmdVersion = AmdVersion.V2025


Groups: TypeAlias = list[tuple[int, str | None, Moments]]
"""Rank, name, and statistics of its events of this name in one category."""


def summarize(
    session: Federation, options: SummaryOptions | None = None, progress: Progress | None = None
) -> Iterator[Summary]:
    """Yield the summary tables of a session: kernels first, then copies, allocations, scratch, API domains, markers.

    Only domains that have events have a table. Rows are sorted by time, longest first.
    """
    options = options or SummaryOptions()
    with session.job.reporting(progress, {Stage.READING: 1}):
        domains = _groups_by_domain(Reading(session, Options(kernel_names=options.kernel_names)))
    shown = set(domains)
    if options.region_categories is not None:
        shown = _chosen(domains, options.region_categories, session.note)
        if options.amd_version is AmdVersion.V2025 or not options.region_categories:
            shown = shown if not shown.isdisjoint(GPU_DOMAINS) else shown | set(GPU_DOMAINS)
    in_order = (*GPU_DOMAINS, *(name for name in domains if name not in GPU_DOMAINS))
    tables = {
        GPU_DOMAINS.get(domain, f"{domain.lower()}_summary"): domains[domain]
        for domain in in_order
        if domain in domains and domain in shown
    }
    if options.domains and domains:
        tables["domain_summary"] = [
            (rank, domain, moments) for domain, groups in domains.items() for rank, _, moments in groups
        ]
    fields = fields_of(options.amd_version)
    for name, groups in tables.items():
        yield Summary(table_of(name, "Time of all ranks, by name.", *fields, is_exact=True), fields, _rows(groups))
        if options.by_rank:
            yield _table_by_rank(name, groups, session, fields)


def fields_of(version: AmdVersion) -> tuple[Field, ...]:
    """Return the columns of every table with the heads of a version."""
    return FIELDS if version is AmdVersion.V2025 else tuple(replace(field, name=field.name.title()) for field in FIELDS)


def _chosen(domains: Iterable[str], categories: Iterable[str], note: Callable[[str], None]) -> set[str]:
    """Return the domains that the words of categories stand for."""
    present = set(domains)
    chosen: set[str] = set()
    for word in categories:
        meant = set(_GROUPS.get(word.upper(), (normalized(word),)))
        if meant.isdisjoint({*present, *GPU_DOMAINS}):
            note(f"no events of the category {word}")
        chosen |= meant
    return chosen


def _groups_by_domain(reading: Reading) -> dict[str, Groups]:
    """Read all groups of a session and sort them by domain, most time first."""
    by_kind: dict[str, list[tuple[int, Label, Moments]]] = {kind: [] for kind in KINDS}
    for rank, of_rank in reading.each(_of_rank):
        for kind, labels in of_rank.items():
            by_kind[kind] += ((rank.number, *group) for group in labels.items())
    domains: dict[str, Groups] = {}
    for kind, labelled in by_kind.items():
        calls = sum(moments.calls for *_, moments in labelled)
        reading.note_invalid(kind, calls - sum(moments.timed for *_, moments in labelled), calls)
        for number, label, moments in labelled:
            domains.setdefault(label.domain, []).append((number, label.name, moments))
    return dict(sorted(domains.items(), key=lambda item: (-sum(m.total for *_, m in item[1]), item[0])))


def _of_rank(reading: RankReading) -> dict[str, dict[Label, Moments]]:
    return {kind: totals_by_label(reading, kind, _moments) for kind in KINDS}


def _moments(events: EventsByGroup) -> list[Moments]:
    """Return statistics without distributions: with them a summary takes a quarter more time."""
    return moments_by_group(events.durations, events.first)


def _table_by_rank(name: str, groups: Groups, session: Federation, fields: Sequence[Field]) -> Summary:
    """Return a table with one block of rows per rank."""
    by_rank = by_key((group[0], group) for group in groups)
    ranks = session.ranks
    ambiguous = len({(rank.pid, rank.hostname) for rank in ranks}) < len(ranks)
    rows: list[Row] = []
    for rank in ranks:
        tail = (rank.number,) if ambiguous else ()
        rows += [(rank.pid, rank.hostname, *row, *tail) for row in _rows(by_rank.get(rank.number, ()))]
    table = table_of(f"{name}_by_rank", "Time of each rank, by name.", *fields, is_exact=True)
    return Summary(table, (*BY_RANK, *fields, *((_RANK,) if ambiguous else ())), rows)


def _rows(groups: Iterable[tuple[int, str | None, Moments]]) -> list[Row]:
    by_name = by_key((name, moments) for _, name, moments in groups)
    sums = {name: _added(moments) for name, moments in by_name.items()}
    total = sum(moments.total for moments in sums.values())
    return [
        (name, m.calls, m.total, m.mean, percent(m.total, total), m.shortest, m.longest, m.deviation)
        for name, m in sorted(sums.items(), key=lambda item: (-item[1].total, item[0] or ""))
    ]


def _added(moments: Sequence[Moments]) -> Moments:
    """Return the sum of moments, field by field: for 16 ranks, adding them one by one takes 6 times as long."""
    if len(moments) == 1:
        return moments[0]
    timed = [m for m in moments if m.timed]
    return Moments(
        sum(m.calls for m in moments),
        sum(m.timed for m in timed),
        sum(m.total for m in timed),
        min((m.shortest for m in timed if m.shortest is not None), default=None),
        max((m.longest for m in timed if m.longest is not None), default=None),
        sum(m.squares for m in timed),
    )
