"""A job at one moment, as values, as text for people, and as JSON. Reads nothing."""

from __future__ import annotations

import enum
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from statistics import median
from typing import Any

from rocpd.base import Row, amount, attributes, by_key, frozen
from rocpd.facts.communication.collectives import listed
from rocpd.table.human import Head, readable, spark, write_readable
from rocpd.table.palette import Screen

VERSION = 1
"""Version of the JSON, which docs/top.md describes; counts changes that break readers."""

LIKELY = 0.01
"""Largest probability of chance for a straggler."""

_SPARK = 30  # steps
_OLD_S = 10.0  # age of conclusions from which on it is shown [s]
_RANKS, _KERNELS, _FINDINGS, _HANG = 8, 5, 4, 2  # rows of text
_SHORT = {"exposed communication": "communication", "exposed copies": "copies"}


class JobState(enum.StrEnum):
    """The state of a rank, or of the job."""

    WAITING = "waiting"  # no file, or nothing in it
    RUNNING = "running"
    SILENT = "silent"  # nothing has come for longer than usual
    ENDED = "ended"
    UNREADABLE = "unreadable"


class TopPage(enum.StrEnum):
    """The part of a screen below the head."""

    RANKS = "ranks"
    HOSTS = "hosts"
    KERNELS = "kernels"
    HANG = "hang"


@frozen
class RankNow:
    """A rank at a moment.

    Args:
        rank: its number; None: not in its file yet.
        host, file: its host, and its file.
        state: its state.
        silent_s: time since the last rows [s].
        rows: number of rows read.
        step: number of its newest finished step; None: none is finished.
        parts: part of the time of its GPU -> share [%], in the analysed steps.
        cost_ns, cost_percent: its cost per step; None: unknown, or not to blame.
        mainly: the kind of work that takes longer.
        chance: probability that the cost does not last; None: unknown.
        memory_bytes: peak of its memory.
        sampled: sampled quantity -> mean and unit.
        problem: reason why its file cannot be read.
    """

    rank: int | None
    host: str = ""
    file: str = ""
    state: JobState = JobState.RUNNING
    silent_s: float = 0.0
    rows: int = 0
    step: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    cost_ns: float | None = None
    cost_percent: float | None = None
    mainly: str = ""
    chance: float | None = None
    memory_bytes: int | None = None
    sampled: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    problem: str = ""

    @property
    def order(self) -> tuple[float, float, int]:
        """The sort key: highest cost first, then longest silence."""
        silent = self.silent_s if self.state in (JobState.SILENT, JobState.UNREADABLE) else 0.0
        return -(self.cost_percent or 0.0), -silent, -1 if self.rank is None else self.rank

    @property
    def is_straggler(self) -> bool:
        """Whether it has a cost, by more than chance."""
        return self.cost_percent is not None and self.chance is not None and self.chance <= LIKELY


@frozen
class StepTime:
    """A step that is finished on all ranks: its number and its duration, the mean of the ranks [ns]."""

    number: int
    mean_ns: float


