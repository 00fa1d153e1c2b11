"""The metrics of each architecture, as files in `data/` define them: tables, names, units, formulas, peaks.

Also the constants of a GPU that formulas need, from the file's facts of the agent. Guesses no constant, and knows no
measured value.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from importlib.resources import files
from typing import Any

from rocpd.base import frozen
from rocpd.counters.formula import Node, names_in, parse

_L2_BANKS = {"gfx908": 32, "gfx90a": 32, "gfx942": 16, "gfx950": 16}  # of each XCC
_TRANSFERS = {"gfx90a": 2, "gfx942": 4, "gfx950": 4}  # of the memory in each cycle of its clock: HBM2e, HBM3
_BANKS, _PIPES = 32, 4  # of LDS; of the command processor
_CHANNEL_BYTES = 32  # moved by a channel of HBM in a cycle
_SAME = {"gfx940": "gfx942", "gfx941": "gfx942"}  # early steppings of MI300
_DEFINED = ("gfx908", "gfx90a", "gfx942", "gfx950")


@frozen
class CounterMetric:
    """A metric that is calculated from counters.

    Args:
        name: rocprof-compute's name for it.
        unit: unit of the value.
        value: its formula, for a dispatch.
        peak: formula of the highest value that the GPU can reach; None: unknown.
        of_mean: formula of the shown value, in which `mean` is the mean over dispatches; None: the mean is shown.
        is_per: whether it is counted per dispatch, wave, cycle or second, as chosen.
    """

    name: str
    unit: str
    value: Node
    peak: Node | None = None
    of_mean: Node | None = None
    is_per: bool = False


@frozen
class MetricTable:
    """Metrics that are shown together; `has_quartiles`: quartiles are shown as well."""

    id: str
    name: str
    panel: str
    metrics: tuple[CounterMetric, ...]
    has_quartiles: bool = False


@frozen
class Architecture:
    """The metrics of an architecture.

    Args:
        name: its name, such as `gfx942`.
        terms: named parts of formulas: name -> formula.
        tables: its tables, in order.
        known: results of look-ups in its formulas, by the key of the code that looked them up.
    """

    name: str
    terms: Mapping[str, Node]
    tables: tuple[MetricTable, ...]
    known: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def panel(self, name: str) -> Iterator[tuple[MetricTable, CounterMetric]]:
        """Yield the metrics of a panel, with their tables."""
        return ((table, metric) for table in self.tables if table.panel == name for metric in table.metrics)


def needs(node: Node, terms: Mapping[str, Node]) -> tuple[str, ...]:
    """Return the counters and other values that a formula needs, each once; terms are replaced by their needs.

    >>> needs(parse("100 * HIT / all"), {"all": parse("HIT + MISS")})
    ('HIT', 'MISS')
    """
    needed: dict[str, None] = {}
    for name in names_in(node):
        needed |= dict.fromkeys(needs(terms[name], terms) if name in terms else (name,))
    return tuple(needed)


def is_counter(name: str) -> bool:
    """Whether a name in a formula of a metric is the name of a counter.

    >>> is_counter("TCC_HIT_sum"), is_counter("ACC(SQ_LEVEL_WAVES)"), is_counter("sclk"), is_counter("D")
    (True, True, False, False)
    """
    return name[0].isupper() and name != "D"


@functools.cache
def architecture(name: str) -> Architecture | None:
    """Return the metrics of an architecture; None: it has no definitions.

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
    """Return the terms and tables of an architecture, with those of the architecture that it is based on."""
    document = tomllib.loads((files("rocpd.counters") / "data" / f"{name}.toml").read_text(encoding="utf-8"))
    if "like" not in document:
        return document
    base = _document(document["like"])
    tables = base["tables"]
    for number, table in document.get("tables", {}).items():
        known = tables.setdefault(number, {"metrics": {}})
        tables[number] = {**known, **table, "metrics": {**known["metrics"], **table["metrics"]}}
    for lacked in document.get("lacks", ()):
        number, _, metric = lacked.partition(" ")
        del tables[number]["metrics"][metric]
    shown: Sequence[str] = document.get("only", tuple(tables))
    merged = {"terms": {**base["terms"], **document.get("terms", {})}, "tables": {key: tables[key] for key in shown}}
    for old, new in document.get("rename", {}).items():
        merged = _renamed(merged, old, new)
    return merged


