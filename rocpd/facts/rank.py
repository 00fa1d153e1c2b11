"""The options of analyses, and the view of one rank from which all its facts are derived: its rows and its time.

Each option stands here once, in a field that declares it. Never decides which time of a rank counts: `units` does, for
all ranks of a job at once. Help imports this module: it imports neither numpy nor modules that read files.
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
    """Divisions of a job: a table then has separate rows for each part."""

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
"""Divisions that group ranks."""

LANES = (By.AGENT, By.STREAM)
"""Divisions of a rank by the place where its operations run."""

LAUNCHES = (By.STEP, By.MARKER)
"""Divisions of a rank by the place where its operations were launched."""

DIVISIONS_OF_TIME = tuple(by for by in By if by not in (By.DISPATCH, By.API))
"""Divisions of everything that has a time: not those for counters or launches only."""

WHERE_IT_RAN = tuple(by for by in DIVISIONS_OF_TIME if by not in LAUNCHES)
"""The `DIVISIONS_OF_TIME` that do not go by the launch."""


MARKS_STEPS = Option("Markers that are steps; without it: step 5, iter 5, batch 5 …", "REGEX")
"""An option of analyses, and of `--step`."""


@frozen
class Options:
    """Options of analyses; each analysis takes the options in its row of `SUMMARIES`.

    Args:
        by: division of the job; None: one row for the whole job.
        kernel_names: form of kernel names: display names, short or in full, mangled names, or bare function names.
        categories: JSON or TOML file of kernel categories; None: the built-in one.
        step_marker: regular expression for the text of markers that are steps.
        sequence: number of preceding operations that make the context of a kernel.
        bins: number of points of curves and columns of the heat map.
        top: number of the largest gaps that are listed.
        everything: the whole active part of the job counts, including warm-up.
        per: the unit that amounts of panels are counted per.
        amd_compatible: panels have the numbers of rocprof-compute, over all kernels.
        roofs: `roofline.csv` of measured rates; None: rates that follow from the clock.
        each_agent: kernels of each agent have separate rows, in a division by step or marker.
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
        """Whether the answer depends on named files, or on options that another package declares."""
        return bool(self.categories or self.roofs or self.further)


Key: TypeAlias = tuple[object, ...]
Base: TypeAlias = tuple[int, int]
"""Start and end of a time that counts, by the clock of a rank [ns]."""


_OF_RANK = {By.RANK: "number", By.HOST: "hostname", By.RUN: "run", By.COMMAND: "command"}


def key_of(by: By | None, rank: Rank, lane: int | None = None) -> Key:
    """Return the values of the columns of a division.

    Args:
        by: the division.
        rank: the rank.
        lane: id of the agent, stream or dispatch, `NULL` where unknown; only needed in a division by one of these.

    Raises:
        ValueError: the division needs a lane, and none is given; or it goes by the launch, as `Origins` does.
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
        base: start and end of the time in which its agents could have worked in it [ns]; None without a window, and
            where work counts by its launch.
    """

    part: Part = Part(None, None)
    base: Base | None = None


@frozen
class RankReading:
    """The input of work on one rank, in any process.

    Args:
        reader: reads the rank.
        options: options of the analysis.
        window: the part of the window that the rank sees.
        left_out: kind of events of the rank -> number of events left out for invalid timestamps.
    """

    reader: RankReader
    options: Options
    window: RankWindow = RankWindow()
    left_out: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, reader: RankReader, windows: Mapping[int, RankWindow], options: Options | None = None) -> RankReading:
        """Return a reading that keeps its results, in the rank's part of the window; ranks without a part see all."""
        keeping = reader if reader.known is not None else reader.keeping()
        return cls(keeping, options or Options(), windows.get(reader.rank.number, RankWindow()))

    @property
    def rank(self) -> Rank:
        """The rank."""
        return self.reader.rank

    def whole(self) -> RankReading:
        """Return a reading of all rows of the rank, regardless of window and filters."""
        return RankReading(self.reader.whole(), self.options)

    def unwindowed(self) -> RankReading:
        """Return a reading of the rows of the rank that pass the filters, regardless of the window."""
        return RankReading(self.reader.unwindowed(), self.options)

    def derived(self, fact: Fact, derive: Callable[[RankReading], Answer], *asked: object) -> Answer:
        """Return the result of `derive`; it is kept for other commands where all rows of the rank count.

        Args:
            fact: name under which it is kept.
            derive: function of this reading; its result depends on the rank, the options, the window and `asked`.
            asked: further values that the result depends on, completely described by their `repr`.
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
        """Count rows that another reading of the same rank left out, where they are more than here."""
        for what, count in counts.items():
            self.left_out[what] = max(self.left_out[what], count)

    def key(self, lane: int | None = None) -> Key:
        """Return the values of the columns of the division in the options; as `key_of`."""
        return key_of(self.options.by, self.rank, lane)
