"""Rows as CSV (RFC 4180, lines end in LF).

NULL and the empty text are both empty cells, blobs are hex, reals read back the same.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import TextIO

from rocpd.base import Row
from rocpd.table.cell import plain


def write_csv(columns: Sequence[str], rows: Iterator[Row], out: TextIO) -> None:
    """Write a header line and all rows; memory stays flat."""
    # Python before 3.13 quotes a carriage return in a cell only when lines end in one.
    writer = csv.writer(_EndInLf(out), lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([plain(v) if type(v) is bytes else v for v in row] for row in rows)


class _EndInLf:
    """Writes lines that end in CR LF with LF."""

    def __init__(self, out: TextIO) -> None:
        self._write = out.write

    def write(self, line: str) -> int:
        return self._write(line[:-2] + "\n")
