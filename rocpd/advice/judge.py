"""Owns what rules answer, of tables that are there: each rule in order, each cause once. Never reads a rank."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from rocpd.advice.advice import Advice
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.causes import report_once
from rocpd.advice.job import job_of
from rocpd.advice.rule import Rule
from rocpd.advice.thresholds import ALL, Limits
from rocpd.federate.federation import Federation
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.registry import OF_ONE_JOB
from rocpd.summary.result import Summary
from rocpd.trace.kernel_categories import Categories

_JOB = "JOB"
"""What rules call the inputs in commands."""


def judge(
    session: Federation,
    tables: Mapping[str, Summary],
    rules: Mapping[str, Rule],
    limits: Limits,
    categories: Categories,
    inputs: str | None = None,
) -> Advice:
    """Return advice.

    Args:
        session: the job.
        tables: of analyses by name, as `run.questions` divides them; of separate runs none that compare ranks.
        rules: by id.
        limits: their thresholds.
        categories: what kernels do.
        inputs: what they are called in commands; None: by where their files are.
    """
    case = Case(job_of(session, tables), tables, {}, categories)
    problems: list[Finding] = []
    silent: list[str] = []
    unable: list[Finding] = []
    for rule in rules.values():
        try:
            found = answers(rule, replace(case, limits=limits[rule.id]), limits[ALL]["least_percent"])
        except CannotLookError as error:
            text = error.text(case.job)
            unable.append(Finding(text, rule.id, Verdict.UNKNOWN, Confidence.CERTAIN))
            continue
        problems += found
        silent += [] if found else [rule.id]
    name = inputs or _name_of(session)
    reported, explained = report_once([_named(finding, name) for finding in problems], rules)
    return Advice(case.job, tuple(sorted(reported, key=_weight)), explained, tuple(silent), tuple(unable))


def _name_of(session: Federation) -> str:
    """Return what the inputs are called in commands: the file, or the folder of all files; else JOB."""
    paths = [rank.opening.path for rank in session.ranks]
    if len(set(paths)) == 1:
        return shlex.quote(str(paths[0]))
    folders = {path.parent for path in paths}
    return shlex.quote(str(folders.pop())) if len(folders) == 1 else _JOB


def _named(finding: Finding, name: str) -> Finding:
    """Return a finding whose commands name the inputs, and its rank and step where they ask for one."""
    said = {_JOB: name}
    if finding.rank is not None:
        said["--rank N"] = f"--rank {finding.rank}"
    if number := re.search(r"\d+", finding.step or ""):
        said["--step N"] = f"--step {number[0]}"
    shown_by, action = finding.shown_by, finding.action
    for placeholder, word in said.items():
        shown_by, action = (text and text.replace(placeholder, word) for text in (shown_by, action))
    return replace(finding, shown_by=shown_by, action=action)


def _weight(finding: Finding) -> tuple[bool, bool, float]:
    """Order findings: what limits the others first, then the largest gain, last what costs no time."""
    gain = finding.gain_percent
    return finding.rule != "trace.incomplete", gain is None, -(gain or 0.0)


def answers(rule: Rule, case: Case, least: float) -> list[Finding]:
    """Return the problems that a rule finds and that may gain so much of a step [%], or cost no time.

    Raises:
        CannotLookError: it could not look.
    """
    for need in rule.needs:
        if need.table not in case.tables:
            separate = need.table in OF_ONE_JOB and case.job.runs > 1
            why = f"{case.job.runs} separate runs, not one job: choose the ranks of one with --rank"
            raise CannotLookError(why if separate else need.without)
    return [finding for finding in rule.look(case) if finding.gain_percent is None or finding.gain_percent >= least]
