"""Combines the parts of ranks: the place of each rank, the list of outputs, one task per rank, all at the same time.

Encodes no event: each format has a function that writes the part of one rank.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import BinaryIO, TypeAlias, cast

from rocpd.base import Answer, Progress, by_key, frozen
from rocpd.base.output import as_output_error, complete_or_nothing, workplace
from rocpd.convert.options import ConvertOptions, Split
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader, RankTask, run_task
from rocpd.federate.run.shares import ConnectionCache
from rocpd.federate.select.align import UNSHIFTED, Alignment, Clock, Shift
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.events import EVENTS

_STAND_IN_PIDS = 1 << 23
"""First of the pids that replace clashing ones; above Linux's largest pid (2^22)."""


_CONTAINER = re.compile(r"^([0-9a-f]{6})[0-9a-f]{6,}$")


@frozen
class Placement:
    """The place of a rank in a trace.

    Args:
        rank: the rank.
        label: name for people, which sorts as text in order of ranks: `rank 02 · node-7`.
        position: 1 for the first rank of the session, and so on.
        pid: pid in the trace, distinct in the session.
        shift: offset that lays its times on the common time line.
        clock: source of the shift, None where all ranks share a clock.
        part: selected part of the rank's time, by its clock; None for all of it.
    """

    rank: Rank
    label: str
    position: int
    pid: int
    shift: Shift
    clock: Clock | None
    part: Part | None

    @property
    def about(self) -> str:
        """The process and the clock of the rank, for people."""
        rank = self.rank
        words = f"process {'?' if rank.pid is None else rank.pid} of {rank.hostname or '?'}: {rank.command or '?'}"
        return f"{words}\n{self.clock}" if self.clock else words

    @property
    def window(self) -> Part | None:
        """The selected part of the rank's time, on the common time line; None for all of it."""
        return self.part.on_line(self.shift) if self.part else None

    def by_its_clock(self) -> Placement:
        """Return the placement of a rank whose times stay as recorded."""
        return dataclasses.replace(self, shift=UNSHIFTED)


def placements(session: Federation, *, aligned: bool = True) -> tuple[Placement, ...]:
    """Return the placements of all ranks in order.

    Args:
        session: the ranks.
        aligned: whether to lay ranks on one time line; else times stay as recorded, and no notes on clocks are made.
    """
    alignment = session.alignment if aligned or session.window else Alignment()
    pids = distinct_pids(session.ranks)
    labels = rank_labels(session.ranks)

    def placed(position: int, rank: Rank) -> Placement:
        number, part = rank.number, session.window.part(rank.number) if session.window else None
        clock = alignment.shift(number), alignment.clock(number)
        return Placement(rank, labels[number], position, pids[number], *clock, part)

    return tuple(placed(*each) for each in enumerate(session.ranks, start=1))


def rank_labels(ranks: Sequence[Rank]) -> dict[int, str]:
    """Return number -> label of ranks: number, the program if ranks differ in it, and host.

    Numbers are as long as the largest, so that viewers which sort by name show ranks in order. Names of hosts end at
    the first dot, those of containers after six digits, where these stay distinct.
    """
    width = len(str(max((rank.number for rank in ranks), default=0)))
    hosts = {rank.number: rank.hostname for rank in ranks if rank.hostname}
    short = {host: _CONTAINER.sub(r"\1", host.partition(".")[0]) for host in hosts.values()}
    if len(set(short.values())) == len(short):
        hosts = {number: short[host] for number, host in hosts.items()}
    programs = {rank.number: _program(rank) for rank in ranks}
    differ = len(set(programs.values())) > 1
    words = {n: (programs[n] if differ else None, hosts.get(n)) for n in programs}
    return {n: " · ".join((f"rank {n:0{width}}", *filter(None, words[n]))) for n in programs}


def _program(rank: Rank) -> str | None:
    words = (rank.command or "").split()
    return PurePath(words[0]).name if words else None


def distinct_pids(ranks: Sequence[Rank]) -> dict[int, int]:
    """Return a distinct pid for each rank: the OS's for the first rank with it, else a pid that no OS gives.

    Viewers merge processes of equal pid, and ranks on other hosts or in containers can have equal pids.
    """
    pids: dict[int, int] = {}
    used: set[int] = set()
    for rank in ranks:
        pid = rank.pid
        if pid is None or pid in used or not 0 < pid < _STAND_IN_PIDS:
            pid = _STAND_IN_PIDS + len(pids)
        used.add(pid)
        pids[rank.number] = pid
    return pids


_LEVEL = 5
"""gzip level: 6 takes half as long again and saves 2 %."""

