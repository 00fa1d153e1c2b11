"""Metrics of counters as the SQL table `metrics`: what panels and derived counters say, under one set of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rocpd.counters.panels import PANELS
from rocpd.counters.per import Per
from rocpd.errors import RocpdError
from rocpd.federate.federation import Federation
from rocpd.schema.calculated import METRICS
from rocpd.summary.counted import are_counted
from rocpd.summary.options import By, Options
from rocpd.summary.reading import Reading
from rocpd.summary.result import Summary
from rocpd.summary.run import planned, run_planned
from rocpd.types import Row

_DERIVED = "derived"
_COLUMNS = tuple(column.name for column in METRICS.columns)


def metric_rows(session: Federation, arguments: Mapping[str, str], panel: str | None) -> Iterator[Row]:
    """Yield the rows of `metrics`; none, and a note, where no counters were collected.

    Args:
        session: the rows that count.
        arguments: `divided_by` and `counted_per`.
        panel: the only panel that is wanted; None: all.
    """
    names = [name for name in (*PANELS, _DERIVED) if panel in (None, name)]
    divided_by = arguments["divided_by"]
    by = None if divided_by == "all" else By(divided_by)
    reading = Reading(session, Options(by, per=Per(arguments["counted_per"])))
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
