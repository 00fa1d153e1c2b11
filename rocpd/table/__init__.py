"""Rows in, text out: console, csv, json, md, html. `TABLE_FORMATS` is the table of contents."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO, TypeAlias

from rocpd.types import Row

Writer: TypeAlias = Callable[[Sequence[str], Iterator[Row], TextIO], None]

TABLE_FORMATS: dict[str, tuple[str, str]] = {
    "csv": ("rocpd.table.csv", "write_csv"),
    "json": ("rocpd.table.json", "write_json"),
    "md": ("rocpd.table.markdown", "write_markdown"),
    "html": ("rocpd.table.html", "write_html"),
}
"""Formats that stream rows to a file or pipe; `console` fits a screen and has its own module."""


def writer(name: str) -> Writer:
    """Give the function `(columns, rows, out) -> None` that writes rows in format `name`."""
    module, function = TABLE_FORMATS[name]
    found: Writer = getattr(importlib.import_module(module), function)
    return found
