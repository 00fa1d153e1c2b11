"""The predicted length of a step had something been different: the replay of the changed job, with bounds.

The prediction is for the recorded steps, not for steps to come. Its bounds cover what a replay cannot know:

- inferred waits that were hardly ever seen to bind, with and without them; waits that never bind, but might with other
  times; copies that overlap, and what removed calls waited for, needed at once or not;
- pauses that nothing explains: they stay, or shrink with the work that they belong to;
- usual times, estimated from steps and ranks that differ: by resampling of blocks of steps (for neighbouring steps are
  alike), and from how far other ranks lie apart; the work that no other rank does may be longer, too;
- waits that are not known, of hosts without calls or in communication without known partners: all of them may be waits
  for the removed time;
- the error of the model: replays of simulated jobs, whose true times are known, are off by some percent of the change;
  and the distance of clocks, where a rank on another clock may be waited for instead.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import Ints, Progress, RocpdError, UsageError, by_key, frozen, percent_text
from rocpd.base.stages import Stage, Stages
from rocpd.facts.timeline import COMPUTE, COPIES
from rocpd.facts.units import read_first, steps_of_ranks, warm_steps
from rocpd.federate.federation import Federation
from rocpd.replay.answer import Binding, Prediction, WhatIf
from rocpd.replay.blame import Blaming
from rocpd.replay.chance import MODEL, errors_to_bound
from rocpd.replay.changes import FREE, OVERLAPPED, Change, Changing, Verb, in_ns, of_cause
from rocpd.replay.denied import HIDDEN_HOST
from rocpd.replay.excess import excess
from rocpd.replay.graph import INSIDE
from rocpd.replay.job import WELL_MATCHED, JobGraph, read_job
from rocpd.replay.points import Edge, Point
from rocpd.replay.unmatched import may_wait
from rocpd.replay.waits import without_doubtful
from rocpd.schema.rules.kernel_categories import Categories
from rocpd.schema.rules.steps import STEP_MARKER, folded

_FEWEST = 2  # steps that count
_NORMAL = 1.4826  # factor from a median distance to a standard deviation
_MORE = 1.25  # work that compares with nothing may have an excess of so many times that of the rest
_COSTS = 0.01  # share of a step that a call or a gap costs besides the causes
_MOST_RANKS = 64  # ranks that are replayed without one by one
_LARGE = 0.1  # share of a step that it waits for a part: then the step is replayed without the part
_CLEARLY = 1.2  # times the gain of free launches: with more, the gain of free host work is shown as well
_REGAINED = 0.25  # share of the part's time that a shown change saves at least
_PASSES = 4  # passes over each question at most: as asked, and with the bounds on up to three graphs
_COMPARED = ("straggler", "rank", "host", "link")
"""Kinds of changes whose excess is estimated by comparing ranks."""

_OF_PARTS = {
    "copies": (OVERLAPPED["copies"],),
    "communication": (OVERLAPPED["comm"], FREE["collective"]),
    "host": (FREE["launch"], FREE["host"]),
}
"""Part of the time that a step waits -> the changes to try, in this order: a feasible one, else the most it can gain.

