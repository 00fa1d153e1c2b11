"""The options that commands share: groups of them, each declared once, as dataclasses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from rocpd.base import UsageError, frozen, output
from rocpd.base.option import Heading, declare, field_of, options_of, plain
from rocpd.cli.diagnostics import note, progress
from rocpd.cli.terminal import When
from rocpd.facts.rank import MARKS_STEPS
from rocpd.federate.plan.steps import IndexUse
from rocpd.federate.select.align import Align, GivenOffset
from rocpd.schema.rules.steps import STEP_MARKER

if TYPE_CHECKING:
    from rocpd.federate.run.cluster import Cluster
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window
    from rocpd.session import Session

_ABOUT_INPUTS = "Files, globs, folders, *.rpdb packages. None: $ROCPD_INPUT, else those of the working folder."


def _categories() -> Iterable[str]:
    from rocpd.summary.registry import GPU_DOMAINS, REGION_DOMAINS

    return (*REGION_DOMAINS, *GPU_DOMAINS)


@frozen
class Inputs:
    """The files to read."""

    HEADING: ClassVar = Heading.INPUTS

    words: tuple[str, ...] = plain((), _ABOUT_INPUTS, "[INPUTS]...", is_positional=True)
    named: tuple[str, ...] = declare(
        (), "The same as an option; several after one flag.", "INPUT...", ("-i", "--input")
    )
    skip_bad: bool = declare(False, "Leave out files that cannot be read, and report them.")

    @property
    def paths(self) -> list[str]:
        """All inputs, those of `-i` first."""
        return [*self.named, *self.words]

    def only(self, paths: Iterable[str]) -> Self:
        """Return the same options with other inputs, where some words were no inputs."""
        return replace(self, words=tuple(paths), named=())


@frozen
class SpanOptions:
    """The selected part of the time line, and the alignment of clocks: options of commands that count whole steps."""

    HEADING: ClassVar = Heading.WINDOW

    start: str | None = plain(None, "From: 30%, ns, 12.5ms or +5ms (from the start), -90ms (from the end).", "TIME")
    end: str | None = plain(None, "To, in the same forms.", "TIME")
    start_marker: str | None = declare(
        None, "On each rank from the start of this marker: text, /regex/, text#2.", "TEXT", complete_from="markers"
    )
    end_marker: str | None = declare(None, "On each rank to the end of this marker.", "TEXT", complete_from="markers")
    step: str | None = plain(
        None, "On each rank its own step of this number, or with this marker.", "N|N-M|TEXT", complete_from="steps"
    )
    window_kernel: str | None = declare(None, "From the first to the last of these kernels.", "REGEX")
    auto_roi: bool = declare(False, "From the first to the last dispatch of the hottest kernel.")
    align: Align = declare(
        Align.AUTO, "Where clocks are unrelated: by collectives, else first events (auto); first events of ranks; none."
    )
    clock_offset: tuple[str, ...] = declare(
        (), "Add so many ns, known to ±NS, to the times of a host, instead of --align; repeatable.", "HOST=NS[±NS]"
    )


@frozen
class WindowOptions(SpanOptions):
    """The selected part of the time line, and the rule by which events lie in it."""

    step_marker: str = field_of(STEP_MARKER, MARKS_STEPS)
    launched: bool = declare(False, "GPU work belongs to the window of its launch, not to that in which it ran.")
    inclusive: str = declare(
        "True", "True: events count that overlap the window; False: those that lie in it.", "BOOL", heading=Heading.AMD
    )
    clip: bool = declare(False, "Cut events that overlap the window at its edges.")


@frozen
class PlaceOptions:
    """The selected ranks, hosts and agents."""

    HEADING: ClassVar = Heading.FILTERS

    rank: str | None = plain(None, "Only these ranks: 0-3,8.", "LIST", complete_from="ranks")
    host: str | None = declare(None, "Only ranks of these hosts.", "LIST", complete_from="hosts")
    agent: str | None = declare(None, "Only GPU work of these agents: 4 or GPU-0.", "LIST")


@frozen
class FilterOptions(PlaceOptions):
    """The selected ranks, and events of ranks: the filters of commands that count events."""

    stream: str | None = declare(None, "Only GPU work of these streams.", "LIST")
    category: str | None = declare(
        None, "Only events of these domains: HIP,MARKER,KERNELS …", "LIST", complete=_categories
    )
    kernel: str | None = plain(None, "Only kernels that match.", "REGEX")
    exclude_kernel: str | None = declare(None, "Only kernels that do not match.", "REGEX")


@frozen
class PassOptions:
    """The passes of a program that are read row by row."""

    HEADING: ClassVar = Heading.FILTERS

    all_passes: bool = declare(
        False, "Of a program that ran for different counters read every pass, not the first alone."
    )


@frozen
class SelectionOptions(WindowOptions, FilterOptions):
    """The selected part of the job."""

    def window(self) -> Window | None:
        """Return the window asked for, or None.

        Raises:
            UsageError: `--clip` or `--launched` without a window, or an `--inclusive` that is no truth value.
        """
        from rocpd.federate.select.window import Window

        sides = (self.start, self.end, self.start_marker, self.end_marker)
        kernels, steps = (self.window_kernel, self.auto_roi, self.clip), (self.step, self.launched, self.step_marker)
        asked = Window(*sides, _truth(self.inclusive), *kernels, *steps)
        flag = "--clip" if self.clip else "--launched" if self.launched else ""
        if flag and not asked:
            raise UsageError(f"{flag} needs a window", "--step, --start, --end, a marker, --window-kernel, --auto-roi")
        return asked or None

    def filters(self) -> Filters | None:
        """Return the filters asked for, or None."""
        from rocpd.federate.select.filters import Filters

        names = (self.rank, self.host, self.agent, self.stream, self.category, self.kernel, self.exclude_kernel)
        return Filters(*names) or None

    def clock_offsets(self) -> dict[str, GivenOffset]:
        """Return host -> offset that is added to its times.

        Raises:
            UsageError: an offset is not of the form HOST=NS[±NS].
        """
        offsets: dict[str, GivenOffset] = {}
        for word in self.clock_offset:
            match = re.fullmatch(r"(.+)=([+-]?\d{1,18})(?:(?:±|\+-|\+/-)(\d{1,18}))?", word, re.ASCII)
            if not match:
                form = "not of the form HOST=NS or HOST=NS±NS"
                raise UsageError(f"--clock-offset {word}: {form}", "such as node2=-1500000+-2000")
            host, ns, within = match.groups()
            offsets[host] = int(ns) if within is None else (int(ns), int(within))
        return offsets


@frozen
class Execution:
    """Processes, cluster and index that do the work."""

    HEADING: ClassVar = Heading.EXECUTION

    jobs: int | None = declare(
        None,
        "Threads and processes at a time; without it as many as help.",
        "N",
        ("-j", "--jobs"),
        least=0,
        hidden_flags=("--threads",),
    )
    scheduler: str | None = declare(
        None,
        "Work on a Dask cluster: tcp://host:port, or the scheduler's JSON file.",
        "ADDRESS",
        environment="DASK_SCHEDULER_ADDRESS",
    )
    local_hosts: bool = declare(False, "On a cluster: read a file on the host that its path or metadata names.")
    index: IndexUse = declare(
        IndexUse.AUTO, "Answer from the index of rocpd index: where there is one that fits, only then, or never."
    )
    index_folder: Path | None = declare(
        None,
        "Where the index lies, if neither in the package nor in the cache.",
        "DIR",
        environment="ROCPD_INDEX_FOLDER",
    )

    def cluster(self) -> Cluster | None:
        """Connect to the cluster asked for, if any.

        Raises:
            UsageError: no scheduler answers, workers lack this package, or `--local-hosts` stands alone.
        """
        if not self.scheduler:
            if self.local_hosts:
                raise UsageError("--local-hosts needs a cluster", "--scheduler tcp://host:port")
            return None
        from rocpd.federate.run.cluster import Cluster

        return Cluster(self.scheduler, self.local_hosts, note)


@frozen
class JobChoice(Inputs, SelectionOptions, Execution):
    """The job: its files, the selected part of it, and what does the work."""

    def connect(
        self, *, has_analyses: bool = False, all_passes: bool = False, on_note: Callable[[str], None] = note
    ) -> Session:
        """Open the job. Errors as `rocpd.connect`, `window` and `filters`.

        Args:
            has_analyses: whether the command runs analyses, for which `--step-marker` counts without a window, too.
            all_passes: as `rocpd.connect`.
            on_note: called with notes.
        """
        from rocpd.session import connect

        if self.step_marker != STEP_MARKER and self.step is None and not has_analyses:
            raise UsageError("--step-marker needs --step")
        window, filters, offsets = self.window(), self.filters(), self.clock_offsets()
        with progress("import", "bytes") as report:
            return connect(
                self.paths,
                skip_bad=self.skip_bad,
                align=self.align,
                clock_offsets=offsets,
                window=window,
                filters=filters,
                all_passes=all_passes,
                client=self.cluster(),
                jobs=self.jobs or None,
                index=self.index,
                index_folder=self.index_folder,
                on_note=on_note,
                on_progress=report,
            )

    def open_side(self, paths: Sequence[str]) -> Session:
        """Open other inputs in the same way, for a comparison."""
        return self.only(paths).connect(has_analyses=True)


def whole(inputs: Inputs, execution: Execution = Execution()) -> JobChoice:
    """Return the choice of all of a job."""
    groups: tuple[tuple[type, object], ...] = (Inputs, inputs), (Execution, execution)
    return JobChoice(**{option.name: getattr(of, option.name) for kind, of in groups for option in options_of(kind)})


@frozen
class OutputOptions:
    """The place of results."""

    HEADING: ClassVar = Heading.OUTPUT

    name: str | None = plain(
        None,
        "File (a path, or with its format's ending) or base name. Else $ROCPD_OUTPUT_NAME or out.",
        "NAME",
        ("-o", "--output-file"),
    )
    folder: Path | None = declare(
        None, "Folder. Else $ROCPD_OUTPUT_PATH or ./rocpd-output-data.", "DIR", ("-d", "--output-path")
    )
    force: bool = declare(False, "Replace existing output.")

    @property
    def is_asked(self) -> bool:
        """Whether an option asks for a file; `-o -` asks for stdout."""
        return self.name not in (None, *output.STDOUT) or self.folder is not None

    def destination(self, endings: Iterable[str], default: str = "out") -> output.Destination:
        """Return the place of outputs, as `rocpd.base.output.destination`.

        Raises:
            UsageError: stdout was asked for.
        """
        output.check_not_stdout("-o", self.name)
        return output.destination(self.name, self.folder, endings, default)

    def path(self, ending: str) -> Path | None:
        """Return the file asked for, with this ending unless its name has one; None: stdout."""
        return self.destination([ending]).path(ending) if self.is_asked else None


@frozen
class TableOptions(OutputOptions):
    """The place of tables, and their look on a terminal."""

    color: When = declare(When.AUTO, "Colours: auto (on a terminal, without $NO_COLOR), always, never.")
    no_pager: bool = declare(False, "No $PAGER for output that is longer than the terminal.")


def _truth(inclusive: str) -> bool:
    truth = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if inclusive.lower() not in truth:
        raise UsageError(f"--inclusive {inclusive}: neither True nor False")
    return truth[inclusive.lower()]
