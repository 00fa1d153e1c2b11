"""Calculates the counters that rocprofv3 derives from others, by what a file says of them, or else as it defines them.

Instances of a counter stay apart until `reduce` puts them together. What a file lacks is said, not guessed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.resources import files

import numpy as np

from rocpd.base.types import Ints
from rocpd.counters.definitions import Hardware, needs
from rocpd.counters.formula import (
    AbstainError,
    Call,
    FormulaError,
    MissingError,
    NamedValue,
    Node,
    Operation,
    Value,
    evaluate,
    parse,
    reduced,
)
from rocpd.counters.measured import CounterRows, Measured, Pass
from rocpd.counters.metrics import Calculated

_REDUCED = ("sum", "max", "min", "avr")


@cache
def bundled(architecture: str) -> Mapping[str, str]:
    """Return the derived counters of an architecture: name -> formula.

    >>> bundled("gfx942")["FetchSize"], "Wavefronts" in bundled("gfx942"), "Wavefronts" in bundled("gfx90a")
    ('FETCH_SIZE', False, True)
    """
    document = tomllib.loads((files("rocpd.counters") / "data" / "derived.toml").read_text(encoding="utf-8"))
    base = architecture.partition(":")[0]
    return {
        name: definition["expression"]
        for name, definitions in document.items()
        for definition in definitions
        if base in definition["architectures"]
    }


class DerivedCalculator:
    """Calculates derived counters of the dispatches of one kind of GPU.

    Args:
        measured: the dispatches.
        hardware: the GPU.
        chosen: rows of its dispatches.

    Attributes:
        expressions: name of each counter -> its formula: the file's, or else rocprofv3's for the architecture.
    """

    def __init__(self, measured: Measured, hardware: Hardware, chosen: Ints) -> None:
        self._measured, self._hardware, self._chosen = measured, hardware, chosen
        self.expressions = {**bundled(hardware.name), **measured.expressions}
        self._terms: dict[str, Node] = {}
        self._broken: dict[str, str] = {}
        for name, text in self.expressions.items():
            try:
                self._terms[name] = parse(text)
            except FormulaError as error:
                self._broken[name] = str(error)

    def calculate(self, name: str) -> Calculated | str:
        """Return a derived counter of each dispatch, or why it can't be said."""
        if name in self._broken:
            return self._broken[name]
        collected = set().union(*(run.counters for run in self._measured.passes))
        terms = {term: node for term, node in self._terms.items() if term == name or term not in collected}
        try:
            needed = needs(self._terms[name], terms)
        except RecursionError:
            return "it is derived from itself"
        having = {leaf: self._passes_having(leaf) for leaf in needed}
        missing = [leaf for leaf, runs in having.items() if not runs and leaf not in self._hardware.constants]
        if missing:
            return f"not there: {' '.join(missing)}"
        having = {leaf: runs for leaf, runs in having.items() if runs}
        common = [run for run in self._measured.passes if all(run in runs for runs in having.values())]
        sources = {leaf: (common or runs)[0] for leaf, runs in having.items()}
        if not sources:
            return "a constant of the GPU"
        if summed := [leaf for leaf in self._reduced(self._terms[name], terms) if self._is_summed(leaf, sources)]:
            return f"the file has sums over instances: {' '.join(summed)}"
        try:
            values = np.asarray(evaluate(self._terms[name], partial(self._leaf, sources), terms), np.float64)
        except (AbstainError, MissingError) as error:
            return str(error)
        if values.ndim == 2 and values.shape[1] > 1:
            return "it has several values for a dispatch"
        every = np.broadcast_to(values.reshape(-1), self._measured.count)
        return Calculated(every[self._chosen], passes=len({id(run) for run in sources.values()}) or 1)

    def collected(self, name: str) -> Calculated:
        """Return what the profiler calculated itself; without values: it did not."""
        rows = next((run.counters[name] for run in self._measured.passes if name in run.counters), None)
        return Calculated(rows.summed(self._measured.count)[self._chosen] if rows else None)

    def _leaf(self, sources: Mapping[str, Pass], name: str) -> Value:
        """Return a constant of the GPU, or a counter with a column for each instance."""
        if name not in sources:
            return self._hardware.constants[name]
        found = _find(sources[name], name)
        if found is None:
            raise MissingError(name)
        counter, reduction = found
        instances = counter.instances(self._measured.count)
        return reduced(instances, reduction) if reduction else instances

    def _passes_having(self, name: str) -> list[Pass]:
        """Return the passes with a counter, those first that have it under just this name."""
        runs = [run for run in self._measured.passes if _find(run, name)]
        return sorted(runs, key=lambda run: name not in run.counters)

    def _reduced(self, node: Node, terms: Mapping[str, Node]) -> Iterator[str]:
        """Yield the counters of which a formula takes the largest, smallest or mean instance."""
        match node:
            case Call("reduce", (NamedValue(name), NamedValue(how))) if how != "sum":
                yield name
            case Operation(_, left, right):
                yield from self._reduced(left, terms)
                yield from self._reduced(right, terms)
            case Call(_, arguments):
                for argument in arguments:
                    yield from self._reduced(argument, terms)
            case NamedValue(name) if name in terms:
                yield from self._reduced(terms[name], terms)

    def _is_summed(self, name: str, sources: Mapping[str, Pass]) -> bool:
        """Whether the file has one value for several instances; GRBM has one for each XCC."""
        rows = sources[name].counters.get(name) if name in sources else None
        if rows is None or len(rows.rows) != len(np.unique(rows.rows)):
            return False
        return not name.startswith("GRBM_") or self._hardware.constants.get("xcc", 2) > 1


def _find(run: Pass, name: str) -> tuple[CounterRows, str] | None:
    """Return a counter and how its instances are put together, of names such as `TCC_HIT_sum`."""
    if name.startswith("ACC("):
        rows = run.find(name)
        return (rows, "") if rows else None
    if name in run.counters:
        return run.counters[name], ""
    base, _, reduction = name.rpartition("_")
    return (run.counters[base], reduction) if reduction in _REDUCED and base in run.counters else None
