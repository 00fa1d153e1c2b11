"""What was found, the most important first, each cause once: with what it leads to, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rocpd.advice.advice import Advice
from rocpd.advice.judge import judge
from rocpd.advice.registry import known_rules
from rocpd.advice.show.text import gain, looked, unable, window_options
from rocpd.advice.thresholds import thresholds
from rocpd.report.contents import COMPARED
from rocpd.report.material import Material, advised
from rocpd.report.model import Block, Conclusion, Findings, Folded, Text
from rocpd.summary.findings import Finding, Verdict
from rocpd.summary.overview import conclude
from rocpd.summary.registry import joined_analyses
from rocpd.summary.result import Summary
from rocpd.trace.kernel_categories import load

_WAITING = ("comm.straggler", "rank.imbalance")
_CAUSES: Mapping[str, Sequence[str]] = {
    "comm.overlap": ("comm.same_stream", "comm.exposed"),
    "comm.exposed": (*_WAITING, "comm.slow"),
    "gpu.idle": ("launch.small", "gpu.starved", "sync.calls", "module.load", "copy.blocking", "alloc.steady"),
}  # what an analysis sees -> rules that say why


def verdict(material: Material) -> Iterator[Block]:
    """Yield what analyses and rules of advice find; what is wrong comes first, and which rules could not look last."""
    tables: dict[str, Summary] = {}
    for name in joined_analyses():
        tables |= material.tables(name)
    job, *concluded = conclude(material.session, tables)
    advice = _advice(material)
    symptoms, others = _divided(concluded, advice)
    conclusions = [
        Conclusion(finding, tuple(_notes(material, advice, finding, effects)))
        for finding, effects in zip(advice.findings, symptoms, strict=True)
    ]
    compared = material.tables(COMPARED.analysis).get("diff")
    first = [job, *(compared.findings[:1] if compared else ())]
    yield Findings((*map(Conclusion, first), *conclusions, *map(Conclusion, others)))
    yield Text(f"{looked(advice)}.")
    if reasons := unable(advice):
        lines = tuple(f"{', '.join(rules)}: {reason}" for reason, rules in reasons.items())
        yield Folded("Which rules could not look, and why", lines)


def _advice(material: Material) -> Advice:
    tables: dict[str, Summary] = {}
    for question in advised():
        tables |= material.tables(question.analysis, question.by)
    rules = known_rules()
    categories = load(material.reading.options.categories)
    return judge(material.session, tables, rules, thresholds(rules), categories, material.inputs)


def _notes(material: Material, advice: Advice, finding: Finding, symptoms: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what stands below a finding: (word, text)."""
    if finding.gain_percent is not None:
        yield "gain", f"{gain(finding)} of the {advice.job.unit} of rank {advice.job.critical}"
    yield from (("hence", effect.text) for effect in advice.effects(finding))
    yield from (("hence", symptom) for symptom in symptoms)
    yield from (("do", text) for text in [finding.action] if text)
    yield from (("see", text) for text in [finding.shown_by] if text)
    start, end = finding.window or (0, 0)
    if start < end and not material.session.window:
        yield "trace", f"rocpd convert -f pftrace {material.inputs} {window_options(finding)}"


def _divided(concluded: Iterable[Finding], advice: Advice) -> tuple[list[list[str]], list[Finding]]:
    """Return what analyses see of each finding of the rules, and what no rule says, problems first."""
    reported = [finding.rule for finding in advice.findings]
    said = {*reported, *(each.finding.rule for each in advice.explained)}
    symptoms: list[list[str]] = [[] for _ in reported]
    others = []
    for finding in concluded:
        causes = [reported.index(rule) for rule in _CAUSES.get(finding.rule, ()) if rule in reported]
        is_problem = finding.verdict is Verdict.PROBLEM
        if is_problem and causes:
            symptoms[causes[0]].append(finding.text)
        elif not (is_problem and _rule_of(finding) in said):
            others.append(finding)
    return symptoms, sorted(others, key=lambda finding: finding.verdict is not Verdict.PROBLEM)


def _rule_of(finding: Finding) -> str:
    return "trace.incomplete" if finding.rule.startswith("trace.") else finding.rule
