"""Owns which of AMD's summary tables a session gives, and in which order.

Reads through `domains`, shapes through `tables`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rocpd.federate.federation import Federation
from rocpd.summary.domains import domain_groups, groups_by_domain
from rocpd.summary.options import Options
from rocpd.summary.reading import Reading
from rocpd.summary.registry import GPU_DOMAINS
from rocpd.summary.tables import SummaryTable, table, table_by_rank
from rocpd.trace.kernel_names import KernelNames
from rocpd.types import Progress


@dataclass(frozen=True)
class SummaryOptions:
    """What to summarise.

    Args:
        by_rank: also one table per rank and name.
        domains: also time by domain.
        region_categories: region domains to include (`HIP`, `MARKERS` …), None for all.
        kernel_names: display names, mangled ones, or bare function names.
    """

    by_rank: bool = False
    domains: bool = False
    region_categories: Collection[str] | None = None
    kernel_names: KernelNames = KernelNames.DISPLAY


def summarize(
    session: Federation, options: SummaryOptions | None = None, progress: Progress | None = None
) -> Iterator[SummaryTable]:
    """Give the summary tables of a session: kernels first, then copies, allocations, scratch, API domains, markers.

    Only domains that have events get a table.
    """
    options = options or SummaryOptions()
    found = groups_by_domain(Reading(session, Options(kernel_names=options.kernel_names), progress))
    regions = [name for name in found if name not in GPU_DOMAINS]
    if options.region_categories is not None:
        wanted = {name.upper() for name in options.region_categories}
        regions = [name for name in regions if name in wanted]
    for domain in (*(name for name in GPU_DOMAINS if name in found), *regions):
        name = GPU_DOMAINS.get(domain, f"{domain.lower()}_summary")
        yield table(name, found[domain])
        if options.by_rank:
            yield table_by_rank(name, found[domain], session)
    if options.domains and found:
        groups = domain_groups(found)
        yield table("domain_summary", groups)
        if options.by_rank:
            yield table_by_rank("domain_summary", groups, session)
