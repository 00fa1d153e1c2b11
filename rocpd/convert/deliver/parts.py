"""Brings the parts of ranks together: which outputs there are, one task per rank, all outputs at once.

Never encodes an event: each format has a function that writes the part of one rank.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from rocpd.base.frozen import frozen
from rocpd.base.output import as_output_error, complete_or_nothing, workplace
from rocpd.base.types import Answer, Progress
from rocpd.convert.deliver.placement import Placement, placements
from rocpd.convert.options import ConvertOptions, Split
from rocpd.federate.federation import Federation
from rocpd.federate.run.pool import ConnectionCache
from rocpd.federate.run.rank_reader import RankReader, RankTask, run_task
from rocpd.schema.rules.events import EVENTS

_LEVEL = 5
"""gzip level: 6 takes half as long again and saves 2 %."""

_BLOCK = 1 << 20  # bytes


@frozen
class Output:
    """One output: what its name has after the base name, and the ranks in it."""

    infix: str
    ranks: tuple[Placement, ...]


@frozen
class RankPart:
    """What one rank adds to an output.

    Args:
        placement: where the rank stands.
        path: temporary file or folder to write.
        options: how events are shown.
    """

    placement: Placement
    path: Path
    options: ConvertOptions


def split_outputs(ranks: Sequence[Placement], split: Split | None) -> tuple[Output, ...]:
    """Divide ranks among outputs: all in one, or `_rank3` for each rank, or `_node-<host>` for each node."""
    if split is None:
        return (Output("", tuple(ranks)),)
    if split is Split.RANK:
        return tuple(Output(f"_rank{placement.rank.number}", (placement,)) for placement in ranks)
    nodes: dict[tuple[str | None, str | None], list[Placement]] = {}
    for placement in ranks:
        nodes.setdefault((placement.rank.hostname, placement.rank.machine_id), []).append(placement)
    names: dict[str, tuple[Placement, ...]] = {}
    for (host, _), members in nodes.items():
        stem = "_node-" + re.sub(r"[^\w.-]", "_", host or "unknown")
        name, again = stem, 1
        while name in names:
            again += 1
            name = f"{stem}-{again}"
        names[name] = tuple(members)
    return tuple(Output(name, members) for name, members in names.items())


Work: TypeAlias = Callable[[RankPart, RankReader], Answer]
"""Writes the part of one rank; a module-level function of (part, reader), whose result can be pickled."""


def write_parts(
    work: Work[Answer],
    session: Federation,
    outputs: Sequence[Output],
    folder: Path,
    options: ConvertOptions,
    progress: Progress | None,
) -> Generator[tuple[RankPart, Answer], None, None]:
    """Do `work` for each rank of all outputs, on all cores where that pays; yield parts and results in order.

    The caller removes what `work` wrote, or it goes with `folder`; and it closes the generator before that.

    Args:
        work: writes the part of one rank.
        session: the ranks.
        outputs: the outputs.
        folder: where parts are written, each to a path of its own.
        options: how events are shown.
        progress: called with (events done, events in all).
    """
    ranks = [placement for output in outputs for placement in output.ranks]
    parts = [RankPart(placement, folder.absolute() / str(i), options) for i, placement in enumerate(ranks)]
    tasks = [
        RankTask(placement.rank, session.rank_tables(placement.rank.number), partial(work, part))
        for placement, part in zip(ranks, parts, strict=True)
    ]
    counts = _counts(tasks) if progress else [0] * len(tasks)
    done = 0
    with contextlib.closing(session.executor.each(tasks)) as answers:
        for part, count, answer in zip(parts, counts, answers, strict=True):
            done += count
            if progress:
                progress(done, sum(counts))
            yield part, answer
            del answer  # it may hold a rank's columns


def _counts(tasks: Sequence[RankTask[Answer]]) -> list[int]:
    """Count the events of each rank."""
    with contextlib.closing(ConnectionCache()) as cache:
        return [cache.run(run_task, RankTask(task.rank, task.tables, _count_events)) for task in tasks]


def _count_events(reader: RankReader) -> int:
    counts = " + ".join(f"(SELECT COUNT(*) FROM {base})" for base in EVENTS)
    return int(reader.rows(f"SELECT {counts}")[0][0])


@frozen
class Frame:
    """What a file has before, between and after the parts of ranks, and the ending of its name."""

    ending: str
    head: bytes = b""
    between: bytes = b""
    tail: bytes = b""


def concatenate(
    work: Work[Answer],
    session: Federation,
    frame: Frame,
    options: ConvertOptions,
    progress: Progress | None,
    last: Callable[[list[Answer]], bytes] = lambda _: b"",
) -> tuple[tuple[Path, ...], list[Answer]]:
    """Write files made of the parts of ranks, one after the other; all appear when the last is complete.

    Args:
        work: writes the part of one rank with `open_part`.
        session: the ranks.
        frame: what comes around parts.
        options: of the outputs.
        progress: as `Format.write`.
        last: makes what follows the parts of an output from the answers of its ranks.

    Returns:
        the paths, and the results of `work` in order of ranks.
    """
    outputs = split_outputs(placements(session), options.split)
    ending = frame.ending + (".gz" if options.gzip else "")
    paths = tuple(options.path(output.infix + ending) for output in outputs)
    answers: list[Answer] = []
    with contextlib.ExitStack() as stack:
        temporaries = [stack.enter_context(complete_or_nothing(path, options.force)) for path in paths]
        folder = stack.enter_context(workplace(options.folder))
        parts = write_parts(work, session, outputs, folder, options, progress)
        stack.callback(parts.close)
        for output, temporary, path in zip(outputs, temporaries, paths, strict=True):
            with as_output_error(path), temporary.open("wb") as out:
                of_output = list(_fill(out, frame, options, itertools.islice(parts, len(output.ranks))))
                out.write(packed(last(of_output) + frame.tail, options))
            answers += of_output
    return paths, answers


def _fill(
    out: BinaryIO, frame: Frame, options: ConvertOptions, parts: Iterable[tuple[RankPart, Answer]]
) -> Iterator[Answer]:
    out.write(packed(frame.head, options))
    for number, (part, answer) in enumerate(parts):
        if number:
            out.write(packed(frame.between, options))
        append(part.path, out)
        yield answer


def append(path: Path, out: BinaryIO) -> None:
    """Move what is in the file `path` to the end of `out`."""
    with path.open("rb") as part:
        while block := part.read(_BLOCK):
            out.write(block)
    path.unlink()


@contextlib.contextmanager
def open_part(part: RankPart, name: str = "") -> Iterator[BinaryIO]:
    """Open the file of a part, or file `name` in its folder, for writing; compressed when the user asks for it."""
    with (part.path / name).open("wb", buffering=1 << 20) as file:
        if not part.options.gzip:
            yield file
            return
        # Members one after the other are one gzip file (RFC 1952, 2.2). Without name and time: equal jobs, equal bytes.
        import gzip

        with gzip.GzipFile("", "wb", _LEVEL, file, 0) as squeezed:
            yield cast("BinaryIO", squeezed)


def packed(data: bytes, options: ConvertOptions) -> bytes:
    """Return `data`, compressed when the user asks for it."""
    if not data or not options.gzip:
        return data
    import gzip

    return gzip.compress(data, _LEVEL, mtime=0)
