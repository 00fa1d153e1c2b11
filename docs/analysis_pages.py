"""Writes docs/analyses.md and the head of each page below docs/analyses: tables, columns and units from the code."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "analyses"

EXAMPLE = "\n## Example\n"
"""Where the part of a page starts that people write; what is above comes from the code."""

_NEW_EXAMPLE = """
```console
$ rocpd simulate -o job --ranks 4 --nodes 2 --steps 4 --seed 7
$ rocpd summary {name} job
```
"""
"""The example of a new page; `python -m tests.docs.console PAGE` runs it and adds what the commands print."""

_ABOUT = """# Analyses

`rocpd summary NAMES INPUTS` prints them on the command line, `session.summary("name", by="rank")` returns one in
Python, and SQL has [all their tables](../schema/calculated.md): `select * from summary.budget('rank')`. An analysis has
one table or more: its own name selects all of them, the name of a table that one.

- Every number is exact over all ranks: sums are integers, medians and percentiles are those of all events.
- Events with invalid timestamps (start 0, end before start) count as calls, not as time, and are reported.
- `--by rank|host|run|command|agent|stream` divides a table, `step|marker` what GPUs do. Agents and streams are those of
  a rank: ids repeat across ranks. [Runs](clocks.md#separate-runs) are the jobs that a folder holds.
- A copy belongs to the GPU that it reaches, else to the GPU that it leaves, else to its destination.
- The call that launched an operation is the innermost region with its stack id.
- Windows (`--start`, `--window-kernel`, `--auto-roi` …) and filters (`--rank`, `--kernel` …) apply to all of them.
- The console, Markdown, HTML and notebooks show short names of kernels, no two of them alike in a table; `--full-names`
  (in Python `kernel_names="full"`) keeps them as they are. Filters, categories, csv, json and parquet have full names.
- The console shows times in readable units; csv, json and parquet hold exact nanoseconds, with the unit in the column's
  name and, for parquet, in its metadata. `--format md` and `html` put all tables on one page.
- Times called `at_ns` or `start_ns` count from the start of the time line that all ranks share; clocks of different
  machines are [aligned](clocks.md) by the collectives of the job.
- An analysis that lacks its data says so and the exit code is 1; it never prints zeros.
- Other packages add analyses through the entry point group `rocpd.summaries`: a function that takes a
  `rocpd.summary.reading.Reading` and returns `rocpd.summary.result.Summary` tables. `reading.each(work)` runs a
  module-level function on each rank, in any process, and returns the answers in the order of ranks. An analysis that
  yields these before its tables shares one pass over the ranks with others.
"""


def analysis_page(name: str) -> str:
    """Return docs/analyses/<name>.md: the head from the code, then the example as it stands."""
    from rocpd.summary.registry import SUMMARIES

    analysis = SUMMARIES[name]
    tables = importlib.import_module(analysis.home.partition(":")[0]).TABLES
    parts = [f"# {name}\n\n`rocpd summary {name}`: {analysis.help}.\n"]
    if analysis.alias_of:
        parts.append(f"\nIt is an alias of `rocpd summary {analysis.alias_of}`, which has the same rows and columns.\n")
    for table in (tables[table] for table in analysis.tables):
        parts.append(f"\n## Table `{table.name}`\n\n{table.doc}\n\n| column | unit | meaning |\n|---|---|---|\n")
        parts += [f"| {field.name} | {field.unit} | {field.doc} |\n" for field in table.fields]
    path = FOLDER / f"{name}.md"
    written = path.read_text(encoding="utf-8").partition(EXAMPLE)[2] if path.exists() else ""
    return "".join([*parts, EXAMPLE, written or _NEW_EXAMPLE.format(name=name)])


def contents_page() -> str:
    """Return docs/analyses.md: all analyses, and what holds for each."""
    from rocpd.summary.registry import SUMMARIES

    parts = [_ABOUT, "\n| analysis | what it says | tables |\n|---|---|---|\n"]
    for name, analysis in SUMMARIES.items():
        tables = ", ".join(f"`{table}`" for table in analysis.tables)
        parts.append(f"| [{name}](analyses/{name}.md) | {analysis.help} | {tables} |\n")
    return "".join(parts)


def analysis_pages() -> dict[str, Callable[[], str]]:
    """Return path -> the function that writes the page."""
    from rocpd.summary.registry import SUMMARIES

    pages = {f"docs/analyses/{name}.md": functools.partial(analysis_page, name) for name in SUMMARIES}
    return {"docs/analyses.md": contents_page, **pages}
