"""The sections of a report, in order. `SECTIONS` is the table of contents; imports nothing heavy.

A new section needs its function in `sections.py`, its row here and its test.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocpd.base import UsageError, entries, frozen
from rocpd.facts.rank import By
from rocpd.facts.recorders import Recordable

ENTRY_POINTS = "rocpd.report_sections"
"""Entry point group; each entry point names an `Entry`, or a function that takes a `Material` and yields blocks."""

READ = ("categories", "step_marker", "everything", "bins")
"""Options of analyses that a report reads."""


@frozen
class Inquiry:
    """The question of a section: an analysis, and its division."""

    analysis: str
    by: By | None = None

    def __str__(self) -> str:
        return f"{self.analysis} by {self.by}" if self.by else self.analysis


@frozen
class Entry:
    """One row of the table of contents.

    Args:
        name: the value for `--sections`.
        title: title of the section.
        home: `module:function` that takes a `Material` and yields blocks.
        needs: analyses that it arranges; all sections share one pass over the ranks.
        recordable: kind of events to record, if there is no data; None: no kind in particular.
        has_base: whether it compares with a base, and exists only with one.
        is_rare: whether it is left out without data, unless it is named.
        concludes: whether it also needs the tables that the overview and the rules of advice read.
        is_folded: whether few readers need it.
    """

    name: str
    title: str
    home: str
    needs: tuple[Inquiry, ...] = ()
    recordable: Recordable | None = None
    has_base: bool = False
    is_rare: bool = False
    concludes: bool = False
    is_folded: bool = False


COMPARED = Inquiry("diff")
"""Asks for the comparison with a base, which is not an analysis of one job."""

_RANKS = Inquiry("ranks")
_BUDGET = (Inquiry("budget"), Inquiry("budget", By.RANK))
_COUNTERS = (Inquiry("counters"), Inquiry("roofline"))
_FLAMES = (Inquiry("calls"), Inquiry("stacks"))
_INSIDE = (Inquiry("hot-spots"), Inquiry("memory-access"), Inquiry("basic-blocks"))


_OURS = "rocpd.report.sections:"  # functions with the names of sections


def _ours(name: str, title: str, *needs: Inquiry, recordable: Recordable | None = None) -> Entry:
    """Return the entry of a section of this package."""
    return Entry(name, title, _OURS + name, needs, recordable)


SECTIONS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("verdict", "Verdict", f"{_OURS}verdict", concludes=True),
        _ours("overview", "Ranks over time", _RANKS, recordable=Recordable.KERNELS),
        _ours("budget", "Where the time goes", *_BUDGET, recordable=Recordable.KERNELS),
        _ours("collectives", "Collectives, and who waits for whom", _RANKS, recordable=Recordable.COLLECTIVES),
        _ours("idle", "Why GPUs are idle", Inquiry("idle"), recordable=Recordable.CALLS),
        _ours("steps", "Steps", _RANKS, recordable=Recordable.STEPS),
        _ours("whatif", "What would be gained", _RANKS, recordable=Recordable.STEPS),
        _ours("kernels", "Kernels", Inquiry("kernels"), recordable=Recordable.KERNELS),
        _ours("launch", "Launches and queues", Inquiry("launch"), recordable=Recordable.CALLS),
        Entry("flames", "Calls and call stacks", f"{_OURS}flames", _FLAMES, Recordable.CALLS, is_rare=True),
        _ours("copies", "Copies", Inquiry("copies"), Inquiry("copy-sizes"), recordable=Recordable.COPIES),
        _ours("memory", "Memory", Inquiry("memory"), Inquiry("allocation-sites"), recordable=Recordable.ALLOCATIONS),
        _ours("counters", "Hardware counters", *_COUNTERS, recordable=Recordable.COUNTERS),
        Entry("inside", "Inside of kernels", f"{_OURS}inside", _INSIDE, Recordable.PC_SAMPLES, is_rare=True),
        Entry("comparison", "Compared with the base", f"{_OURS}comparison", (COMPARED,), has_base=True),
        Entry("job", "The job", f"{_OURS}job", (Inquiry("trace"),), is_folded=True),
        Entry("appendix", "How to make each table again", f"{_OURS}appendix", is_folded=True),
    )
}
"""The sections of this package, in order; sections of other packages come before the last two."""


def known_sections() -> dict[str, Entry]:
    """Return SECTIONS and the sections of installed packages, in order; these cannot replace a name in SECTIONS."""
    *ours, job, appendix = SECTIONS.items()
    others = ((name, entry) for name, entry in entries.added(ENTRY_POINTS, Entry, _plain) if name not in SECTIONS)
    return dict((*ours, *others, job, appendix))


def chosen_sections(names: Iterable[str], *, has_base: bool = False) -> list[Entry]:
    """Return the named sections, in the order of a report; all if none is named.

    Raises:
        UsageError: a name is unknown, or a named section compares and there is no base.
    """
    known, asked = known_sections(), list(names)
    for name in asked:
        if name not in known:
            raise UsageError(f"no section is called {name}", entries.near(name, known, f"one of {', '.join(known)}"))
        if known[name].has_base and not has_base:
            raise UsageError(f"section {name}: there is no base", "--base says what to compare with")
    return [entry for name, entry in known.items() if name in asked or not (asked or entry.has_base > has_base)]


def _plain(name: str, home: str, package: str) -> Entry:
    """Return the entry of a plain function, which reads the tables that other sections need."""
    return Entry(name, f"{name.capitalize()} (from {package})", home)


_WHERE = {
    "diff": "comparison",
    "comm.exposed": "budget",
    "gpu.compute": "budget",
    "comm": "collectives",
    "step": "steps",
    "gpu": "idle",
    "alloc": "memory",
    "memory": "memory",
    "trace": "job",
}  # rule of a finding, or its first word -> the section with its evidence


def section_of(rule: str) -> str:
    """Return the section with the evidence of a finding; empty if there is none.

    >>> section_of("comm.straggler"), section_of("comm.exposed"), section_of("job")
    ('collectives', 'budget', '')
    """
    return _WHERE.get(rule) or _WHERE.get(rule.partition(".")[0], "")
