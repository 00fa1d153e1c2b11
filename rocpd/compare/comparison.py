"""Puts a comparison together: verdict, comparability, attribution, and the sentences on them.

Also finds a few steps that make up much of the difference of the means, which the deciding medians hide.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import fmean, median
from typing import NamedTuple, TypeVar

import numpy as np

from rocpd.base import UsageError, amount, frozen, percent_text
from rocpd.compare.attribution import (
    Attribution,
    KernelDifference,
    KernelIdentity,
    MatchLevel,
    attribute,
    identity_of,
    pair_kernels,
    side_of,
)
from rocpd.compare.calls import LEAST_TIME, CallDifference, compare_calls, is_other_number, numbers_said
from rocpd.compare.decision import ChangeVerdict, Decision, decide, holm, lasting_change, mann_whitney
from rocpd.compare.options import MEMORY, STEP, DiffMetric, DiffOptions
from rocpd.compare.problems import new_and_gone
from rocpd.compare.run_profile import (
    COMMUNICATION,
    COMPUTE,
    PLURALS,
    STEPS,
    WINDOW,
    RankUse,
    RunProfile,
    Runs,
    on_both_sides,
)
from rocpd.facts.communication.collectives import listed
from rocpd.facts.short_names import kernel_name
from rocpd.federate.select.filters import LEFT_OUT
from rocpd.summary.communication.verdict import RULE as STRAGGLER
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.table.human import readable

CHANGED_CALLS = "diff.calls"
"""The rule of findings on calls of the host."""

OTHER_GPU, OTHER_RECORDING = 0.6, 0.9
"""The share of the score that remains for other GPUs, and for each kind of event that one side lacks."""

_CLOCK = 0.02  # least share by which clocks differ for a sentence on it
_SHARED = 0.98  # share of the kernel time
_MOST_SETTINGS = 12
_NOT_SET = "not set"
Value = TypeVar("Value", int, str)
_WEAK = (MatchLevel.NEW, MatchLevel.GONE, MatchLevel.CATEGORY)


class _Difference(NamedTuple):
    """A difference, and the share of the score that remains with it."""

    text: str
    factor: float = 1.0


@frozen
class Comparability:
    """Whether two sides compare: the score from 0 to 1, the least score for it, and the differences in words."""

    score: float
    least: float
    sentences: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        """Whether the score is enough for a comparison."""
        return self.score >= self.least


def comparability(base: Runs, new: Runs, attribution: Attribution, least: float) -> Comparability:
    """Return whether two sides compare; they do not if the score is below `least`.

    The score is a product: of fewer ranks divided by more, 0.6 for other GPUs, 0.9 for each kind of event that one side
    lacks, 0 for other units, and the smaller share of kernel time in kernels that both sides have.
    """
    sides = base, new
    differences = [*_units(sides), *_machines(sides), *_recorded(sides), *_shared(attribution), *_clocks(sides)]
    differences += _settings(_environment(base), _environment(new))
    score = math.prod(each.factor for each in differences)
    return Comparability(score, least, tuple(each.text for each in differences if each.text))


_Sides = tuple[Runs, Runs]


def _values(sides: _Sides, of_run: Callable[[RunProfile], Iterable[Value]]) -> list[list[Value]]:
    """Return the values of the runs of each side, in order and each once."""
    return [sorted({value for run in side for value in of_run(run)}) for side in sides]


def _unlike(word: str, values: Sequence[Sequence[Value]], factor: float = 1.0) -> Iterator[_Difference]:
    """Yield the difference if values of both sides differ; for numbers it names the lowest and the highest."""
    if values[0] != values[1]:
        yield _Difference(f"{word}: {_said(values[0])} and {_said(values[1])}", factor)


def _said(values: Sequence[Value]) -> str:
    if values and isinstance(values[0], int):
        return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values)) or "-"


def _units(sides: _Sides) -> Iterator[_Difference]:
    yield from _unlike("what counts", _values(sides, lambda run: [run.selection or "all of it"]))
    kinds = _values(sides, lambda run: [run.unit])
    words = [PLURALS[kind[0]] for kind in kinds]
    if kinds[0] != kinds[1]:
        yield _Difference(f"the base has {words[0]} to compare, the other side {words[1]}", 0.0)
        return
    yield from _unlike(words[0], _values(sides, lambda run: [run.units]))
    yield from _unlike(f"{words[0]} of warm-up, left out", _values(sides, lambda run: [run.warm_up]))


def _machines(sides: _Sides) -> Iterator[_Difference]:
    ranks = _values(sides, lambda run: [run.facts.ranks])
    yield from _unlike("ranks", ranks, min(ranks[0][0], ranks[1][0]) / max(ranks[0][-1], ranks[1][-1]))
    yield from _unlike("hosts", _values(sides, lambda run: [run.facts.hosts]))
    gpus = _values(sides, lambda run: run.facts.gpus)
    yield from _unlike("GPUs", gpus, OTHER_GPU) if all(gpus) else ()
    rocm = _values(sides, lambda run: run.facts.rocm)
    yield from _unlike("ROCm", rocm) if all(rocm) else ()
    yield from _unlike("schema", _values(sides, lambda run: run.facts.versions))
    yield from _unlike("command", _values(sides, lambda run: run.facts.commands))


def _recorded(sides: _Sides) -> Iterator[_Difference]:
    kinds = [set.intersection(*(set(run.facts.recorded) for run in side)) for side in sides]
    for name in sorted(kinds[0] ^ kinds[1]):
        side = "the base" if name in kinds[0] else "the other side"
        yield _Difference(f"{name}: recorded on {side} alone", OTHER_RECORDING)


def _shared(attribution: Attribution) -> Iterator[_Difference]:
    shares = []
    for side in ("base", "new"):
        kernels = [kernel for kernel in attribution.kernels if getattr(kernel.pair, side)]
        computing = [kernel for kernel in kernels if getattr(kernel.pair, side)[0].kind == "compute"]
        total = sum(getattr(kernel, side) for kernel in computing)
        shared = sum(getattr(kernel, side) for kernel in computing if kernel.pair.level not in _WEAK)
        shares.append(shared / total if total else 1.0)
    before, after = (percent_text(share * 100) for share in shares)
    text = f"kernels that both sides have take {before} and {after} of the compute time"
    yield _Difference(text if min(shares) < _SHARED else "", min(shares))


def _clocks(sides: _Sides) -> Iterator[_Difference]:
    clocks = [[run.facts.clock_mhz for run in side if run.facts.clock_mhz] for side in sides]
    if not all(clocks):
        return
    first, second = fmean(clocks[0]), fmean(clocks[1])
    if abs(second / first - 1) > _CLOCK:
        yield _Difference(f"clocks of GPUs: {first:.0f} and {second:.0f} MHz, {(second / first - 1) * 100:+.1f} %")


def _environment(runs: Runs) -> Mapping[str, str]:
    """Return the settings of a side; a setting that differs between its runs has all of its values."""
    names = sorted({name for run in runs for name in run.facts.environment})
    values = {name: {run.facts.environment.get(name, _NOT_SET) for run in runs} for name in names}
    return {name: " or ".join(sorted(some)) for name, some in values.items()}


def _settings(base: Mapping[str, str], new: Mapping[str, str]) -> Iterator[_Difference]:
    changed = [name for name in sorted({*base, *new}) if base.get(name) != new.get(name)]
    for name in changed[:_MOST_SETTINGS]:
        before, after = (side.get(name, _NOT_SET) for side in (base, new))
        yield _Difference(f"{name}: {before} and {after}")
    if len(changed) > _MOST_SETTINGS:
        yield _Difference(f"{len(changed) - _MOST_SETTINGS} more settings of the environment differ")


_ALIKE = 0.5  # share of the kernel time, or of its change: with less, sides do other work, and times don't compare
_FEWEST = 2  # runs a side that it takes to test kernels


@frozen
class RankDifference:
    """The time of a rank without communication, per unit [ns]; None where a side lacks the rank."""

    rank: int
    host: str | None
    base: float | None
    new: float | None

    @property
    def ratio(self) -> float | None:
        """The new time as times the old one."""
        return self.new / self.base if self.base and self.new is not None else None


@frozen
class Subject:
    """The subject of a comparison, in words.

    Args:
        measured: the measured value.
        counted: numbers of the things counted on both sides.
        decision: whether it changed.
        common: things that both sides have; empty: none.
        paired: the unit by which ranks of one run are compared; empty: the sides are not ranks.
        apart: units in which both sides are far apart but alike in others; empty: none.
    """

    measured: str
    counted: str
    decision: Decision
    common: str = ""
    paired: str = ""
    apart: str = ""


@frozen
class Comparison:
    """The results of comparing two sides.

    Args:
        base, new: names of the runs of both sides.
        unit: kind of the units.
        metric: the metric that decided.
        decision: the verdict.
        comparability: whether the sides compare.
        attribution: sources of the difference of mean units.
        ranks: changes of ranks, the largest first.
        subject: the subject of the comparison.
        calls: differences of the host's calls, the largest first.
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
    calls: tuple[CallDifference, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> ChangeVerdict:
        """Whether the other side is slower."""
        return self.decision.verdict


def compare(base: Runs, new: Runs, options: DiffOptions, subject: Subject | None = None) -> Comparison:
    """Compare two sides, each of one run or several.

    Args:
        base, new: runs of both sides.
        options: the options.
        subject: the subject; None: runs.

    Raises:
        UsageError: a baseline has no such metric.
    """
    metric = options.decides
    for run in (*base, *new):
        if metric.name not in run.samples:
            raise UsageError(f"{run.name}: has no {metric.name}", f"--save-baseline with --metric {metric.name}")
    uses = [[use for run in side for use in run.uses] for side in (base, new)]
    pairs = pair_kernels(uses[0], uses[1], options.pattern())
    attribution = attribute(side_of(base), side_of(new), pairs)
    if min(len(base), len(new)) >= _FEWEST:
        attribution = replace(attribution, kernels=_tested(attribution.kernels, base, new))
    compared = comparability(base, new, attribution, options.least_score)
    subject = subject or _of_runs(base, new, options)
    decision = subject.decision
    reason = _why_not_alike(decision, attribution, metric, (base, new))
    if not compared.is_enough:
        reason = f"the two do not compare: score {compared.score:.2f}"
    if reason:
        verdict, confidence = ChangeVerdict.UNCLEAR, Confidence.HINT
        decision = replace(decision, verdict=verdict, confidence=confidence, reason=reason, needed=None)
    if subject.common and decision.confidence is Confidence.CERTAIN:  # only separate runs can make it certain
        decision = replace(decision, confidence=Confidence.LIKELY)
    names, ranks = (tuple(run.name for run in base), tuple(run.name for run in new)), tuple(_ranks(base, new))
    uses_of_calls = [run.calls for run in base], [run.calls for run in new]
    calls = compare_calls(*uses_of_calls, attribution.unit.base, is_counted=base[0].unit != WINDOW)
    comparison = Comparison(*names, base[0].unit, metric, decision, compared, attribution, ranks, subject, tuple(calls))
    return replace(comparison, findings=tuple(_findings(comparison, base, new)))


def _why_not_alike(decision: Decision, attribution: Attribution, metric: DiffMetric, sides: Sequence[Runs]) -> str:
    """Return the reason why a verdict means nothing, if the sides did other work; empty if they did the same."""
    if metric.kind == MEMORY or decision.verdict is ChangeVerdict.SAME:
        return ""
    gpus = [{run.facts.gpus for run in side} for side in sides]
    other = 1 - attribution.like_for_like
    if metric.kind == STEP and gpus[0] == gpus[1] and other > 1 - _ALIKE:  # on other GPUs, equal work has other grids
        return f"work changed: kernels with {percent_text(other * 100)} of the compute time do other work in each call"
    has_steps = any(run.unit != WINDOW for side in sides for run in side)
    calls = sum(kernel.calls for kernel in attribution.kernels)
    if has_steps or abs(calls) <= _ALIKE * abs(attribution.unit.change):
        return ""
    counts = [sum(kernel.calls_per_unit[side] for kernel in attribution.kernels) for side in (0, 1)]
    said = f"{counts[0]:.0f} and {counts[1]:.0f} kernels and copies"
    return f"{said}: without steps, nobody can say whether a run with more of them is slower or longer"


def _tested(kernels: Sequence[KernelDifference], base: Runs, new: Runs) -> list[KernelDifference]:
    """Return kernels with the probability of runs as different by chance."""
    times = [[_times(run) for run in side] for side in (base, new)]
    probabilities = []
    for row in kernels:
        pair = row.pair.base or row.pair.new, row.pair.new or row.pair.base
        sides = [[sum(run[each] for each in those) for run in side] for side, those in zip(times, pair, strict=True)]
        probabilities.append(mann_whitney(*sides))
    return [replace(row, p=p) for row, p in zip(kernels, holm(probabilities), strict=True)]


def _times(run: RunProfile) -> defaultdict[KernelIdentity, float]:
    """Return the time that each kernel adds to a unit of a run."""
    times = defaultdict[KernelIdentity, float](float)
    for use in run.uses:
        times[identity_of(use.launch)] += sum(use.exposed.values()) / run.scale / run.units
    return times


def _ranks(base: Runs, new: Runs) -> list[RankDifference]:
    ranks = defaultdict[int, tuple[list[RankUse], list[RankUse]]](lambda: ([], []))
    for number, side in enumerate((base, new)):
        for use in (use for run in side for use in run.ranks):
            ranks[use.rank][number].append(use)
    rows = []
    for rank, sides in ranks.items():
        known = [[use.works for use in uses if use.works is not None] for uses in sides]
        times = [fmean(works) if works else None for works in known]
        rows.append(RankDifference(rank, next(use.host for uses in sides for use in uses), *times))
    return sorted(rows, key=lambda row: (-abs((row.new or 0.0) - (row.base or 0.0)), row.rank))


def _findings(comparison: Comparison, base: Runs, new: Runs) -> Iterator[Finding]:
    """Yield all findings on two sides."""
    yield _verdict(comparison)
    if comparison.comparability.is_enough:
        for text in new_and_gone(*([run.problems for run in side] for side in (base, new))):
            yield Finding(text, "diff.problems", Verdict.NOTE, Confidence.LIKELY)
        yield from _changed_work(comparison)
        yield from _changed_speed(comparison)
        are_apart = _guids(base).isdisjoint(_guids(new))  # the host's work in parts of one job does not compare
        has_units = are_apart and comparison.metric.name == STEP and comparison.unit != WINDOW
        yield from _changed_number(comparison, base, new) if has_units else ()
        yield from _explained(comparison)
        yield from _changed_overlap(comparison, base, new) if has_units else ()
        yield from _changed_calls(comparison) if are_apart else ()
        yield from _critical(base, new) if are_apart else ()
        if comparison.subject.apart:
            yield Finding(comparison.subject.apart, "diff.steps", Verdict.NOTE, Confidence.CERTAIN)
        elif comparison.metric.name == STEP and (steps := outlying_steps(base, new)):
            text, is_all = steps
            grown = _grown(comparison) if is_all else ""
            yield Finding(f"{text}{grown}", "diff.steps", Verdict.NOTE, Confidence.CERTAIN)
        elif comparison.metric.name == STEP and (text := changed_since(base, new)):
            yield Finding(text, "diff.steps", Verdict.NOTE, Confidence.CERTAIN)
    if any(run.facts.left_out for run in (*base, *new)):
        is_lost = comparison.metric.kind == STEP and not any(STRAGGLER in run.problems for run in (*base, *new))
        lost = "; stragglers are not looked for" if is_lost else ""
        text = f"{LEFT_OUT}: how long a rank waits for these is not known{lost}"
        yield Finding(text, "diff.left-out", Verdict.NOTE, Confidence.CERTAIN)
    yield _compared(comparison)
    if comparison.subject.common:
        text = f"on both sides: {comparison.subject.common}; nothing differs from itself"
        yield Finding(text, "diff.both-sides", Verdict.UNKNOWN, Confidence.CERTAIN)
    if comparison.comparability.is_enough and _cancels(comparison):
        changes = sorted(_changes(comparison).items(), key=lambda part: -part[1])
        most = [f"{part} {readable(abs(by), 'ns')}" for part, by in (changes[0], changes[-1])]
        text = f"parts cancel: {most[0]} more, and {most[1]} less{_apart(comparison.ranks)}"
        yield Finding(text, "diff.cancels", Verdict.PROBLEM, Confidence.CERTAIN)


def _guids(runs: Runs) -> set[str]:
    return {guid for run in runs for guid in run.guids}


_MOST_PARTS, _MOST_OF_IT = 4, 0.8  # parts that are named; share of the change after which no more are named
_CHANCE = 0.002  # probability above which another critical rank is not said: neighbouring steps are alike, ranks many
_BY_FAR = 3  # times as much as any other rank
_CANCEL = 3  # times the difference: parts whose changes add up to more cancel each other
_AS_FACTOR = 100  # percent from which on a factor is said in place of it
_OF_VERDICT = {ChangeVerdict.SLOWER: Verdict.PROBLEM, ChangeVerdict.UNCLEAR: Verdict.UNKNOWN}


def _verdict(comparison: Comparison) -> Finding:
    decision, metric = comparison.decision, comparison.metric
    change, interval = comparison.subject.measured, ""
    evidence: dict[str, object] = {"margin_percent": decision.margin * 100}
    if decision.ratio:
        before, after = (readable(value, metric.unit) for value in decision.medians)
        ratios = [ratio for ratio in (decision.ratio.low, decision.ratio.high) if ratio is not None]
        estimate, *ends = ((ratio - 1) * 100 for ratio in (decision.ratio.estimate, *ratios))
        said = dict.fromkeys(f"{end:+.1f}" for end in ends)
        how = f"{estimate:+.1f} %"
        if estimate >= _AS_FACTOR:
            said = dict.fromkeys(f"{ratio:.1f}" for ratio in ratios)
            how = f"{decision.ratio.estimate:.1f} times as {'long' if metric.unit == 'ns' else 'much'}"
        change += f" {before} -> {after}, {how}"
        change += f" in the median {comparison.subject.paired}" if comparison.subject.paired else ""
        interval = f" [{', '.join(said)}]" if len(said) > 1 else ""
        evidence |= {"change_percent": estimate, **dict(zip(("low_percent", "high_percent"), ends, strict=False))}
    parts = [comparison.subject.counted]
    if decision.noise is not None:
        deviate = "taken to deviate" if decision.is_assumed else "deviate"
        parts[0] += f", runs {deviate} by {percent_text(max(decision.noise, 1e-4) * 100)}"
    parts.append(f"margin {decision.margin * 100:.3g} %")
    if decision.reason:
        parts.append(decision.reason)
    if decision.needed:
        parts.append(f"about {decision.needed} runs a side would tell")
    front = f"{decision.verdict}: {change}{interval}; "
    if decision.verdict is ChangeVerdict.UNCLEAR and decision.ratio and decision.noise is not None:
        # The cost in these recordings is a fact, even if it is uncertain whether other runs cost as much.
        front = f"{change} in these recordings. Unclear whether other runs differ as much{interval}: "
    verdict = _OF_VERDICT.get(decision.verdict, Verdict.NONE)
    return Finding(front + "; ".join(parts), "diff.verdict", verdict, decision.confidence, evidence=evidence)


def _of_runs(base: Runs, new: Runs, options: DiffOptions) -> Subject:
    """Return the subject of a comparison of runs."""
    name = measured = options.decides.name
    if measured == STEP:
        measured = "time in which GPUs work" if base[0].unit == WINDOW else f"median {base[0].unit}"
        if any(len(run.ranks) > 1 for run in (*base, *new)):
            measured += " of the critical rank"
    counted = "one run a side" if len(base) == len(new) == 1 else f"{len(base)} and {len(new)} runs"
    if warm_up := max(run.warm_up for run in (*base, *new)):
        counted += f", warm-up of {warm_up} {base[0].unit if warm_up == 1 else PLURALS[base[0].unit]} left out"
    values = [[run.samples[name] for run in side] for side in (base, new)]
    return Subject(measured, counted, decide(values[0], values[1], options), ", ".join(on_both_sides(base, new)))


def _compared(comparison: Comparison) -> Finding:
    compared = comparison.comparability
    said = "; ".join(compared.sentences) or "ranks, GPUs, what is recorded and settings are alike"
    text = f"{'comparable' if compared.is_enough else 'not comparable'} (score {compared.score:.2f}): {said}"
    verdict = Verdict.NONE if compared.is_enough else Verdict.UNKNOWN
    return Finding(text, "diff.comparable", verdict, Confidence.CERTAIN, evidence={"score": compared.score})


def _explained(comparison: Comparison) -> Iterator[Finding]:
    """Yield the parts that make up most of a change, and the rank that changed by far more than any other."""
    changes = _changes(comparison)
    change = sum(changes.values())
    is_asked = comparison.metric.name == STEP and comparison.verdict is not ChangeVerdict.SAME
    if not is_asked or abs(change) < _LEAST * comparison.attribution.unit.base or _cancels(comparison):
        return
    alike = {part: by for part, by in changes.items() if by * change > 0}
    ordered = sorted(alike, key=lambda part: -abs(alike[part]))
    before = accumulate((abs(alike[part]) for part in ordered), initial=0)  # sum of the parts before each
    most = [part for part, made in zip(ordered, before, strict=False) if made < _MOST_OF_IT * abs(change)]
    how = "longer" if change > 0 else "shorter"
    times = (f"{part} {readable(abs(alike[part]), 'ns')}" for part in most[:_MOST_PARTS])
    *others, last = (each + _by_overlap(comparison, part) for each, part in zip(times, most, strict=False))
    text = f"on average {readable(abs(change), 'ns')} {how}: {' and '.join(filter(None, (', '.join(others), last)))}"
    yield Finding(text + _apart(comparison.ranks), "diff.explained", Verdict.NOTE, Confidence.CERTAIN)


def _apart(ranks: Sequence[RankDifference]) -> str:
    """Return the rank, or the ranks of a host, that changed by far more than any other, in words; empty without any."""
    known = [(abs(row.new - row.base), row) for row in ranks if row.base and row.new]
    hosts = [row.host for _, row in known]
    for count in sorted({1, hosts.count(hosts[0])}) if hosts else ():
        if count < len(known) and len({*hosts[:count]}) == 1 and known[count - 1][0] > _BY_FAR * known[count][0]:
            least, most = (readable(time, "ns") for time, _ in known[count - 1 : count + 1])
            who = f"rank {known[0][1].rank}" if count == 1 else f"each of {count} ranks of {hosts[0]}"
            return f"; {who} changed by {least}{' or more' * (count > 1)}, no other rank by more than {most}"
    return ""


def _grown(comparison: Comparison) -> str:
    """Return the part that makes up most of the change of the whole, in words; empty if several do."""
    changes = _changes(comparison)
    change = sum(changes.values())
    most = max(changes, key=lambda part: changes[part] * change, default=None)
    if most is None or abs(changes[most]) < _MOST_OF_IT * abs(change):
        return ""
    how = "longer" if change > 0 else "shorter"
    return f"; mostly {most}, {readable(abs(changes[most]), 'ns')} {how}{_by_overlap(comparison, most)}"


def _by_overlap(comparison: Comparison, part: str) -> str:
    """Return that computing changes as kernels run beside each other less, or more, in words; else nothing."""
    if part != COMPUTE:
        return ""
    kernels = [each for each in comparison.attribution.kernels if (each.pair.base or each.pair.new)[0].kind == COMPUTE]
    overlap, change = sum(each.overlap for each in kernels), comparison.attribution.parts[part].change
    if overlap * change <= 0 or abs(overlap) < _MOST_OF_IT * abs(change):
        return ""
    return f" by {'less' if change > 0 else 'more'} overlap of kernels"


def _changes(comparison: Comparison) -> dict[str, int]:
    """Return the changes of the parts that count [ns]; ranks are compared by their time without communication."""
    parts = comparison.attribution.parts.items()
    changes = {part: row.change for part, row in parts if part not in COMMUNICATION}
    if comparison.subject.paired:
        return changes
    talks = {part: row.change for part, row in parts if part in COMMUNICATION}
    # As where another rank is critical, whose communication is matched, and the transfers of that of the other are not.
    if sum(map(abs, talks.values())) > _CANCEL * abs(sum(talks.values())):
        talks = {"exposed communication": sum(talks.values())}
    return changes | talks


def _cancels(comparison: Comparison) -> bool:
    """Whether parts change by far more than the whole, and what cancels is more than the margin."""
    changes = _changes(comparison).values()
    all_of_it, change = sum(map(abs, changes)), abs(sum(changes))
    least = comparison.decision.margin * comparison.attribution.unit.base
    return all_of_it > _CANCEL * change and (all_of_it - change) / 2 > least


def _with_article(comparison: Comparison) -> str:
    return f"{'an' if comparison.unit[0] in 'aeiou' else 'a'} {comparison.unit}"


_LEAST_SPEED = 0.005  # share of a unit of the base below which a change of a kernel is not named
_MOST_NAMED = 2  # kernels
_NEARLY_ALL = 0.8  # share of the time of computing kernels


def _changed_speed(comparison: Comparison) -> Iterator[Finding]:
    """Yield the kernels whose calls of equal work are longer, or shorter, on every rank: no rank is to blame."""
    attribution, margin, unit = comparison.attribution, comparison.decision.margin, _with_article(comparison)
    if comparison.subject.common or comparison.metric.name != STEP:
        return
    known = [(kernel, kernel.everywhere - 1) for kernel in attribution.kernels if kernel.everywhere]
    computing = sum(kernel.base for kernel, _ in known)
    for how, sign in (("longer", 1), ("less", -1)):
        # A rare long call can turn the sum the other way than the usual call: such a kernel did not change as a whole.
        changed = [(kernel, abs(by)) for kernel, by in known if by * sign > margin and kernel.speed * sign > 0]
        changed.sort(key=lambda each: -each[0].base * each[1])
        costs = [kernel.base * by for kernel, by in changed]
        least = _LEAST_SPEED * attribution.unit.base
        if sum(kernel.base for kernel, _ in changed) > _NEARLY_ALL * computing and sum(costs) > least:
            kernels, by = "kernels take", sum(costs) / sum(kernel.base for kernel, _ in changed)
            yield _speed(kernels, by, how, sum(costs), max(kernel.ranks for kernel, _ in changed), unit)
            continue
        for (kernel, by), cost in list(zip(changed, costs, strict=True))[:_MOST_NAMED]:
            if cost > least:
                name = kernel_name(kernel.pair.new[0].name).short
                yield _speed(f"{name} takes", by, how, cost, kernel.ranks, unit)


def _speed(kernels: str, by: float, how: str, cost: float, ranks: int, unit: str) -> Finding:
    where, each = (f" on all {ranks} ranks", " on each rank") if ranks > 1 else ("", "")
    more = "more" if how == "longer" else how
    taken = f"{1 + by:.1f} times as long" if by * 100 >= _AS_FACTOR else f"{percent_text(by * 100)} {how}"
    text = f"{kernels} {taken}{where}, at equal work: {readable(cost, 'ns')} {more} {unit}{each}"
    return Finding(text, "diff.speed", Verdict.NOTE, Confidence.CERTAIN)


_OTHER_SHARE, _LEAST_OVERLAP = 5.0, 0.02  # percent of communication; of a unit


def _changed_number(comparison: Comparison, base: Runs, new: Runs) -> Iterator[Finding]:
    """Yield the kernels that ranks call more or less often, on average of all ranks."""
    unit = _with_article(comparison)
    changed = []
    for kernel in comparison.attribution.kernels:
        before, after = (
            fmean(sum(run.numbers_of_calls.get(each.name, 0.0) for each in pair) for run in runs)
            for runs, pair in ((base, kernel.pair.base), (new, kernel.pair.new))
        )
        critical, _ = kernel.calls_per_unit
        cost = (after - before) * kernel.base / critical if critical else kernel.change
        if is_other_number(before, after) and abs(cost) > LEAST_TIME * comparison.attribution.unit.base:
            pair = kernel.pair.new or kernel.pair.base
            name, said = kernel_name(pair[0].name).short, numbers_said(before, after)
            time = f"{readable(abs(cost), 'ns')} {'more' if cost > 0 else 'less'}"
            changed.append((abs(cost), f"{name}: {said} calls {unit} and rank, {time}"))
    for _, text in sorted(changed, reverse=True)[:_MOST_NAMED]:
        yield Finding(text, "diff.number", Verdict.NOTE, Confidence.CERTAIN)


def _changed_overlap(comparison: Comparison, base: Runs, new: Runs) -> Iterator[Finding]:
    """Yield how much less, or more, communication is hidden by other work, on average of all ranks."""
    sides = [[fmean(run.communication[at] for run in runs) for at in (0, 1)] for runs in (base, new)]
    if not all(every for every, _ in sides):
        return
    before, after = (hidden * 100 / every for every, hidden in sides)
    less = sides[0][1] - sides[1][1]
    if abs(before - after) >= _OTHER_SHARE and abs(less) > _LEAST_OVERLAP * comparison.attribution.unit.base:
        how = f"{readable(abs(less), 'ns')} {'less' if less > 0 else 'more'}"
        text = f"compute hides {how} of communication {_with_article(comparison)}, on average of the ranks"
        yield Finding(text, "diff.overlap", Verdict.NOTE, Confidence.CERTAIN)


_MOST_CALLS = 3  # functions


def _changed_calls(comparison: Comparison) -> Iterator[Finding]:
    """Yield the functions that the host calls more or less often, or whose calls take far longer or less."""
    for call in [call for call in comparison.calls if call.is_changed][:_MOST_CALLS]:
        yield Finding(call.said(_with_article(comparison)), CHANGED_CALLS, Verdict.NOTE, Confidence.CERTAIN)


def _critical(base: Runs, new: Runs) -> Iterator[Finding]:
    """Yield the change of the critical rank, if a rank is critical in most units of a side, and chance is no reason."""
    units = ([Counter({use.rank: use.critical for use in run.ranks}) for run in runs] for runs in (base, new))
    sides = [sum(of_runs, Counter[int]()) for of_runs in units]
    totals = [side.total() for side in sides]
    if not all(totals) or base[0].unit == WINDOW:
        return
    (before, of_base), (after, of_new) = (side.most_common(1)[0] for side in sides)
    if before == after:
        return
    mainly = [rank for rank, is_main in ((before, of_base * 2 > totals[0]), (after, of_new * 2 > totals[1])) if is_main]
    chances = [_by_chance([side[rank] for side in sides], totals) for rank in mainly]
    if min(chances, default=1.0) <= _CHANCE:
        there = f"rank {before} in {of_base} of {totals[0]} {PLURALS[base[0].unit]} of the base"
        text = f"the critical rank is {there}, rank {after} in {of_new} of {totals[1]} now"
        yield Finding(text, "diff.critical", Verdict.NOTE, Confidence.CERTAIN)


def _by_chance(counts: Sequence[int], of: Sequence[int]) -> float:
    """Return the probability of counts as far apart or farther in their direction, by Fisher's exact test."""
    more = int(counts[1] * of[0] > counts[0] * of[1])
    every, taken, drawn = sum(of), sum(counts), of[more]
    ways = every_way = math.comb(taken, counts[more]) * math.comb(every - taken, drawn - counts[more])
    for n in range(counts[more], min(taken, drawn)):  # from one number to the next: anew, long runs would take minutes
        ways = ways * (taken - n) * (drawn - n) // ((n + 1) * (every - taken - drawn + n + 1))
        every_way += ways
    return every_way / math.comb(every, drawn)


def _changed_work(comparison: Comparison) -> Iterator[Finding]:
    if changed := [kernel for kernel in comparison.attribution.kernels if kernel.is_other_work]:
        first = changed[0]
        name = kernel_name(first.pair.new[0].name).short
        more = f"; {amount(len(changed) - 1, 'more kernel')}" if len(changed) > 1 else ""
        text = f"work changed, calls do something else: {name}: {first.launched}{more}"
        yield Finding(text, "diff.work", Verdict.PROBLEM, Confidence.CERTAIN)


_LEAST = 0.01  # share of the mean of the base below which a change is not explained
_LONGER, _DEVIATIONS = 0.05, 6  # share of the median, and median deviations, that outliers lie above the median
_FEWEST, _MOST = 4, 1 / 3  # steps that it takes to find outliers; largest share of outliers among steps
_EXPLAINED, _MUCH = 0.7, 0.2  # shares of the change: of outliers that explain it, and of those that are worth saying
_MOST_SAID = 3  # steps whose time is given
_ELSEWHERE = 0.2  # share of these outliers' time: outliers of the other side may have no more


@frozen
class LongSteps:
    """The steps of a run that are far longer than most of it.

    Args:
        times: number of each -> its time [ns].
        excess: time by which they lengthen a step on average, beyond that of the same steps on the other side [ns].
        usual: the median of all steps [ns].
    """

    times: Mapping[int, float]
    excess: float
    usual: float


def long_steps(run: RunProfile, others: Runs = ()) -> LongSteps:
    """Return the steps of a run that stand out, and less so in `others`; the first step counts as warm-up."""
    usual, longer = median(run.samples[STEP]), _longer(run)
    least = max(_LONGER * usual, _DEVIATIONS * median(map(abs, longer.values())))
    for other in others:  # a step that stands out there as well may be longer by as much, or by the same share
        factor = max(1.0, usual / (median(other.samples[STEP]) or usual))
        for number, time in _longer(other).items():
            if number in longer:
                longer[number] -= factor * max(0.0, time) / len(others)
    chosen = [number for number in run.numbers[1:] if longer[number] > least]
    if run.units < _FEWEST or len(chosen) > _MOST * run.units:
        chosen = []
    taken = dict(zip(run.numbers, run.samples[STEP], strict=True))
    excess = sum(longer[number] for number in chosen) / run.units
    return LongSteps({number: taken[number] for number in chosen}, excess, usual)


def _longer(run: RunProfile) -> dict[int, float]:
    """Return how much longer than the median each step of a run takes [ns]."""
    times = run.samples[STEP]
    usual = median(times)
    return {number: time - usual for number, time in zip(run.numbers, times, strict=True)}


def outlying_steps(base: Runs, new: Runs) -> tuple[str, bool] | None:
    """Return a sentence on a few steps of one side that make up much of the difference of the means; whether most."""
    sides = base, new
    if any(run.unit != STEPS or len(run.samples[STEP]) != run.units for side in sides for run in side):
        return None  # runs of a history have only medians
    before, after = (fmean(fmean(run.samples[STEP]) for run in side) for side in sides)
    change, side = after - before, sides[after > before]
    long = [[long_steps(run, others) for run in each] for each, others in ((base, new), (new, base))]
    here, elsewhere = (fmean(some.excess for some in long[is_own]) for is_own in (after > before, after <= before))
    share = here / abs(change) if change else 0.0
    if abs(change) < _LEAST * before or share < _MUCH or elsewhere > _ELSEWHERE * here:
        return None
    which = [(run, some) for run, some in zip(side, long[after > before], strict=True) if some.times]
    names = " and ".join(_named(some) + (f" of {run.name}" if len(side) > 1 else "") for run, some in which)
    steps = [step for _, some in which for step in some.times.items()]
    usual, of_base = median(some.usual for _, some in which), "" if after > before else " of the base"
    verb, taken = ("makes", f"it takes {readable(steps[0][1], 'ns')}") if len(steps) == 1 else ("make", _taken(steps))
    hidden = "which medians hide" if share >= _EXPLAINED else "and the verdict leaves that out"
    text = (
        f"{names}{of_base} {verb} {min(share, 1.0) * 100:.0f} % of the difference of the means, {hidden}: "
        f"{taken}, the median is {readable(usual, 'ns')}"
    )
    return text, share >= _EXPLAINED


def changed_since(base: Runs, new: Runs) -> str:
    """Return since which step a run is slower, or faster, than before; empty where a run of the other side is, too."""
    first, second = _changes_within(base, " of the base"), _changes_within(new, "")
    changes = [text for one, other in ((first, second), (second, first)) for at, text in one.items() if at not in other]
    return "; ".join(changes[:_MOST_SAID])


def _changes_within(side: Runs, alone: str) -> dict[int, str]:
    """Return step -> words for the lasting change that begins at it in a run; `alone` names the only run of a side."""
    changes = {}
    for run in (run for run in side if run.unit == STEPS and len(run.samples[STEP]) == run.units):
        times = run.samples[STEP]
        if at := lasting_change(np.log(np.maximum(times, 1))):
            before, after = median(times[:at]), median(times[at:])
            where = alone if len(side) == 1 else f" of {run.name}"
            taken = f"takes {readable(after, 'ns')}, before {readable(before, 'ns')}"
            change = f"{(after / before - 1) * 100:+.1f} % since then"
            changes[run.numbers[at]] = f"from step {run.numbers[at]}{where} on a step {taken}: {change}"
    return changes


def _taken(steps: Sequence[tuple[int, float]]) -> str:
    """Return the times of several steps in words, for many steps those of the longest."""
    (first, time), *rest = sorted(steps, key=lambda step: -step[1])[:_MOST_SAID]
    more = "".join(f", step {number} {readable(also, 'ns')}" for number, also in rest)
    return f"step {first} takes {readable(time, 'ns')}{more}"


def _named(some: LongSteps) -> str:
    return f"step{'' if len(some.times) == 1 else 's'} {listed([*some.times]).replace(',', ', ')}"
