"""Owns `rocpd package`: the files of a job under one name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import progress, tell, wrote
from rocpd.errors import UsageError


def package(
    paths: options.Paths = None,
    inputs: options.Input = None,
    folder: Annotated[
        Path, typer.Option("--output-path", "-d", metavar="NAME.rpdb", help="The package; .rpdb is added.")
    ] = Path("job.rpdb"),
    copy: Annotated[bool, typer.Option("--copy", help="Copy the files into the package.")] = False,
    consolidate: Annotated[
        bool, typer.Option("--consolidate", "-c", help="Move the files into the package; needs --yes.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Yes, move the raw files.")] = False,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Put the files of a job under one name: a folder with an index, which every command takes as input.

    Every file that is listed was opened and is a database of the job. Without --copy or --consolidate the files stay
    where they are.

    \b
    rocpd package node*/*_results.db -d job.rpdb
    rocpd package results/ -d job.rpdb --copy
    rocpd summary job.rpdb
    """
    from rocpd.federate.package import Files
    from rocpd.federate.package import package as write_package
    from rocpd.session import connect

    if copy and consolidate:
        raise UsageError("--copy and --consolidate are two different things", "give one of them")
    if consolidate and not yes:
        raise UsageError("--consolidate moves the raw files into the package", "add --yes to do it, or take --copy")
    files = Files.COPY if copy else Files.MOVE if consolidate else Files.STAY
    target = folder if folder.suffix == ".rpdb" else folder.with_name(folder.name + ".rpdb")
    with (
        connect(options.inputs(paths, inputs), skip_bad=skip_bad, on_note=tell) as session,
        progress("package", "files") as report,
    ):
        listed = write_package(session, target, files, force, report)
    how = {Files.STAY: "", Files.COPY: " (copied)", Files.MOVE: " (moved)"}[files]
    wrote(target, f"{len(listed)} file{'' if len(listed) == 1 else 's'}{how}, ")
