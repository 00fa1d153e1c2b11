"""Reads markers as columns: regions and samples of the marker categories, named by their message.

The rows are those of the readable view `markers`, which is written over other views and has no tables of its own.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from rocpd.convert.cells import Values, listed
from rocpd.convert.gather.rows import json_value
from rocpd.convert.lookups import ReferenceTables
from rocpd.convert.view_reader import ViewReader, ViewRows
from rocpd.schema.load import ViewColumn, view
from rocpd.schema.rules.categories import marker_categories

SOURCES = ("regions", "sample_regions")
"""Views whose rows are looked through, in order."""


def items() -> tuple[ViewColumn, ...]:
    """Return the columns of the view: those of `regions`, with the message as name."""
    known = {item.name: item for item in view("regions").columns}
    name = dataclasses.replace(known["name"], lookup=None)
    known |= {"name": name, "function": dataclasses.replace(known["name"], name="function")}
    return tuple(
        dataclasses.replace(known[column.name], doc=column.doc, unit=column.unit) for column in view("markers").columns
    )


def batches(references: ReferenceTables, damaged: Counter[str]) -> Iterator[dict[str, Values]]:
    """Yield the columns of the view, regions first, some thousand rows at a time.

    Args:
        references: the reference tables of the rank.
        damaged: gets the number of cells that are no numbers where numbers belong, by column.
    """
    for source in SOURCES:
        reader = marker_reader(references, source)
        for rows in reader.batches():
            yield {item.name: _column(rows, item.name) for item in items()}
        damaged.update(reader.damaged)


def marker_reader(references: ReferenceTables, source: str) -> ViewReader:
    """Return a reader of the markers among `regions` or `sample_regions`."""
    return ViewReader(references, source, where=f"E.category_id IN ({marker_categories()})")


def messages(rows: ViewRows) -> list[str | None]:
    """Return the message of each row, the name of the region where there is none."""
    names, documents = (listed(rows.column(name)) for name in ("name", "extdata"))
    shown = (json_value(text, "message") if text else None for text in documents)
    return [name if message is None else message for message, name in zip(shown, names, strict=True)]


def _column(rows: ViewRows, name: str) -> Values:
    if name == "name":
        return messages(rows)
    return rows.column("name" if name == "function" else name)