@frozen
class Glance:
    """A job at a moment.

    Args:
        at_s: time [s since 1970].
        state: state of the job.
        job: description of the job, in a line.
        steps: steps of the last minutes, in order.
        looked_at: the analysed part, such as `steps 12 to 31`.
        parts: part of the time of GPUs -> share [%].
        ranks: highest cost first.
        findings: the conclusions, in sentences.
        kernels: name, calls, time [ns], share [%] of the hottest kernels.
        problems: files that cannot be read, or are missing.
        hang: answer of `rocpd hang`.
        hangs: whether this answer is that the job hangs.
        hang_s: time for which it has hung [s].
        missing: ranks that then hold up the others.
        age_s: age of the conclusions [s].
        cpu_percent: share of a core for watching.
        runs: number of separate runs among the ranks.
    """

    at_s: float
    state: JobState
    job: str = ""
    steps: tuple[StepTime, ...] = ()
    looked_at: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    ranks: tuple[RankNow, ...] = ()
    findings: tuple[str, ...] = ()
    kernels: tuple[Row, ...] = ()
    problems: tuple[str, ...] = ()
    hang: tuple[str, ...] = ()
    hangs: bool = False
    hang_s: float = 0.0
    missing: tuple[int, ...] = ()
    age_s: float = 0.0
    cpu_percent: float = 0.0
    runs: int = 1

    @property
    def usual_ns(self) -> float | None:
        """The usual duration of a step: the median of the last minutes [ns]."""
        return median(step.mean_ns for step in self.steps) if self.steps else None

    @property
    def is_sure(self) -> bool:
        """Whether no cost may be chance."""
        return all(rank.is_straggler for rank in self.ranks if rank.cost_percent is not None)

    def without_names(self) -> Glance:
        """Return the glance without names of places and people; hosts are numbered."""
        names = sorted({rank.host for rank in self.ranks if rank.host}, key=len, reverse=True)
        hosts = {name: f"host-{number:02}" for number, name in enumerate(sorted(names), 1)} | {"": ""}
        findings, hang = list(self.findings), list(self.hang)
        for name in names:  # the longest first: one may be a part of another
            findings = [text.replace(name, hosts[name]) for text in findings]
            hang = [text.replace(name, hosts[name]) for text in hang]
        ranks = tuple(
            replace(rank, host=hosts[rank.host], file="", problem=rank.problem and "…") for rank in self.ranks
        )
        problems = tuple("a file cannot be read" for _ in self.problems[:1])
        job = amount(len(ranks), "rank")
        return replace(self, job=job, ranks=ranks, problems=problems, findings=tuple(findings), hang=tuple(hang))

    def document(self) -> dict[str, Any]:
        """Return the glance as dictionaries, lists and values of JSON, which `--format json` writes."""
        last = self.steps[-1] if self.steps else None
        return {
            "version": VERSION,
            **attributes(self, "at_s state job runs looked_at"),
            "step": last and last.number,
            "step_ns": last and last.mean_ns,
            "usual_step_ns": self.usual_ns,
            "steps": [{"step": step.number, "mean_ns": step.mean_ns} for step in self.steps],
            "parts_percent": dict(self.parts),
            "ranks": [_rank_document(rank) for rank in self.ranks],
            "findings": list(self.findings),
            "kernels": [dict(zip(("name", "calls", "total_ns", "percent"), row, strict=True)) for row in self.kernels],
            **attributes(self, "problems hangs hang_s missing hang age_s cpu_percent"),
        }

    def line(self) -> str:
        """Return the glance as one line, without the time."""
        state = "" if self.steps else self.state.value
        runs = f"{self.runs} separate runs, not one job" if self.runs > 1 else ""
        return "; ".join(filter(None, (state, runs, self.step_line(), self.parts_line(), *self._troubles())))

    def step_line(self) -> str:
        """Return the duration of a step; before the first step, the number of rows."""
        if not self.steps:
            rows = sum(rank.rows for rank in self.ranks)
            return f"no step yet, {amount(rows, 'row')}" if rows and self.state is JobState.RUNNING else ""
        last = self.steps[-1]
        return f"step {last.number}: {readable(last.mean_ns, 'ns')}, usually {readable(self.usual_ns, 'ns')}"

    def parts_line(self) -> str:
        """Return the parts of the time of GPUs."""
        return ", ".join(f"{_SHORT.get(part, part)} {share:.1f} %" for part, share in self.parts.items())

    def spark_line(self, width: int = _SPARK) -> str:
        """Return the last steps as columns."""
        return spark([step.mean_ns for step in self.steps[-width:]])

    def head(self, width: int = 0) -> Iterator[str]:
        """Yield the lines above tables: the job, its steps, the parts of its time, the conclusions.

        Args:
            width: longer lines are cut [characters]; 0: none.
        """
        step = self.step_line()
        pictured = self.spark_line(max(0, width - len(step) - 3) if width else _SPARK)
        lines = [f"{self.state.value}: {self.job or 'no job yet'}"]
        lines += ["   ".join(filter(None, (step, pictured)))] if step else []
        if self.parts:
            age = f", {self.age_s:.0f} s ago" if self.state is JobState.RUNNING and self.age_s >= _OLD_S else ""
            lines.append(f"{self.parts_line()}; {self.looked_at}{age}")
        lines += self.hang[:_HANG] if self.hangs else ()
        lines += [*self.findings[: _FINDINGS if width else None], *self.problems]
        yield from (f"{line[: width - 1]}…" if 0 < width < len(line) else line for line in lines)

    def page(self, page: TopPage, screen: Screen) -> list[str]:
        """Return a page as lines."""
        if page is TopPage.HANG:
            return list(self.hang) or ["nothing is known yet of who waits"]
        if page is TopPage.KERNELS:
            return _table(KERNEL_HEADS, self.kernels, screen) if self.kernels else ["no kernels yet"]
        if page is TopPage.HOSTS:
            return _table(HOST_HEADS, list(self._host_rows()), screen) if self.ranks else ["no ranks yet"]
        return _table(RANK_HEADS, [rank_row(rank) for rank in self.ranks], screen) if self.ranks else ["no ranks yet"]

    def _host_rows(self) -> Iterator[Row]:
        """Yield name, ranks, highest cost and longest silence of hosts, highest cost first."""
        for host, ranks in by_key((rank.host, rank) for rank in self.ranks).items():
            costs = [rank.cost_percent for rank in ranks if rank.cost_percent is not None]
            yield host, len(ranks), max(costs, default=None), max(round(rank.silent_s) for rank in ranks)

    def lines(self, screen: Screen | None = None) -> Iterator[str]:
        """Yield the lines for the console."""
        yield from self.head()
        if self.ranks:
            yield ""
            yield from _table(RANK_HEADS, [rank_row(rank) for rank in self.ranks[:_RANKS]], screen)
            if len(self.ranks) > _RANKS:
                yield f"and {amount(len(self.ranks) - _RANKS, 'more rank')}: --format json"
        if self.kernels:
            yield ""
            yield from _table(KERNEL_HEADS, self.kernels[:_KERNELS], screen)

    def _troubles(self) -> Iterator[str]:
        """Yield ranks with costs, silent ranks, and files that cannot be read, in few words."""
        for rank in self.ranks:
            if rank.is_straggler and rank.cost_percent:
                yield f"rank {rank.rank} costs {rank.cost_percent:.1f} % ({rank.mainly})"
        silent = [rank for rank in self.ranks if rank.state is JobState.SILENT]
        if silent:
            names = listed(sorted(rank.rank for rank in silent if rank.rank is not None)) or "without a number"
            longest = max(rank.silent_s for rank in silent)
            yield f"rank{'s' if len(silent) > 1 else ''} {names} silent for {longest:.0f} s"
        yield from self.hang[:1] if self.hangs else ()
        yield from self.problems


