"""Makes the cells of rocprofv3's CSV files from the columns of a view.

Numbers are written bare, texts quoted; NULL is nothing where a number belongs
and `""` where a text does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rocpd.convert.cells import plain
from rocpd.convert.formats import markers
from rocpd.convert.options import AgentIndex, ConvertOptions
from rocpd.convert.view_reader import ViewRows
from rocpd.frozen import frozen

Make: TypeAlias = Callable[[ViewRows, ConvertOptions], pa.Array]


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

    def make(rows: ViewRows, _: ConvertOptions) -> pa.Array:
        texts = rows.column(column)
        return _filled(_each(texts, lambda value: before + value) if before else texts)

    return Cell((column,), make)


def agent(prefix: str = "") -> Cell:
    """`"Agent 2"`, or `"GPU 0"` for the index within a type; an empty text where the agent is unknown."""

    def make(rows: ViewRows, options: ConvertOptions) -> pa.Array:
        how = options.agent_index_value
        index = pc.cast(rows.column(prefix + how.view_column), pa.string())
        word = plain(rows.column(f"{prefix}agent_type")) if how.has_type else pa.scalar("Agent")
        return _filled(pc.binary_join_element_wise(word, index, " "))

    return Cell((*(prefix + index.view_column for index in AgentIndex), f"{prefix}agent_type"), make)


def kernel(region: str, name: str) -> Cell:
    """The kernel, or with `kernel_rename` the text of the enclosing marker where there is one."""

    def make(rows: ViewRows, options: ConvertOptions) -> pa.Array:
        names = rows.column(name)
        if not options.kernel_rename:
            return _filled(names)
        marked = plain(rows.column(region))
        return _filled(pc.if_else(pc.equal(_filled(marked), ""), plain(names), marked))

    return Cell((region, name), make)


def message() -> Cell:
    """The message of a marker, else its function."""
    return Cell(("name", "extdata"), lambda rows, _: _filled(markers.messages(rows)))


def operation() -> Cell:
    """`MEMORY_ALLOCATION_ALLOCATE`, `MEMORY_ALLOCATION_VMEM_FREE` …"""

    def make(rows: ViewRows, _: ConvertOptions) -> pa.Array:
        pairs = zip(rows.column("level").to_pylist(), rows.column("type").to_pylist(), strict=True)
        return pa.array(
            [_operation(level, "ALLOCATE" if kind == "ALLOC" else kind) for level, kind in pairs], pa.string()
        )

    return Cell(("level", "type"), make)


def address() -> Cell:
    """16 hexadecimal digits, an empty text where there is none."""

    def make(rows: ViewRows, _: ConvertOptions) -> pa.Array:
        values = rows.column("address").to_pylist()
        shown = ("" if v is None else f"0x{v & (1 << 64) - 1:016x}" if isinstance(v, int) else v for v in values)
        return pa.array(list(shown), pa.string())

    return Cell(("address",), make)


def _operation(level: str | None, kind: str | None) -> str:
    if kind is None:
        return ""
    return f"MEMORY_ALLOCATION_{'VMEM_' if level == 'VIRTUAL' else ''}{'ALLOCATE' if kind == 'ALLOC' else kind}"


def lines(columns: Sequence[pa.Array], numbers: Sequence[bool]) -> bytes:
    """Return lines when some column that should hold numbers holds texts: those are quoted, numbers bare.

    Slow; for damaged files.
    """
    cells = [map(_bare if bare else _quoted, column.to_pylist()) for column, bare in zip(columns, numbers, strict=True)]
    return "".join(f"{','.join(row)}\n" for row in zip(*cells, strict=True)).encode("utf-8", "backslashreplace")


def _bare(value: object) -> str:
    shown = "" if value is None else str(value)
    return shown if isinstance(value, float) or not shown.lstrip("-").strip("0123456789") else _quoted(shown)


def _quoted(value: object) -> str:
    return '"' + str(value).replace('"', '""') + '"'


def _each(column: pa.Array, change: Callable[[str], str]) -> pa.Array:
    if isinstance(column, pa.DictionaryArray):
        values = _each(column.dictionary, change)
        return pa.DictionaryArray.from_arrays(column.indices, values)
    return pa.array([None if v is None else change(v) for v in column.to_pylist()], pa.string())


def _filled(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.DictionaryArray) and not column.null_count:
        return column
    return pc.fill_null(plain(column), "")
