"""Owns reading the statistics that all summaries share: each kind of event is read once per rank.

Joins stay inside a rank; ranks are added up in Python. Never arranges tables for people.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeAlias

from rocpd.errors import QueryError
from rocpd.federate.session import Session
from rocpd.schema.load import strip_comments
from rocpd.schema.render import Part
from rocpd.summary.moments import Moments, of_one

Progress: TypeAlias = Callable[[int, int], None]

KINDS = ("kernels", "memory_copies", "memory_allocations", "scratch_memory", "regions", "markers")
"""Kinds of events; each has a `.sql` file that gives category, name and duration."""


class KernelNames(enum.StrEnum):
    """Which name of a kernel counts; each has a `.sql` file."""

    DISPLAY = "kernels"
    MANGLED = "kernels_mangled"
    TRUNCATED = "kernels_truncated"


@dataclass(frozen=True)
class Group:
    """Statistics of the events of one rank with one category and name."""

    rank: int
    category: str | None
    name: str | None
    moments: Moments


@functools.cache
def _sql(name: str) -> str:
    return strip_comments((files("rocpd.summary") / "sql" / f"{name}.sql").read_text(encoding="utf-8"))


class Survey:
    """Statistics of a session, read when first asked for.

    Args:
        session: what to read.
        progress: called with (steps done, steps in all); a step is one kind of one rank.
        kernel_names: how kernels are named.
    """

    def __init__(
        self,
        session: Session,
        progress: Progress | None = None,
        kernel_names: KernelNames = KernelNames.DISPLAY,
    ) -> None:
        self._files = {"kernels": kernel_names.value}
        self.session = session
        self._progress = progress
        self._groups: dict[str, tuple[Group, ...]] = {}
        self._done = 0

    def groups(self, kind: str) -> tuple[Group, ...]:
        """Give the statistics of one of `KINDS`, by rank, category and name."""
        if kind not in self._groups:
            self._groups[kind] = found = tuple(self._read(kind))
            calls = sum(group.moments.calls for group in found)
            unsound = calls - sum(group.moments.timed for group in found)
            if unsound:
                self.session.note(
                    f"{kind.replace('_', ' ')}: {unsound} of {calls} have no sound times (start 0, or end before"
                    " start): they count as calls, not as time"
                )
        return self._groups[kind]

    def _read(self, kind: str) -> Iterator[Group]:
        for part in self.session.parts:
            yield from self._read_part(_sql(self._files.get(kind, kind)), part)
            self._done += 1
            if self._progress:
                self._progress(self._done, len(KINDS) * len(self.session.parts))

    def _read_part(self, events: str, part: Part) -> Sequence[Group]:
        rank = part.rank or 0
        try:
            rows = self.session.rows_in(rank, _sql("moments").replace("{{events}}", events))
        except QueryError as error:
            if "integer overflow" not in error.message:
                raise
            return self._count_in_python(events, part)
        return [
            Group(rank, category, name, Moments(calls, timed, total or 0, low, high, _squares(*sums)))
            for category, name, calls, timed, total, low, high, *sums in rows
        ]

    def _count_in_python(self, events: str, part: Part) -> Sequence[Group]:
        """Add up without limits: sums of damaged durations (a start of 0) pass 64 bits."""
        found: dict[tuple[str | None, str | None], Moments] = {}
        for category, name, start, end in self.session.rows_in(part.rank or 0, events):
            sound = start is not None and end is not None and 0 < start <= end
            found[category, name] = found.get((category, name), Moments()) + of_one(end - start if sound else None)
        return [Group(part.rank or 0, category, name, moments) for (category, name), moments in found.items()]


def _squares(high_high: int | None, high_low: int | None, low_low: int | None) -> int:
    return ((high_high or 0) << 40) + ((high_low or 0) << 21) + (low_low or 0)