RANK_HEADS = (
    Head("rank"),
    Head("host", minor=True),
    Head("state"),
    Head("step"),
    Head("cost_ns", "ns"),
    Head("cost_percent", "%"),
    Head("for"),
    Head("compute", "%"),
    Head("comm.", "%"),
    Head("idle", "%"),
    Head("memory", "bytes", minor=True),
    Head("sampled", minor=True),
)
"""Columns of `rank_row`."""

HOST_HEADS = (Head("host", matters=True), Head("ranks"), Head("cost_percent", "%"), Head("silent_s"))
"""Columns of the page of hosts."""

KERNEL_HEADS = (
    Head("kernel", matters=True),
    Head("calls"),
    Head("total_ns", "ns"),
    Head("percent", "%", is_share=True),
)
"""Columns of `Glance.kernels`."""


def rank_row(rank: RankNow) -> Row:
    """Return the row of a rank."""
    state = f"silent {rank.silent_s:.0f} s" if rank.state is JobState.SILENT else rank.state.value
    parts = [rank.parts.get(part) for part in ("compute", "exposed communication", "idle")]
    sampled = ", ".join(readable(value, unit) for value, unit in rank.sampled.values())
    costs = rank.cost_ns, rank.cost_percent, rank.mainly or None
    return (rank.rank, rank.host, state, rank.step, *costs, *parts, rank.memory_bytes, sampled or None)


def _table(heads: Sequence[Head], rows: Sequence[Row], screen: Screen | None) -> list[str]:
    """Return rows as lines, without empty columns."""
    used = [any(value is not None for value in column) for column in zip(*rows, strict=True)]
    out = io.StringIO()
    chosen = [head for head, is_used in zip(heads, used, strict=True) if is_used]
    shown = ([value for value, is_used in zip(row, used, strict=True) if is_used] for row in rows)
    write_readable(chosen, map(tuple, shown), out, screen=screen)
    return out.getvalue().rstrip("\n").split("\n")


def _rank_document(rank: RankNow) -> dict[str, Any]:
    return {
        **attributes(rank, "rank host file state silent_s rows step"),
        "parts_percent": dict(rank.parts),
        **attributes(rank, "cost_ns cost_percent"),
        "mainly": rank.mainly or None,
        **attributes(rank, "chance memory_bytes"),
        "sampled": {name: {"mean": mean, "unit": unit} for name, (mean, unit) in rank.sampled.items()},
        "problem": rank.problem or None,
    }
