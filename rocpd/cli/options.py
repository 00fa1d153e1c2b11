"""Owns the options that commands share, each declared once."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from rocpd.errors import UsageError

if TYPE_CHECKING:
    from rocpd.federate.window import Window


class AlignChoice(StrEnum):
    """How ranks with different clocks are laid on one time line."""

    AUTO = "auto"
    NONE = "none"
    START = "start"


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


def window(
    start: str | None, end: str | None, start_marker: str | None, end_marker: str | None, inclusive: str
) -> Window | None:
    """Give the window that was asked for, None when none was."""
    from rocpd.federate.window import Window

    truth = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if inclusive.lower() not in truth:
        raise UsageError(f"--inclusive {inclusive}: neither True nor False")
    return Window(start, end, start_marker, end_marker, truth[inclusive.lower()]) or None


def inputs(paths: list[str] | None, option: list[str] | None) -> list[str]:
    """Give all inputs that were named, those of `-i` first."""
    return [*(option or []), *(paths or [])]


def output_name(given: str | None) -> str:
    """Give the base name of outputs: the option, `$ROCPD_OUTPUT_NAME`, else `out`."""
    return given or os.environ.get("ROCPD_OUTPUT_NAME") or "out"


def output_folder(given: Path | None) -> Path:
    """Give the folder of outputs: the option, `$ROCPD_OUTPUT_PATH`, else `./rocpd-output-data`."""
    return given or Path(os.environ.get("ROCPD_OUTPUT_PATH") or "rocpd-output-data")
