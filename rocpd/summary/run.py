"""Owns running analyses by name: those of `SUMMARIES` and those that other packages bring along.

Others declare an entry point of the group `rocpd.summaries`: its name is the analysis, its object a function that
takes a `Reading` and gives Summaries.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias, cast

from rocpd.errors import RocpdError, UsageError
from rocpd.federate.federation import Federation
from rocpd.federate.result import Result, Rows
from rocpd.summary.options import Options
from rocpd.summary.reading import Reading
from rocpd.summary.registry import SUMMARIES, TABLES
from rocpd.summary.result import Summary
from rocpd.types import Progress

GROUP = "rocpd.summaries"
"""Entry point group of analyses of other packages."""

Function: TypeAlias = Callable[[Reading], Iterable[Summary]]


def others() -> dict[str, EntryPoint]:
    """Give the analyses of other packages by name; those of ours win."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in TABLES}


def summary(session: Federation, name: str, options: Options | None = None) -> Summary:
    """Return one table, such as `kernels`, `gaps` or `stragglers`; as `rocpd.Session.summary`."""
    for table in run(session, name, options):
        if table.name == name or name in others():
            return table
    raise RocpdError(f"{name}: the analysis gave no such table")


def analyses() -> Result:
    """Return the analyses that `Session.summary` knows: columns `analysis`, `tables`, `what`."""
    rows = [(name, ", ".join(analysis.tables), analysis.help) for name, analysis in SUMMARIES.items()]
    rows += [(name, name, f"from {point.value}") for name, point in others().items()]
    return Result(lambda: Rows(("analysis", "tables", "what"), iter(rows)))


def run(
    session: Federation, name: str, options: Options | None = None, progress: Progress | None = None
) -> Iterator[Summary]:
    """Run the analysis that `name` is or belongs to; give all its tables, or the one that was named."""
    for analysis, tables in planned([name]).items():
        yield from run_analysis(Reading(session, options or Options(), progress), analysis, tables)


def planned(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Give analysis -> its tables that are wanted, so that each runs once; the order is that of `names`.

    >>> planned(["gaps", "kernels", "overlap"]) == {"gpu-time": {"gaps", "overlap"}, "kernels": {"kernels"}}
    True

    Raises:
        UsageError: an unknown name.
    """
    found: dict[str, frozenset[str]] = {}
    for name in names:
        analysis = TABLES.get(name)
        if analysis is None:
            found[_checked(name)] = frozenset()
            continue
        tables = frozenset(SUMMARIES[analysis].tables if name == analysis else (name,))
        found[analysis] = found.get(analysis, frozenset()) | tables
    return found


def run_analysis(reading: Reading, analysis: str, tables: frozenset[str]) -> Iterator[Summary]:
    """Run one analysis of a plan; give those of its tables that are wanted.

    Raises:
        RocpdError: the job lacks the data for all of them.
    """
    if analysis not in SUMMARIES:
        yield from _other(others()[analysis])(reading)
        return
    module, _, attribute = SUMMARIES[analysis].place.partition(":")
    function = cast("Function", getattr(importlib.import_module(module), attribute))
    given = False
    for found in function(reading):
        if found.name in tables:
            given = True
            yield found
    if not given:
        raise RocpdError(f"{', '.join(sorted(tables))}: the selection holds nothing for it")


def _other(point: EntryPoint) -> Function:
    """Load an analysis of another package.

    Raises:
        RocpdError: that package is broken.
    """
    try:
        return cast("Function", point.load())
    except Exception as error:
        raise RocpdError(f"{point.name}: {point.value} cannot be loaded: {type(error).__name__}: {error}") from error


def _checked(name: str) -> str:
    """Give the name of an analysis of another package."""
    if name not in others():
        close = difflib.get_close_matches(name, [*TABLES, *others()], n=1)
        hint = f"did you mean {close[0]}?" if close else "`rocpd summary --list` shows all"
        raise UsageError(f"no summary is called {name}", hint)
    return name
