"""Cases, which rules look at: the tables of analyses, and the facts of the job that gains refer to."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from rocpd.base import by_key, frozen
from rocpd.facts.agent_time import FINISHED, NOT_STARTED, UNKNOWN
from rocpd.facts.recorders import ROCPROFV3, Recordable, TraceProfiler
from rocpd.facts.short_names import short_names
from rocpd.facts.timeline import EXPOSED_COMMUNICATION
from rocpd.federate.select.filters import LEFT_OUT
from rocpd.schema.rules.kernel_categories import Categories, is_communication
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.result import Summary

Row = Mapping[str, Any]
"""A row of a table by the names of its columns."""


def step_number(step: object) -> int | None:
    """Return the number in the marker of a step, or None without one."""
    digits = re.search(r"\d+", str(step))
    return int(digits[0]) if digits else None


def window_of(row: Row, length: str) -> tuple[int, int]:
    """Return start and end on the time line [ns] of the event at `at_ns` of a row, which lasts its column `length`."""
    return int(row["at_ns"]), int(row["at_ns"] + row[length])


def short(name: str | None) -> str:
    """Return the short name of a kernel; files may lack its name."""
    return "a kernel without a name" if name is None else short_names([name])[name]


def ranks_to_blame(verdict: Finding, hosts: Mapping[int, str | None]) -> Sequence[int]:
    """Return the ranks that a verdict on stragglers names: one, several, those of its host, or those of its link.

    Args:
        verdict: a problem.
        hosts: rank -> its host.
    """
    if verdict.rank is not None:
        return [verdict.rank]
    host, several = verdict.evidence.get("hostname"), verdict.evidence.get("together", verdict.evidence.get("link"))
    return several if isinstance(several, list) else [rank for rank, its in hosts.items() if host and its == host]


def waits_least(shares: Mapping[int, Mapping[str, float]], ranks: Iterable[int]) -> int | None:
    """Return the rank with least exposed communication of some; None of none.

    Args:
        shares: rank -> part of the budget -> share of its time.
        ranks: the ranks.
    """
    return min(ranks, key=lambda rank: (shares[rank].get(EXPOSED_COMMUNICATION, 0.0), rank), default=None)


@frozen
class NotRecorded:
    """Something that is not recorded, or not in the inputs.

    Args:
        what: words for it.
        recordable: the kind of events to record; None: recording is no help.
        besides: other help, whatever the profiler.
    """

    what: str
    recordable: Recordable | None
    besides: str = ""

    def text(self, recorder: TraceProfiler, *, is_part: bool = False) -> str:
        """Return the words for users.

        Args:
            recorder: the profiler that recorded the inputs, whose options are named.
            is_part: whether windows or filters leave a part of the recording out, so that recording may be no help.
        """
        if is_part:
            return f"{self.what} in this part of the trace"
        missing = self.what if self.recordable is None else recorder.missing(self.what, self.recordable)
        return missing + self.besides


KERNELS = NotRecorded("no kernels are recorded", Recordable.KERNELS)
HIP = NotRecorded("calls that launch kernels are not recorded", Recordable.CALLS)
COPIES = NotRecorded("no copies are recorded", Recordable.COPIES)
ALLOCATIONS = NotRecorded("no allocations are recorded", Recordable.ALLOCATIONS)
_TOGETHER = ": open the files of all ranks together"
RANKS = NotRecorded("there are no two ranks with kernels", None, _TOGETHER)
COMMUNICATION = NotRecorded("there is no communication between ranks", None, _TOGETHER)
COLLECTIVES = NotRecorded("there are no collectives of several ranks", None, _TOGETHER)
SIZES = NotRecorded("the sizes of collectives are not recorded", Recordable.COLLECTIVES)
STEPS = NotRecorded("no steps are marked", Recordable.STEPS, "; --step-marker names markers of steps")
CLOCKS = NotRecorded("no clocks of GPUs are sampled", Recordable.CLOCKS)
COUNTERS = NotRecorded("counters that say so are not collected", Recordable.COUNTERS)


LEAST_GAIN = "least_gain_percent"
"""Evidence of findings that count only where a replay gains at least this share of a step [%]."""


class CannotLookError(Exception):
    """A rule lacks what it needs.

    Args:
        reason: the missing part.
    """

    def __init__(self, reason: str | NotRecorded) -> None:
        super().__init__(reason)
        self.reason = reason

    def text(self, job: JobFacts) -> str:
        """Return the reason, with the options of the profiler that recorded the inputs."""
        if isinstance(self.reason, str):
            return self.reason
        if job.left_out and self.reason.besides == _TOGETHER:
            return f"{self.reason.what}: {LEFT_OUT}"
        return self.reason.text(job.recorder, is_part=job.is_part)


def some(rows: Sequence[Row], lacking: str | NotRecorded) -> Sequence[Row]:
    """Return the rows; a rule needs at least one.

    Raises:
        CannotLookError: there are none.
    """
    if not rows:
        raise CannotLookError(lacking)
    return rows


@frozen
class JobFacts:
    """Facts of a job.

    Args:
        text: one line for people.
        ranks: numbers of the ranks that have GPU work.
        runs: number of jobs in the inputs; with more than one, ranks are not compared.
        critical: the rank that the others wait for, or whose own work takes longest; None without GPU work.
        step_ns: length of a step of the critical rank; without steps its whole time [ns].
        has_steps: whether there are steps.
        times: rank -> time of its agents that the budget divides [ns].
        shares: rank -> part of the budget -> share of this time [%].
        recorder: the profiler that recorded it.
        is_part: whether windows or filters leave a part of the recording out.
        left_out: number of ranks of the files that filters leave out.
        gpus: models of the GPUs of the machines; a single one where all have the same.
    """

    text: str
    ranks: tuple[int, ...]
    runs: int
    critical: int | None
    step_ns: float
    has_steps: bool
    times: Mapping[int, int]
    shares: Mapping[int, Mapping[str, float]]
    recorder: TraceProfiler = ROCPROFV3
    is_part: bool = False
    left_out: int = 0
    gpus: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The unit that gains are a share of."""
        return "step" if self.has_steps else "time"

    def part(self, name: str) -> float:
        """Return the share of a part of the budget in the time of the critical rank [%]; 0 without this part."""
        return self.shares.get(self.critical or 0, {}).get(name, 0.0)

    def share(self, time: float) -> float:
        """Return a time of the critical rank over all its steps [ns] as a share of its whole time [%]."""
        whole = self.times.get(self.critical, 0) if self.critical is not None else 0
        return time * 100 / whole if whole else 0.0


