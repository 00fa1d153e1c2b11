"""Owns rows as CSV (RFC 4180).

NULL and the empty text are both empty cells, blobs are hex, reals read back the same.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import TextIO

from rocpd.table import Row
from rocpd.table.cell import plain


def write_csv(columns: Sequence[str], rows: Iterator[Row], out: TextIO) -> None:
    """Write a header line and all rows; memory stays flat."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([plain(v) if type(v) is bytes else v for v in row] for row in rows)
