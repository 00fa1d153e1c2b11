"""Makes a job of inputs: finds the files, opens them, identifies their ranks, drops duplicates, numbers the ranks.

Discards the opened files if anything fails. Never reads an event.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rocpd.base import ForeignError, InputError, frozen
from rocpd.base.evidence import Evidence
from rocpd.federate.federation import Notes
from rocpd.federate.job import Aligner, Job
from rocpd.federate.limits import DEFAULT, Limits, usable_cores
from rocpd.federate.open import source
from rocpd.federate.open.identify import Rank, identify, numbered, with_machines, with_runs, without_duplicates
from rocpd.federate.open.opening import FileNote, Opening, check_file, lines_of, opening_of
from rocpd.federate.open.source import Foreign
from rocpd.federate.run.files import Files
from rocpd.federate.run.local import Executor
from rocpd.federate.run.rank_reader import FactStore
from rocpd.federate.run.shares import Columnar, Pool
from rocpd.federate.select.align import Align, GivenOffset

if TYPE_CHECKING:
    from distributed import Client

_LEFT_OUT = "left out: "
_LONG_S = 0.005  # to identify a file: takes 2 ms for a file in the page cache

Inputs: TypeAlias = source.Input | Iterable[source.Input] | None
Workers: TypeAlias = "Client | Executor | str | None"
_Identified: TypeAlias = "tuple[Sequence[Rank], Sequence[FileNote]] | InputError"


@frozen
class HowToOpen:
    """How a job is opened; see `rocpd.connect`, whose arguments these are."""

    skip_bad: bool = False
    align: Align = Align.AUTO
    clock_offsets: Mapping[str, GivenOffset] | None = None
    client: Workers = None
    jobs: int | None = None
    limits: Limits = DEFAULT
    aligner: Aligner | None = None
    foreign: Foreign | None = None
    index: Callable[[Sequence[Rank], Sequence[Path]], Columnar | None] = lambda _ranks, _packages: None
    facts: Callable[[], FactStore | None] = lambda: None


def open_job(inputs: Inputs, how: HowToOpen, notes: Notes, all_passes: bool = False) -> Job:
    """Open rocpd files as one job.

    Args:
        inputs: file, glob, folder, package or a list of them; None: `$ROCPD_INPUT`, else the files of the working
            directory.
        how: how the job is opened.
        notes: takes notes for the user.
        all_passes: as `rocpd.connect`.

    Raises:
        InputError: no file matches, or one cannot be used.
        UsageError: the cluster cannot be used.
    """
    find_foreign = how.foreign.inside if how.foreign else lambda _: ()
    sources = source.find_sources(inputs, skip_bad=how.skip_bad, find_foreign=find_foreign)
    openings, pool = list[Opening](), Pool(how.limits, len(sources.paths))
    with contextlib.ExitStack() as undo:
        evidence = Evidence((*sources.paths, *sources.indexes))
        undo.callback(evidence.release)
        undo.callback(_discard, openings)
        undo.callback(pool.close)
        identified = partial(_identified, how=how, openings=openings, pool=pool)
        all_ranks, notes_on_files = _identify_all(sources, how, identified, notes)
        ranks, notes_on_duplicates = without_duplicates(all_ranks)
        files = Files((rank.opening for rank in ranks), pool, evidence, _executor(how, notes), how.jobs)
        undo.pop_all()
    used = set(files.openings)
    pool.keep_only(used)
    _discard(opening for opening in openings if opening not in used)
    for note in (*notes_on_files, *notes_on_duplicates):
        notes.add(note)
    ranks = with_runs(numbered(with_machines(ranks)))
    files.index = how.index(ranks, [index.parent for index in sources.indexes])
    files.fact_store = how.facts
    return Job(ranks, files, how.align, how.clock_offsets or {}, how.aligner, has_all_passes=all_passes)


def _discard(openings: Iterable[Opening]) -> None:
    for opening in openings:
        opening.discard()


def _executor(how: HowToOpen, notes: Notes) -> Executor | None:
    if how.client is None or isinstance(how.client, Executor):
        return how.client
    from rocpd.federate.run.cluster import Cluster

    return Cluster(how.client, on_note=notes.add, limits=how.limits)


def _identify_all(
    sources: source.SourceFiles, how: HowToOpen, identified_as: Callable[[Path], _Identified], on_import: Notes
) -> tuple[Sequence[Rank], Sequence[str]]:
    """Return the ranks of all files, as `identified_as` returns them, and notes on the files."""
    ranks: list[Rank] = []
    notes: list[FileNote] = []
    left_out = [note.removeprefix(_LEFT_OUT) for note in sources.notes if note.startswith(_LEFT_OUT)]
    identified = dict(zip(sources.paths, _each_identified(sources.paths, how, identified_as), strict=True))
    foreign = [path for path, answer in identified.items() if isinstance(answer, ForeignError)]
    if foreign and how.foreign:
        for path, files in how.foreign.imported(foreign, how.jobs, on_import.add).items():
            identified[path] = files if isinstance(files, InputError) else _together(files, identified_as)
    for path, answer in identified.items():
        if not isinstance(answer, InputError):
            ranks += answer[0]
            notes += answer[1]
        elif how.skip_bad:
            left_out.append(answer.message)
            notes.append(FileNote(path, answer.message.removeprefix(f"{path}: "), left_out=True))
        else:
            raise answer
    if not ranks:
        raise InputError("every input was left out: " + "; ".join(left_out))
    return ranks, [*sources.notes, *lines_of(notes, len(sources.paths))]


def _each_identified(
    paths: Sequence[Path], how: HowToOpen, work: Callable[[Path], _Identified]
) -> Iterator[_Identified]:
    """Yield the result of `work` for each file; where files are slow to reach, several threads work."""
    threads = how.jobs or usable_cores()
    if threads == 1:
        return map(work, paths)
    from rocpd.federate.run.threads import on_threads_if_long

    return on_threads_if_long(threads, work, paths, _LONG_S, stop=lambda: None)


def _identified(path: Path, how: HowToOpen, openings: list[Opening], pool: Pool) -> _Identified:
    """Return the ranks of a file and notes on it, or its error where that need not end the command.

    Adds the file to `openings`, and its connection to `pool` unless another machine reads the file.
    """
    try:
        opening = opening_of(path, how.limits.busy_ms)
        openings.append(opening)
        ranks = identify(opening, None if how.client else pool.keep)
        if how.skip_bad:
            check_file(opening)
    except InputError as error:
        if how.skip_bad or isinstance(error, ForeignError):
            return error
        raise
    return ranks, [*([opening.note] if opening.note else []), *(note for rank in ranks for note in rank.notes)]


def _together(files: Sequence[Path], identified_as: Callable[[Path], _Identified]) -> _Identified:
    """Return the ranks of the files into which one input was imported."""
    ranks: list[Rank] = []
    for file in files:
        answer = identified_as(file)
        if isinstance(answer, InputError):
            return answer
        ranks += answer[0]
    return ranks, ()
