"""Owns asking the rules: one pass over the ranks for all analyses that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from rocpd import entries
from rocpd.advice.advice import Advice
from rocpd.advice.judge import judge
from rocpd.advice.registry import known_rules
from rocpd.advice.rule import Rule
from rocpd.advice.thresholds import thresholds
from rocpd.errors import RocpdError, UsageError
from rocpd.federate.federation import Federation, Notes
from rocpd.summary.options import By, Options
from rocpd.summary.reading import Reading
from rocpd.summary.registry import OF_ONE_JOB, known_analyses, tables_of
from rocpd.summary.result import Summary
from rocpd.summary.together import Analysis, together
from rocpd.trace.kernel_categories import load
from rocpd.types import Progress

_OF_JOB = frozenset({"budget", "ranks", "steps"})
"""Tables that the facts of the job are read from."""


def advise(
    session: Federation,
    options: Options | None = None,
    path: Path | None = None,
    progress: Progress | None = None,
    inputs: str | None = None,
) -> Advice:
    """Return advice.

    Args:
        session: what to read.
        options: categories and step markers, as analyses take them.
        path: thresholds, as `rocpd.advice.thresholds`.
        progress: called with (ranks read, ranks in all).
        inputs: what they are called in commands; None: by where their files are.

    Raises:
        UsageError: as `thresholds`, or an option is invalid.
    """
    rules = known_rules()
    limits = thresholds(rules, path)
    asked = options or Options()
    tables = _tables(session, tables_of_rules(rules), asked, progress)
    return judge(session, tables, rules, limits, load(asked.categories), inputs)


def tables_of_rules(rules: Mapping[str, Rule]) -> frozenset[str]:
    """Return the tables that rules need."""
    return _OF_JOB.union(need.table for rule in rules.values() for need in rule.needs)


def questions(tables: Iterable[str]) -> dict[str, By | None]:
    """Return analysis -> what it is divided by, of those that tables belong to; tables of no analysis are left out.

    It is divided as it is by itself, else by rank; None: it is not divided.
    """
    analyses = known_analyses()
    analysis_of = tables_of(analyses)
    names = {analysis_of[table] for table in tables if table in analysis_of}
    return {
        name: analysis.divided_by or (By.RANK if By.RANK in analysis.by else None)
        for name, analysis in analyses.items()
        if name in names
    }


def _tables(
    session: Federation, wanted: frozenset[str], options: Options, progress: Progress | None
) -> dict[str, Summary]:
    """Return tables by name, without those that lack their data.

    What analyses note beside their answers is for those who ask for them by name.
    """
    quiet = Federation(session.job, session.selection, Notes(), owns_files=False)
    asked = {name: replace(options, by=by) for name, by in questions(wanted).items()}
    analyses = known_analyses()
    functions = {name: cast("Analysis", entries.load(analyses[name].home, name)) for name in asked}
    tables: dict[str, Summary] = {}
    for _, answered in together(Reading(quiet, options, progress, wanted), functions, asked):
        try:
            tables |= {table.name: table for table in answered}
        except UsageError:
            raise
        except RocpdError:
            continue
    return {name: table for name, table in tables.items() if session.runs == 1 or name not in OF_ONE_JOB}
