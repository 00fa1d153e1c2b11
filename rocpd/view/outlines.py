"""The first picture of the time line: the ranks of a job, and the states of their GPUs over all of its time.

It needs an outline of each rank, which is cached, and this process answers for it: it has the job open, while another
process would have to start. Finer pictures, and those inside of a rank, are in `lines`.
"""

from __future__ import annotations

import base64
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rocpd.base import Flags, Floats, Ints, Progress, RocpdError, UsageError, frozen
from rocpd.base.stages import Stage
from rocpd.base.texts import visible
from rocpd.chart.model import WORK
from rocpd.convert.deliver import Placement, placements
from rocpd.facts.agent_time import AgentTime, read_agent_times
from rocpd.facts.operations import OperationNames, kinds_of, read_ops
from rocpd.facts.rank import RankReading, RankWindow
from rocpd.facts.regions import Steps, step_spans
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, COPIES, HIDES_COMMUNICATION, Union, covered
from rocpd.facts.units import windows
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.steps import STEP_MARKER, is_step
from rocpd.session import Session
from rocpd.view.desk import Answer, HeldJob, ViewedJob

STATES = WORK
"""The states of a GPU that is not idle, in the order of stacking in pictures."""

_SOON, _PATIENCE = 0.05, 0.5  # [s]
_STAGES = {Stage.FIRST: 1}
_SLICES = 4096  # of an outline, at least as many as a page has pixels


@frozen
class CommonLine:
    """The places of the ranks of a job on its time line.

    Args:
        places: places of ranks, by their numbers.
        origin: start of the time line [ns].
    """

    places: dict[int, Placement]
    origin: int

    def place(self, number: int) -> Placement:
        """Return the place of a rank.

        Raises:
            UsageError: the rank does not exist.
        """
        if number not in self.places:
            raise UsageError(f"there is no rank {number}")
        return self.places[number]


_LINES: WeakKeyDictionary[Session, CommonLine] = WeakKeyDictionary()


def line_of(session: Session) -> CommonLine:
    """Return the time line of a job.

    Raises:
        RocpdError: its ranks share no time line.
    """
    if session not in _LINES:
        extent = session.time_range
        if session.runs > 1:
            hint = "--run, or --rank, chooses one"
            raise RocpdError(f"{session.runs} separate runs have no time line in common", hint)
        places = {placement.rank.number: placement for placement in placements(session.in_rows)}
        _LINES[session] = CommonLine(places, extent[0] if extent else 0)
    return _LINES[session]


@frozen
class BusyTimes:
    """The times of an agent in each of `STATES` [ns]."""

    states: tuple[Union, ...]

    @classmethod
    def of(cls, spent: AgentTime) -> BusyTimes:
        """Return the times of an agent, as recorded."""
        hides = spent.hides & HIDES_COMMUNICATION > 0
        computes = spent.part == COMPUTE
        states: tuple[Flags, ...] = (
            computes & ~hides,
            computes & hides,
            *(spent.part == part for part in (COMMUNICATION, COPIES)),
        )
        return cls(tuple((spent.start[state], spent.end[state]) for state in states))

    def moved(self, to_line: Callable[[Ints], Ints]) -> BusyTimes:
        """Return the same times on another time line."""
        return BusyTimes(tuple((to_line(start), to_line(end)) for start, end in self.states))


def time_in_states(agents: Sequence[BusyTimes], edges: Ints) -> Ints:
    """Return the total time of agents in each of `STATES` between consecutive edges [ns]; a row per state."""
    sums = np.zeros((len(STATES), len(edges) - 1), np.int64)
    for agent in agents:
        sums += [np.diff(covered(parts, edges)) for parts in agent.states]
    return sums


def busy_times(seen: Mapping[int, RankWindow], reader: RankReader) -> list[BusyTimes]:
    """Return the times of the agents of a rank with work, as recorded."""
    reading, names = RankReading.of(reader, seen), OperationNames()
    ops = read_ops(reading, names)
    return [BusyTimes.of(agent) for agent in read_agent_times(reading, None, ops, kinds_of(ops, load(None), names))]


