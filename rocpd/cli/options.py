"""Owns the options that commands share, each declared once."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


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


def inputs(paths: list[str] | None, option: list[str] | None) -> list[str]:
    """Give all inputs that were named, those of `-i` first."""
    return [*(option or []), *(paths or [])]


def output_name(given: str | None) -> str:
    """Give the base name of outputs: the option, `$ROCPD_OUTPUT_NAME`, else `out`."""
    return given or os.environ.get("ROCPD_OUTPUT_NAME") or "out"


def output_folder(given: Path | None) -> Path:
    """Give the folder of outputs: the option, `$ROCPD_OUTPUT_PATH`, else `./rocpd-output-data`."""
    return given or Path(os.environ.get("ROCPD_OUTPUT_PATH") or "rocpd-output-data")
