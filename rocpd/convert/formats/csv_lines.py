"""Writes columns as lines of CSV: numbers bare, texts quoted; NULL is empty in a column of numbers, else `""`.

Columns that stand side by side and repeat together (sizes, queue and stream, agent and kernel …) are joined once per
combination of their values, which takes about a quarter of the time on dispatches of 23 columns. Arrow's writer is no
quicker with them and takes 200 ms to import.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from rocpd.base import NULL
from rocpd.convert.view_reader import Array, Coded, Values
from rocpd.facts.columns import different

_DENSE = 1 << 12  # whole numbers in a range this narrow repeat
_SAMPLE, _FEW = 1 << 8, 1 << 6  # a column with more than _FEW values in its first _SAMPLE rows does not repeat
_REPEATS = 4  # least rows per combination

_LARGEST_PLAIN, _LEAST_PLAIN_POWER = 1e10, -6  # reals between these bounds are written without exponent


def lines(columns: Sequence[Values], numbers: Sequence[bool]) -> bytes:
    """Return the lines of a batch of rows.

    Args:
        columns: their cells.
        numbers: for each column, whether it holds numbers; in a damaged file it may hold texts, which are quoted.
    """
    cells: list[Iterable[str] | list[int]] = []
    run: Coded | None = None
    for values, is_number in zip(columns, numbers, strict=True):
        repeated = _repeated(values, is_number)
        joined = None if run is None or repeated is None else _joined(run, repeated)
        if run is not None and joined is None:
            cells.append(_cells(run))
        run = repeated if joined is None else joined
        if not isinstance(values, Coded) and repeated is None:
            cells.append(_whole_numbers(values) or cells_of(values, is_number))
    if run is not None:
        cells.append(_cells(run))
    # One template for all lines makes no string per number: 0.73 times the time of joining them.
    template = ",".join("%d" if isinstance(column, list) else "%s" for column in cells) + "\n"
    rows = list(zip(*cells, strict=True))
    text = template * len(rows) % tuple(itertools.chain.from_iterable(rows))
    return text.encode("utf-8", "backslashreplace")


def _whole_numbers(values: Array) -> list[int] | None:
    """Return a column as whole numbers; None if a value is missing or of another type."""
    if isinstance(values, list) or values.dtype != np.int64:
        return None
    numbers: list[int] = values.tolist()
    return None if NULL in numbers else numbers


def _repeated(values: Values, is_number: bool) -> Coded | None:
    """Return the cells of a column of texts or whole numbers that repeat, each with a text; None for other columns."""
    if isinstance(values, Coded):
        show, codes = _bare if is_number else quoted, values.codes
        return Coded(np.where(codes < 0, len(values.texts), codes), [*map(show, values.texts), show(None)])
    if isinstance(values, list) or values.dtype != np.int64 or not len(values):
        return None
    if int(values.max()) - int(values.min()) >= _DENSE and len(set(values[:_SAMPLE].tolist())) > _FEW:
        return None
    known, codes = different(values)
    return Coded(codes, list(cells_of(known)))


def _joined(first: Coded, second: Coded) -> Coded | None:
    """Return two columns as one, with the text of each combination; None if combinations hardly repeat."""
    width = len(second.texts)
    known, codes = different(first.codes * width + second.codes)
    if len(known) * _REPEATS > len(codes):
        return None
    pairs = zip((known // width).tolist(), (known % width).tolist(), strict=True)
    return Coded(codes, [f"{first.texts[i]},{second.texts[j]}" for i, j in pairs])


def _cells(coded: Coded) -> Iterable[str]:
    return map(coded.texts.__getitem__, coded.codes.tolist())


def cells_of(values: Array, is_number: bool = True) -> Iterable[str]:
    """Return the cells of a column."""
    if isinstance(values, list):
        return map(_bare if is_number else quoted, values)
    if values.dtype == np.int64:
        return ("" if number == NULL else str(number) for number in values.tolist())
    return map(real, values.tolist())


def _bare(text: str | None) -> str:
    shown = text or ""
    return shown if not shown.lstrip("-").strip("0123456789") else quoted(shown)


def quoted(text: str | None) -> str:
    """Return a text in quotes; None becomes an empty text.

    >>> print(quoted('a "b" c'), quoted(None))
    "a ""b"" c" ""
    """
    return f'"{(text or "").replace(chr(34), chr(34) * 2)}"'


def real(value: float) -> str:
    """Return a real with the fewest digits that read back the same, as Arrow writes it; NaN is NULL.

    >>> real(2.0), real(0.1), real(1e10), real(2.5e-7), real(float("nan"))
    ('2', '0.1', '1e+10', '2.5e-7', '')
    """
    if value != value:
        return ""
    text = repr(value)
    if "e" not in text and abs(value) < _LARGEST_PLAIN:
        return text.removesuffix(".0")
    if text.endswith("inf"):
        return text
    sign, (mantissa, _, exponent) = text[: value < 0], text.lstrip("-").partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).rstrip("0")
    power = int(exponent or 0) + len(whole) - 1
    if _LEAST_PLAIN_POWER <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{power:+d}"
