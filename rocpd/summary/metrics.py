"""Metrics of counters as the SQL table `metrics`: what panels and derived counters say, under one set of columns."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.counters.panels import PANELS
from rocpd.counters.per import Per
from rocpd.errors import RocpdError
from rocpd.federate.federation import Federation
from rocpd.federate.relation import Given, JobRelation
from rocpd.schema.calculated import Argument, CalculatedTable
from rocpd.summary.counted import are_counted
from rocpd.summary.in_sql import columns_of, divided_by, division
from rocpd.summary.options import By, Options
from rocpd.summary.reading import Reading
from rocpd.summary.result import Field, Summary
from rocpd.summary.run import planned, run_planned
from rocpd.types import Row

_DERIVED = "derived"
_TABLE = CalculatedTable(
    "metrics",
    "What hardware counters say of each kernel: metrics of all panels and derived counters, passes of one program\n"
    "joined. `metrics('rank')`, `metrics('agent')` and `metrics('dispatch')` divide it; a second argument, `wave`,\n"
    "`cycle` or `second`, says what amounts are counted per: `metrics('all', 'wave')`. Calculated when it is read:\n"
    "`WHERE panel = 'l2'` calculates one panel. Empty without counters; merged files do not store it.",
    columns_of(
        Field("kernel", "", "kernel; NULL: every one"),
        Field("metric", "", "what is calculated"),
        Field("value", "", "mean of dispatches; NULL: `missing` says why"),
        Field("unit", "", "its unit"),
        Field("peak", "", "the highest that the GPU can reach; NULL: unknown, or there is none"),
        Field("percent", "%", "value by peak"),
        Field("panel", "", "panel that shows it, or `derived`"),
        Field("section", "", "number and name of the table in rocprof-compute; NULL for derived counters"),
        Field("of_sums", "", "the same of all dispatches together, where it differs by more than 5 %"),
        Field("min", "", "smallest value of a dispatch"),
        Field("q1", "", "lower quartile, in tables of stalls"),
        Field("median", "", "median, in tables of stalls"),
        Field("q3", "", "upper quartile, in tables of stalls"),
        Field("max", "", "largest"),
        Field("dispatches", "", "dispatches with a value"),
        Field("missing", "", "what is missing for a value: counters, or constants of the GPU"),
        Field("note", "", "what to know before using the value"),
        Field("rank", "", "rank; NULL in `metrics` without an argument"),
        Field("agent", "", "agent in its rank, in `metrics('agent')`"),
        Field("dispatch", "", "number of the dispatch in its rank, in `metrics('dispatch')`"),
    ),
    (
        divided_by(By.RANK, By.AGENT, By.DISPATCH),
        Argument("counted_per", "what amounts are counted per", Per.KERNEL.value, tuple(Per)),
    ),
    ("panel",),
)
_COLUMNS = tuple(column.name for column in _TABLE.columns)


def _metrics(session: Federation, given: Given) -> Iterator[Row]:
    """Yield the rows of `metrics`; none, and a note, where no counters were collected."""
    panel = given.get("panel")
    names = [name for name in (*PANELS, _DERIVED) if panel in (None, name)]
    reading = Reading(session, Options(division(given), per=Per(str(given["counted_per"]))))
    if not names:
        return
    if not are_counted(reading):
        session.note("metrics is empty: no counter values of kernels in the selection; rocprofv3 --pmc collects them")
        return
    for _, tables in run_planned(reading, planned(names)):
        try:
            for table in tables:
                yield from _rows(table)
        except RocpdError as error:
            session.note(f"metrics: {error.message}")


def _rows(table: Summary) -> Iterator[Row]:
    names = [field.name for field in table.fields]
    for row in table:
        known = dict(zip(names, row, strict=True))
        known |= {"panel": table.name.partition("-missing")[0], "section": known.get("table")}
        known.setdefault("missing", known.get("reason"))
        yield tuple(known.get(name) for name in _COLUMNS)


METRICS = JobRelation(_TABLE, _metrics)
"""What counters say, in SQL."""
