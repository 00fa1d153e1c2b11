"""Asks the rules: one pass over the ranks for all tables that they need, each rule in order, each cause once.

The gain of a finding is the time that a replay of the job without its cause regains.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from rocpd.advice.advice import Advice, Explained
from rocpd.advice.case import LEAST_GAIN, CannotLookError, Case, JobFacts, ranks_to_blame, waits_least
from rocpd.advice.registry import known_rules
from rocpd.advice.rule import ALL, Limits, Rule, thresholds
from rocpd.base import Progress, RocpdError, entries
from rocpd.base.boundary import each_for_itself
from rocpd.base.stages import Stage
from rocpd.facts.communication.collectives import listed
from rocpd.facts.rank import By, Options
from rocpd.facts.recorders import recorder_of
from rocpd.facts.units import products_of_ranks
from rocpd.federate.describe import importers_of
from rocpd.federate.federation import Federation
from rocpd.replay.whatif import Replays
from rocpd.schema.rules.kernel_categories import load
from rocpd.summary.communication.verdict import RULE as STRAGGLER
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.reading import Function, Reading, known_tables, stages
from rocpd.summary.registry import OF_ONE_JOB, known_analyses, tables_of
from rocpd.summary.result import Summary
from rocpd.summary.time.overview import job_finding


def replayed(finding: Finding, rule: Rule, replays: Callable[[], Replays]) -> Finding:
    """Return a finding with its gain by a replay, or unchanged where no replay gives one."""
    changes, first = rule.without(finding), rule.after(finding)
    if not changes:
        return finding
    try:
        before = replays().predict(first).gain if first else 0.0
        predicted = replays().predict([*first, *changes])
        if rule.otherwise and predicted.gain - before < _NOTHING:
            action, changes = rule.otherwise
            predicted, finding = replays().predict([*first, *changes]), replace(finding, action=action)
    except RocpdError:  # nothing to change in the steps that count
        return finding
    if rule.is_bounded and predicted.gain * 100 > (finding.gain_percent or 0.0):
        return finding
    gain, least, most = (value - before for value in (predicted.gain, *predicted.gains))
    if marker := finding.evidence.get("marker"):
        ranks = replays().held_up_by(str(marker))
        alone = f"; it holds up the job on rank{'s'[: len(ranks) > 1]} {listed(ranks)} alone"
        is_some = 0 < len(ranks) < len(replays().blaming.ranks)
        finding = replace(finding, text=finding.text + alone) if is_some else finding
    words = shlex.join(word for change in predicted.changes for word in str(change).split(" ", 1))
    return replace(
        finding,
        gain_percent=gain * 100,
        gain_bounds=(0.0 if any(change.is_bound for change in changes) else least * 100, most * 100),
        regained_by=f"rocpd whatif JOB {words}",
    )


_NOTHING = 0.02  # share of a step: smaller gains count as none
_BEYOND = 2.0  # times: an effect that costs more than this beside its cause has other causes, too
USUAL = 2  # problems, or causes, of a job
_OF_JOB = frozenset({"budget", "ranks", "steps"})
"""Tables that hold the facts of the job."""


def advise(
    session: Federation,
    options: Options | None = None,
    path: Path | None = None,
    progress: Progress | None = None,
    inputs: str | None = None,
) -> Advice:
    """Return advice.

    Args:
        session: the job.
        options: categories and step markers, as analyses take them.
        path: file of thresholds, as `rocpd.advice.rule` reads it.
        progress: called with (time that passed, time that all takes) [ms].
        inputs: name of the inputs in commands; None: taken from the paths of their files.

    Raises:
        UsageError: as `thresholds`, or an option is invalid.
    """
    rules = known_rules()
    limits = thresholds(rules, path)
    asked, wanted = options or Options(), tables_of_rules(rules)
    each = {name: replace(asked, by=by) for name, by in questions(wanted).items()}
    functions = {name: analysis_function(name) for name in each}
    tables: dict[str, Summary] = {}
    with session.job.reporting(progress, {**stages(functions), Stage.REPLAYS: USUAL}):
        for _, known in known_tables(Reading(session, wanted=wanted), functions, each):
            tables |= {} if isinstance(known, str) else known
        return judge(session, tables, asked, limits, inputs)


def tables_of_rules(rules: Mapping[str, Rule]) -> frozenset[str]:
    """Return the tables that rules read."""
    needed = (need.table for rule in rules.values() for need in rule.needs)
    return _OF_JOB.union(needed, *(rule.besides for rule in rules.values()))


def questions(tables: Iterable[str]) -> dict[str, By | None]:
    """Return analysis -> its division, for the analyses that tables belong to; tables of no analysis are left out.

    An analysis is divided by its default, else by rank; None: it is not divided, as metrics of counters, which a
    kernel has alike on all ranks and which often only some ranks recorded.
    """
    analyses = known_analyses()
    analysis_of = tables_of(analyses)
    names = {analysis_of[table] for table in tables if table in analysis_of}
    return {
        name: analysis.divided_by or (By.RANK if By.RANK in analysis.by and name != _PANELS else None)
        for name, analysis in analyses.items()
        if name in names
    }


def analysis_function(name: str) -> Function:
    """Return the function of an analysis."""
    return cast("Function", entries.load(known_analyses()[name].home, name))


_PANELS = "panels"
_FIRST = "trace.incomplete"
_JOB = "JOB"
"""The name of the inputs in commands of rules."""


def judge(
    session: Federation, tables: Mapping[str, Summary], options: Options, limits: Limits, inputs: str | None = None
) -> Advice:
    """Return advice.

    Args:
        session: the job.
        tables: tables of analyses by name, divided as `questions` says; of separate runs none that compare ranks.
        options: the options of the analyses.
        limits: thresholds of the rules.
        inputs: name of the inputs in commands; None: taken from the paths of their files.
    """
    rules = known_rules()
    case = Case(job_of(session, tables), tables, {}, load(options.categories))
    problems: list[Finding] = []
    slight: list[Finding] = []
    silent: list[str] = []
    unable: list[Finding] = []
    least = limits[ALL]["least_percent"]
    replays = tables["ranks"].replays if "ranks" in tables and not case.job.is_part else None
    for rule in rules.values():
        look = partial(_answers_or_why_not, rule, replace(case, limits=limits[rule.id]))
        found = each_for_itself(f"rule {rule.id}", look, str)
        if isinstance(found, str):
            unable.append(Finding(found, rule.id, Verdict.UNKNOWN, Confidence.CERTAIN))
            continue
        found = [each for each in found if LEAST_GAIN not in each.evidence or _is_confirmed(each, rule, replays)]
        those = [each for each in found if matters(each, least)]
        problems += those
        slight += [] if those else found
        silent += [] if found else [rule.id]
    name = inputs or _name_of(session)
    reported, explained = report_once(problems, rules)
    asked = session.job.course.each(Stage.REPLAYS, problems, len(problems))
    final = {id(each): _named(_gaining(each, rules[each.rule], replays), name) for each in asked}
    effects = [Explained(final[id(each.finding)], final[id(each.cause)]) for each in explained]
    alone = (each.finding for each in effects if _goes_beyond(each))
    findings = sorted([*(final[id(each)] for each in reported), *alone], key=partial(_order, rules))
    effects = [each for each in effects if not _goes_beyond(each)]
    causes = [each.cause for each in effects]
    told = [each for each in findings if matters(each, least) or each in causes]
    little = [*(_named(each, name) for each in slight), *(each for each in findings if each not in told)]
    return Advice(case.job, tuple(told), tuple(effects), tuple(silent), tuple(unable), tuple(little), least)


def matters(finding: Finding, least: float) -> bool:
    """Whether a finding may gain this share of a step [%], or costs no time."""
    return finding.gain_percent is None or finding.most_percent >= least


def _order(rules: Mapping[str, Rule], finding: Finding) -> tuple[bool, bool, float]:
    """Return the sort key of a finding: limits of the others first, then by gain, last findings that cost no time.

    Changes of the program count half, so that the fault which the first screen names is the first advice, too.
    """
    counts = 1.0 if rules[finding.rule].is_fault else 0.5
    return finding.rule != _FIRST, finding.gain_percent is None, -counts * finding.expected_percent


def _goes_beyond(effect: Explained) -> bool:
    """Whether a replay without an effect gains far more than one without its cause, which then does not explain it."""
    finding, cause = effect.finding, effect.cause
    are_replayed = finding.regained_by is not None and cause.regained_by is not None
    return are_replayed and finding.expected_percent > _BEYOND * cause.expected_percent


def _gaining(finding: Finding, rule: Rule, replays: Callable[[], Replays] | None) -> Finding:
    """Return a finding with its gain by a replay, where there is a replay."""
    if replays is None:
        return finding
    return each_for_itself(f"gain of {rule.id}", partial(replayed, finding, rule, replays), lambda _: finding)


def _is_confirmed(finding: Finding, rule: Rule, replays: Callable[[], Replays] | None) -> bool:
    """Whether a replay confirms the least gain that a finding needs."""
    gaining = _gaining(finding, rule, replays)
    return gaining.regained_by is not None and (gaining.gain_percent or 0.0) >= float(str(finding.evidence[LEAST_GAIN]))


def _name_of(session: Federation) -> str:
    """Return the name of the inputs in commands: the file, or the folder of all files; else JOB."""
    paths = [rank.opening.path for rank in session.ranks]
    if len(set(paths)) == 1:
        return shlex.quote(str(paths[0]))
    folders = {path.parent for path in paths}
    return shlex.quote(str(folders.pop())) if len(folders) == 1 else _JOB


def _named(finding: Finding, name: str) -> Finding:
    """Return a finding whose commands name the inputs, and its rank and step in place of N."""
    said = {_JOB: name}
    if finding.rank is not None:
        said["--rank N"] = f"--rank {finding.rank}"
    if number := re.search(r"\d+", finding.step or ""):
        said["--step N"] = f"--step {number[0]}"
    shown_by, action, regained = finding.shown_by, finding.action, finding.regained_by
    for placeholder, word in said.items():
        shown_by, action, regained = (text and text.replace(placeholder, word) for text in (shown_by, action, regained))
    return replace(finding, shown_by=shown_by, action=action, regained_by=regained)


def _answers_or_why_not(rule: Rule, case: Case) -> list[Finding] | str:
    try:
        return answers(rule, case)
    except CannotLookError as error:
        return error.text(case.job)


def answers(rule: Rule, case: Case) -> list[Finding]:
    """Return the problems that a rule finds, however little they gain.

    Raises:
        CannotLookError: it could not look.
    """
    for need in rule.needs:
        if need.table not in case.tables:
            separate = need.table in OF_ONE_JOB and case.job.runs > 1
            why = f"{case.job.runs} separate runs, not one job: choose the ranks of one with --rank"
            raise CannotLookError(why if separate else need.without)
    findings = list(rule.found(case))
    return [replace(each, text=each.text + _elsewhere(rule, case, each, findings)) for each in findings]


def _elsewhere(rule: Rule, case: Case, finding: Finding, findings: Sequence[Finding]) -> str:
    """Return words on the ranks that share a finding about the critical one; empty where there are no others.

    A rule on faults compares all ranks when it looks once; another looks at each rank as if it were the critical one.
    Findings on stragglers name all their ranks: another finding is another cause.
    """
    if "cause" in finding.evidence or not re.search(rf"\brank {case.job.critical}\b", finding.text):
        return ""
    if rule.is_fault:
        faulty = {each.rank for each in findings}
        ranks = [rank for rank in case.job.ranks if rank in faulty]
    else:
        ranks = [rank for rank in case.job.ranks if rank == finding.rank or _is_found(rule, case, rank)]
    if len(ranks) < 2:
        return ""
    count, every = len(ranks), len(case.job.ranks)
    everyone = f"all {every} ranks" if every > 2 else "both ranks"
    which = everyone if count == every else f"{count} of {every} ranks: {listed(ranks, most=8)}"
    return f"; it is so on {which}"


def _is_found(rule: Rule, case: Case, rank: int) -> bool:
    """Whether a rule would find something on a rank if it were the critical one."""
    with suppress(CannotLookError):
        findings = rule.look(replace(case, job=replace(case.job, critical=rank)))
        return any(each.rank == rank and re.search(rf"\brank {rank}\b", each.text) for each in findings)
    return False


def job_of(session: Federation, tables: Mapping[str, Summary]) -> JobFacts:
    """Return the facts of a job.

    Args:
        session: the job.
        tables: `budget` by rank, `ranks` and `steps`, as far as they are known.
    """
    shares, times = defaultdict[int, dict[str, float]](dict), Counter[int]()
    steps: dict[int, float] = {}
    for rank, part, time, per_step, percent in tables.get("budget", ()):
        shares[rank][part] = percent or 0.0
        times[rank] += time
        if per_step is not None:
            steps[rank] = steps.get(rank, 0.0) + per_step
    longest = max(times, key=lambda rank: (times[rank], -rank), default=None)
    critical = _critical_rank(session, tables, shares) if session.runs == 1 else longest
    whole = 0.0 if critical is None else float(times[critical])
    return JobFacts(
        text=job_finding(session, tables).text,
        ranks=tuple(sorted(shares)),
        runs=session.runs,
        critical=critical,
        step_ns=whole if critical is None else steps.get(critical, whole),
        has_steps=critical in steps and not session.window,
        times=times,
        shares=shares,
        recorder=recorder_of(importers_of(session)),
        is_part=session.is_part,
        left_out=session.job.left_out,
        gpus=tuple(sorted({"+".join(sorted(set(gpus))) for gpus in products_of_ranks(session).values() if gpus})),
    )


def _critical_rank(
    session: Federation, tables: Mapping[str, Summary], shares: Mapping[int, Mapping[str, float]]
) -> int | None:
    """Return the rank that holds the others up, or else the rank with least exposed communication."""
    findings = tables["ranks"].findings if "ranks" in tables else ()
    guilty = (each for each in findings if each.rule == STRAGGLER and each.verdict is Verdict.PROBLEM)
    hosts = {rank.number: rank.hostname for rank in session.ranks}
    blamed = next((each for each in guilty if "link" not in each.evidence), None)
    suspects = ranks_to_blame(blamed, hosts) if blamed else ()
    return waits_least(shares, shares.keys() & suspects or shares)


def report_once(findings: Sequence[Finding], rules: Mapping[str, Rule]) -> tuple[list[Finding], list[Explained]]:
    """Divide findings into those that stand alone and those that another finding explains, in their order.

    Args:
        findings: problems.
        rules: by id; they know which findings explain others.
    """

    def explains(cause: Finding, other: Finding) -> bool:
        return cause.rule != other.rule and rules[cause.rule].explains(cause, other)

    causes = [next((at for at, cause in enumerate(findings) if explains(cause, each)), None) for each in findings]
    reported, explained = [], []
    for number, finding in enumerate(findings):
        chain = [number]
        while (cause := causes[chain[-1]]) is not None and cause not in chain:
            chain.append(cause)
        if cause is not None or len(chain) == 1:  # a circle explains nothing
            reported.append(finding)
        else:
            explained.append(Explained(finding, findings[chain[-1]]))
    return reported, explained
