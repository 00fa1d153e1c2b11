"""Owns asking the rules: one pass over the ranks for all analyses that they need, then each rule in order."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import cast

from rocpd import entries
from rocpd.advice.advice import Advice
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.causes import tell_once
from rocpd.advice.job import job_of
from rocpd.advice.registry import known_rules
from rocpd.advice.rule import Rule
from rocpd.advice.thresholds import ALL, thresholds
from rocpd.errors import RocpdError, UsageError
from rocpd.federate.federation import Federation, Notes
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.options import By, Options
from rocpd.summary.reading import Reading
from rocpd.summary.registry import OF_ONE_JOB, SUMMARIES, TABLES
from rocpd.summary.result import Summary
from rocpd.summary.together import Analysis, together
from rocpd.trace.kernel_categories import load
from rocpd.types import Progress

_JOB = "JOB"
"""What rules call the inputs in commands."""

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
    needed = _OF_JOB.union(need.table for rule in rules.values() for need in rule.needs)
    tables, missing = _tables(session, needed, options or Options(), progress)
    categories = load(options.categories if options else None)
    case = Case(job_of(session, tables), tables, missing, {}, categories)
    problems: list[Finding] = []
    silent: list[str] = []
    unable: list[Finding] = []
    for rule in rules.values():
        try:
            answers = _answers(rule, replace(case, limits=limits[rule.id]), limits[ALL]["least_percent"])
        except CannotLookError as error:
            unable.append(Finding(str(error), rule.id, Verdict.UNKNOWN, Confidence.CERTAIN))
            continue
        problems += answers
        silent += [] if answers else [rule.id]
    name = inputs or _name_of(session)
    told, explained = tell_once([_named(finding, name) for finding in problems], rules)
    return Advice(case.job, tuple(sorted(told, key=_weight)), explained, tuple(silent), tuple(unable))


def _name_of(session: Federation) -> str:
    """Return what the inputs are called in commands: the file, or the folder of all files; else JOB."""
    paths = [rank.opening.path for rank in session.ranks]
    if len(set(paths)) == 1:
        return shlex.quote(str(paths[0]))
    folders = {path.parent for path in paths}
    return shlex.quote(str(folders.pop())) if len(folders) == 1 else _JOB


def _named(finding: Finding, name: str) -> Finding:
    """Return a finding whose commands name the inputs."""
    shown_by, action = (text and text.replace(_JOB, name) for text in (finding.shown_by, finding.action))
    return replace(finding, shown_by=shown_by, action=action)


def _weight(finding: Finding) -> tuple[bool, bool, float]:
    """Order findings: what limits the others first, then the largest gain, last what costs no time."""
    gain = finding.gain_percent
    return finding.rule != "trace.incomplete", gain is None, -(gain or 0.0)


def _answers(rule: Rule, case: Case, least: float) -> list[Finding]:
    """Return the problems that a rule finds and that matter.

    Raises:
        CannotLookError: it could not look.
    """
    for need in rule.needs:
        if need.table not in case.tables:
            separate = need.table in OF_ONE_JOB and case.job.runs > 1
            why = f"{case.job.runs} separate runs, not one job: choose the ranks of one with --rank"
            raise CannotLookError(why if separate else need.without)
    return [finding for finding in rule.look(case) if finding.gain_percent is None or finding.gain_percent >= least]


def _tables(
    session: Federation, needed: Iterable[str], options: Options, progress: Progress | None
) -> tuple[dict[str, Summary], dict[str, str]]:
    """Return tables by name, divided by rank, and of those that are missing why they are.

    What analyses note beside their answers is for those who ask for them by name.
    """
    quiet = Federation(session.job, session.selection, Notes(), owns_files=False)
    wanted = frozenset(needed)
    analyses = [name for name in SUMMARIES if name in {TABLES[table] for table in wanted}]
    functions = {name: cast("Analysis", entries.load(SUMMARIES[name].home, name)) for name in analyses}
    reading = Reading(quiet, replace(options, by=By.RANK), progress, wanted)
    tables: dict[str, Summary] = {}
    missing: dict[str, str] = {}
    by_agent = {"memory": replace(reading.options, by=By.AGENT)}  # what each GPU has is known
    for name, answered in together(reading, functions, by_agent):
        try:
            tables |= {table.name: table for table in answered}
        except UsageError:
            raise
        except RocpdError as error:
            missing |= dict.fromkeys(SUMMARIES[name].tables, error.message)
    if session.runs > 1:
        tables = {name: table for name, table in tables.items() if name not in OF_ONE_JOB}
    return tables, missing
