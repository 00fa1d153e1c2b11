"""Reads what kernels and copies of one rank were launched with: names, grids, resources, markers and operators."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.read.columns import columns
from rocpd.read.groups import group_rows
from rocpd.read.ids import distinct, find_rows
from rocpd.read.names import as_text
from rocpd.summary.ops import COPY, KERNEL, OperationNames, Ops
from rocpd.summary.options import By
from rocpd.summary.origins import SEPARATOR, read_origins
from rocpd.summary.reading import RankReading
from rocpd.summary.torch_operators import launched_by, read_operators
from rocpd.trace.kernel_categories import Categories
from rocpd.types import NULL, Ints

_GRID = ("grid_size_x", "grid_size_y", "grid_size_z", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z")
_COLUMNS = ("id", "kernel_id", *_GRID, "group_segment_size", "private_segment_size")
_SHAPES = f"SELECT {', '.join(_COLUMNS)} FROM rocpd_kernel_dispatch"  # noqa: S608
_SYMBOLS = """
SELECT K.id, K.kernel_name, K.arch_vgpr_count, K.accum_vgpr_count, K.sgpr_count, C.uri
FROM rocpd_info_kernel_symbol K LEFT JOIN rocpd_info_code_object C ON C.id = K.code_object_id
WHERE K.id IN (SELECT value FROM json_each(?))"""
_SIZE = re.compile(r"[#&]size=(\d+)")
_MOST_SHAPES = 16  # of one kernel in one rank; of more the grid varies, and is none of its marks
_COPIES = "copies"

COPY_KIND = "copy"
"""Kind of launches that are copies."""

Grid = tuple[int, int, int, int, int, int]
"""Work-items in x, y, z, and of a work-group."""


class CodeFacts(NamedTuple):
    """What a kernel was built into; NULL as None.

    Args:
        vgpr, agpr, sgpr: registers.
        lds: per work-group, as launched [bytes].
        scratch: per work-item, as launched [bytes].
        size: of the code object [bytes].
    """

    vgpr: int | None = None
    agpr: int | None = None
    sgpr: int | None = None
    lds: int | None = None
    scratch: int | None = None
    size: int | None = None


class KernelLaunch(NamedTuple):
    """What dispatches, or copies, have in common.

    Args:
        kind: `compute`, `communication` or `copy`.
        symbol: the linker's name; of a copy its direction.
        name: for people, in full.
        category: what it does.
        path: marker ranges around the launch.
        grid: None for copies, where nothing recorded it, and where a kernel has too many different ones.
        code: what it was built into.
        operator: operator of PyTorch that launched it; empty: none, or none are recorded.
    """

    kind: str
    symbol: str
    name: str
    category: str
    path: str
    grid: Grid | None
    code: CodeFacts
    operator: str = ""


def read_launches(
    reading: RankReading, ops: Ops, names: OperationNames, categories: Categories, communication: Ints
) -> tuple[list[KernelLaunch], Ints]:
    """Return the kinds of launches of a rank, in the order of their first one, and for each operation its kind.

    Args:
        reading: reads the rank.
        ops: its operations.
        names: names of these.
        categories: say what kernels do.
        communication: which of them communicate.
    """
    origins = read_origins(reading, By.MARKER)
    place = origins.of_ops(ops)
    paths = [SEPARATOR.join(path) if isinstance(path, tuple) else "" for path in origins.places]
    kernel, grid, shape, symbols = _shapes(reading, ops)
    is_talk = np.zeros(len(ops), np.int64)
    is_talk[communication] = 1
    operators, by_operator = _operators(reading, ops)
    groups = group_rows([ops.kind, is_talk, ops.name, kernel, shape, place, by_operator])
    codes = np.zeros(len(ops), np.int64)
    known: dict[KernelLaunch, int] = {}
    in_order = sorted(groups, key=lambda group: int(group[1][0]))
    for (kind, talks, name, number, of_shape, at, operator), rows in in_order:
        text = names.full[name] or ""
        around = paths[at] if at >= 0 else "", operators[operator]
        if kind == COPY:
            launch = KernelLaunch(COPY_KIND, text, text, _COPIES, around[0], None, CodeFacts(), around[1])
        else:
            symbol, code = symbols.get(number, ("", CodeFacts()))
            what = "communication" if talks else "compute"
            launched, size = _resources(grid[of_shape]) if of_shape >= 0 else (None, (None, None))
            code = code._replace(lds=size[0], scratch=size[1])
            launch = KernelLaunch(what, symbol or text, text, categories.of(text), around[0], launched, code, around[1])
        codes[rows] = known.setdefault(launch, len(known))
    return list(known), codes


def _operators(reading: RankReading, ops: Ops) -> tuple[Sequence[str], Ints]:
    """Return names of operators, the first one empty, and for each operation the number of the one that launched it."""
    operators = read_operators(reading)
    if not len(operators.names):
        return ("",), np.zeros(len(ops), np.int64)
    numbers = {
        name: number for number, name in enumerate(dict.fromkeys(["", *(text or "" for text in operators.names)]))
    }
    of_rows = np.array([numbers[text or ""] for text in (*operators.names, "")], np.int64)
    return tuple(numbers), of_rows[launched_by(reading, operators, ops)]


def _resources(row: Sequence[int]) -> tuple[Grid | None, tuple[int | None, int | None]]:
    x, y, z, a, b, c, lds, scratch = row
    return (x, y, z, a, b, c) if x > 0 else None, (_value(lds), _value(scratch))


def _value(number: object) -> int | None:
    return number if isinstance(number, int) and number != NULL else None


def _shapes(
    reading: RankReading, ops: Ops
) -> tuple[Ints, Sequence[Sequence[int]], Ints, Mapping[int, tuple[str, CodeFacts]]]:
    """Return of each operation the kernel's id and the number of its shape, -1 for none; shapes; symbols by id."""
    kernel, shape = np.full(len(ops), NULL), np.full(len(ops), -1)
    dispatched = np.flatnonzero(ops.kind == KERNEL)
    if not len(dispatched):
        return kernel, [], shape, {}
    row, *rest = columns(reading.reader, "rocpd_kernel_dispatch", _SHAPES, _COLUMNS)
    at, _ = find_rows(row, ops.row[dispatched])
    chosen = [column[at] for column in rest]
    groups = group_rows(chosen)
    count: dict[int, int] = {}
    shapes: list[Sequence[int]] = []
    kernel[dispatched] = chosen[0]
    for key, _ in groups:
        count[key[0]] = count.get(key[0], 0) + 1
    for (number, *of_shape), rows in groups:
        if count[number] <= _MOST_SHAPES:
            shape[dispatched[rows]] = len(shapes)
            shapes.append(of_shape)
    return kernel, shapes, shape, _symbols(reading, chosen[0])


def _symbols(reading: RankReading, kernels: Ints) -> dict[int, tuple[str, CodeFacts]]:
    wanted = json.dumps([number for number in distinct(kernels).tolist() if number != NULL])
    result = {}
    for number, symbol, vgpr, agpr, sgpr, uri in reading.reader.rows(_SYMBOLS, (wanted,)):
        size = _SIZE.search(uri) if isinstance(uri, str) else None
        code = CodeFacts(_value(vgpr), _value(agpr), _value(sgpr), size=int(size[1]) if size else None)
        result[number] = as_text(symbol) or "", code
    return result
