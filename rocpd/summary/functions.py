"""Calls and ranges by name, wherever they lie: time with and without what runs inside them.

The tree of `calls`, added up by name. A function that runs inside itself counts its time once: that of the outermost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rocpd.summary.calls import grown, is_lane
from rocpd.summary.calltree import Flat, Node, flat, inclusive_gpu
from rocpd.summary.options import By
from rocpd.summary.reading import DIVISIONS, Key, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.types import Row

TABLES = by_name(
    TableDefinition(
        "functions",
        "Calls and ranges by name; the one with most time of its own first.",
        (
            Field("name", "", "function or message of the marker"),
            Field("calls", "", "regions of this name; NULL, as CPU time, on an agent or stream"),
            Field("cpu_ns", "ns", "their time, regions inside included; inside a region of the same name once"),
            Field("cpu_self_ns", "ns", "their time outside of regions inside"),
            Field("gpu_ns", "ns", "operations that they launched, directly or through regions inside"),
            Field("gpu_self_ns", "ns", "operations that they launched themselves"),
            Field("percent", "%", "cpu_self_ns (on an agent or stream gpu_self_ns) by that of all", is_share=True),
        ),
    )
)


@dataclass(slots=True)
class _Sums:
    """Sums over the regions of one name: calls, and times [ns]."""

    calls: int = 0
    cpu: int = 0
    cpu_self: int = 0
    gpu: int = 0
    gpu_self: int = 0


def functions(reading: Reading) -> Iterator[Summary]:
    """Return regions by name.

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading)
    sums: dict[Key, dict[int, _Sums]] = {}
    lanes: dict[Key, bool] = {}
    for key, tree in trees.items():
        merged = key[:1] if reading.by is By.RANK else key  # by rank the trees of threads are apart
        lanes[merged] = is_lane(reading, key)
        _add(sums.setdefault(merged, {}), tree)
    rows = [row for key in sorted(sums, key=order_of) for row in _rows(key, sums[key], names.texts, lanes[key])]
    fields = (*DIVISIONS[reading.by], *TABLES["functions"].fields)
    yield Summary(TABLES["functions"], fields, rows)


def _add(sums: dict[int, _Sums], tree: Node) -> None:
    """Add the nodes of a tree to the sums of their names."""
    rows = flat(tree)
    for row, gpu in zip(rows, inclusive_gpu(rows), strict=True):
        above, name, calls, cpu, cpu_self, gpu_self = row
        of_name = sums.setdefault(name, _Sums())
        of_name.calls += calls
        of_name.cpu_self += cpu_self
        of_name.gpu_self += gpu_self
        if not _is_inside(rows, above, name):
            of_name.cpu += cpu
            of_name.gpu += gpu


def _is_inside(rows: Flat, above: int, name: int) -> bool:
    """Whether a node of a name is above, or is the node `above`."""
    while above >= 0:
        if rows[above][1] == name:
            return True
        above = rows[above][0]
    return False


def _rows(key: Key, sums: Mapping[int, _Sums], texts: list[str | None], is_lane: bool) -> Iterator[Row]:
    """Yield the rows of a division."""
    own = {name: of_name.gpu_self if is_lane else of_name.cpu_self for name, of_name in sums.items()}
    total = sum(own.values())
    for name in sorted(sums, key=lambda name: (-own[name], texts[name] or "")):
        of_name = sums[name]
        on_cpu = (None, None, None) if is_lane else (of_name.calls, of_name.cpu, of_name.cpu_self)
        share = own[name] * 100 / total if total else None
        yield (*key, texts[name], *on_cpu, of_name.gpu, of_name.gpu_self, share)
