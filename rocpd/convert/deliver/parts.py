"""Owns bringing the parts of ranks together: which outputs there are, one task per rank, all outputs at once.

Never encodes an event: a format gives a function that writes the part of one rank.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from rocpd.convert.deliver.job import RankJob, jobs
from rocpd.convert.options import ConvertOptions, Split
from rocpd.federate.federation import Federation
from rocpd.federate.run.connection_cache import ConnectionCache
from rocpd.output import as_output_error, complete_or_nothing
from rocpd.types import Answer, Progress

_LEVEL = 5
"""gzip level: 6 takes half as long again and saves 2 %."""


@dataclass(frozen=True)
class Output:
    """One output: what its name has after the base name, and the ranks in it."""

    infix: str
    jobs: tuple[RankJob, ...]


@dataclass(frozen=True)
class Part:
    """A task: write one rank to the temporary file or folder `path`."""

    job: RankJob
    path: Path


def outputs(ranks: Sequence[RankJob], split: Split | None) -> tuple[Output, ...]:
    """Share ranks out: all in one output, or `_rank3` for each rank, or `_node-<host>` for each node."""
    if split is None:
        return (Output("", tuple(ranks)),)
    if split is Split.RANK:
        return tuple(Output(f"_rank{job.rank.number}", (job,)) for job in ranks)
    nodes: dict[tuple[str | None, str | None], list[RankJob]] = {}
    for job in ranks:
        nodes.setdefault((job.rank.hostname, job.rank.machine_id), []).append(job)
    names: dict[str, tuple[RankJob, ...]] = {}
    for (host, _), members in nodes.items():
        stem = "_node-" + re.sub(r"[^\w.-]", "_", host or "unknown")
        name, again = stem, 1
        while name in names:
            again += 1
            name = f"{stem}-{again}"
        names[name] = tuple(members)
    return tuple(Output(name, members) for name, members in names.items())


def run(
    work: Callable[[Part], Answer],
    ranks: Sequence[RankJob],
    folder: Path,
    session: Federation,
    progress: Progress | None,
) -> Generator[tuple[Part, Answer], None, None]:
    """Do `work` for each rank, each with a temporary path in `folder`; give the results in order.

    The caller removes what `work` wrote, or it goes with `folder`; and it closes the generator before that.
    """
    with contextlib.closing(ConnectionCache()) as cache:
        counts = [cache.run(RankJob.rows, job) if progress else 0 for job in ranks]
    parts = [Part(job, folder.absolute() / str(number)) for number, job in enumerate(ranks)]
    done = 0
    with contextlib.ExitStack() as stack:
        answers = session.executor.each(work, parts, [job.rank for job in ranks])
        stack.callback(answers.close)
        for part, rows, answer in zip(parts, counts, answers, strict=True):
            yield part, answer
            del answer  # it may hold a rank's columns
            if progress:
                done += rows
                progress(done, sum(counts))


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Give a temporary folder on the file system of `folder`, whose missing parents are made and removed again."""
    made = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        with as_output_error(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".rocpd-", suffix=".partial", dir=folder) as name:
                yield Path(name)
    finally:
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()


@dataclass(frozen=True)
class Frame:
    """What stands around the parts of ranks in a file."""

    ending: str
    head: bytes = b""
    between: bytes = b""
    tail: bytes = b""


def concatenate(
    work: Callable[[Part], Answer],
    session: Federation,
    frame: Frame,
    options: ConvertOptions,
    progress: Progress | None,
) -> tuple[tuple[Path, ...], list[Answer]]:
    """Write files made of the parts of ranks, one after the other; all appear when the last is complete.

    Args:
        work: writes the part of one rank with `opened`, and gives what it has to tell.
        session: the ranks.
        frame: what comes around parts.
        options: of the outputs.
        progress: as `Format.write`.

    Returns:
        the paths, and the answers of `work` in order of ranks.
    """
    places = outputs(jobs(session, options), options.split)
    ending = frame.ending + (".gz" if options.gzip else "")
    paths = tuple(options.path(place.infix + ending) for place in places)
    answers: list[Answer] = []
    with contextlib.ExitStack() as stack:
        temporaries = [stack.enter_context(complete_or_nothing(path, options.force)) for path in paths]
        folder = stack.enter_context(workplace(options.folder))
        results = run(work, [job for place in places for job in place.jobs], folder, session, progress)
        stack.callback(results.close)
        for place, temporary, path in zip(places, temporaries, paths, strict=True):
            with as_output_error(path), temporary.open("wb") as out:
                answers += _fill(out, place, results, frame, options)
        for _ in results:  # the last progress
            pass
    return paths, answers


def _fill(
    out: BinaryIO,
    place: Output,
    results: Iterator[tuple[Part, Answer]],
    frame: Frame,
    options: ConvertOptions,
) -> Iterable[Answer]:
    out.write(packed(frame.head, options))
    answers = []
    for number in range(len(place.jobs)):
        part, answer = next(results)
        if number:
            out.write(packed(frame.between, options))
        append(part.path, out)
        answers.append(answer)
    out.write(packed(frame.tail, options))
    return answers


def append(path: Path, out: BinaryIO) -> None:
    """Move what is in the file `path` to the end of `out`."""
    with path.open("rb") as part:
        shutil.copyfileobj(part, out, 1 << 20)
    path.unlink()


@contextlib.contextmanager
def opened(path: Path, options: ConvertOptions) -> Iterator[BinaryIO]:
    """Open the file of a part for writing, compressed when the user asks for it."""
    with path.open("wb", buffering=1 << 20) as file:
        if not options.gzip:
            yield file
            return
        # Members one after the other are one gzip file (RFC 1952, 2.2). Without name and time: equal jobs, equal bytes.
        with gzip.GzipFile("", "wb", _LEVEL, file, 0) as squeezed:
            yield cast("BinaryIO", squeezed)


def packed(data: bytes, options: ConvertOptions) -> bytes:
    """Give `data`, compressed when the user asks for it."""
    return gzip.compress(data, _LEVEL, mtime=0) if data and options.gzip else data
