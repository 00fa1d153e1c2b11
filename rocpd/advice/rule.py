"""Owns what a rule of advice is. Never judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from rocpd.advice.case import Case
from rocpd.advice.recording import NotRecorded
from rocpd.frozen import frozen
from rocpd.summary.findings import Finding
from rocpd.trace.recorders import ROCPROFV3, TraceProfiler

ENTRY_POINTS = "rocpd.rules"
"""Entry point group; each one names a `Rule`."""


@frozen
class Threshold:
    """A number that decides; `--thresholds` replaces it.

    Args:
        name: within the rule; ends in its unit.
        value: unless said otherwise.
        doc: what it is compared with.
    """

    name: str
    value: float
    doc: str


@frozen
class Need:
    """A table of an analysis that a rule reads.

    Args:
        table: its name.
        without: why the rule can't look where there is no such table: what is not recorded, and how it would be.
    """

    table: str
    without: str | NotRecorded

    def text(self, recorder: TraceProfiler = ROCPROFV3) -> str:
        """Return why, with the options of a profiler."""
        return self.without if isinstance(self.without, str) else self.without.text(recorder)


Look: TypeAlias = Callable[[Case], Iterable[Finding]]
"""Returns problems; nothing where there are none. Raises `CannotLookError`."""


def _never(cause: Finding, other: Finding) -> bool:
    return False


@frozen
class Rule:
    """A rule.

    Args:
        id: word that stays the same.
        asks: the question, in a few words.
        fires: when it finds a problem, and how much it may gain; thresholds as `{name}`.
        look: judges a case.
        needs: what it reads; without one of them it can't look.
        thresholds: numbers that decide.
        explains: whether a finding of this rule is why there is another finding, which then is not reported by itself.
    """

    id: str
    asks: str
    fires: str
    look: Look
    needs: tuple[Need, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    explains: Callable[[Finding, Finding], bool] = _never
