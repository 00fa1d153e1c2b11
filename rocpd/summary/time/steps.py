"""Steps by their marker: how long they take, how much that spreads, and why the slowest ones take longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Ints, Row
from rocpd.facts.agent_time import CAUSES, AgentTime, read_agent_times, read_history
from rocpd.facts.columns import grouped
from rocpd.facts.operations import OperationNames, Ops
from rocpd.facts.rank import By, Key, RankReading, key_of
from rocpd.facts.regions import RankSteps
from rocpd.facts.spread import Spread
from rocpd.facts.timeline import KINDS, covered
from rocpd.facts.units import RankTime
from rocpd.federate.open.identify import Rank
from rocpd.federate.select.align import Shift
from rocpd.summary.grouping import order_of
from rocpd.summary.reading import statistics

IDLE = "idle"
PARTS = (*KINDS, IDLE)
"""What a step consists of, as `agent_time.PARTS`."""

_SLOW = 1.2  # times the median
_MOST, _USUAL = 4, 15  # steps that are looked at, and that they are compared with
_FEWEST = 4  # steps of a rank


@frozen
class Growth:
    """What grew most in a step, beside the median of usual ones of its rank.

    Args:
        part: `compute`, `communication`, `copy` or `idle`.
        time: by how much [ns].
        what: kernel, copy, or what the host did meanwhile, that grew most of it; None: nothing of it is known.
        own: by how much all but communication grew, in which ranks wait for each other [ns].
    """

    part: str
    time: int
    what: str | None
    own: int


def growths(
    reading: RankReading, ops: Ops, names: OperationNames, kinds: Ints, steps: Mapping[tuple[str, int], tuple[int, int]]
) -> dict[tuple[str, int], Growth]:
    """Return slow steps of a rank -> what grew most.

    Args:
        reading: reads the rank.
        ops: its operations.
        names: names of these.
        kinds: what each does, as `kinds_of`.
        steps: text and number -> start and length [ns].
    """
    keys = sorted(steps, key=lambda key: steps[key])
    start, length = (np.array([steps[key][n] for key in keys], np.int64) for n in (0, 1))
    slow, usual = _chosen(length)
    if not slow or not len(ops):
        return {}
    compared = _Compared(start[[*slow, *usual]], (start + length)[[*slow, *usual]], len(slow))
    whole = RankTime(int(start.min()), int((start + length).max()))
    spent = list(read_agent_times(reading, whole, ops, kinds))
    times = {part: np.sum([_in_steps(each, part, compared) for each in spent], axis=0) for part in PARTS}
    causes: dict[tuple[int, str | None], Ints] = {}
    result = {}
    for at, step in enumerate(slow):
        more = {part: compared.more(of_part, at) for part, of_part in times.items()}
        part = max(more, key=lambda name: more[name])
        if part == IDLE:
            causes = causes or _idle_by_cause(reading, ops, kinds, compared)
            what = _most_idle(causes, compared, at)
        else:
            what = _grown_in(ops.take(np.flatnonzero(kinds == PARTS.index(part))), names, compared, at)
        result[keys[step]] = Growth(part, more[part], what, sum(more.values()) - more["communication"])
    return result


@frozen
class _Compared:
    """Steps of one rank: first the slow ones, then usual ones.

    Args:
        start, end: of each [ns].
        slow: how many are slow.
    """

    start: Ints
    end: Ints
    slow: int

    def more(self, times: Sequence[int] | Ints, at: int) -> int:
        """Return how much more one step has than the usual ones; `times`: of each."""
        return int(times[at] - np.median(times[self.slow :]))


def _chosen(length: Ints) -> tuple[list[int], list[int]]:
    """Return the numbers of the slowest steps, where they are slow, and of usual ones."""
    if len(length) < _FEWEST:
        return [], []
    typical = float(np.median(length))
    slow = [int(at) for at in np.argsort(-length, kind="stable")[:_MOST] if length[at] > _SLOW * typical]
    nearest = np.argsort(np.abs(length - typical), kind="stable")
    return slow, [int(at) for at in nearest if at not in slow][:_USUAL]


def _in_steps(spent: AgentTime, part: str, compared: _Compared) -> Ints:
    """Return the time of an agent in each step that is one part."""
    some = spent.take(spent.part == PARTS.index(part))
    times = some.start, some.end
    return covered(times, compared.end) - covered(times, compared.start)


def _grown_in(ops: Ops, names: OperationNames, compared: _Compared, at: int) -> str | None:
    """Return the operation whose sum of durations grew most."""
    sums = np.zeros((len(names.texts), len(compared.start)), np.int64)
    for step, (low, high) in enumerate(zip(compared.start.tolist(), compared.end.tolist(), strict=True)):
        inside = np.flatnonzero((ops.start >= low) & (ops.start < high))
        np.add.at(sums[:, step], ops.name[inside], ops.duration[inside])
    more = [compared.more(of_name, at) for of_name in sums]
    return names.texts[int(np.argmax(more))] if more and max(more) > 0 else None


def _idle_by_cause(
    reading: RankReading, ops: Ops, kinds: Ints, compared: _Compared
) -> dict[tuple[int, str | None], Ints]:
    """Return cause and call or marker -> idle time in each step, of all agents."""
    names = read_history(reading).names
    whole = RankTime(int(compared.start.min()), int(compared.end.max()))
    sums: dict[tuple[int, str | None], Ints] = {}
    for spent in read_agent_times(reading, whole, ops, kinds, causes=True):
        idle = spent.idle()
        for (cause, what), rows in grouped([idle.cause, idle.what]):
            times = idle.start[rows], idle.end[rows]
            key = cause, None if what == NULL else names.texts[what]
            sums[key] = sums.get(key, 0) + covered(times, compared.end) - covered(times, compared.start)
    return sums


def _most_idle(sums: Mapping[tuple[int, str | None], Ints], compared: _Compared, at: int) -> str | None:
    """Return what the host did meanwhile, that grew most."""
    if not sums:
        return None
    cause, name = max(sums, key=lambda key: compared.more(sums[key], at))
    return f"{CAUSES[cause]}: {name}" if name else CAUSES[cause]


_CLEARLY = 0.01  # longer


@dataclass
class Phase:
    """Markers whose texts differ in numbers only; ranks are added in place, which copying sums would make quadratic.

    Args:
        spreads: their durations on each rank [ns].
        totals: the sum of these by division.
        gpu: time of the operations that were launched in them [ns].
    """

    spreads: list[Spread] = field(default_factory=list)
    totals: Counter[Key] = field(default_factory=Counter)
    gpu: int = 0


@dataclass
class Steps:
    """Times of steps and phases by rank or host, where a step takes as long as on the rank that takes longest.

    Args:
        by: what is compared.
        warm: numbers of the steps that are warm-up.
    """

    by: By
    warm: frozenset[int] = frozenset()
    steps: dict[tuple[str, int], dict[Key, int]] = field(default_factory=dict)
    first: dict[tuple[str, int], int] = field(default_factory=dict)
    cut: set[tuple[str, int]] = field(default_factory=set)
    warm_up: set[tuple[str, int]] = field(default_factory=set)
    phases: dict[str, Phase] = field(default_factory=dict)
    growths: dict[tuple[str, int], tuple[int, Growth]] = field(default_factory=dict)

    def add(self, rank: Rank, added: RankSteps, gpu: Mapping[str, int], shift: Shift) -> None:
        """Add those of a rank.

        Args:
            rank: the rank.
            added: its steps and phases.
            gpu: phase -> time of the operations that were launched in it [ns].
            shift: makes its times count from the start of the time line.
        """
        key = key_of(self.by, rank)
        for step, (start, length) in added.steps.items():
            times = self.steps.setdefault(step, {})
            times[key] = max(length, times.get(key, 0))
            self.first.setdefault(step, shift.to_line(start))
        self.cut |= added.cut
        self.warm_up |= added.of(self.warm)
        for text, spread in added.phases.items():
            phase = self.phases.setdefault(text, Phase())
            phase.spreads.append(spread)
            phase.totals[key] += spread.moments.total
            phase.gpu += gpu.get(text, 0)

    def add_growths(self, rank: Rank, growths: Mapping[tuple[str, int], Growth]) -> None:
        """Add what grew in slow steps of a rank: of each step that rank counts on which most grew."""
        for step, growth in growths.items():
            known = self.growths.get(step)
            if known is None or growth.own > known[1].own:
                self.growths[step] = rank.number, growth

    def step_rows(self, slow: Mapping[tuple[str, int], Key]) -> list[Row]:
        """One row per step, the longest first; `over_median` compares with whole ones that are no warm-up.

        Args:
            slow: who was slow in a step, where that shows; else the one whose marker is clearly longest.
        """
        means = {step: sum(times.values()) / len(times) for step, times in self.steps.items()}
        whole = [mean for step, mean in means.items() if step not in self.cut | self.warm_up]
        typical = median(whole) if whole else 0
        rows = []
        for step, times in self.steps.items():
            least, most = min(times.values()), max(times.values())
            over = means[step] / typical if typical and step not in self.cut else None
            spread = (means[step], least, most, most - least)
            rows.append(
                (
                    *(*step, self.first[step], len(times), *spread),
                    *(slow.get(step) or _slowest(times, _CLEARLY)),
                    over,
                    *self._grown(step),
                    int(step in self.warm_up),
                )
            )
        return sorted(rows, key=lambda row: (-row[4], row[2], row[0], row[1]))

    def _grown(self, step: tuple[str, int]) -> Row:
        if step not in self.growths:
            return None, None, None, None
        rank, growth = self.growths[step]
        return growth.part, growth.time, growth.what, rank

    def phase_rows(self) -> list[Row]:
        """One row per phase, most time first; imbalance is the largest rank total by the mean of rank totals."""
        rows = []
        for text, phase in self.phases.items():
            totals = phase.totals
            imbalance = max(totals.values()) * len(totals) / totals.total()
            rows.append(
                (text, len(totals), *statistics(Spread.sum(phase.spreads)), *_slowest(totals), imbalance, phase.gpu)
            )
        return sorted(rows, key=lambda row: (-row[3], row[0]))


def _slowest(times: Mapping[Key, int], margin: float = 0.0) -> Key:
    """Return whose time is longest; NULL where the next is as long, or shorter by less than the margin."""
    first, *others = sorted(times, key=lambda key: (-times[key], order_of(key)))
    is_clear = not others or times[first] - times[others[0]] > margin * times[first]
    return first if is_clear else (None,) * len(first)
