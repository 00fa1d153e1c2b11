"""Copies by direction, and the share of agents' time that copies take while nothing else runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rocpd.facts.rank import RankReading
from rocpd.facts.units import Times
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.summary.grouping import merge
from rocpd.summary.kernels import totals
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.time.gpu_time import BUDGET, Copies, Parts, PartTimes, exposed_copies, parts_of_rank

TABLES = {"copies": totals.TABLES["copies"]}


def copies(reading: Reading) -> Tables:
    """Return time, bytes and bandwidth by direction, with a finding on the time of exposed copies.

    Raises:
        RocpdError: there are no copies.
    """
    times = reading.asking(replace(reading.options, by=None)).times()
    yield (answers := reading.each(partial(_copies_beside, times=times, categories=load(reading.options.categories))))
    sums: list[tuple[object, totals.OfRank]] = []
    of_all, exposed = PartTimes(), Copies()
    for rank, (of_rank, parts) in answers:
        sums.append((rank, of_rank))
        of_all = sum((each.every for each in parts.sums.values()), of_all)
        merge(exposed, parts.copies)
    table = totals.table_of_copies(reading, answers=sums)
    table.findings = tuple(exposed_copies(of_all, exposed))
    yield table


def _copies_beside(reading: RankReading, times: Times, categories: Categories) -> tuple[totals.OfRank, Parts]:
    """Return the copies of one rank, and the parts of its time."""
    whole, time = replace(reading, options=replace(reading.options, by=None)), times.get(reading.rank.number)
    parts = whole.derived(BUDGET, partial(parts_of_rank, time=time, categories=categories), time)
    return totals.copies_of_rank(reading), parts
