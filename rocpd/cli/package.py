"""Owns `rocpd package`: the files of a job under one name."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, ClassVar

from rocpd.base.amount import amount
from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.cli.diagnostics import report_written
from rocpd.cli.index import IndexOptions, index
from rocpd.cli.options import Execution, Inputs, SelectionOptions
from rocpd.cli.progress import progress


@frozen
class PackageOptions:
    """Where the package goes, and what becomes of the files."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Annotated[
        Path | None,
        Option(
            "The package; .rpdb is added. Without it, or for `.`: ./index.yaml is written, with --copy or -c job.rpdb.",
            "NAME.rpdb",
            ("-o", "-d", "--output-path"),
            hidden_flags=("--output-file",),
        ),
    ] = None
    copy: Annotated[bool, Option("Copy the files into the package, with --consolidate too.")] = False
    consolidate: Annotated[
        bool, Option("Move the files into the package; needs --yes.", flags=("-c", "--consolidate"))
    ] = False
    yes: Annotated[bool, Option("Confirm that the raw files may be moved.")] = False
    with_index: Annotated[bool, Option("Build an index in the package, as `rocpd index` does.")] = False
    force: Annotated[bool, Option("Replace an existing package or index.yaml.")] = False

    @property
    def target(self) -> Path:
        """The package, or index.yaml if that is all; a folder without a name of its own holds it."""
        folder = self.folder or Path()
        if folder.name in ("", ".."):
            return folder / ("job.rpdb" if self.copy or self.consolidate else "index.yaml")
        return folder if folder.suffix == ".rpdb" else folder.with_name(folder.name + ".rpdb")


def package(inputs: Inputs, asked: PackageOptions) -> None:
    """Put the files of a job under one name.

    A package is a folder with a list of files, index.yaml, which every command takes as input. Every file that it lists
    was opened and is a database of the job. Without --copy or --consolidate the files stay where they are; without -d
    only the list is written, into the working folder.

    Examples:
        rocpd package node*/*_results.db
        rocpd package node*/*_results.db -d job.rpdb
        rocpd package results/ -d job.rpdb --copy --with-index
        rocpd summary job.rpdb
    """
    from rocpd.federate.open.source import INDEX, INDEX_FOLDER
    from rocpd.federate.package import FilePlacement, write_index
    from rocpd.federate.package import package as write_package
    from rocpd.importers.cache import is_cached

    if asked.consolidate and not asked.copy and not asked.yes:
        raise UsageError("--consolidate moves the raw files into the package", "add --yes to do it, or take --copy")
    if asked.with_index and asked.target.name == INDEX:
        raise UsageError("--with-index: there is no package to hold it", "-d NAME.rpdb writes one")
    placement = FilePlacement.COPY if asked.copy else FilePlacement.MOVE if asked.consolidate else FilePlacement.STAY
    target = asked.target
    with SelectionOptions().connect(inputs, Execution()) as session, progress("package", "files") as report:
        if placement is not FilePlacement.COPY and any(is_cached(rank.opening.path) for rank in session.ranks):
            raise UsageError("imported traces lie in the cache, which may drop them", "--copy, or rocpd import first")
        files: Collection[Path] = (
            write_index(session, target, asked.force)
            if target.name == INDEX
            else write_package(session, target, placement, asked.force, report)
        )
    how = {FilePlacement.STAY: "", FilePlacement.COPY: " (copied)", FilePlacement.MOVE: " (moved)"}[placement]
    report_written(target, f"{amount(len(files), 'file')}{how}, ")
    if asked.with_index:
        # What is kept of answers lies in the cache of who asks, not in the package.
        index(Inputs((str(target),)), IndexOptions(target / INDEX_FOLDER, no_summary=True), Execution())
