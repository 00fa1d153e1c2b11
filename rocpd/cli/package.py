"""Owns `rocpd package`: the files of a job under one name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from rocpd.cli.diagnostics import amount, report_written
from rocpd.cli.options import Execution, Inputs, SelectionOptions
from rocpd.cli.progress import progress
from rocpd.errors import UsageError
from rocpd.option import Heading, Option


@dataclass(frozen=True)
class PackageOptions:
    """Where the package goes, and what becomes of the files."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Annotated[
        Path,
        Option(
            "The package; .rpdb is added.",
            "NAME.rpdb",
            ("-o", "-d", "--output-path"),
            hidden_flags=("--output-file",),
        ),
    ] = Path("job.rpdb")
    copy: Annotated[bool, Option("Copy the files into the package.")] = False
    consolidate: Annotated[
        bool, Option("Move the files into the package; needs --yes.", flags=("-c", "--consolidate"))
    ] = False
    yes: Annotated[bool, Option("Confirm that the raw files may be moved.")] = False
    force: Annotated[bool, Option("Replace an existing package.")] = False


def package(inputs: Inputs, asked: PackageOptions) -> None:
    """Put the files of a job under one name.

    A package is a folder with an index, which every command takes as input. Every file that it lists was opened and is
    a database of the job. Without --copy or --consolidate the files stay where they are.

    Examples:
        rocpd package node*/*_results.db -d job.rpdb
        rocpd package results/ -d job.rpdb --copy
        rocpd summary job.rpdb
    """
    from rocpd.federate.package import FilePlacement
    from rocpd.federate.package import package as write_package

    if asked.copy and asked.consolidate:
        raise UsageError("--copy and --consolidate contradict each other", "take one of them")
    if asked.consolidate and not asked.yes:
        raise UsageError("--consolidate moves the raw files into the package", "add --yes to do it, or take --copy")
    placement = FilePlacement.COPY if asked.copy else FilePlacement.MOVE if asked.consolidate else FilePlacement.STAY
    folder = asked.folder
    target = folder if folder.suffix == ".rpdb" else folder.with_name(folder.name + ".rpdb")
    with (
        SelectionOptions().connect(inputs, Execution()) as session,
        progress("package", "files") as report,
    ):
        listed = write_package(session, target, placement, asked.force, report)
    how = {FilePlacement.STAY: "", FilePlacement.COPY: " (copied)", FilePlacement.MOVE: " (moved)"}[placement]
    report_written(target, f"{amount(len(listed), 'file')}{how}, ")
