"""The problems that one side of a comparison has and the other lacks, as analyses of each run find them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rocpd.summary.communication.ranks import ranks
from rocpd.summary.communication.verdict import RULE as STRAGGLER
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.memory.memory import LEAK, allocation_sites
from rocpd.summary.reading import Reading
from rocpd.summary.run import Function, known_tables

_RULES = (STRAGGLER, LEAK)
_ANALYSES: Mapping[str, Function] = {"ranks": ranks, "allocation-sites": allocation_sites}
_WHAT = ("hostname", "link", "mainly", "call", "marker")  # in the evidence: what a finding is about beside a rank


class Trouble(NamedTuple):
    """A problem of a run, as one of its analyses finds it.

    Args:
        about: whom it concerns and what takes longer there, to find it again in another run.
        text: as the analysis says it.
    """

    about: str
    text: str


Answered: TypeAlias = Mapping[str, tuple[Trouble, ...]]
"""Question -> the problems that a run has there; without those that it can't answer."""


def problems_of(reading: Reading) -> Answered:
    """Return the problems of a job."""
    answered: dict[str, tuple[Trouble, ...]] = {}
    options = dict.fromkeys(_ANALYSES, reading.options)
    for name, tables in known_tables(reading.of_tables(_ANALYSES), _ANALYSES, options):
        if isinstance(tables, str) or name not in tables:
            continue
        found = tables[name].findings
        for rule in _RULES if reading.session.runs == 1 else ():
            of_rule = [each for each in found if each.rule == rule]
            if of_rule and not any(each.verdict is Verdict.UNKNOWN for each in of_rule):
                answered[rule] = tuple(Trouble(_about(each), each.text) for each in of_rule if _is_sure(each))
    return answered


def _is_sure(finding: Finding) -> bool:
    """Whether a finding is a problem that is no chance: what leaks is a fact, whatever it is for."""
    is_chance = finding.rule == STRAGGLER and finding.confidence is Confidence.HINT
    return finding.verdict is Verdict.PROBLEM and not is_chance


def _about(finding: Finding) -> str:
    return " ".join(map(str, [finding.rank, *(finding.evidence.get(name) for name in _WHAT)]))


def new_and_gone(base: Sequence[Answered], new: Sequence[Answered]) -> Iterator[str]:
    """Yield a sentence on each problem that most runs of one side have, and none of the other."""
    for rule in _RULES:
        sides = [[run[rule] for run in side if rule in run] for side in (base, new)]
        if all(sides):
            yield from _only("new", sides[1], sides[0])
            yield from _only("no longer", sides[0], sides[1])


def _only(word: str, having: Sequence[Sequence[Trouble]], lacking: Sequence[Sequence[Trouble]]) -> Iterator[str]:
    others = {problem.about for run in lacking for problem in run}
    texts: dict[str, list[str]] = {}
    for problem in (problem for run in having for problem in run if problem.about not in others):
        texts.setdefault(problem.about, []).append(problem.text)
    for each in texts.values():
        if len(each) * 2 > len(having):
            often = f" in {len(each)} of {len(having)} runs" if len(having) > 1 else ""
            yield f"{word}{often}: {each[-1]}"
