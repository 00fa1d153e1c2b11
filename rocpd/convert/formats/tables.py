"""Lists the readable views that make up a trace in columns, and reads their rows as Arrow batches of a fixed schema.

Every rank has the same schema, whatever its rows hold: only so do the files of ranks read as one table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rocpd.base.errors import UsageError
from rocpd.convert.cells import Coded, Values, missing
from rocpd.convert.formats import markers
from rocpd.convert.lookups import ReferenceTables
from rocpd.convert.view_reader import ViewReader
from rocpd.schema.load import VIEWS as ALL_VIEWS
from rocpd.schema.load import Kind, ViewColumn
from rocpd.schema.load import view as view_of

TYPES = {Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64(), Kind.TEXT: pa.string(), Kind.JSON: pa.string()}
CODED_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Texts that repeat: each once, and its number per row."""

VIEWS = (
    "processes",
    "threads",
    "code_objects",
    "kernel_symbols",
    "pmc_info",
    "kernels",
    "regions",
    "samples",
    "markers",
    "memory_copies",
    "memory_allocations",
    "graph_launches",
    "events_args",
    "pmc_events",
)
"""The views that are written when none are named: each event once, markers by their message in addition."""

_HOST = ViewColumn("hostname", "host of the rank", "", Kind.TEXT, "")


def known_views() -> tuple[str, ...]:
    """Return the views that can be written: those of rows."""
    return tuple(name for name in ALL_VIEWS if view_of(name).per_rank or name == "markers")


def check_views(views: tuple[str, ...]) -> None:
    """Refuse views that cannot be written.

    Raises:
        UsageError: the message names one.
    """
    known = known_views()
    for name in views:
        if name not in known:
            raise UsageError(f"view {name}: cannot be written as columns", f"one of {', '.join(known)}")


def schema_of(view: str, with_rank: bool = False) -> pa.Schema:
    """Return the columns of a view with their types, units and meanings: those of SQL, on request with `rank`, last."""
    items = markers.items() if view == "markers" else view_of(view).columns
    fields = [_field(item) for item in items]
    if not any(item.name == "hostname" for item in items):
        fields.append(_field(_HOST).with_type(CODED_TEXT))
    if with_rank:
        fields.append(pa.field("rank", pa.int64()))
    return pa.schema(fields, metadata={"rocpd.view": view, "rocpd.doc": view_of(view).doc})


def _field(column: ViewColumn) -> pa.Field:
    """Return name, type, unit and meaning of a column."""
    is_coded = column.kind.is_text and (column.lookup or column.name == "guid")
    about = {"description": column.doc} | ({"unit": column.unit} if column.unit else {})
    return pa.field(column.name, CODED_TEXT if is_coded else TYPES[column.kind], metadata=about)


def record_batches(
    references: ReferenceTables, view: str, damaged: Counter[str], with_rank: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view of one rank in row order.

    Args:
        references: the reference tables of the rank.
        view: name of the view.
        damaged: gets the number of cells that are no numbers where numbers belong, by column.
        with_rank: rows end with the number of the rank.
    """
    schema, rank = schema_of(view, with_rank), references.reader.rank
    for columns, count in _columns(references, view, damaged):
        columns["rank"] = np.full(count, rank.number)
        if "hostname" not in columns:
            columns["hostname"] = Coded(np.full(count, -1 if rank.hostname is None else 0), [rank.hostname or ""])
        yield pa.RecordBatch.from_arrays([array(columns[item.name]).cast(item.type) for item in schema], schema=schema)


def array(values: Values) -> pa.Array:
    """Return a column as Arrow has it: coded texts as a dictionary."""
    if isinstance(values, Coded):
        index = pa.array(np.maximum(values.codes, 0).astype(np.int32), mask=values.codes < 0)
        return pa.DictionaryArray.from_arrays(index, pa.array(values.texts, pa.string()))
    if isinstance(values, list):
        return pa.array(values, pa.string())
    absent = missing(values)
    return pa.array(values, mask=absent if absent.any() else None)


def _columns(references: ReferenceTables, view: str, damaged: Counter[str]) -> Iterator[tuple[dict[str, Values], int]]:
    if view == "markers":
        of_view = Counter[str]()
        for columns in markers.batches(references, of_view):
            yield columns, len(columns["id"])
    else:
        views = ViewReader(references, view)
        for rows in views.batches():
            yield {name: rows.column(name) for name in views.columns}, rows.count
        of_view = views.damaged
    damaged.update({f"{view}.{column}": count for column, count in of_view.items()})
