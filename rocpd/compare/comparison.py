"""Puts a comparison together: verdict, comparability, attribution, and the sentences that say them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from rocpd.compare.attribution import Attribution, attribute
from rocpd.compare.comparability import Comparability, comparability
from rocpd.compare.decision import ChangeVerdict, Decision, decide
from rocpd.compare.kernel_changes import KernelDifference
from rocpd.compare.kernel_pairs import KernelIdentity, identity_of, pair_kernels
from rocpd.compare.metrics import MEMORY, DiffMetric
from rocpd.compare.options import STEP, DiffOptions
from rocpd.compare.repeated import on_both_sides
from rocpd.compare.run_profile import PLURALS, WINDOW, RankUse, RunProfile
from rocpd.compare.sides import side_of
from rocpd.compare.statistics import holm, mann_whitney
from rocpd.errors import UsageError
from rocpd.frozen import frozen
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.table.human import readable
from rocpd.trace.short_names import kernel_name

_ALIKE = 0.5  # of the kernel time, or of its change: below this sides do other work, and times don't compare
_FEWEST = 2  # runs a side, to test kernels


@frozen
class RankDifference:
    """The time of a rank without waiting for others, per unit [ns]; None where a side lacks the rank."""

    rank: int
    host: str | None
    base: float | None
    new: float | None

    @property
    def ratio(self) -> float | None:
        """How many times as long it is."""
        return self.new / self.base if self.base and self.new is not None else None


@frozen
class Subject:
    """What a comparison is about, in words.

    Args:
        measured: what is measured.
        counted: how many of what there are on both sides.
        common: what both sides have; empty: nothing.
    """

    measured: str
    counted: str
    common: str = ""


@frozen
class Comparison:
    """What two sides have to say to each other.

    Args:
        base, new: names of the runs of both sides.
        unit: what a unit is.
        metric: what decided.
        decision: the verdict.
        comparability: whether they compare.
        attribution: where the difference of mean units comes from.
        ranks: which ranks changed, most first.
        subject: what it is about.
        findings: all of it in sentences, the verdict first.
    """

    base: tuple[str, ...]
    new: tuple[str, ...]
    unit: str
    metric: DiffMetric
    decision: Decision
    comparability: Comparability
    attribution: Attribution
    ranks: tuple[RankDifference, ...]
    subject: Subject
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> ChangeVerdict:
        """Whether the other side is slower."""
        return self.decision.verdict


def compare(
    base: Sequence[RunProfile],
    new: Sequence[RunProfile],
    options: DiffOptions,
    metric: DiffMetric,
    subject: Subject | None = None,
) -> Comparison:
    """Compare two sides, each of one run or several.

    Args:
        base, new: their runs.
        options: what was asked.
        metric: what decides.
        subject: what it is about; None: runs.

    Raises:
        UsageError: a baseline has no such metric.
    """
    for run in (*base, *new):
        if metric.name not in run.samples:
            raise UsageError(f"{run.name}: has no {metric.name}", f"--save-baseline with --metric {metric.name}")
    uses = [[use for run in side for use in run.uses] for side in (base, new)]
    pairs = pair_kernels(uses[0], uses[1], options.pattern())
    attribution = attribute(side_of(base), side_of(new), pairs)
    if min(len(base), len(new)) >= _FEWEST:
        attribution = replace(attribution, kernels=_tested(attribution.kernels, base, new))
    compared = comparability(base, new, attribution, options.least_score)
    samples = [[run.samples.get(metric.name, ()) for run in side] for side in (base, new)]
    decision = decide(samples[0], samples[1], options)
    reason = _why_not_alike(decision, attribution, metric, (base, new))
    if not compared.is_enough:
        reason = f"the two do not compare: score {compared.score:.2f}"
    if reason:
        verdict, confidence = ChangeVerdict.UNCLEAR, Confidence.HINT
        decision = replace(decision, verdict=verdict, confidence=confidence, reason=reason, needed=None)
    subject = subject or _of_runs(metric, base, new)
    if subject.common and decision.confidence is Confidence.CERTAIN:  # it takes runs that tell the sides apart
        decision = replace(decision, confidence=Confidence.LIKELY)
    comparison = Comparison(
        tuple(run.name for run in base),
        tuple(run.name for run in new),
        base[0].unit,
        metric,
        decision,
        compared,
        attribution,
        tuple(_ranks(base, new)),
        subject,
    )
    return replace(comparison, findings=tuple(_findings(comparison)))


def _why_not_alike(
    decision: Decision, attribution: Attribution, metric: DiffMetric, sides: Sequence[Sequence[RunProfile]]
) -> str:
    """Return why a verdict means nothing: the sides did other work; empty where they did the same."""
    if metric.kind == MEMORY or decision.verdict is ChangeVerdict.SAME:
        return ""
    gpus = [{run.facts.gpus for run in side} for side in sides]
    other = 1 - attribution.like_for_like
    if metric.kind == STEP and gpus[0] == gpus[1] and other > 1 - _ALIKE:  # other GPUs take other grids for equal work
        return f"work changed: kernels with {other:.0%} of the compute time do other work in each call"
    has_steps = any(run.unit != WINDOW for side in sides for run in side)
    calls = sum(kernel.calls for kernel in attribution.kernels)
    if has_steps or abs(calls) <= _ALIKE * abs(attribution.unit.change):
        return ""
    counts = [sum(kernel.calls_per_unit[side] for kernel in attribution.kernels) for side in (0, 1)]
    said = f"{counts[0]:.0f} and {counts[1]:.0f} kernels and copies"
    return f"{said}: without steps, nobody can say whether a run with more of them is slower or longer"


def _tested(
    kernels: Sequence[KernelDifference], base: Sequence[RunProfile], new: Sequence[RunProfile]
) -> list[KernelDifference]:
    """Add to kernels how likely runs as different are by chance."""
    times = [[_times(run) for run in side] for side in (base, new)]
    probabilities = []
    for row in kernels:
        of_base, of_new = row.pair.base or row.pair.new, row.pair.new or row.pair.base
        sides = [
            [sum(run.get(kernel, 0.0) for kernel in those) for run in side]
            for side, those in zip(times, (of_base, of_new), strict=True)
        ]
        probabilities.append(mann_whitney(sides[0], sides[1]))
    return [replace(row, p=p) for row, p in zip(kernels, holm(probabilities), strict=True)]


def _times(run: RunProfile) -> dict[KernelIdentity, float]:
    """Return the time that each kernel adds to a unit of a run."""
    times: dict[KernelIdentity, float] = {}
    for use in run.uses:
        kernel = identity_of(use)
        times[kernel] = times.get(kernel, 0.0) + sum(use.exposed.values()) / run.scale / run.units
    return times


def _ranks(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> list[RankDifference]:
    sides = [_own(side) for side in (base, new)]
    numbers = sorted({*sides[0], *sides[1]})
    rows = []
    for number in numbers:
        known = [side.get(number, []) for side in sides]
        host = next((use.host for uses in known for use in uses), None)
        times = [fmean(use.own for use in uses) if uses else None for uses in known]
        rows.append(RankDifference(number, host, times[0], times[1]))
    return sorted(rows, key=lambda row: (-abs((row.new or 0.0) - (row.base or 0.0)), row.rank))


def _own(side: Sequence[RunProfile]) -> dict[int, list[RankUse]]:
    ranks: dict[int, list[RankUse]] = {}
    for run in side:
        for use in run.ranks:
            ranks.setdefault(use.rank, []).append(use)
    return ranks


def _findings(comparison: Comparison) -> Iterator[Finding]:
    yield _verdict(comparison)
    yield _compared(comparison)
    if comparison.subject.common:
        text = f"on both sides: {comparison.subject.common}; nothing differs from itself"
        yield Finding(text, "diff.both-sides", Verdict.UNKNOWN, Confidence.CERTAIN)
    if comparison.comparability.is_enough:
        yield from _changed_work(comparison)
        if comparison.attribution.cancels and comparison.attribution.unit.change:
            text = "parts cancel: they change by more than three times as much as the whole"
            yield Finding(text, "diff.cancels", Verdict.PROBLEM, Confidence.CERTAIN)


_OF_VERDICT = {
    ChangeVerdict.SLOWER: Verdict.PROBLEM,
    ChangeVerdict.FASTER: Verdict.NONE,
    ChangeVerdict.SAME: Verdict.NONE,
    ChangeVerdict.UNCLEAR: Verdict.UNKNOWN,
}


def _verdict(comparison: Comparison) -> Finding:
    decision, metric = comparison.decision, comparison.metric
    parts = [f"{decision.verdict}: {comparison.subject.measured}"]
    evidence: dict[str, object] = {"margin_percent": decision.margin * 100}
    if decision.ratio:
        before, after = (readable(value, metric.unit) for value in decision.medians)
        low, estimate, high = (
            (value - 1) * 100 for value in (decision.ratio.low, decision.ratio.estimate, decision.ratio.high)
        )
        ends = f"{low:+.1f}", f"{high:+.1f}"
        interval = f" [{', '.join(ends)}]" if len(set(ends)) > 1 else ""
        parts[0] += f" {before} -> {after}, {estimate:+.1f} %{interval}"
        evidence |= {"change_percent": estimate, "low_percent": low, "high_percent": high}
    parts.append(f"{comparison.subject.counted}; margin {decision.margin * 100:.3g} %")
    if decision.reason:
        parts.append(decision.reason)
    if decision.needed:
        parts.append(f"about {decision.needed} runs a side would tell")
    return Finding(
        "; ".join(parts), "diff.verdict", _OF_VERDICT[decision.verdict], decision.confidence, evidence=evidence
    )


def _of_runs(metric: DiffMetric, base: Sequence[RunProfile], new: Sequence[RunProfile]) -> Subject:
    """Return what a comparison of runs is about."""
    measured = metric.name
    if measured == STEP:
        measured = "time in which GPUs work" if base[0].unit == WINDOW else base[0].unit
    counted = "one run a side" if len(base) == len(new) == 1 else f"{len(base)} and {len(new)} runs"
    warm_up = max(run.warm_up for run in (*base, *new))
    if warm_up:
        counted += f", warm-up of {warm_up} {base[0].unit if warm_up == 1 else PLURALS[base[0].unit]} left out"
    return Subject(measured, counted, ", ".join(on_both_sides(base, new)))


def _compared(comparison: Comparison) -> Finding:
    compared = comparison.comparability
    said = "; ".join(compared.sentences) or "nothing else differs"
    text = f"{'comparable' if compared.is_enough else 'not comparable'} (score {compared.score:.2f}): {said}"
    verdict = Verdict.NONE if compared.is_enough else Verdict.UNKNOWN
    return Finding(text, "diff.comparable", verdict, Confidence.CERTAIN, evidence={"score": compared.score})


def _changed_work(comparison: Comparison) -> Iterator[Finding]:
    changed = [kernel for kernel in comparison.attribution.kernels if kernel.is_other_work]
    if changed:
        first = changed[0]
        name = kernel_name(first.pair.new[0].name).short
        more = f"; {len(changed) - 1} more kernels" if len(changed) > 1 else ""
        text = f"work changed, calls do something else: {name}: {first.launched}{more}"
        yield Finding(text, "diff.work", Verdict.PROBLEM, Confidence.CERTAIN)