def _renamed(part: Any, old: str, new: str) -> Any:
    """Return a part of a document with some counters renamed in its formulas."""
    if isinstance(part, dict):
        return {key: _renamed(value, old, new) for key, value in part.items()}
    return part.replace(old, new) if isinstance(part, str) else part


def _table(number: str, table: Mapping[str, Any]) -> MetricTable:
    metrics = tuple(_metric(name, metric) for name, metric in table["metrics"].items())
    return MetricTable(number, table["name"], table["panel"], metrics, table.get("has_quartiles", False))


def _metric(name: str, metric: Mapping[str, str]) -> CounterMetric:
    value, peak, of_mean = (parse(metric[key]) if key in metric else None for key in ("value", "peak", "of_mean"))
    assert value is not None
    return CounterMetric(name, metric["unit"], value, peak, of_mean, "D" in names_in(value))


@frozen
class Hardware:
    """A kind of GPU.

    Args:
        name: name of its architecture in the file.
        constants: constants that formulas call `cu`, `sclk` [MHz], `hbm` [GB/s] …, and every number of the file under
            its own name, which rocprofv3's derived counters use; unknown ones are missing.
    """

    name: str
    constants: Mapping[str, float]

    @property
    def architecture(self) -> Architecture | None:
        """The metrics that can be calculated on it."""
        return architecture(self.name)

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted(self.constants.items()))))


def hardware(name: str, facts: Mapping[str, Any]) -> Hardware:
    """Return the constants of an agent.

    Args:
        name: name of its architecture.
        facts: the file's facts of it, by the names of rocprofv3 or of rocprof-compute's `sysinfo.csv`.

    >>> mi300x = {"cu_count": 304, "num_xcc": 8, "array_count": 32, "simd_arrays_per_engine": 1}
    >>> memory = {"mem_banks": [{"width": 8192, "mem_clk_max": 1300}]}
    >>> known = hardware("gfx942", mi300x | memory).constants
    >>> known["sqc"], known["l2ch"], known["hbm"], "sclk" in known
    (160.0, 128.0, 5324.8, False)
    """
    base = name.partition(":")[0]
    given = {key: float(value) for key, value in facts.items() if isinstance(value, int | float) and value}
    arrays, per_engine = given.get("array_count"), given.get("simd_arrays_per_engine")
    simds, waves = given.get("simd_per_cu"), given.get("max_waves_per_simd")
    units, engines = given.get("cu_count"), arrays / per_engine if arrays and per_engine else None
    dies = given.get("num_xcc", 1.0 if base in ("gfx908", "gfx90a") else None)
    banks, sharing = _L2_BANKS.get(base), 3 if base == "gfx908" else 2  # compute units share a scalar cache
    known: dict[str, float | None] = {
        "cu": units,
        "xcc": dies,
        "se": engines,
        "wave_size": given.get("wave_front_size"),
        "waves_per_cu": given.get("max_waves_per_cu") or (simds * waves if simds and waves else None),
        "sclk": given.get("max_engine_clk_fcompute"),
        "banks": given.get("lds_banks_per_cu", float(_BANKS)),
        "pipes": given.get("pipes_per_gpu", float(_PIPES)),
        "simd_count": given.get("simd_count") or (simds * units if simds and units else None),
        "sqc": given.get("sqc_per_gpu")
        or (math.ceil(units / engines / sharing) * engines if units and engines else None),
        "l2ch": given.get("total_l2_chan") or (banks * dies if banks and dies else None),
        "hbm": _bandwidth(base, given, facts.get("mem_banks")),
    }
    return Hardware(name, {**given, **{key: value for key, value in known.items() if value}})


def _bandwidth(name: str, given: Mapping[str, float], memory: Any) -> float | None:
    """Return the highest rate of the memory [GB/s]: by its channels, or by width [bit] and clock [MHz] of a bank."""
    bank = memory[0] if isinstance(memory, list) and memory and isinstance(memory[0], dict) else {}
    clock, width = bank.get("mem_clk_max"), bank.get("width")
    channels = given.get("num_hbm_channels")
    if clock and channels:
        return float(clock) / 1000 * _CHANNEL_BYTES * channels
    return float(width) / 8 * float(clock) / 1000 * _TRANSFERS[name] if clock and width and name in _TRANSFERS else None
