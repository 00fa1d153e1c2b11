"""Makes the cells of rocprofv3's CSV files from the columns of a view; `csv_lines` writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import NULL
from rocpd.convert.cells import Coded, Values, listed
from rocpd.convert.formats import markers
from rocpd.convert.options import AgentIndex, ConvertOptions
from rocpd.convert.view_reader import ViewRows

Make: TypeAlias = Callable[[ViewRows, ConvertOptions], Values]


@frozen
class Cell:
    """The cells of one column.

    Args:
        reads: columns of the view that they are made of.
        make: makes them.
        is_number: whether they are numbers; in a damaged file they may be texts.
    """

    reads: tuple[str, ...]
    make: Make
    is_number: bool = False


def number(column: str) -> Cell:
    """A number."""
    return Cell((column,), lambda rows, _: rows.column(column), is_number=True)


def text(column: str, before: str = "") -> Cell:
    """A text, with `before` in front of it."""

    def make(rows: ViewRows, _: ConvertOptions) -> Values:
        values = rows.column(column)
        if not before:
            return values
        coded = values if isinstance(values, Coded) else Coded.of(listed(values))
        return Coded(coded.codes, [before + text for text in coded.texts])

    return Cell((column,), make)


def agent(prefix: str = "") -> Cell:
    """`"Agent 2"`, or `"GPU 0"` for the index within a type; an empty text where the agent is unknown."""

    def make(rows: ViewRows, options: ConvertOptions) -> Values:
        how = options.agent_index_value or AgentIndex.RELATIVE
        index = np.asarray(rows.column(prefix + how.view_column))
        if how.has_type:
            words = listed(rows.column(f"{prefix}agent_type"))
            pairs = zip(words, index.tolist(), strict=True)
            return Coded.of(None if word is None or number == NULL else f"{word} {number}" for word, number in pairs)
        known, codes = np.unique(index, return_inverse=True)
        return Coded(np.where(index == NULL, -1, codes), [f"Agent {number}" for number in known.tolist()])

    return Cell((*(prefix + index.view_column for index in AgentIndex), f"{prefix}agent_type"), make)


def kernel(region: str, name: str) -> Cell:
    """The kernel, or with `kernel_rename` the text of the enclosing marker where there is one."""

    def make(rows: ViewRows, options: ConvertOptions) -> Values:
        names = rows.column(name)
        if not options.kernel_rename:
            return names
        marked = listed(rows.column(region))
        return Coded.of(text or kernel for text, kernel in zip(marked, listed(names), strict=True))

    return Cell((region, name), make)


def message() -> Cell:
    """The message of a marker, else its function."""
    return Cell(("name", "extdata"), lambda rows, _: markers.messages(rows))


def operation() -> Cell:
    """`MEMORY_ALLOCATION_ALLOCATE`, `MEMORY_ALLOCATION_VMEM_FREE` …"""

    def make(rows: ViewRows, _: ConvertOptions) -> Values:
        pairs = zip(*(listed(rows.column(name)) for name in ("level", "type")), strict=True)
        return Coded.of(_operation(level, "ALLOCATE" if kind == "ALLOC" else kind) for level, kind in pairs)

    return Cell(("level", "type"), make)


def address() -> Cell:
    """16 hexadecimal digits, an empty text where there is none."""

    def make(rows: ViewRows, _: ConvertOptions) -> Values:
        values = listed(rows.column("address"))
        return ["" if v == NULL else f"0x{v & (1 << 64) - 1:016x}" if isinstance(v, int) else v for v in values]

    return Cell(("address",), make)


def _operation(level: str | None, kind: str | None) -> str:
    if kind is None:
        return ""
    return f"MEMORY_ALLOCATION_{'VMEM_' if level == 'VIRTUAL' else ''}{'ALLOCATE' if kind == 'ALLOC' else kind}"
