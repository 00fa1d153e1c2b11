"""The report of a history: series with bands, changes, and for each change of the step the diff of both sides.

Arranges the results of `history` in the formats of other reports.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator
from pathlib import Path

from rocpd.base.version import __version__
from rocpd.chart.draw import draw
from rocpd.compare.options import STEP
from rocpd.compare.tables import tables_of
from rocpd.history.history import JobHistory, names_of
from rocpd.history.series import MetricChange
from rocpd.report.build import written
from rocpd.report.material import arranged
from rocpd.report.model import Block, Conclusion, Figure, Findings, Report, Section, Table
from rocpd.summary.result import Summary

_MOST_FIGURES = 6  # metrics with charts: the step, and those that changed most
_MOST_CHANGES = 4  # changes of the step whose sides are compared
_COMPARED = {
    "diff-parts": ("Where the difference is", ("part", "base_ns", "new_ns", "change_ns", "percent")),
    "diff-kernels": (
        "Kernels, those that change most first",
        ("name", "match", "change_ns", "call_percent", "launched"),
    ),
}
_MOST_ROWS = 12


def build(history: JobHistory) -> Report:
    """Return the report of a history."""
    store = shlex.quote(str(history.folder))
    job = f" --job {history.asked.job}" if history.asked.job > 1 else ""
    changes = [change for change in history.found if change.metric == STEP][:_MOST_CHANGES]
    sides = [Section(_name(change.at + 1), _title(change), tuple(_sides(history, change))) for change in changes]
    overview = _overview(history, f"{store}{job}", {side.name for side in sides})
    made = Section("history", "History", tuple(overview))
    tables = [_table(table, f"{store}{job}") for table in history.tables()]
    runs = Section("runs", "Runs", tuple(tables[1:2]))
    noise = Section("noise", "Noise", tuple(tables[3:]))
    title = history.entries[-1].config.get("command") or history.entries[-1].name
    options = f", rocpd.HistoryOptions(job={history.asked.job})" if job else ""
    python = f"rocpd.open_history({str(history.folder)!r}{options})"
    title = f"{title} · {len(history.entries)} runs"
    return Report(title, (made, *sides, runs, noise), f"rocpd {__version__}", f"{store}{job}", python)


def write(history: JobHistory, path: Path, force: bool = False) -> None:
    """Write the report of a history.

    Args:
        history: the history.
        path: the file; its ending chooses the format.
        force: replace an existing file.

    Raises:
        UsageError: the ending is unknown, or a package that the format needs is not installed.
        OutputError: the file exists (without `force`) or cannot be written.
    """
    written(path, lambda: build(history), force)


def _name(run: object) -> str:
    return f"run-{run}"


def _overview(history: JobHistory, words: str, sides: Container[str]) -> Iterator[Block]:
    """Yield the findings, with links to the sections named in `sides`, and series with their changes."""
    where = [(finding, _name(finding.evidence.get("run"))) for finding in history.findings]
    yield Findings(tuple(Conclusion(said, section=name if name in sides else "") for said, name in where))
    changes, every = _table(history.changes(), words), history.series()
    changed = dict.fromkeys((STEP, *(change.metric for change in history.found)))
    for name in [name for name in changed if name in history.fitted][:_MOST_FIGURES]:
        chart = history.chart(name)
        says = "Each run, the level of its time, and the band in which 95 of 100 runs of the level lie."
        series = Summary.whole(every.definition, [row for row in every if row[:2] == names_of(name)])
        table = _table(series, words)
        yield Figure(f"series-{name}", chart, draw(chart), says, table, f"session.plot({name!r})")
    yield changes


def _table(table: Summary, words: str) -> Table:
    again = f"rocpd history {words} {table.name}", f"session.{table.name}()"
    return arranged(table, table.doc.removesuffix("."), again=again)


def _title(change: MetricChange) -> str:
    return f"Run {change.at + 1}: {(change.ratio - 1) * 100:+.1f} %"


def _sides(history: JobHistory, change: MetricChange) -> Iterator[Block]:
    """Yield the differences between a few runs before a change and a few after it."""
    before, after = history.sides(change)
    compared = {table.name: table for table in tables_of(history.explained(change))}
    sides = [" ".join(shlex.quote(entry.name) for entry in side) for side in (before, after)]
    command = f"rocpd diff --base {sides[0]} --new {sides[1]}"
    yield Findings(tuple(Conclusion(finding, section="") for finding in compared["diff"].findings))
    for name, (title, columns) in _COMPARED.items():
        if name in compared:
            table = compared[name]
            yield arranged(table, title, columns, table.fetchall()[:_MOST_ROWS], (command, ""))
