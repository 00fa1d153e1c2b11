"""Cases that are made by hand: what a rule finds in tables whose rows stand in its test."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence

from rocpd.advice.case import Case, JobFacts
from rocpd.advice.judge import answers, matters, questions
from rocpd.advice.rule import COMMON, Rule
from rocpd.schema.rules.kernel_categories import load
from rocpd.summary.findings import Finding
from rocpd.summary.reading import DIVISIONS
from rocpd.summary.registry import SUMMARIES, TABLES
from rocpd.summary.result import Summary

Cells = Mapping[str, object]
"""A row by the names of its columns; those that it leaves out are NULL."""

JOB = JobFacts(
    text="a job made by hand",
    ranks=(0, 1),
    runs=1,
    critical=0,
    step_ns=1_000_000,
    has_steps=True,
    times={0: 10_000_000, 1: 10_000_000},
    shares={0: {"compute": 80.0, "idle": 20.0}, 1: {"compute": 80.0, "idle": 20.0}},
)
"""Two ranks with ten steps of a millisecond, of which they compute 80 %; rank 0 is the critical one."""


def table(name: str, rows: Iterable[Cells], findings: Iterable[Finding] = ()) -> Summary:
    """Return a table of an analysis as rules get it, with some rows.

    Raises:
        KeyError: no table is called so, or it has no such column.
    """
    analysis = TABLES[name]
    definition = importlib.import_module(SUMMARIES[analysis].home.partition(":")[0]).TABLES[name]
    own = {field.name for field in definition.fields}
    division = [field for field in DIVISIONS[questions([name])[analysis]] if field.name not in own]
    fields = (*division, *definition.fields)
    columns = dict.fromkeys(field.name for field in fields)
    for row in rows:
        if unknown := row.keys() - columns.keys():
            raise KeyError(f"{name} has no column {', '.join(sorted(unknown))}: it has {', '.join(columns)}")
    return Summary(definition, fields, [tuple({**columns, **row}.values()) for row in rows], findings=findings)


def found(rule: Rule, tables: Mapping[str, Sequence[Cells] | Summary], job: JobFacts = JOB) -> list[Finding]:
    """Return what a rule finds, with its own thresholds.

    Args:
        rule: the rule.
        tables: by name, as rows or as `table` makes them; what the rule needs and is left out here has no rows.
        job: facts of the job; `replace(JOB, has_steps=False)` is one without steps.

    Raises:
        CannotLookError: it could not look.
    """
    given = {need.table: tables.get(need.table, ()) for need in rule.needs} | dict(tables)
    made = {name: rows if isinstance(rows, Summary) else table(name, rows) for name, rows in given.items()}
    limits = {each.name: each.value for each in rule.thresholds}
    least = {each.name: each.value for each in COMMON}["least_percent"]
    return [each for each in answers(rule, Case(job, made, limits, load(None))) if matters(each, least)]
