"""The question to an analysis, and one rank as everything that is derived of it reads it: its rows, and its time.

Each thing that can be asked stands here once, in a field that declares its option. Never decides which time of a rank
counts: `units` does, for all ranks of a job at once. Help needs this: imports neither numpy nor what reads files.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rocpd.base import NULL, Answer, frozen
from rocpd.base.option import Option, declare, field_of, plain
from rocpd.counters.panels import Per
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.schema.rules.steps import STEP_MARKER

if TYPE_CHECKING:
    from rocpd.federate.open.identify import Rank
    from rocpd.federate.run.rank_reader import Fact, RankReader


class By(enum.StrEnum):
    """Divisions of a job: a table then has rows of its own for each."""

    RANK = "rank"
    HOST = "host"
    AGENT = "agent"
    STREAM = "stream"
    STEP = "step"
    MARKER = "marker"
    RUN = "run"
    COMMAND = "command"
    DISPATCH = "dispatch"
    API = "api"


GROUPS = (By.HOST, By.RUN, By.COMMAND)
"""Divisions that take ranks together."""

LANES = (By.AGENT, By.STREAM)
"""Divisions of a rank by where its operations run."""

LAUNCHES = (By.STEP, By.MARKER)
"""Divisions of a rank by where its operations were launched."""

DIVISIONS_OF_TIME = tuple(by for by in By if by not in (By.DISPATCH, By.API))
"""Divisions of all that has a time: not by what counters or launches alone know."""

WHERE_IT_RAN = tuple(by for by in DIVISIONS_OF_TIME if by not in LAUNCHES)
"""Those of them that do not go by the launch."""


MARKS_STEPS = Option("Markers that are steps; without it: step 5, iter 5, batch 5 …", "REGEX")
"""An option of analyses, and of `--step`."""


@frozen
class Options:
    """Options of analyses; each one takes what concerns it, as its row of `SUMMARIES` says.

    Args:
        by: divide the job; None: one row for the whole job.
        kernel_names: display names, short or in full to people, mangled ones, or bare function names.
        categories: JSON or TOML file of kernel categories; None: the built-in one.
        step_marker: regular expression for the text of markers that are steps.
        sequence: how many preceding operations make the context of a kernel.
        bins: points of curves and columns of the heat map.
        top: how many of the largest gaps are listed.
        everything: warm-up counts too, all of the active part of the job.
        per: what amounts of panels are counted per.
        amd_compatible: panels have the numbers of rocprof-compute, over all kernels.
        roofs: `roofline.csv` of measured rates; None: those that follow from the clock.
        each_agent: kernels of each agent have rows of their own, where steps or markers divide.
        flat: calls of one name have one row, wherever they lie.
        further: values of options that an analysis of another package declares, by name.
    """

    by: By | None = None
    kernel_names: KernelNames = KernelNames.DISPLAY
    categories: Path | None = declare(None, "Kernel categories, JSON or TOML: name -> regexes.", "FILE")
    step_marker: str = field_of(STEP_MARKER, MARKS_STEPS)
    sequence: int = declare(0, "Kernels after the same N operations make a row.", "N", least=0, most=100)
    bins: int = declare(50, "Points of a curve, columns of the heat map.", "N", least=1, most=100_000)
    top: int = declare(20, "How many of the largest gaps, or slowest copies, to list.", "N", least=0)
    everything: bool = plain(False, "Count warm-up too: from the first dispatch to the last.", flags=("--all",))
    per: Per = declare(Per.KERNEL, "What amounts of panels are counted per.")
    amd_compatible: bool = declare(False, "Panels with rocprof-compute's numbers, over all kernels.")
    roofs: Path | None = declare(None, "Measured rates for the roofline, a roofline.csv.", "FILE")
    each_agent: bool = declare(False, "With --by step or marker: kernels of each agent for itself.")
    flat: bool = declare(False, "Calls of one name together, wherever they lie.")
    further: Mapping[str, object] = field(default_factory=dict)

    @property
    def names_files(self) -> bool:
        """Whether the answer hangs on files that are named, or on what another package declares."""
        return bool(self.categories or self.roofs or self.further)


Key: TypeAlias = tuple[object, ...]
Base: TypeAlias = tuple[int, int]
"""Start and end of a time that counts, by the clock of a rank [ns]."""


_OF_RANK = {By.RANK: "number", By.HOST: "hostname", By.RUN: "run", By.COMMAND: "command"}


def key_of(by: By | None, rank: Rank, lane: int | None = None) -> Key:
    """Return the values of the columns of a division.

    Args:
        by: what divides.
        rank: the rank.
        lane: id of the agent, stream or dispatch, `NULL` where it is unknown; it may be left out where none divides.

    Raises:
        ValueError: one of these divides, and no lane is given; or it goes by the launch, of which `Origins` knows.
    """
    if by is None:
        return ()
    if by in _OF_RANK:
        return (getattr(rank, _OF_RANK[by]),)
    if by in (*LANES, By.DISPATCH):
        if lane is None:
            raise ValueError(f"the key of a division by {by.value} needs the id of the {by.value}")
        return (rank.number, None if lane == NULL else lane)
    raise ValueError(f"a division by {by.value} goes by the launch of each operation")


@frozen
class RankWindow:
    """The part of a window that a rank sees, by its clock.

    Args:
        part: the part of it that counts; all of it without a window.
        base: start and end of what its agents could have worked in it [ns]; None without a window, and where work
            counts where it was launched, not where it ran.
    """

    part: Part = Part(None, None)
    base: Base | None = None


@frozen
class RankReading:
    """The input of work on one rank, in whichever process it runs.

    Args:
        reader: reads the rank.
        options: what was asked.
        window: what the rank sees of the window.
        left_out: kind of events of the rank -> how many of them are left out, for invalid timestamps.
    """

    reader: RankReader
    options: Options
    window: RankWindow = RankWindow()
    left_out: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, reader: RankReader, windows: Mapping[int, RankWindow], options: Options | None = None) -> RankReading:
        """Return what reads a rank and keeps what it reads, in the window that the rank sees; ranks without see all."""
        keeping = reader if reader.known is not None else reader.keeping()
        return cls(keeping, options or Options(), windows.get(reader.rank.number, RankWindow()))

    @property
    def rank(self) -> Rank:
        """The rank."""
        return self.reader.rank

    def whole(self) -> RankReading:
        """Return what reads all rows of the rank, whatever window and filters."""
        return RankReading(self.reader.whole(), self.options)

    def unwindowed(self) -> RankReading:
        """Return what reads the rows of the rank that pass the filters, whatever the window."""
        return RankReading(self.reader.unwindowed(), self.options)

    def derived(self, fact: Fact, derive: Callable[[RankReading], Answer], *asked: object) -> Answer:
        """Return what an analysis derives of the rank; it is kept for other commands where all rows of the rank count.

        Args:
            fact: under which it is kept.
            derive: derives it from this reading; it hangs on the rank, on what was asked, on the window and on `asked`.
            asked: whatever else it hangs on, of values whose `repr` is all of them.
        """
        if not self.reader.keeps_facts or self.options.names_files:
            return derive(self)
        counting = replace(self, left_out=Counter())
        of, given = self.rank, (self.options, self.window, asked)
        hangs_on = (of.number, of.hostname, of.run, of.command, repr(given))
        answer, left_out = self.reader.once(fact.of(*hangs_on), lambda: (derive(counting), dict(counting.left_out)))
        self.also_left_out(left_out)
        return answer

    def also_left_out(self, counts: Mapping[str, int]) -> None:
        """Count what another reading of the same rank left out, where it is more than this one did."""
        for what, count in counts.items():
            self.left_out[what] = max(self.left_out[what], count)

    def key(self, lane: int | None = None) -> Key:
        """Return the values of the columns of the division that was asked for; as `key_of`."""
        return key_of(self.options.by, self.rank, lane)