@frozen
class Outline:
    """The states of a rank's GPUs in each of `_SLICES` even parts of its time, as recorded [ns].

    Args:
        start, end: of its time.
        agents: number of GPUs with work.
        busy: for each of `STATES` the total time of all GPUs in it, by part.
        steps: numbers of its steps.
        step_start, step_end: of each step.
    """

    start: int
    end: int
    agents: int
    busy: tuple[Ints, ...]
    steps: Ints
    step_start: Ints
    step_end: Ints

    @classmethod
    def of(cls, agents: Sequence[BusyTimes], steps: Steps) -> Outline:
        """Return the outline of the time of agents."""
        edges = [edge for agent in agents for start, end in agent.states if len(start) for edge in (start[0], end[-1])]
        start, end = int(min(edges, default=0)), int(max(edges, default=1))
        busy = time_in_states(agents, np.linspace(start, end, _SLICES + 1).astype(np.int64))
        numbers, spans = list(steps), list(steps.values())
        low, high = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
        return cls(start, end, len(agents), tuple(busy), np.array(numbers, np.int64), low, high)

    def shares(self, pixels: int) -> Floats:
        """Return the share of each state in at least `pixels` even parts, or in all parts; a row per state."""
        together = 1
        while _SLICES // (together * 2) >= pixels:
            together *= 2
        sums = np.array(self.busy).reshape(len(STATES), -1, together).sum(axis=2)
        shares: Floats = sums * (sums.shape[1] / (max(self.end - self.start, 1) * max(self.agents, 1)))
        return shares


