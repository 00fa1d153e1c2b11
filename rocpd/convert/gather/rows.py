"""Reads rows of one rank for its event model: events with what `rocpd_event` says of them, documents by event."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence

import numpy as np

from rocpd.base.documents import json_object
from rocpd.base.types import Flags, Ints
from rocpd.facts.columns import Piece, Select, read_all
from rocpd.federate.result import decoded
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.categories import REPEATING_CATEGORIES

Columns = dict[str, Ints]

_OF_EVENT = ("category_id", "stack_id")


def events(reader: RankReader, base: str, names: Sequence[str], damaged: Counter[str] | None = None) -> Columns:
    """Read columns of whole numbers of an event table in row order, with `category_id` and `stack_id` of the event.

    Args:
        reader: reads the rank.
        base: the table.
        names: columns of it.
        damaged: gets the number of values that are no numbers, by column.
    """
    piece = event_piece(reader, base, names, damaged=damaged)
    return dict(zip((*names, *_OF_EVENT), piece.numbers, strict=True))


def calls(reader: RankReader, names: Sequence[str], damaged: Counter[str] | None = None) -> Columns:
    """Read columns of regions as `events` does, without those that repeat operations."""
    rows = events(reader, "rocpd_region", names, damaged)
    repeating = [number for (number,) in reader.rows(REPEATING_CATEGORIES)]
    return select(rows, ~np.isin(rows["category_id"], repeating)) if repeating else rows


def event_piece(
    reader: RankReader,
    base: str,
    names: Sequence[str],
    texts: Sequence[str] = (),
    damaged: Counter[str] | None = None,
) -> Piece:
    """Read columns of whole numbers, then `category_id` and `stack_id` of the event, and columns of texts."""
    items = ", ".join(f'T."{name}" AS "{name}"' for name in dict.fromkeys(("id", *names, *texts)))
    sql = f"SELECT {items}, E.category_id, E.stack_id FROM {base} T LEFT JOIN rocpd_event E ON E.id = T.event_id"
    return read_all(reader, Select(sql, (*names, *_OF_EVENT), texts=tuple(texts), base=base), damaged)


def select(columns: Columns, which: Flags | Ints) -> Columns:
    """Return the rows of all columns that flags or row numbers name."""
    return {name: values[which] for name, values in columns.items()}


def documents(reader: RankReader, column: str, where: str) -> dict[int, str]:
    """Return event id -> JSON text of a column of `rocpd_event`, without empty ones; `where` is SQL on its columns."""
    # SQLite tests in this order, and the document lies at the end of the row: few rows should be read that far.
    sql = (
        f"SELECT id, {column} FROM rocpd_event WHERE {where} AND {column} NOT IN ('{{}}', '[]', '') AND id IS NOT NULL"
    )
    return {event: decoded(text) or "" for event, text in reader.rows(sql)}


@functools.lru_cache(1 << 12)  # messages come again and again
def json_value(text: str, key: str) -> str | None:
    """Return a value of a JSON object as text; None when it is absent or the text is no JSON object."""
    value = (json_object(text) or {}).get(key)
    return value if isinstance(value, str) or value is None else json.dumps(value)
