"""Owns `rocpd index`: what makes repeated questions quick."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Annotated, ClassVar

from rocpd.base.amount import amount
from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.cli.diagnostics import note
from rocpd.cli.options import Execution, Inputs, SelectionOptions
from rocpd.cli.progress import progress
from rocpd.federate.plan.steps import IndexUse
from rocpd.summary.registry import OVERVIEW


@frozen
class IndexOptions:
    """Where the index goes."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Annotated[
        Path | None,
        Option(
            "Folder of the index, for other users or machines; their commands get it as --index-folder.",
            "DIR",
            ("-d", "--output-path"),
        ),
    ] = None
    no_summary: Annotated[bool, Option("Only the index: the first rocpd summary reads the files.")] = False


def index(inputs: Inputs, asked: IndexOptions, execution: Execution) -> None:
    """Build an index, from which queries and summaries are answered.

    The events of each rank are stored once more, by column: about a thirtieth of the size of the files. From then on
    every command uses the index, as long as a file is what it was; answers are the same. It lies in
    $XDG_CACHE_HOME/rocpd/index, else ~/.cache/rocpd/index (rocpd cache), or in a folder of your choice. A rank that has
    an index is left alone. What rocpd summary asks of ranks is kept in the cache, too. The files are only read.

    Examples:
        rocpd index rank*.db
        rocpd query rank*.db "select name, sum(duration) from kernels group by name"
        rocpd index job -d /shared/index
    """
    from rocpd.index.build import build

    folder = asked.folder or execution.index_folder
    with SelectionOptions().connect(inputs, execution) as session, progress("index", "ranks") as report:
        built = build(session, folder, report)
        paths = {rank.number: rank.opening.path for rank in session.ranks}
    new = [each for each in built if each.is_new]
    known = sum(1 for each in built if not each.is_new and not each.why_not)
    size = sum(each.size for each in built) / 1e6
    there_already = f", {amount(known, 'rank')} had one" if known else ""
    note(f"indexed {amount(len(new), 'rank')}{there_already} ({size:.1f} MB)")
    for each in built:
        if each.why_not:
            note(f"{paths[each.rank]}: not indexed: {each.why_not}")
    if all(each.why_not for each in built):
        raise RocpdError("no rank can be indexed", "commands read the files, as they do without an index")
    if not asked.no_summary and not any(each.why_not for each in built):
        _keep_answers(inputs, dataclasses.replace(execution, index=IndexUse.AUTO, index_folder=folder))


def _keep_answers(inputs: Inputs, execution: Execution) -> None:
    """Ask what `rocpd summary` asks: with an index, what ranks answer is kept."""
    from rocpd.summary.run import run

    with (
        contextlib.suppress(RocpdError),  # what the job lacks, rocpd summary says
        SelectionOptions().connect(inputs, execution) as session,
        progress("summary", "ranks") as report,
    ):
        for table in run(session, OVERVIEW, progress=report):
            list(table)