def as_far_as_soon(ranks: Sequence[int], answer: Callable[[int], dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the answers for the first rank, and for others in order until `_SOON` has passed or a rank can't be read.

    Raises:
        errors of `answer` for the first rank.
    """
    answers: dict[int, dict[str, Any]] = {}
    until = time.monotonic() + _SOON
    for rank in ranks:
        try:
            answers[rank] = answer(rank)
        except RocpdError:
            if not answers:
                raise
            break
        if time.monotonic() > until:
            break
    return answers


def shares_text(shares: Floats) -> str:
    """Return shares in the form for pages: for each of `STATES` and pixel one byte [1/255], in base64."""
    return base64.b64encode(np.ceil(np.minimum(shares, 1) * 255).astype(np.uint8).tobytes()).decode()


_OUTLINE = Fact("outline", 1, (Outline,))


def _outlined(seen: Mapping[int, RankWindow], reader: RankReader) -> Outline | RocpdError:
    """Return the outline of a rank, cached if it covers all of its rows; or its error, since other ranks have one."""

    def derived() -> Outline:
        return Outline.of(busy_times(seen, reader), step_spans(reader, is_step(STEP_MARKER)))

    try:
        return reader.once(_OUTLINE, derived)
    except RocpdError as error:
        return error


class Overview:
    """The first picture of a job, which is read anew when its files have changed. Threads that ask take turns.

    Args:
        job: the viewed job.

    Attributes:
        is_complete: whether the outlines of all ranks are read.
    """

    def __init__(self, job: ViewedJob) -> None:
        self._job, self._lock, self._held = job, threading.Lock(), HeldJob()
        self._outlined: Session | None = None
        self._coming: Iterator[tuple[Rank, Outline | RocpdError]] = iter(())
        self._outlines: dict[int, Outline | RocpdError] = {}
        self.is_complete, self._read = False, 0.0

    def open(self, session: Session) -> None:
        """Take a session of the job, which is then closed by this object."""
        self._held.take(self._job, session)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield the open job, while other threads wait. Errors as `rocpd.connect`."""
        with self._lock:
            session = self._held.open(self._job)
            if session is not self._outlined:
                self._outlined, self._outlines, self.is_complete = session, {}, False
            yield session

    def read(self, report: Progress | None) -> None:
        """Read the first and last times of ranks, which pages wait for. Errors as `rocpd.connect`.

        Args:
            report: called with (time that passed, time that all takes) [ms]; None: not called.
        """

        def count(done: int, of: int) -> None:
            self._read = done / max(of, 1)
            if report:
                report(done, of)

        with self.reading() as session, session.job.reporting(count, _STAGES):
            _ = session.time_range

    def ranks(self) -> Answer:
        """Return `start` and `end` of the time line [ns], and `ranks`: `rank`, `host`, `label`, `about`.

        While `read` goes on, return only its share of finished times.

        Raises:
            RocpdError: the ranks share no time line, or as `rocpd.connect`.
        """
        if not self._lock.acquire(timeout=_PATIENCE):
            return Answer({"read": self._read}, ())
        self._lock.release()
        with self.reading() as session:
            line, extent = line_of(session), session.time_range or (0, 1)
            ranks = [
                {
                    "rank": number,
                    "host": visible(place.rank.hostname or ""),
                    "label": visible(place.label),
                    "about": visible(place.about),
                }
                for number, place in line.places.items()
            ]
            return Answer({"start": 0, "end": max(extent[1] - extent[0], 1), "ranks": ranks}, tuple(session.notes))

    def outlines(self, ranks: Sequence[int], pixels: int) -> Answer:
        """Return outlines of ranks, see `as_far_as_soon`.

        Args:
            ranks: their numbers.
            pixels: width of the time line.

            Returns:
            `ranks`: by rank `shares`, as `shares_text`, and their `start` and `end` [ns]; and `steps` of these ranks:
                number, first start, last end [ns].

        Raises:
            RocpdError: the first rank does not exist, or can't be read, or as `rocpd.connect`.
        """
        with self.reading() as session:
            drawn = as_far_as_soon(ranks, partial(self._drawn, session, pixels))
            return Answer({"ranks": drawn, "steps": self._steps(session, drawn)}, tuple(session.notes))

    def _drawn(self, session: Session, pixels: int, rank: int) -> dict[str, Any]:
        line = line_of(session)
        to_line, outline = line.place(rank).shift.to_line, self._outline(session, rank)
        start, end = (int(to_line(time)) - line.origin for time in (outline.start, outline.end))
        length = (session.time_range or (0, 1))[1] - line.origin
        return {
            "shares": shares_text(outline.shares(max(math.ceil(pixels * (end - start) / max(length, 1)), 1))),
            "start": start,
            "end": end,
        }

    def _steps(self, session: Session, ranks: Iterable[int]) -> list[list[int]]:
        line, each = line_of(session), [(rank, self._outline(session, rank)) for rank in ranks]
        steps, of = np.unique(np.concatenate([outline.steps for _, outline in each]), return_inverse=True)
        start, end = np.full(len(steps), np.iinfo(np.int64).max), np.full(len(steps), np.iinfo(np.int64).min)
        for way, edges, name in ((np.minimum, start, "step_start"), (np.maximum, end, "step_end")):
            times = [line.place(rank).shift.to_line(getattr(outline, name)) for rank, outline in each]
            way.at(edges, of, np.concatenate(times) - line.origin)
        spans: list[list[int]] = np.stack([steps, start, end], axis=1).tolist()
        return spans

    def _outline(self, session: Session, number: int) -> Outline:
        if not self._outlines:
            self._coming = session.in_rows.map_ranks(partial(_outlined, windows(session)))
        while number not in self._outlines:
            try:
                rank, outline = next(self._coming)
            except RocpdError:
                self._outlines = {}  # outlines that were being read are lost
                raise
            self._outlines[rank.number] = outline
        self.is_complete = len(self._outlines) == len(line_of(session).places)
        if isinstance(answer := self._outlines[number], RocpdError):
            raise answer
        return answer

    def close(self) -> None:
        """Close the job; further calls do nothing."""
        self._held.close()
