"""Owns the options that commands share, each declared once."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

from rocpd.errors import UsageError

if TYPE_CHECKING:
    from rocpd.federate.run.cluster import Cluster
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window
    from rocpd.session import Session


class AlignChoice(StrEnum):
    """How ranks with different clocks are laid on one time line."""

    AUTO = "auto"
    NONE = "none"
    START = "start"


class StrategyChoice(StrEnum):
    """How a statement runs over many ranks."""

    AUTO = "auto"
    ROWS = "rows"
    AGGREGATES = "aggregates"
    ATTACHED = "attached"


Paths: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUTS",
        show_default=False,
        help="Files, globs, folders, *.rpdb packages. None: $ROCPD_INPUT, else what lies in this folder.",
    ),
]
Input: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--input", "-i", metavar="INPUT...", show_default=False, help="Inputs, as an option; several after one flag."
    ),
]
SkipBad: TypeAlias = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out files that cannot be read, and say so.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace existing output.")]
Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Show tracebacks of errors.")]
Align: TypeAlias = Annotated[
    AlignChoice,
    typer.Option(
        "--align", help="Lay ranks with unrelated clocks on one time line: domain starts, not, or every rank."
    ),
]
Strategy: TypeAlias = Annotated[
    StrategyChoice,
    typer.Option(
        "--strategy", help="How the statement runs over ranks; the answer is the same, auto takes the quickest."
    ),
]
Threads: TypeAlias = Annotated[
    int, typer.Option("--threads", min=0, metavar="N", help="Ranks worked on at a time; 0: one per core.")
]
Scheduler: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        envvar="DASK_SCHEDULER_ADDRESS",
        show_default=False,
        help="Work on a Dask cluster: tcp://host:port, or the scheduler's JSON file.",
    ),
]
LocalHosts: TypeAlias = Annotated[
    bool,
    typer.Option("--local-hosts", help="Cluster: read a file on the host that its path or its metadata names."),
]
OutputName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--output-file",
        "-o",
        metavar="NAME",
        show_default=False,
        help="Base name [default: $ROCPD_OUTPUT_NAME or out].",
    ),
]
OutputFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output-path", "-d", metavar="DIR", show_default=False,
        help="Folder [default: $ROCPD_OUTPUT_PATH or ./rocpd-output-data].",
    ),
]  # fmt: skip
Start: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="TIME",
        show_default=False,
        help="Window from: 30%, ns, 12.5ms or +5ms (from the start), -90ms (from the end).",
    ),
]
End: TypeAlias = Annotated[
    str | None, typer.Option("--end", metavar="TIME", show_default=False, help="Window to, in the same forms.")
]
StartMarker: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--start-marker",
        metavar="TEXT",
        show_default=False,
        help="Window from the start of this marker: text, /regex/, text#2.",
    ),
]
EndMarker: TypeAlias = Annotated[
    str | None,
    typer.Option("--end-marker", metavar="TEXT", show_default=False, help="Window to the end of this marker."),
]
Inclusive: TypeAlias = Annotated[
    str,
    typer.Option(
        "--inclusive", metavar="BOOL", help="True: an event counts when its start or end is in the window; False: both."
    ),
]


@dataclass(frozen=True)
class Selection:
    """What of the job counts: the options of window and filters, the same for every command.

    A command that is decorated with `selects` has all of them and gets them as its parameter `selection`.
    """

    start: Start = None
    end: End = None
    start_marker: StartMarker = None
    end_marker: EndMarker = None
    window_kernel: Annotated[
        str | None,
        typer.Option(
            "--window-kernel",
            metavar="REGEX",
            show_default=False,
            help="Window from the first to the last of these kernels.",
        ),
    ] = None
    auto_roi: Annotated[
        bool, typer.Option("--auto-roi", help="Window from the first to the last of the hottest kernel.")
    ] = False
    inclusive: Inclusive = "True"
    clip: Annotated[
        bool, typer.Option("--clip", help="Every event that overlaps the window counts, cut at its edges.")
    ] = False
    rank: Annotated[
        str | None, typer.Option("--rank", metavar="LIST", show_default=False, help="Only these ranks: 0-3,8.")
    ] = None
    host: Annotated[
        str | None, typer.Option("--host", metavar="LIST", show_default=False, help="Only ranks of these hosts.")
    ] = None
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="LIST", show_default=False, help="GPU work of these agents: 4 or GPU-0."),
    ] = None
    stream: Annotated[
        str | None, typer.Option("--stream", metavar="LIST", show_default=False, help="GPU work of these streams.")
    ] = None
    category: Annotated[
        str | None,
        typer.Option(
            "--category", metavar="LIST", show_default=False, help="Only events of these domains: HIP,MARKER,KERNELS …"
        ),
    ] = None
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="REGEX", show_default=False, help="Only kernels that match.")
    ] = None
    exclude_kernel: Annotated[
        str | None, typer.Option("--exclude-kernel", metavar="REGEX", show_default=False, help="No such kernels.")
    ] = None

    def connect(
        self,
        inputs: list[str],
        align: AlignChoice,
        skip_bad: bool,
        client: Cluster | None = None,
        jobs: int | None = None,
        clock_offsets: Mapping[str, int] | None = None,
    ) -> Session:
        """Open inputs; what was not asked for does not count. Errors as `rocpd.connect`, `window` and `filters`."""
        from rocpd.cli.diagnostics import tell
        from rocpd.session import connect

        window, filters = self.window(), self.filters()
        return connect(
            inputs,
            skip_bad=skip_bad,
            align=align.value,
            clock_offsets=clock_offsets,
            window=window,
            filters=filters,
            client=client,
            jobs=jobs,
            on_note=tell,
        )

    def window(self) -> Window | None:
        """Give the window that was asked for, None when none was.

        Raises:
            UsageError: `--clip` without a window, or an `--inclusive` that is no truth value.
        """
        from rocpd.federate.select.window import Window

        sides = (self.start, self.end, self.start_marker, self.end_marker)
        asked = Window(*sides, _truth(self.inclusive), self.window_kernel, self.auto_roi, self.clip)
        if self.clip and not asked:
            raise UsageError("--clip needs a window", "--start, --end, a marker, --window-kernel or --auto-roi")
        return asked or None

    def filters(self) -> Filters | None:
        """Give the filters that were asked for, None when none was."""
        from rocpd.federate.select.filters import Filters

        names = (self.rank, self.host, self.agent, self.stream, self.category, self.kernel, self.exclude_kernel)
        return Filters(*names) or None


def selects(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Selection` in place of its parameter `selection`."""
    hints = get_type_hints(Selection, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(field.name, keyword, default=field.default, annotation=hints[field.name])
        for field in fields(Selection)
    ]
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        parameters += shared if parameter.name == "selection" else [parameter.replace(kind=keyword)]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        own = {field.name: values.pop(field.name, field.default) for field in fields(Selection)}
        command(**values, selection=Selection(**own))

    del run.__wrapped__  # whoever reads the signature would go by the command's own
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _truth(inclusive: str) -> bool:
    truth = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if inclusive.lower() not in truth:
        raise UsageError(f"--inclusive {inclusive}: neither True nor False")
    return truth[inclusive.lower()]


def cluster(scheduler: str | None, local_hosts: bool) -> Cluster | None:
    """Connect to the cluster that was asked for, if any.

    Raises:
        UsageError: no scheduler there, workers without this package, or `--local-hosts` alone.
    """
    if not scheduler:
        if local_hosts:
            raise UsageError("--local-hosts needs a cluster", "--scheduler tcp://host:port")
        return None
    from rocpd.cli.diagnostics import tell
    from rocpd.federate.run.cluster import Cluster

    return Cluster(scheduler, local_hosts, tell)


def inputs(paths: list[str] | None, option: list[str] | None) -> list[str]:
    """Give all inputs that were named, those of `-i` first."""
    return [*(option or []), *(paths or [])]


def output_name(given: str | None) -> str:
    """Give the base name of outputs: the option, `$ROCPD_OUTPUT_NAME`, else `out`."""
    return given or os.environ.get("ROCPD_OUTPUT_NAME") or "out"


def output_folder(given: Path | None) -> Path:
    """Give the folder of outputs: the option, `$ROCPD_OUTPUT_PATH`, else `./rocpd-output-data`."""
    return given or Path(os.environ.get("ROCPD_OUTPUT_PATH") or "rocpd-output-data")
