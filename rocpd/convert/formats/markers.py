"""Owns markers as columns: regions and samples of the marker categories, named by their message.

Gives the rows of the readable view `markers`, which is written over other views and so has no shape of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pyarrow as pa

from rocpd.convert.cells import plain
from rocpd.convert.columns import Reader, Rows
from rocpd.convert.read import Tables, json_value
from rocpd.schema.load import ViewColumn, view
from rocpd.trace.markers import marker_categories

SOURCES = ("regions", "sample_regions")
"""Views whose rows are looked through, in order."""


def items() -> tuple[ViewColumn, ...]:
    """Give the columns of the view: those of `regions`, with the message as name."""
    known = {item.name: item for item in view("regions").columns}
    name = dataclasses.replace(known["name"], lookup=None)
    known |= {"name": name, "function": dataclasses.replace(known["name"], name="function")}
    return tuple(
        dataclasses.replace(known[column.name], doc=column.doc, unit=column.unit) for column in view("markers").columns
    )


def batches(tables: Tables, guid: str) -> Iterator[dict[str, pa.Array]]:
    """Give the columns of the view, regions first, some thousand rows at a time."""
    for source in SOURCES:
        for rows in reader(tables, source, guid).batches():
            yield {item.name: _column(rows, item.name) for item in items()}


def reader(tables: Tables, source: str, guid: str) -> Reader:
    """Give a reader of the markers among `regions` or `sample_regions`."""
    if "rocpd_string" not in tables.part.tables:
        return Reader(tables, source, guid, where="0")
    return Reader(tables, source, guid, where=f"E.category_id IN ({marker_categories(tables.name('rocpd_string'))})")


def messages(rows: Rows) -> pa.Array:
    """Give the message of each row, the name of the region where there is none."""
    names = plain(rows.column("name")).to_pylist()
    texts = rows.column("extdata").to_pylist()
    found = (json_value(text, "message") if text else None for text in texts)
    return pa.array(
        [name if message is None else message for message, name in zip(found, names, strict=True)], pa.string()
    )


def _column(rows: Rows, name: str) -> pa.Array:
    if name == "name":
        return messages(rows)
    return rows.column("name" if name == "function" else name)
