"""Rows as a JSON array of objects, one row per line.

Infinite reals are written as ±9e999, as SQLite's own JSON functions do: valid JSON that reads back as infinity.
Blobs are hex text. Of columns with equal names the later ones get `_2`, `_3` …
"""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from rocpd.base import Row
from rocpd.table import Sheet
from rocpd.table.cell import plain


def write_json(columns: Sequence[str], rows: Iterator[Row], out: TextIO) -> None:
    """Write all rows; memory stays flat."""
    keys = [json.dumps(name, ensure_ascii=False) for name in distinct_names(columns)]
    separator = "[\n"
    for row in rows:
        cells = ", ".join(f"{key}: {_value(value)}" for key, value in zip(keys, row, strict=True))
        out.write(f"{separator}{{{cells}}}")
        separator = ",\n"
    out.write("\n]\n" if separator == ",\n" else "[]\n")


def write_json_page(sheets: Iterable[Sheet], out: TextIO) -> None:
    """Write one table as its array, several as an object of arrays by title."""
    waiting = iter(sheets)
    first = list(itertools.islice(waiting, 2))
    if len(first) == 1:
        write_json(first[0].columns, first[0].rows, out)
        return
    for number, sheet in enumerate(itertools.chain(first, waiting)):
        array = io.StringIO()
        write_json(sheet.columns, sheet.rows, array)
        out.write(f"{',' if number else '{'}\n{_value(sheet.title)}: {array.getvalue().rstrip()}")
    out.write("\n}\n")


def distinct_names(columns: Sequence[str]) -> list[str]:
    """Make names distinct: `a, a` becomes `a, a_2`."""
    names: list[str] = []
    for column in columns:
        name, count = column, 1
        while name in names:
            count += 1
            name = f"{column}_{count}"
        names.append(name)
    return names


def _value(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "9e999" if value > 0 else "-9e999"
    return json.dumps(plain(value), ensure_ascii=False)