@frozen
class Case:
    """The material of a rule.

    Args:
        job: facts of the job.
        tables: by name, divided by rank where they can be.
        limits: thresholds of the rule.
        categories: categories of kernels, by their names.
        known: rows of the tables that were read before.
        known_of: table -> rank -> rows of the tables that were read rank by rank.
    """

    job: JobFacts
    tables: Mapping[str, Summary]
    limits: Mapping[str, float]
    categories: Categories
    known: dict[str, list[Row]] = field(default_factory=dict)
    known_of: dict[str, dict[int | None, list[tuple[Any, ...]]]] = field(default_factory=dict)

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table, which must not be changed; none where the table is missing."""
        if table not in self.known and table in self.tables:
            columns = self.tables[table].columns
            self.known[table] = [dict(zip(columns, row, strict=True)) for row in self.tables[table]]
        return self.known.get(table, [])

    def problems(self, table: str, rule: str) -> list[Finding]:
        """Return the problems that an analysis found.

        Raises:
            CannotLookError: the analysis could not decide.
        """
        known = self.tables.get(table)
        findings = [finding for finding in (known.findings if known else ()) if finding.rule == rule]
        if unknown := [finding for finding in findings if finding.verdict is Verdict.UNKNOWN]:
            raise CannotLookError(unknown[0].text)
        return [finding for finding in findings if finding.verdict is Verdict.PROBLEM]

    def of_critical(self, table: str) -> list[Row]:
        """Return the rows of a table that belong to the critical rank."""
        if table not in self.tables:
            return []
        columns = self.tables[table].columns
        if table not in self.known_of:
            place = columns.index("rank")
            self.known_of[table] = by_key((row[place], row) for row in self.tables[table])
        rows = self.known_of[table].get(self.job.critical, ())
        return [dict(zip(columns, row, strict=True)) for row in rows]  # those of all of a thousand ranks fill memory

    def needs_steps(self) -> None:
        """Make sure that the tables cover steps without warm-up.

        Raises:
            CannotLookError: they do not.
        """
        if not self.job.has_steps:
            count = len(self.rows("steps"))
            few = f"too few steps to leave warm-up out ({count}), or a window: it looks at steps of the whole trace"
            raise CannotLookError(few if count else STEPS)

    def needs_known_calls(self) -> None:
        """Make sure that the cause of most idle time of the critical rank is known.

        Raises:
            CannotLookError: it is not.
        """
        rows = [row for row in self.of_critical("idle") if row["cause"] not in (NOT_STARTED, FINISHED)]
        unknown = sum(int(row["idle_ns"]) for row in rows if row["cause"] == UNKNOWN)
        if unknown * 2 > sum(int(row["idle_ns"]) for row in rows):
            raise CannotLookError(HIP)

    def computing(self, table: str) -> list[Row]:
        """Return the rows of kernels of the critical rank that compute; no copies, no communication."""
        return [row for row in self.of_critical(table) if not is_communication(self.categories.of(row["name"]))]

    def of_compute(self, share: float) -> float:
        """Return a share of the compute time of the critical rank [%] as a share of its step [%]."""
        return share * self.job.part("compute") / 100

    def hot(self, kernels: Sequence[Row]) -> Iterator[tuple[Row, float, float]]:
        """Yield kernels with `least_percent` of the time of `kernels`, with their shares of it and of a step [%]."""
        every = sum(int(row["total_ns"]) for row in kernels)
        for row in kernels:
            share = int(row["total_ns"]) * 100 / every if every else 0.0
            if share >= self.limits["least_percent"]:
                yield row, share, self.of_compute(share)

    def finding(
        self,
        text: str,
        gain_percent: float | None,
        evidence: Mapping[str, object],
        confidence: Confidence = Confidence.LIKELY,
        row: Row | None = None,
        lasts: str = "",
    ) -> Finding:
        """Return a finding about the critical rank, with a usual step to look at, or about a row.

        The judge adds the texts that all findings of the rule share.

        Args:
            text, gain_percent, evidence, confidence: as `Finding`.
            row: it has a rank, and maybe an agent.
            lasts: column with the duration of the event at `at_ns` of the row; empty: the row has no time.
        """
        step, window = self.example() if row is None else (None, window_of(row, lasts) if lasts else None)
        place = row or {"rank": self.job.critical}
        about = place["rank"], step, window, evidence, place.get("agent")
        return Finding(text, "", Verdict.PROBLEM, confidence, *about, gain_percent=gain_percent)

    def sure(self, confidence: Confidence) -> Confidence:
        """Return the confidence of a finding about time: without steps it may be start-up."""
        return confidence if self.job.has_steps else Confidence.HINT

    def example(self, numbers: Container[int | None] = ()) -> tuple[str | None, tuple[int, int] | None]:
        """Return a step of median length to look at, among those with these numbers if there are any.

        Returns:
            text of its marker, start and end on the time line [ns]; None where no steps are marked.
        """
        rows = self.rows("steps")
        some = [row for row in rows if step_number(row["step"]) in numbers]
        steps = sorted(some or rows, key=lambda row: float(row["mean_ns"]))
        if not steps:
            return None, None
        usual = steps[len(steps) // 2]
        return str(usual["step"]), window_of(usual, "max_ns")
