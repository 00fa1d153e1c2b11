"""Owns `rocpd convert`: traces in the forms that other tools read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import progress, tell, wrote
from rocpd.errors import UsageError


class AgentNames(StrEnum):
    """How agents are named in traces."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"
    TYPE_RELATIVE = "type-relative"


def convert(
    paths: options.Paths = None,
    inputs: options.Input = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            "--format",
            "-f",
            metavar="FORMAT...",
            show_default=False,
            help="csv, pftrace (perfetto); several after one flag.",
        ),
    ] = None,
    name: options.OutputName = None,
    folder: options.OutputFolder = None,
    align: options.Align = options.AlignChoice.AUTO,
    kernel_rename: Annotated[
        bool, typer.Option("--kernel-rename", help="Name kernels by their enclosing marker.")
    ] = False,
    group_by_queue: Annotated[
        bool, typer.Option("--group-by-queue", help="One track per HSA queue, not per HIP stream.")
    ] = False,
    agent_index: Annotated[
        AgentNames, typer.Option("--agent-index-value", help="Agent-0/2/4, Agent-0/1/2, or CPU-0/GPU-0/GPU-1.")
    ] = AgentNames.RELATIVE,
    annotate_args: Annotated[bool, typer.Option("--annotate-args", help="API arguments as annotations.")] = False,
    annotate_pmc: Annotated[bool, typer.Option("--annotate-pmc", help="Counter values as annotations.")] = False,
    start: options.Start = None,
    end: options.End = None,
    start_marker: options.StartMarker = None,
    end_marker: options.EndMarker = None,
    inclusive: options.Inclusive = "True",
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Write all ranks as a Perfetto trace or as CSV files; nothing is dropped.

    Files are <DIR>/<NAME>.pftrace and <DIR>/<NAME>_kernel_trace.csv …

    \b
    rocpd convert --format pftrace
    rocpd convert -i a.db b.db -f csv pftrace -d out -o twoFiles
    """
    from rocpd.convert import formats as known_formats
    from rocpd.convert.options import AgentIndex, ConvertOptions
    from rocpd.federate.session import connect

    known = known_formats()
    if not formats:
        raise UsageError("no output format given", f"-f {' | '.join(known)}")
    aliases = {"perfetto": "pftrace"}
    wanted = list(dict.fromkeys(aliases.get(word.lower(), word.lower()) for word in formats))
    for word in wanted:
        if word not in known:
            raise UsageError(f"unknown output format {word}", f"one of {', '.join(known)}")
    chosen = ConvertOptions(
        folder=options.output_folder(folder),
        name=options.output_name(name),
        force=force,
        group_by_queue=group_by_queue,
        agent_index_value=AgentIndex(agent_index.value),
        kernel_rename=kernel_rename,
        annotate_args=annotate_args,
        annotate_pmc=annotate_pmc,
    )
    window = options.window(start, end, start_marker, end_marker, inclusive)
    with connect(
        options.inputs(paths, inputs), skip_bad=skip_bad, align=align.value, window=window, tell=tell
    ) as session:
        for word in wanted:
            with progress(f"convert {word}") as report:
                written = known[word].write(session, chosen, report)
            for path in written:
                wrote(path)
