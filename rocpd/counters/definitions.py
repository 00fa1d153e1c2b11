"""Owns the metrics of each architecture, as files in `data/` define them: tables, names, units, formulas, peaks.

Knows no value.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from importlib.resources import files
from typing import Any

from rocpd.base.frozen import frozen
from rocpd.counters.formula import Node, names_in, parse

_SAME = {"gfx940": "gfx942", "gfx941": "gfx942"}  # early steppings of MI300
_DEFINED = ("gfx908", "gfx90a", "gfx942", "gfx950")


@frozen
class CounterMetric:
    """What is calculated of counters.

    Args:
        name: as rocprof-compute calls it.
        unit: of the value.
        value: its formula, for a dispatch.
        peak: the highest value that the GPU can reach; None: nobody says.
        of_mean: what is shown of the mean over dispatches, which it calls `mean`; None: the mean.
        is_per: whether it is counted per dispatch, wave, cycle or second, as asked.
    """

    name: str
    unit: str
    value: Node
    peak: Node | None = None
    of_mean: Node | None = None
    is_per: bool = False


@frozen
class MetricTable:
    """Metrics that are shown together; one that `has_quartiles` shows these as well."""

    id: str
    name: str
    panel: str
    metrics: tuple[CounterMetric, ...]
    has_quartiles: bool = False


@frozen
class Architecture:
    """What can be calculated of the counters of an architecture.

    Args:
        name: such as `gfx942`.
        terms: what formulas have names for.
        tables: in their order.
        known: what was looked up of its formulas, by who did.
    """

    name: str
    terms: Mapping[str, Node]
    tables: tuple[MetricTable, ...]
    known: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def panel(self, name: str) -> Iterator[tuple[MetricTable, CounterMetric]]:
        """Yield the metrics of a panel, with their tables."""
        return ((table, metric) for table in self.tables if table.panel == name for metric in table.metrics)


def needs(node: Node, terms: Mapping[str, Node]) -> tuple[str, ...]:
    """Return the counters and other values that a formula needs, each once; terms are replaced by what they need.

    >>> needs(parse("100 * HIT / all"), {"all": parse("HIT + MISS")})
    ('HIT', 'MISS')
    """
    needed: dict[str, None] = {}
    for name in names_in(node):
        needed |= dict.fromkeys(needs(terms[name], terms) if name in terms else (name,))
    return tuple(needed)


def is_counter(name: str) -> bool:
    """Whether a name in a formula of a metric is that of a counter.

    >>> is_counter("TCC_HIT_sum"), is_counter("ACC(SQ_LEVEL_WAVES)"), is_counter("sclk"), is_counter("D")
    (True, True, False, False)
    """
    return name[0].isupper() and name != "D"


@functools.cache
def architecture(name: str) -> Architecture | None:
    """Return what can be calculated on an architecture; None: nobody says.

    >>> architecture("gfx90a").name, architecture("gfx1100")
    ('gfx90a', None)
    """
    base = name.partition(":")[0]
    base = _SAME.get(base, base)
    if base not in _DEFINED:
        return None
    document = _document(base)
    tables = tuple(_table(number, table) for number, table in document["tables"].items())
    return Architecture(base, {term: parse(text) for term, text in document["terms"].items()}, tables)


def _document(name: str) -> dict[str, Any]:
    """Return the terms and tables of an architecture, with those of the one that it is like."""
    own = tomllib.loads((files("rocpd.counters") / "data" / f"{name}.toml").read_text(encoding="utf-8"))
    if "like" not in own:
        return own
    base = _document(own["like"])
    tables = base["tables"]
    for number, table in own.get("tables", {}).items():
        known = tables.setdefault(number, {"metrics": {}})
        tables[number] = {**known, **table, "metrics": {**known["metrics"], **table["metrics"]}}
    for lacked in own.get("lacks", ()):
        number, _, metric = lacked.partition(" ")
        del tables[number]["metrics"][metric]
    shown: Sequence[str] = own.get("only", tuple(tables))
    merged = {"terms": {**base["terms"], **own.get("terms", {})}, "tables": {key: tables[key] for key in shown}}
    for old, new in own.get("rename", {}).items():
        merged = _renamed(merged, old, new)
    return merged


def _renamed(parts: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return a document whose formulas have another name for some counters."""
    return {
        key: _renamed(part, old, new)
        if isinstance(part, dict)
        else part.replace(old, new)
        if isinstance(part, str)
        else part
        for key, part in parts.items()
    }


def _table(number: str, table: Mapping[str, Any]) -> MetricTable:
    metrics = tuple(_metric(name, metric) for name, metric in table["metrics"].items())
    return MetricTable(number, table["name"], table["panel"], metrics, table.get("has_quartiles", False))


def _metric(name: str, metric: Mapping[str, str]) -> CounterMetric:
    value, peak, of_mean = (parse(metric[key]) if key in metric else None for key in ("value", "peak", "of_mean"))
    assert value is not None
    return CounterMetric(name, metric["unit"], value, peak, of_mean, "D" in names_in(value))
