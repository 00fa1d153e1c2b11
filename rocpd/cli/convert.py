"""Owns `rocpd convert`: traces in the forms that other tools read."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import progress, wrote
from rocpd.convert import ALIASES, FORMATS
from rocpd.errors import UsageError

if TYPE_CHECKING:
    from rocpd.session import Session


class AgentNames(StrEnum):
    """How agents are named in traces."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"
    TYPE_RELATIVE = "type-relative"


class SplitBy(StrEnum):
    """What gets an output of its own."""

    RANK = "rank"
    NODE = "node"


_KNOWN = ", ".join([*FORMATS, *(f"{alias} (= {name})" for alias, name in ALIASES.items())])


@options.selects
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
            help=f"{_KNOWN}; several after one flag.",
        ),
    ] = None,
    name: options.OutputName = None,
    folder: options.OutputFolder = None,
    align: options.Align = options.AlignChoice.AUTO,
    clock_offset: Annotated[
        list[str] | None,
        typer.Option(
            "--clock-offset",
            metavar="HOST=NS",
            show_default=False,
            help="Move the times of a host by so many ns, in place of --align; repeatable.",
        ),
    ] = None,
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
    split: Annotated[
        SplitBy | None,
        typer.Option("--split", show_default=False, help="One output per rank or node: csv, json, otf2, pftrace."),
    ] = None,
    gzip: Annotated[
        bool, typer.Option("--gzip", help="Compress csv, json, pftrace; a NAME that ends in .gz does so too.")
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="csv: also rocprofv3's statistics files.")] = False,
    views: Annotated[
        list[str] | None,
        typer.Option(
            "--view",
            metavar="VIEW",
            show_default=False,
            help="parquet: only these views, repeatable; arrow: the one [default: kernels].",
        ),
    ] = None,
    arrow_stream: Annotated[bool, typer.Option("--arrow-stream", help="arrow: a stream, not a file.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, show_default=False, help="Processes [default: as pays]."),
    ] = None,
    selection: options.Selection = options.Selection(),
    scheduler: options.Scheduler = None,
    local_hosts: options.LocalHosts = False,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Write all ranks in a form that other tools read; nothing is dropped.

    Outputs are <DIR>/<NAME>.pftrace, <NAME>.json, <NAME>_kernel_trace.csv …, and folders: <NAME>_otf2, <NAME>_parquet.

    \b
    rocpd convert --format pftrace
    rocpd convert -i a.db b.db -f csv pftrace -d out -o twoFiles
    """
    from rocpd.convert import find
    from rocpd.convert.options import AgentIndex, ConvertOptions, Split

    if not formats:
        raise UsageError("no output format given", f"-f {' | '.join(FORMATS)}")
    wanted = {entry.name: entry for entry in map(find, formats)}
    chosen = ConvertOptions(
        folder=options.output_folder(folder),
        name=options.output_name(name),
        force=force,
        group_by_queue=group_by_queue,
        agent_index_value=AgentIndex(agent_index.value),
        kernel_rename=kernel_rename,
        annotate_args=annotate_args,
        annotate_pmc=annotate_pmc,
        split=Split(split.value) if split else None,
        gzip=gzip,
        stats=stats,
        views=tuple(views or ()),
        stream=arrow_stream,
    ).plain()
    shifts = _shifts(clock_offset or ())
    client = options.cluster(scheduler, local_hosts)
    with selection.connect(options.inputs(paths, inputs), align, skip_bad, client, jobs, shifts) as session:
        for word, entry in wanted.items():
            with progress(f"convert {word}", size=lambda: _bytes(session)) as report:
                written = entry.write(session, chosen, report)
            for path in written:
                wrote(path)


def _bytes(session: Session) -> int:
    return sum(path.stat().st_size for path in {rank.opening.path for rank in session.ranks})


def _shifts(words: Sequence[str]) -> dict[str, int]:
    """Read `HOST=NS`."""
    found = {}
    for word in words:
        host, _, number = word.rpartition("=")
        try:
            found[host] = int(number)
        except ValueError:
            found[""] = 0
        if not host:
            raise UsageError(f"--clock-offset {word}: not of the form HOST=NS", "such as node2=-1500000")
    return found