_BLOCK = 1 << 20  # bytes


@frozen
class Output:
    """One output: the part of its name after the base name, and the ranks in it."""

    infix: str
    ranks: tuple[Placement, ...]


@frozen
class RankPart:
    """The part of one rank in an output.

    Args:
        placement: the place of the rank.
        path: temporary file or folder to write.
        options: the look of events.
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
    nodes = by_key(((placement.rank.hostname, placement.rank.machine_id), placement) for placement in ranks)
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


@contextlib.contextmanager
def rank_parts(
    work: Work[Answer],
    session: Federation,
    outputs: Sequence[Output],
    options: ConvertOptions,
    progress: Progress | None,
) -> Iterator[Iterator[tuple[RankPart, Answer]]]:
    """Do `work` for each rank of all outputs, on all cores where that pays; yield an iterator of parts and results.

    Args:
        work: writes the part of one rank; the files of parts are removed at the end of the block.
        session: the ranks.
        outputs: the outputs.
        options: the look of events.
        progress: called with (events done, events in all).
    """
    ranks = [placement for output in outputs for placement in output.ranks]
    with workplace(options.folder) as folder:
        parts = [RankPart(placement, folder.absolute() / str(i), options) for i, placement in enumerate(ranks)]
        with contextlib.closing(_done(work, session, parts, progress)) as done:
            yield done


def _done(
    work: Work[Answer], session: Federation, parts: Sequence[RankPart], progress: Progress | None
) -> Generator[tuple[RankPart, Answer], None, None]:
    ranks = [part.placement.rank for part in parts]
    tasks = [
        RankTask(rank, session.rank_tables(rank.number), partial(work, part))
        for rank, part in zip(ranks, parts, strict=True)
    ]
    counts = _counts(tasks) if progress else [0] * len(tasks)
    done = 0
    if progress:
        progress(0, sum(counts))
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
        return [run_task(RankTask(task.rank, task.tables, _count_events), cache.lend) for task in tasks]


def _count_events(reader: RankReader) -> int:
    counts = " + ".join(f"(SELECT COUNT(*) FROM {base})" for base in EVENTS)
    return int(reader.rows(f"SELECT {counts}")[0][0])


@frozen
class Frame:
    """The content of a file before, between and after the parts of ranks, and the ending of its name."""

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
    """Write files that consist of the parts of ranks, one after the other; all appear when the last is complete.

    Args:
        work: writes the part of one rank with `open_part`.
        session: the ranks.
        frame: bytes around the parts.
        options: options of the outputs.
        progress: as `Format.write`.
        last: makes the bytes after the parts of an output from the answers of its ranks.

    Returns:
        the paths, and the results of `work` in order of ranks.
    """
    outputs = split_outputs(placements(session), options.split)
    ending = frame.ending + (".gz" if options.gzip else "")
    paths = tuple(options.path(output.infix + ending) for output in outputs)
    answers: list[Answer] = []
    with contextlib.ExitStack() as stack:
        temporaries = [stack.enter_context(complete_or_nothing(path, options.force)) for path in paths]
        parts = stack.enter_context(rank_parts(work, session, outputs, options, progress))
        for output, temporary, path in zip(outputs, temporaries, paths, strict=True):
            with as_output_error(path), temporary.open("wb") as out:
                of_output: list[Answer] = []
                for part, answer in itertools.islice(parts, len(output.ranks)):
                    out.write(packed(frame.between if of_output else frame.head, options))
                    append(part.path, out)
                    of_output.append(answer)
                out.write(packed(last(of_output) + frame.tail, options))
            answers += of_output
    return paths, answers


def append(path: Path, out: BinaryIO) -> None:
    """Move the content of the file `path` to the end of `out`."""
    with path.open("rb") as part:
        while block := part.read(_BLOCK):
            out.write(block)
    path.unlink()


@contextlib.contextmanager
def open_part(part: RankPart, name: str = "") -> Iterator[BinaryIO]:
    """Open the file of a part, or file `name` in its folder, for writing; compressed if the user asks for it."""
    with (part.path / name).open("wb", buffering=1 << 20) as file:
        if not part.options.gzip:
            yield file
            return
        # Members one after the other are one gzip file (RFC 1952, 2.2). Without name and time: equal jobs, equal bytes.
        import gzip

        with gzip.GzipFile("", "wb", _LEVEL, file, 0) as squeezed:
            yield cast("BinaryIO", squeezed)


def packed(data: bytes, options: ConvertOptions) -> bytes:
    """Return `data`, compressed if the user asks for it."""
    if not data or not options.gzip:
        return data
    import gzip

    return gzip.compress(data, _LEVEL, mtime=0)
