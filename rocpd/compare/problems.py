"""The problems that one side of a comparison has and the other lacks, found by analyses of each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from rocpd.base import by_key
from rocpd.summary.communication.ranks import ranks
from rocpd.summary.communication.verdict import RULE as STRAGGLER
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.memory.memory import LEAK, allocation_sites
from rocpd.summary.reading import Function, Reading, known_tables

_RULES = (STRAGGLER, LEAK)
_ANALYSES: Mapping[str, Function] = {"ranks": ranks, "allocation-sites": allocation_sites}


Answered: TypeAlias = Mapping[str, Mapping[str, str]]
"""Question -> subject of a problem -> the problem, as an analysis of a run words it; without questions that it can't
answer."""


def problems_of(reading: Reading, measure: Function) -> Answered:
    """Return the problems of a job; its ranks are read once for the analyses and for `measure`."""
    answered: dict[str, Mapping[str, str]] = {}
    analyses = {"measure": measure, **_ANALYSES}
    options = dict.fromkeys(analyses, reading.options)
    for name, tables in known_tables(reading.of_tables(_ANALYSES), analyses, options):
        findings = () if isinstance(tables, str) or name not in tables else tables[name].findings
        for rule, some in by_key((each.rule, each) for each in findings if each.rule in _RULES).items():
            if not any(each.verdict is Verdict.UNKNOWN for each in some):
                answered[rule] = {_about(each): each.text for each in some if _is_sure(each)}
    return answered


def _is_sure(finding: Finding) -> bool:
    """Whether a finding is a problem and not chance: a leak is a fact, whatever its purpose."""
    is_chance = finding.rule == STRAGGLER and finding.confidence is Confidence.HINT
    return finding.verdict is Verdict.PROBLEM and not is_chance


def _about(finding: Finding) -> str:
    """Return the subject of a finding: baselines and histories keep it, so its form stays as it is."""
    evidence = finding.evidence
    ranks = evidence.get("link", evidence.get("together"))
    what = (evidence.get(name) for name in ("mainly", "call", "marker"))
    return " ".join(map(str, [finding.rank, evidence.get("hostname"), ranks, *what]))


def new_and_gone(base: Sequence[Answered], new: Sequence[Answered]) -> Iterator[str]:
    """Yield a sentence on each problem that most runs of one side have, and none of the other."""
    for rule in _RULES:
        before, after = ([run[rule] for run in side if rule in run] for side in (base, new))
        if before and after:
            yield from _only("new", after, before)
            yield from _only("no longer", before, after)


def _only(word: str, having: Sequence[Mapping[str, str]], lacking: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for about, texts in by_key(problem for run in having for problem in run.items()).items():
        if len(texts) * 2 > len(having) and not any(about in run for run in lacking):
            often = f" in {len(texts)} of {len(having)} runs" if len(having) > 1 else ""
            yield f"{word}{often}: {texts[-1]}"
