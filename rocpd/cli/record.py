"""Owns `rocpd record`: a command under the recorder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import tell
from rocpd.errors import UsageError


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", show_default=False, help="Command to record.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output-path",
            "-o",
            "-d",
            metavar="DIR",
            show_default=False,
            help="Folder of the files [default: $ROCPD_OUTPUT_PATH or ./rocpd-output-data].",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="LIST",
            show_default=False,
            help="What to record of the GPU: hip,hsa,marker,kernel,memcpy,alloc,scratch,rccl,counters.",
        ),
    ] = None,
    counters: Annotated[
        str | None, typer.Option("--counters", metavar="LIST", show_default=False, help="Hardware counters, as A,B.")
    ] = None,
    sample_hz: Annotated[
        float, typer.Option("--sample-hz", min=0, max=10000, help="CPU time and memory samples per second.")
    ] = 0.0,
    flush_ms: Annotated[
        int, typer.Option("--flush-ms", min=1, help="Most that a killed process may lose [ms].")
    ] = 1000,
    drop: Annotated[
        bool, typer.Option("--drop", help="When a buffer is full, lose events (counted) rather than wait.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="Begin with recording off; `rocpd control start PID`.")] = False,
    keep_env: Annotated[
        bool, typer.Option("--keep-env", help="Store environment values that look like secrets too.")
    ] = False,
    verbose: options.Verbose = False,
) -> int:
    """Run a command and record its ranges, marks and GPU work: one database per process.

    Exits with the command's own exit code.

    \b
    rocpd record -- python train.py
    mpirun -n 4 rocpd record -o job -- ./app
    rocpd merge job/rank*.db --summary
    """  # fmt: skip
    from rocpd.record.command import Settings, run

    if not command:
        raise UsageError("no command given", "rocpd record -o job -- python train.py")
    settings = Settings(
        folder=options.output_folder(folder), trace=trace, counters=counters, sample_hz=sample_hz,
        flush_ms=flush_ms, drop=drop, started=not off, keep_env=keep_env,
    )  # fmt: skip
    outcome = run(command, settings)
    for file in outcome.files:
        events = "an unknown number of" if file.events is None else str(file.events)
        lost = f", {file.lost} lost" if file.lost else ""
        tell(f"wrote {file.path} ({events} events{lost}, {file.size / 1e6:.1f} MB)")
    if not outcome.files:
        tell(f"{command[0]}: nothing was recorded: no markers, no GPU work")
    return outcome.code