For the host, launches alone; and all its work where that saves clearly more.
"""

_RECORD = "rocpd summary trace JOB says what is not recorded"
_UNSEEN = "of some ranks no launching calls are known, so that hosts seem to work while they wait for GPUs"
_FAR_MORE = 2.0  # times the gain by a replay: what may be gained unseen
_ONCE = (Stage.FIRST, Stage.GRAPHS, Stage.ANEW)
STAGES = {**dict.fromkeys(_ONCE, 1), Stage.CAUSES: 3}
"""The stages of a question without changes, of a job with two causes."""


@frozen
class _Trial:
    """Changes to try, and their bounds.

    Args:
        asked: the changes.
        predicted: length of a step with them, by a replay [ns].
        least, most: change -> lower and upper bound of the share of its excess that is likely to go.
        also: further time that points may lose [ns].
    """

    asked: tuple[Change, ...]
    predicted: float
    least: Mapping[Change, float]
    most: Mapping[Change, float]
    also: Ints


class Replays:
    """A job that is read once and replayed with changes."""

    def __init__(self, job: JobGraph, steps: Sequence[int], *, has_steps: bool = True) -> None:
        """Take a graph, and the numbers of the steps that count; without steps the whole job is the only step."""
        self.job, self.steps, self.has_steps = job, tuple(steps), has_steps
        self.blaming = Blaming(job, steps, excess(job, steps, are_pieces=not has_steps))
        self.blame = self.blaming.blame()
        self._known: dict[Callable[[JobGraph], JobGraph], JobGraph] = {}
        self._predicted: dict[tuple[Change, ...], Prediction] = {}
        job.give_back()

    @functools.cached_property
    def _exact(self) -> Changing:
        return Changing(self.job, self.blaming, self.blame.causes)

    def _graphs(self) -> Iterator[JobGraph]:
        """Yield the job, then without doubtful waits, then with hidden ones, if it has these.

        The graphs of a large job are made anew each time: memory has room for only one of them.
        """
        yield self.job
        for make in (without_doubtful, JobGraph.cautious):
            graph = self._known.get(make) or make(self.job)
            if not self.job.is_large:
                self._known[make] = graph
            if graph is not self.job:
                yield graph

    def causes(self) -> list[Change]:
        """Return the changes that take away each cause, each slow step, and calls and gaps that cost time."""
        blamed = [*(self.blame.causes if self.blame.is_matched else ()), *self.blame.slow.values()]
        causes = list(dict.fromkeys(map(of_cause, blamed)))
        least = _COSTS * self.blaming.step_ns
        usual = self._step(self._exact.applied(causes).replay()) - least
        every = self._exact.long_on_host(round(least * len(self.steps)))
        costs = [change for change in every if self._step(self._exact.applied([*causes, change]).replay()) <= usual]
        return [*causes, *costs]

    def _of_parts(self, causes: Sequence[Change]) -> Iterator[Change]:
        """Yield, for each large part of the time a step waits once some causes are gone, the change that saves much."""
        job = self._exact.applied(causes)
        times = job.replay()
        usual, waits = self._step(times), by_key((bind.part, bind.time) for bind in self._binds(job, times))
        long = {part: sum(some) for part, some in waits.items() if sum(some) >= _LARGE * usual}
        for part in (part for part in _OF_PARTS if part in long):
            least = _REGAINED * long[part]
            for change in _OF_PARTS[part]:
                with suppress(RocpdError, OverflowError):  # nothing of that kind is recorded, or times are damaged
                    regained = usual - self._step(self._exact.applied([*causes, change]).replay())
                    if regained >= least:
                        yield change
                        if part != "host":
                            break
                        least = _CLEARLY * regained

    def _of_waits(self, causes: Sequence[Change]) -> Iterator[Change]:
        """Yield the changes that take away calls that wait for operations, where each alone makes steps shorter.

        They are no causes: the work that they wait for may be needed.
        """
        least = _COSTS * self.blaming.step_ns
        for change in self._exact.long_waits(round(least * len(self.steps))):
            if change not in causes:
                regained = self.blaming.step_ns - self._step(self._exact.applied([change]).replay())
                if regained >= least:
                    yield change

    def tried(self, course: Stages) -> list[Prediction]:
        """Return the gain of each cause alone, the largest first; then of parts and waits; the last is all causes.

        Args:
            course: the stages of the command.

        Raises:
            RocpdError: times are damaged.
        """
        causes = self.causes()
        every = [*([change] for change in (*causes, *self._of_parts(causes), *self._of_waits(causes))), causes]
        with course.during(Stage.CAUSES, len(every)) as planned:
            *each, together = self._predictions(every, partial(course.step, planned))
        return [*sorted(each, key=lambda one: (one.changes[0] not in causes, one.predicted_step_ns)), together]

    def held_up_by(self, marker: str) -> list[int]:
        """Return the ranks whose host work in a marker holds up the job even if only they do it.

        All ranks may do such work, and ranks that wait for others anyway lose nothing by it. Nothing for many ranks.
        """
        job, name = self.job, INSIDE + folded(marker)
        if name not in job.names or len(self.blaming.ranks) > _MOST_RANKS:
            return []
        is_inside = self.blaming.counts & (job.points.name == job.names.index(name))
        work = np.where(is_inside, job.points.work, 0)
        least = self._step(job.replay_without(work))
        costs = self.blaming.step_ns - least
        alone = {rank: np.where(job.rank == rank, 0, work) for rank in self.blaming.ranks}
        return [r for r, less in alone.items() if (self._step(job.replay_without(less)) - least) * 2 > costs > 0]

    def predict(self, asked: Sequence[Change]) -> Prediction:
        """Return the predicted length of a step with some changes.

        Raises:
            RocpdError: a change names nothing in the job, times are damaged, or the replay contradicts the recording.
        """
        (prediction,) = self._predictions([asked])
        compared, denied = [change for change in prediction.changes if _is_compared(change)], self.blame.denied
        of_ranks = [change for change in compared if change.kind in ("rank", "host")]
        if denied and not denied.regains and not denied.most and of_ranks:
            raise RocpdError(f"not known: {denied}", _RECORD)
        if len(of_ranks) == len(prediction.changes) and prediction.gain < _COSTS and self._hide_host(of_ranks):
            _, most = prediction.gains
            is_open = most >= max(_FAR_MORE * prediction.gain, _COSTS)
            by_gpus = f", up to {percent_text(most * 100)} of a step by what GPUs take longer"
            why = f"{by_gpus}: {_UNSEEN}" if is_open else f": {HIDDEN_HOST}"
            raise RocpdError(f"not known{why}", _RECORD)
        if not self.blaming.sees_hosts and (up_to := self._at_stake(prediction)):
            raise RocpdError(f"{prediction}: not known{up_to}: {_UNSEEN}", _RECORD)
        if len(compared) == len(prediction.changes) and -prediction.gain > _COSTS:
            text = f"{prediction}: not known: a replay says that it would take longer without, which cannot be"
            raise RocpdError(text, _RECORD)
        return prediction

    def _at_stake(self, prediction: Prediction) -> str:
        """Return how much other times or overlap may gain, in words, where no hosts are seen; empty: about as said."""
        scaled = [change for change in prediction.changes if change.verb is not Verb.WITHOUT]
        if any(change.kind == "host" for change in scaled):
            return " at all"
        most = self.blaming.at_most(self._exact.at_stake(scaled)) / self.blaming.step_ns
        is_open = most >= max(_FAR_MORE * abs(prediction.gain), _COSTS)
        return f", up to {percent_text(most * 100)} of a step" if is_open else ""

    def _hide_host(self, changes: Sequence[Change]) -> bool:
        """Whether the host of a rank that changes take away may be late unseen, at a cost that no replay shows."""
        ranks = {rank for change in changes for rank in self._exact.ranks_of(change)}
        return self.blame.hides_hosts and not ranks <= self.job.launching

    def _predictions(
        self, every: Sequence[Sequence[Change]], hear: Progress = lambda _done, _of: None
    ) -> list[Prediction]:
        """Return the predicted length of a step with each set of changes; `hear` is called with the progress.

        Raises:
            RocpdError: a change names nothing in the job, or times are damaged.
        """
        lacking = dict.fromkeys(asked for asked in map(tuple, every) if asked not in self._predicted)
        try:
            trials, done, of = [], itertools.count(1), _PASSES * len(lacking)
            for asked in lacking:
                trials.append(self._trial(asked))
                hear(next(done), of)
            lengths: list[list[float]] = [[] for _ in trials]
            for graph in self._graphs():
                changing = self._exact.on(graph)
                for trial, some in zip(trials, lengths, strict=True):
                    some += self._within(changing, trial)
                    hear(next(done), of)
        except OverflowError as error:
            raise RocpdError("times add up to more than 292 years", "rocpd info JOB says what is damaged") from error
        for asked, trial, some in zip(lacking, trials, lengths, strict=True):
            self._predicted[asked] = self._prediction(trial, some)
        return [self._predicted[tuple(asked)] for asked in every]

    def bound(self, prediction: Prediction) -> Prediction:
        """Return a prediction with the parts that a step then waits for."""
        job = self._exact.applied(prediction.changes)
        return replace(prediction, binds=tuple(self._binds(job, job.replay())))

    def _trial(self, asked: Sequence[Change]) -> _Trial:
        """Return the replay of some changes, and the bounds of the time that they take away."""
        asked = self._exact.resolved(asked)
        off = {change: self._uncertainty(change) for change in asked if _is_compared(change)}
        least, most = ({change: 1 + side * share for change, share in off.items()} for side in (-1, 1))
        also = self._alike(asked)
        return _Trial(tuple(asked), self._step(self._exact.applied(asked).replay()), least, most, also)

    def _within(self, changing: Changing, trial: _Trial) -> Iterator[float]:
        """Yield the length of a step with the least and the most taken away, with the waits of one graph [ns]."""
        yield self._step(changing.applied(trial.asked, trial.least, is_waited=True).replay())
        yield self._step(changing.applied(trial.asked, trial.most, trial.also, is_elastic=True).replay())

    def _prediction(self, trial: _Trial, lengths: Sequence[float]) -> Prediction:
        """Return the prediction for some changes; `lengths`: possible lengths of a step with them [ns]."""
        asked, predicted, every = trial.asked, trial.predicted, (trial.predicted, *lengths)
        noise = self._noise(asked) + max(MODEL * abs(self.blaming.step_ns - predicted), self._between_clocks(asked))
        shortest = min(every)
        if all(map(_is_compared, asked)) and not (self.job.matched >= WELL_MATCHED and self.blaming.sees_hosts):
            shortest = min(predicted, self._at_least(asked, trial.most))
        if not self.blaming.sees_hosts and self.has_steps and (longer := self._beyond_typical(asked)):
            shortest = min(shortest, self.blaming.step_ns - longer)
        bounds = max(0.0, shortest - noise), max(every) + noise
        about = tuple(self._exact.about(change, asked) for change in asked)
        return Prediction(asked, self.blaming.step_ns, predicted, *bounds, about)

    def _step(self, times: Ints) -> float:
        return self.blaming.spent(times) / max(1, len(self.steps))

    def _alike(self, asked: Sequence[Change]) -> Ints:
        """Return the likely excess of points that compare with no other rank, by that of the rank's other points [ns].

        They may be waited for more than the others: the last stage of a pipeline alone computes the loss. And
        communication with unknown partners may wait for these ranks.
        """
        points, beyond, counts = self.job.points, self.blaming.beyond, self.blaming.counts
        also = np.zeros(len(points), np.int64)
        for change in asked:
            if not _is_compared(change) or change.kind == "link":
                continue
            less = self._exact.excess(change)
            ranks = np.unique(self.job.rank[less.nonzero()[0]])
            rows = (counts & np.isin(self.job.rank, ranks) & (self.blaming.what == 0)).nonzero()[0]
            is_known = np.isin(beyond.of_units(beyond.units.place, rows), beyond.places_of_others(ranks))
            known, alone = rows[is_known], rows[~is_known]
            share = max(0.0, less[known].sum() / max(1, points.work[known].sum()))
            also[alone] = np.maximum(also[alone], in_ns(points.work[alone] * min(1.0, _MORE * share)))
            for waits in may_wait(self.job, counts, self.blaming.at, less):
                also = np.maximum(also, waits)
        return also

    def _uncertainty(self, change: Change) -> float:
        """Return the share by which the time taken away may be too large or too small, as `Blaming.uncertainty`."""
        return self.blaming.uncertainty(self._exact.excess(change), self.blame.causes, is_link=change.kind == "link")

    def _noise(self, asked: Sequence[Change]) -> float:
        """Return how far steps made usual may be from usual, by how much the other steps differ [ns per step]."""
        usual = [change for change in asked if change.verb is Verb.WITHOUT and change.kind == "step"]
        if not usual:
            return 0.0
        lengths = self.blaming.lengths(self.job.points.time)
        deviation = _NORMAL * float(np.median(np.abs(lengths - np.median(lengths))))
        return errors_to_bound(len(self.steps)) * deviation * math.sqrt(len(usual)) / len(self.steps)

    def _at_least(self, asked: Sequence[Change], most: Mapping[Change, float]) -> float:
        """Return how long a step takes at least without some causes [ns]: no path gets shorter by more than they lose.

        Args:
            asked: the changes, all of which are compared.
            most: change -> upper bound of the share of its excess that is likely to go.
        """
        gone = (most[change] * self.blaming.at_most(self._exact.excess(change)) for change in asked)
        return self.blaming.step_ns - sum(gone)

    def _beyond_typical(self, asked: Sequence[Change]) -> float:
        """Return how much longer than the median the steps are that changes make usual [ns per step].

        By the rank on which that is least: the clock of another may have jumped.
        """
        times, steps = self.job.points.time, self.blaming.steps.tolist()
        usual = [int(change.name) for change in asked if change.verb is Verb.WITHOUT and change.kind == "step"]
        whole = (of_rank for of_rank in self.job.steps.values() if of_rank.keys() >= set(steps))
        spans = np.array([[times[each[step][1]] - times[each[step][0]] for step in steps] for each in whole])
        longer = (spans - np.median(spans, axis=1)[:, None]).min(0)[np.isin(steps, usual)]
        return float(np.maximum(longer, 0).sum()) / len(steps)

    def _between_clocks(self, asked: Sequence[Change]) -> int:
        """Return how far a step may be off because of clocks, where a late host stays beside a changed rank [ns].

        The host and the rank may hide each other: once the rank is as usual, the job waits for the host, and how much
        later that comes is known only as well as their clocks agree.
        """
        compared = filter(_is_compared, asked)
        stays = any(host not in asked for change in compared for host in self._exact.beside(change))
        return self.job.clocks_ns if stays else 0

    def _binds(self, job: JobGraph, times: Ints) -> Iterator[Binding]:
        """Yield the parts that the steps wait for: back from the last point, each time to the latest of its sources."""
        points, edges = job.points, job.edges
        columns = edges.first, edges.source, edges.lag, times
        first, source, lag, came = (column.data for column in columns)  # items of it are Python's numbers
        inside = job.order[self.blaming.counts[job.order]]  # argmax takes the first of points that come last together
        begin = self.blaming.begin(times) if len(inside) else 0
        at = int(inside[np.argmax(times[inside])]) if len(inside) else -1
        path: list[int] = []
        by: list[int] = []
        while at >= 0 and came[at] > begin:
            last, latest = -1, 0
            for each in range(first[at], first[at + 1]):
                after = came[source[each]] + lag[each]
                if last < 0 or after > latest:
                    last, latest = each, after
            path.append(at)
            by.append(last)
            at = source[last] if last >= 0 else -1
        row, edge = np.array(path, np.int64), np.array(by, np.int64)
        since = np.where(edge >= 0, np.maximum(begin, times[edges.source[edge]]), begin)
        passed = times[row] - since
        working = np.minimum(passed, np.maximum(0, points.work[row]))
        is_launch = (edge >= 0) & (edges.kind[edge] == Edge.LAUNCH)
        delay = np.where(is_launch, np.minimum(passed - working, edges.lag[edge]), 0)
        parts: dict[tuple[str, int], int] = {}
        divided = (each.tolist() for each in (working, delay, passed - working - delay))
        for part, rank, *taken in zip(_parts(job, row), job.rank[row].tolist(), *divided, strict=True):
            for key, time in zip((part, "launch", "unexplained"), taken, strict=True):
                parts[key, rank] = parts.get((key, rank), 0) + time
        count = max(1, len(self.steps))
        for (part, rank), time in sorted(parts.items(), key=lambda item: -item[1]):
            if time:
                yield Binding(part, rank, time / count)


def _is_compared(change: Change) -> bool:
    """Whether the time that a change takes away is estimated by comparing ranks."""
    return change.verb is Verb.WITHOUT and change.kind in _COMPARED


_PARTS = {COMPUTE: "compute", COPIES: "copies"}


def _parts(job: JobGraph, rows: Ints) -> list[str]:
    """Return the part that the work of each point belongs to."""
    is_on_host = np.isin(job.points.kind[rows], (Point.HOST, Point.STEP)).tolist()
    kinds = zip(is_on_host, job.points.part[rows].tolist(), strict=True)
    return ["host" if on_host else _PARTS.get(part, "communication") for on_host, part in kinds]


def what_if(
    session: Federation,
    asked: Sequence[Change] = (),
    categories: Categories | None = None,
    step_marker: str = STEP_MARKER,
    progress: Progress | None = None,
) -> WhatIf:
    """Return the gain of changes; without any, that of each cause and each large part.

    Args:
        session: one job, all of whose steps count: it has no window, and no filters but those of ranks.
        asked: the changes.
        categories: say which kernels are communication; None: the built-in ones.
        step_marker: markers that are steps.
        progress: called with (time that passed, expected time of all) [ms].

    Raises:
        UsageError: the session has a window or filters.
        RocpdError: there are separate runs, or no GPU work, or a change names nothing in the job.
    """
    if session.selection.window or session.selection.filtered:
        what = "a window has" if session.selection.window else "filters of events have"
        raise UsageError(f"whatif replays whole jobs: {what} no effect", "rocpd trim writes the part of a window")
    with session.job.reporting(progress, {**STAGES, Stage.CAUSES: 1} if asked else STAGES):
        replays = read_replays(session, categories, step_marker)
        count, matched = len(replays.steps) if replays.has_steps else 0, replays.job.matched
        marked = float(replays.blaming.lengths(replays.job.points.time).mean())
        if asked:
            with session.job.course.during(Stage.CAUSES, 1):
                return WhatIf(count, matched, replays.bound(replays.predict(asked)), replays.blame, marked_ns=marked)
        *each, together = map(replays.bound, replays.tried(session.job.course))
    return WhatIf(count, matched, together, replays.blame, tuple(each), marked)


def read_replays(session: Federation, categories: Categories | None = None, step_marker: str = STEP_MARKER) -> Replays:
    """Return a job, read to be replayed; arguments and errors as `what_if`, without changes."""
    if session.runs > 1:
        raise RocpdError(f"{session.runs} separate runs: they are not one job", "choose the ranks of one with --rank")
    read_first(session, step_marker)
    warm = warm_steps(list(steps_of_ranks(session, step_marker).values()))  # files are read before the job takes memory
    with session.job.course.during(Stage.ANEW):
        return _replays_of(read_job(session, categories, step_marker), warm)


def _replays_of(job: JobGraph, warm: frozenset[int]) -> Replays:
    if not (job.points.part >= 0).any():
        raise RocpdError("no GPU work is recorded", "rocpd info JOB says what is")
    numbers = _steps(job, warm)
    return Replays(job, numbers) if numbers else Replays(_whole(job), [0], has_steps=False)


def _steps(job: JobGraph, warm: frozenset[int]) -> list[int]:
    """Return the numbers of the steps that all ranks with steps have, without warm-up; none if they are too few."""
    every = [set(steps) for steps in job.steps.values() if steps]
    common = sorted(set.intersection(*every) - warm) if every else []
    return common if len(common) >= _FEWEST else []


def _whole(job: JobGraph) -> JobGraph:
    """Return a job whose whole trace is one step."""
    ranks = sorted(job.steps)
    ends = [[job.points.time[slice(*job.own[rank])] for rank in ranks]]
    first, last = (
        np.array([[int(side(times)) if len(times) else 0 for times in row] for row in ends])
        for side in (np.min, np.max)
    )
    return job.in_pieces(ranks, first, last)
