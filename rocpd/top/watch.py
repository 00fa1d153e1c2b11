"""Looks at a running job again and again: new rows, and the results of the usual analyses for the last steps.

Derives nothing: a look is a session on copies of the newest rows (`live.tail`), cut to the steps that are finished on
all ranks, and the analyses of `rocpd summary`, in one pass. Rows are copied and analyses run as often as their costs
allow, so that the share of a core stays small for any number of ranks; whether files have grown is checked each time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rocpd.base import RocpdError, Row, entries, frozen
from rocpd.facts.communication.rccl import ARGUMENTS
from rocpd.facts.rank import By, Options
from rocpd.facts.regions import Steps
from rocpd.facts.units import steps_of_ranks
from rocpd.federate.open.identify import Rank
from rocpd.federate.plan.steps import IndexUse
from rocpd.federate.select.selection import Cut, Part
from rocpd.live import AFTER_S
from rocpd.live.hang import Hanging, HangReport, judged
from rocpd.live.progress import progress_beside
from rocpd.live.tail import Tail, TailedFile
from rocpd.session import Session, connect
from rocpd.summary.counters.samples import CLOCK
from rocpd.summary.reading import Function, Reading, known_tables
from rocpd.summary.registry import SUMMARIES
from rocpd.summary.result import Summary
from rocpd.summary.time.overview import conclude
from rocpd.top.glance import Glance, JobState, RankNow, StepTime
from rocpd.top.pace import LookPace

_ROOM = 1.5  # of the rows of the analysed steps, as ranks are apart
_FEWEST = 4  # fewest steps for conclusions on the last steps: fewer give no probability of chance
_BEGINS_S = 10.0  # time after the first look for which steps are waited for
_FIRST = 8  # most steps for the first conclusions, which are wanted soon
_MINUTES_S = 300.0  # age of remembered steps
_MOST = 2000  # number of remembered steps
_USUAL_S, _TIMES = 10.0, 5.0  # a rank is silent after this time, or this many of its usual pauses
_OLD_S = 60.0  # a file that was not written to for this long before it was found belongs to a finished job
_OVER_S = 2.0  # a process that has reported its end writes nothing after this time
_KERNELS = 10
_HANG_S = AFTER_S / 2  # between two looks at who waits
_SOON_S = 0.25  # between two checks whether there are enough steps
_BY_RANK = "budget by rank"
_ANALYSES = ("budget", _BY_RANK, "ranks", "kernels", "memory", "samples")
_TABLES = frozenset({"budget", "causes", "steps", "kernels", "memory", "samples"})


@frozen
class WatchOptions:
    """The analysed part of a job.

    Args:
        steps: number of the last steps.
        seconds: length of the last part, if there are no steps [s].
        rows_first: whether the first look with rows comes without conclusions, which would take a while.
        asked: options of the analyses: markers that are steps, categories of kernels.
    """

    steps: int = 20
    seconds: float = 30.0
    rows_first: bool = False
    asked: Options = Options()


@frozen
class _Known:
    """The last answers of the analyses.

    Args:
        glance: their results for the job, with their time.
        ranks: path of the file -> rank, without values that change by themselves.
        places: each rank and its file.
    """

    glance: Glance
    ranks: Mapping[Path, tuple[RankNow, ...]]
    places: tuple[tuple[Rank, Path], ...] = ()


class Watch:
    """A watched job. To be used in a `with` block.

    Args:
        inputs: files, globs and folders.
        options: the analysed part.
        pace: frequency of looks.
    """

    def __init__(self, inputs: Sequence[str], options: WatchOptions, pace: LookPace | None = None) -> None:
        self.options, self._pace = options, pace or LookPace()
        self._tail = Tail(inputs, ARGUMENTS)
        self._steps: deque[tuple[float, int, StepTime]] = deque(maxlen=_MOST)
        self._known: _Known | None = None
        self._chosen: Mapping[int, Part] = {}
        self._hang: HangReport | None = None
        self._hang_at = -_HANG_S
        self._is_new, self._is_cut = False, False
        self._begun = time.monotonic(), time.process_time()
        self._counted_at, self._copied = self._begun[0], 0

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._tail.close()

    def look(self) -> Glance:
        """Return the current state of the job."""
        begun = time.process_time()
        self._tail.find()
        files = list(self._tail.files.values())
        self._pace.save(len(files))
        before = self._known
        glance = self._seen(files)
        has_concluded = self._known is not before and self._has_concluded
        self._pace.spend(time.process_time() - begun, glance.is_sure if has_concluded else None)
        return glance

    def _seen(self, files: Sequence[TailedFile]) -> Glance:
        """Return the job, with conclusions that are as new as the saved time allows."""
        is_due = self._known is None or (self._pace.is_due and self._is_worth_it(self._known))
        if not files or not all(map(self._is_over, files)):
            if is_due:
                self._is_new |= self._tail.poll() > 0
            else:
                self._tail.notice()
        is_over = bool(files) and all(map(self._is_over, files))
        if not is_over and not any(file.has_rows for file in files):
            return self._without_rows(files)
        if self._known is None and self.options.rows_first and not is_over:
            self._known = _Known(Glance(time.time(), JobState.RUNNING), {})
        elif self._known is None or (self._is_new and is_due) or self._is_to_end(is_over):
            self._analyse(is_over)
        assert self._known
        return self._now(self._known, files, is_over)

    @property
    def _has_concluded(self) -> bool:
        return bool(self._known and self._known.glance.looked_at)

    def can_conclude(self) -> bool:
        """Whether the first conclusions can be drawn now; may be asked at any rate between two looks."""
        if not self._known or self._has_concluded or time.monotonic() - self._counted_at < _SOON_S:
            return False
        begun = time.process_time()
        can = self._pace.is_due and len(self._known.ranks) == len(self._tail.readable()) and self._has_enough()
        self._pace.spend(time.process_time() - begun, None)
        return bool(can)

    def _is_worth_it(self, known: _Known) -> bool:
        """Whether to read all files: for the first conclusions once there may be enough steps, or no more come."""
        return self._has_concluded or len(known.ranks) < len(self._tail.readable()) or self._has_enough() is not False

    def _has_enough(self) -> bool | None:
        """Whether the file that grew last may have enough steps; None: no rows have come, and it may have ended."""
        self._counted_at = time.monotonic()
        newest = max(self._tail.readable().values(), key=lambda file: file.grown_at)
        newest.catch_up()
        if not newest.poll():
            return None
        self._is_new = True
        with suppress(RocpdError), self._connected([newest.copy]) as session:
            count = max(map(len, steps_of_ranks(session, self.options.asked.step_marker).values()), default=0)
            uncounted = 1 + self._is_cut  # the newest step, and the first one of a cut trace
            enough = min(_FEWEST, self.options.steps) + uncounted
            if self._copied < count == enough - 1:  # once: after the next step there is less left to copy
                self._copied = count
                self._tail.poll()
            return count >= enough or not self._is_young(session)
        return True

    def look_at(self, steps: int) -> None:
        """Set the number of last steps to look at."""
        self.options = replace(self.options, steps=steps)
        self._is_new = True

    def report(self, path: Path) -> None:
        """Write a report on the analysed part.

        Raises:
            RocpdError: it cannot be written, or there are no rows yet.
        """
        self._tail.complete()
        with self._connected(list(self._tail.readable())) as session:
            chosen = session.cut_to(Cut(self._chosen)) if self._chosen else session
            chosen.report(path)

    def _is_to_end(self, is_over: bool) -> bool:
        return is_over and self._known is not None and self._known.glance.state is not JobState.ENDED

    def _is_over(self, file: TailedFile) -> bool:
        """Whether a file will not grow any more, as far as can be known."""
        passed = time.time() - file.written_s
        if not file.written_s or (file.is_live and file.may_grow):
            return False
        return passed > (_OVER_S if file.has_rows and not file.may_grow else _OLD_S)

    def _without_rows(self, files: Sequence[TailedFile]) -> Glance:
        problems = [*filter(None, (self._tail.waits_for,)), *(file.problem for file in files if file.problem)]
        if files and not problems:
            problems = [f"nothing is written to {files[0].path} yet"]
        ranks = tuple(RankNow(None, file=str(file.path), state=_state_of(file), problem=file.problem) for file in files)
        return Glance(time.time(), JobState.WAITING, ranks=ranks, problems=tuple(problems))

    def _analyse(self, is_over: bool) -> None:
        """Run the analyses on the current part."""
        self._is_new = False
        try:
            if is_over:
                with self._connected([file.path for file in self._tail.files.values()]) as session:
                    steps = steps_of_ranks(session, self.options.asked.step_marker)
                    self._remember(steps, _common(steps))
                    glance, tables = self._measured(session, "all of it", JobState.ENDED)
                    self._known = _Known(glance, *self._by_file(session, tables, steps))
            else:
                self._measure_last()
        except RocpdError as error:
            known = self._known or _Known(Glance(time.time(), JobState.RUNNING), {})
            self._known = replace(known, glance=replace(known.glance, problems=(error.message,)))

    def _connected(self, paths: Sequence[Path]) -> Session:
        open_these = partial(connect, paths, index=IndexUse.OFF, jobs=1)
        try:
            return open_these()
        except RocpdError:
            return open_these(skip_bad=True)

    def _measure_last(self) -> None:
        """Choose the rows of the last steps that are finished on all ranks, and run the analyses on them."""
        readable = self._tail.readable()
        with self._connected(list(readable)) as session:
            steps = steps_of_ranks(session, self.options.asked.step_marker)
            since = {rank.number: readable[rank.opening.path].fresh.since.get(rank.suffix, 0) for rank in session.ranks}
            numbers = _common(steps, since)[:-1]  # the newest step may still get rows
            self._remember(steps, numbers)
            self._is_cut |= any(since.values())
            first = int(self._is_cut)  # the first step of a cut trace has no step before it
            is_first = self.options.rows_first and not self._chosen
            chosen = numbers[first:][-(min(_FIRST, self.options.steps) if is_first else self.options.steps) :]
            parts = _parts(steps, chosen) if len(chosen) >= min(_FEWEST, self.options.steps) else {}
            if not parts and self.options.rows_first and self._is_young(session):  # more steps may come soon
                if not self._chosen:
                    begun = Glance(time.time(), JobState.RUNNING)
                    self._known = _Known(begun, *self._by_file(session, {}, steps))
                return
            before = numbers[: numbers.index(chosen[0])][-1:] if parts else []
            self._is_cut |= bool(before)
            for rank in session.ranks:
                part, file = parts.get(rank.number), readable[rank.opening.path]
                file.fresh.free_until(rank.suffix, part.end if part else None)
                for number in before if part else ():
                    file.fresh.forget_before(rank.suffix, steps[rank.number][number][0])
                if part:
                    file.expect(_ROOM * self.options.steps / len(chosen))
        with self._connected(list(readable)) as session:
            if parts:
                self._chosen = parts
                cut, looked_at = session.cut_to(Cut(parts)), f"steps {chosen[0]} to {chosen[-1]}"
            else:
                cut, looked_at = self._last_seconds(session)
            glance, tables = self._measured(cut, looked_at, JobState.RUNNING)
            self._known = _Known(glance, *self._by_file(session, tables, steps))

    def _measured(self, session: Session, looked_at: str, state: JobState) -> tuple[Glance, Mapping[str, Summary]]:
        """Return the results of the analyses for a session, and their tables."""
        tables = _tables(session, self.options.asked)
        job, *findings = [finding.text for finding in conclude(session, tables)]
        parts = {str(row[0]): float(row[3]) for row in _rows(tables, "budget")}
        kernels, alignment = tuple(_kernels(tables)), session.job.alignment
        problems = (alignment.note,) if (alignment.contradicted or alignment.jumps) and alignment.note else ()
        said = job, (), looked_at, parts, (), tuple(findings), kernels, problems
        return Glance(time.time(), state, *said, runs=session.runs), tables

    def _by_file(
        self, session: Session, tables: Mapping[str, Summary], steps: Mapping[int, Steps]
    ) -> tuple[dict[Path, tuple[RankNow, ...]], tuple[tuple[Rank, Path], ...]]:
        """Return the values of each rank in the tables by its file, and each rank with its file."""
        files = {file.copy: path for path, file in self._tail.files.items()}
        places = tuple((rank, files.get(rank.opening.path, rank.opening.path)) for rank in session.ranks)
        ranks: dict[Path, tuple[RankNow, ...]] = {}
        for rank, path in places:
            ranks[path] = (*ranks.get(path, ()), _rank_now(rank, tables, steps.get(rank.number, {})))
        return ranks, places

    def _is_young(self, session: Session) -> bool:
        """Whether the copied time is no longer than the time analysed without steps, and steps have begun or may begin.

        A file that was locked by its writer has other steps than the others until the next look.
        """
        length = max((span.end - span.start for span in session.spans.values()), default=0)
        begun = steps_of_ranks(session, self.options.asked.step_marker)
        may_begin = any(begun.values()) or time.monotonic() - self._begun[0] < _BEGINS_S
        return may_begin and length < self.options.seconds * 1e9

    def _last_seconds(self, whole: Session) -> tuple[Session, str]:
        """Return the session of the last seconds of each rank, for jobs without steps, or with few; and its name."""
        length = round(self.options.seconds * 1e9)
        files = self._tail.readable()
        parts = {}
        for rank in whole.ranks:
            if span := whole.spans.get(rank.number):
                parts[rank.number] = Part(span.end - length, None)
                files[rank.opening.path].fresh.forget_before(rank.suffix, span.end - 2 * length)
        is_cut = any(whole.spans[rank].start < (part.start or 0) for rank, part in parts.items())
        name = f"the last {self.options.seconds:g} s: no steps" if is_cut else "all of it so far"
        return (whole.cut_to(Cut(parts)) if is_cut else whole), name

    def _remember(self, steps: Mapping[int, Steps], numbers: Sequence[int]) -> None:
        """Remember the durations of steps, by their starts on the first rank that has them."""
        if not numbers:
            return
        first = next(rank for rank in sorted(steps) if numbers[-1] in steps[rank])
        latest = self._steps[-1][1] if self._steps else 0
        for number in numbers:
            begun = steps[first][number][0]
            if begun > latest:
                lengths = [of[number][1] - of[number][0] for of in steps.values() if number in of]
                self._steps.append((time.time(), begun, StepTime(number, sum(lengths) / len(lengths))))

    def _now(self, known: _Known, files: Sequence[TailedFile], is_over: bool) -> Glance:
        """Return the last conclusions with current values for silence, rows and age."""
        now = time.time()
        ranks, problems = [], list(known.glance.problems)
        for file in files:
            silent = max(0.0, now - file.grown_at) if file.grown_at else 0.0
            has_ended = is_over or (file.has_rows and self._is_over(file))
            state = JobState.ENDED if has_ended else _state_of(file, silent, self._silence())
            path, rows = str(file.path), file.rows
            for rank in known.ranks.get(file.path) or (RankNow(None),):
                ranks.append(replace(rank, file=path, state=state, silent_s=silent, rows=rows, problem=file.problem))
            if file.problem:
                problems.append(file.problem)
        while self._steps and now - self._steps[0][0] > _MINUTES_S and len(self._steps) > 1 and not is_over:
            self._steps.popleft()
        if known.places and time.monotonic() - self._hang_at > _HANG_S:
            self._hang, self._hang_at = judged(progress_beside(known.places)), time.monotonic()
        hang = self._hang if self._hang and self._hang.verdict is Hanging.YES and not is_over else None
        wall, cpu = time.monotonic() - self._begun[0], time.process_time() - self._begun[1]
        return replace(
            known.glance,
            at_s=now,
            steps=tuple(step for _, _, step in self._steps),
            ranks=tuple(sorted(ranks, key=lambda rank: rank.order)),
            problems=tuple(dict.fromkeys(problems)),
            hang=self._hang.lines if self._hang else (),
            hangs=hang is not None,
            hang_s=max((wait.waited_ns for wait in hang.waits), default=0) / 1e9 if hang else 0.0,
            missing=hang.missing if hang else (),
            age_s=now - known.glance.at_s,
            cpu_percent=100 * cpu / wall if wall else 0.0,
        )

    def _silence(self) -> float:
        """Return the time without rows after which a rank is silent [s]."""
        return max(_USUAL_S, _TIMES * max((step.mean_ns for _, _, step in self._steps), default=0.0) / 1e9)


def _state_of(file: TailedFile, silent: float = 0.0, limit: float = 0.0) -> JobState:
    if file.problem:
        return JobState.UNREADABLE
    if not file.has_rows:
        return JobState.WAITING
    return JobState.SILENT if silent > limit > 0 else JobState.RUNNING


def _common(steps: Mapping[int, Steps], since: Mapping[int, int] | None = None) -> list[int]:
    """Return the numbers of the steps that are complete on all ranks with steps, in order of time."""
    known = since or {}
    of_ranks = [{n for n, (start, _) in of.items() if start >= known.get(rank, 0)} for rank, of in steps.items() if of]
    return sorted(set.intersection(*of_ranks)) if of_ranks else []


def _parts(steps: Mapping[int, Steps], numbers: Sequence[int]) -> dict[int, Part]:
    """Return the part of each rank with steps from the first to the last of `numbers`."""
    return {rank: Part(of[numbers[0]][0], of[numbers[-1]][1]) for rank, of in steps.items() if of}


def _tables(session: Session, asked: Options) -> dict[str, Summary]:
    """Return the tables of the analyses by name, divided ones under another name; those without data are missing."""
    homes = {name: SUMMARIES["budget" if name == _BY_RANK else name].home for name in _ANALYSES}
    functions: dict[str, Function] = {name: entries.load(home, name) for name, home in homes.items()}
    options = {name: replace(asked, by=By.RANK) if name == _BY_RANK else asked for name in functions}
    tables: dict[str, Summary] = {}
    for name, known in known_tables(Reading(session, wanted=_TABLES), functions, options):
        if not isinstance(known, str):
            tables |= {_BY_RANK: known["budget"]} if name == _BY_RANK and "budget" in known else known
    return tables


def _rows(tables: Mapping[str, Summary], name: str) -> list[Row]:
    return tables[name].fetchall() if name in tables else []


def _named(tables: Mapping[str, Summary], name: str) -> list[dict[str, Any]]:
    """Return the rows of a table by the names of their columns."""
    return [dict(zip(tables[name].columns, row, strict=True)) for row in _rows(tables, name)]


def _kernels(tables: Mapping[str, Summary]) -> list[Row]:
    if "kernels" not in tables:
        return []
    table = tables["kernels"]
    places = [table.columns.index(name) for name in ("name", "calls", "total_ns", "percent")]
    return [tuple(row[place] for place in places) for row in table.shortened(table.fetchall()[:_KERNELS])]


def _rank_now(rank: Rank, tables: Mapping[str, Summary], steps: Steps) -> RankNow:
    """Return a rank with its values in the tables."""
    times = {str(row[1]): int(row[2]) for row in _rows(tables, _BY_RANK) if row[0] == rank.number}
    whole = sum(times.values())
    causes = [row for row in _named(tables, "causes") if str(rank.number) in (row["ranks"] or "").split()]
    cause = max(causes, key=lambda row: row["cost_ns"], default={})
    of_rank = (row for row in _named(tables, "memory") if row["rank"] == rank.number)
    held = [row["peak_bytes"] for row in of_rank if row["level"] == "REAL"]
    return RankNow(
        rank.number,
        rank.hostname or "",
        step=max(steps, default=None),
        parts={part: 100 * spent / whole for part, spent in times.items()} if whole else {},
        cost_ns=cause.get("cost_ns"),
        cost_percent=cause.get("cost_percent"),
        mainly=cause.get("mainly") or "",
        chance=cause.get("chance"),
        memory_bytes=sum(held) if held else None,
        sampled=dict(_sampled(rank.number, tables)),
    )


def _sampled(rank: int, tables: Mapping[str, Summary]) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield power and clock of the GPUs of a rank, if they were sampled."""
    for row in _named(tables, "samples"):
        name = str(row["name"])
        if row["rank"] == rank and row["mean"] is not None and (CLOCK.search(name) or "power" in name.lower()):
            yield name, (float(row["mean"]), str(row["units"] or ""))
