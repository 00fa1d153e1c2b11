"""Joins two recordings of one process: rocprofv3's file gets the operators from the trace of PyTorch's profiler.

The rocprofv3 file is copied, never changed; operators, Python functions and annotations are added to the copy, on the
thread and at the time of the calls that they surround. Nothing is attributed by time alone: a process without matched
dispatches is refused.

Both recordings have the GPU's times of operations, on clocks that differ by an unrecorded offset, and that drift. The
offset is the one at which names and durations agree; from there it is followed both ways. A dispatch is matched if one
of the other recording has its name, its duration and its time, and no other comes near: doubtful matches do not count.
The calls that launched matched dispatches show how the clock of the trace maps to that of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rocpd.base import Flags, Ints, Progress, RocpdError, amount, frozen
from rocpd.base.output import folder_complete_or_nothing
from rocpd.base.sqlite import apsw, writing
from rocpd.facts.cxx import bare_name
from rocpd.facts.operations import KERNEL, OperationNames, read_ops
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import read_regions
from rocpd.federate.federation import Federation
from rocpd.federate.merge import merge
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.filters import Filters
from rocpd.schema.quote import quote_name
from rocpd.schema.rules.categories import PYTHON_FUNCTION, TORCH_OPERATOR, is_marker
from rocpd.schema.rules.launch import launching_regions

NEAR = 20_000
"""Largest distance of two times of a dispatch once the offset is known [ns]: profilers round to a microsecond."""

_ALIKE_NS, _ALIKE = 2_000, 0.02  # durations are alike if they differ by no more than this time [ns], or this share
_ANCHORS = 24  # dispatches for which every alike dispatch is tried as the same
_TRIED = 4_000  # alike dispatches that are tried for each
_SAMPLE = 256  # dispatches by which an offset is judged
_ENOUGH, _APART = 0.6, 0.2  # share of the sample that agrees, and how much more of it than at any other offset
_BLOCK = 64  # dispatches after which the offset is adjusted


@frozen
class ProcessDispatches:
    """The dispatches of a process in order of start; all columns are equally long.

    Args:
        start, end: bounds of each [ns].
        name: number of the kernel's name, the same in both recordings.
    """

    start: Ints
    end: Ints
    name: Ints

    def __len__(self) -> int:
        return len(self.start)


def matched(traced: ProcessDispatches, recorded: ProcessDispatches) -> tuple[Ints, Ints]:
    """Return the dispatches that are the same in two recordings: rows in each, equally long.

    >>> def of(starts, offset):
    ...     start = np.array(starts) + offset
    ...     count = np.arange(len(starts))
    ...     return ProcessDispatches(start, start + count % 7 * 9_000 + 5_000, count % 3)
    >>> starts = np.cumsum(np.arange(40) * 999 % 50 * 1000)
    >>> rows, others = matched(of(starts, 0), of(starts, 10**12))
    >>> rows.tolist() == others.tolist() == list(range(40))
    True
    """
    rows, searched = np.flatnonzero(np.isin(traced.name, recorded.name)), _ByName(recorded)
    pairs = [np.zeros((0, 2), np.int64)]
    if first := _best_offset(traced, rows, searched):
        at, offset = first
        pairs += _followed(traced, rows[np.searchsorted(rows, at) :], searched, offset)
        pairs += _followed(traced, rows[: np.searchsorted(rows, at)][::-1], searched, offset)
    return _once(np.concatenate(pairs))


class _ByName:
    """Finds dispatches of a name by their start."""

    def __init__(self, dispatches: ProcessDispatches) -> None:
        self.dispatches = dispatches
        self._rows = np.lexsort((dispatches.start, dispatches.name))
        self._name = dispatches.name[self._rows]

    def rows_of(self, name: int) -> Ints:
        """Return the rows of a name, in order of start."""
        low, high = np.searchsorted(self._name, [name, name + 1])
        return self._rows[low:high]

    def nearest(self, name: Ints, start: Ints) -> tuple[Ints, Ints, Ints]:
        """Return for each name the row that starts nearest to a time, its distance, and the second smallest one [ns].

        -1 and a long time if there is none.
        """
        far = np.iinfo(np.int64).max
        row, apart, second = np.full(len(name), -1), np.full(len(name), far), np.full(len(name), far)
        for each in np.unique(name).tolist():
            mine = np.flatnonzero(name == each)
            rows = self.rows_of(each)
            if not len(rows):
                continue
            starts = self.dispatches.start[rows]
            at = np.searchsorted(starts, start[mine])
            around = np.clip(at[:, None] + np.array([-2, -1, 0, 1]), 0, len(rows) - 1)
            away = np.abs(starts[around] - start[mine][:, None])
            best = np.argmin(away, 1)
            line = np.arange(len(mine))
            row[mine], apart[mine] = rows[around[line, best]], away[line, best]
            is_other = around != around[line, best][:, None]
            second[mine] = np.where(is_other, away, far).min(1)
        return row, apart, second


def _alike(traced: ProcessDispatches, rows: Ints, recorded: ProcessDispatches, others: Ints) -> Flags:
    """Whether durations are about the same."""
    durations = [(each.end - each.start)[which] for each, which in ((traced, rows), (recorded, others))]
    alike: Flags = np.abs(durations[0] - durations[1]) <= np.maximum(_ALIKE_NS, durations[0] * _ALIKE)
    return alike


def _best_offset(traced: ProcessDispatches, rows: Ints, searched: _ByName) -> tuple[int, int] | None:
    """Return a row, and the offset at its start by which most rows around it agree [ns]; None if none stands out."""
    recorded = searched.dispatches
    counts = {name: len(searched.rows_of(name)) for name in np.unique(traced.name[rows]).tolist()}
    rare = np.argsort([counts[name] for name in traced.name[rows].tolist()], kind="stable")
    trials: list[tuple[float, int, int]] = []
    for at in rows[rare[:: max(1, len(rare) // 4 // _ANCHORS)][:_ANCHORS]].tolist():
        like = searched.rows_of(int(traced.name[at]))
        like = like[_alike(traced, np.full(len(like), at), recorded, like)][:_TRIED]
        place = int(np.searchsorted(rows, at))
        around = rows[max(0, place - 2 * _SAMPLE) : place + 2 * _SAMPLE]
        around = around[:: max(1, len(around) // _SAMPLE)]
        for offset in (recorded.start[like] - traced.start[at]).tolist():
            row, apart, _ = searched.nearest(traced.name[around], traced.start[around] + offset)
            agrees = (apart <= NEAR) & _alike(traced, around, recorded, np.maximum(row, 0))
            trials.append((float(agrees.mean()), at, offset))
    trials.sort(reverse=True)
    if not trials or trials[0][0] < _ENOUGH:
        return None
    share, at, offset = trials[0]
    others = [each[0] for each in trials if abs(each[2] - offset) > 2 * NEAR and each[1] == at]
    return None if others and others[0] > share - _APART else (at, offset)


def _followed(traced: ProcessDispatches, rows: Ints, searched: _ByName, offset: int) -> Iterator[Ints]:
    """Yield pairs of rows, block by block, away from the place where an offset is known."""
    for low in range(0, len(rows), _BLOCK):
        block = rows[low : low + _BLOCK]
        row, apart, second = searched.nearest(traced.name[block], traced.start[block] + offset)
        is_same = (apart <= NEAR) & (apart * 2 < second)
        is_same &= _alike(traced, block, searched.dispatches, np.maximum(row, 0))
        if is_same.any():
            pairs = np.stack([block[is_same], row[is_same]], 1)
            offset = int(np.median(searched.dispatches.start[pairs[:, 1]] - traced.start[pairs[:, 0]]))
            yield pairs


def _once(pairs: Ints) -> tuple[Ints, Ints]:
    """Return the pairs that share no row with another pair."""
    names, counts = np.unique(pairs[:, 1], return_counts=True)
    pairs = pairs[np.isin(pairs[:, 1], names[counts == 1])]
    pairs = pairs[np.argsort(pairs[:, 0])]
    return pairs[:, 0], pairs[:, 1]


TAG = "joined"
"""Tag of the metadata that names the trace, and the number of matched dispatches."""


@frozen
class _Launched:
    """The dispatches of a rank in order of start, with the calls that launched them; all columns are equally long.

    Args:
        start, end: bounds of each dispatch [ns].
        names: bare names of the kernels.
        thread: id of the thread of the call.
        call_start, call_end: bounds of the call [ns].
        has_call: whether there is a call; if not, the other three columns mean nothing.
    """

    start: Ints
    end: Ints
    names: tuple[str, ...]
    thread: Ints
    call_start: Ints
    call_end: Ints
    has_call: Flags


_Moved: TypeAlias = "tuple[int | None, int, int, _Region]"
"""The thread in the other file, start and end by its clock [ns], and the region to move there."""


class _Region(NamedTuple):
    """A region of the trace that goes into the copy."""

    thread: int
    start: int
    end: int
    name: str
    category: str
    extdata: str
    event: int


@frozen
class Joined:
    """The outcome for one process.

    Args:
        name: name of the file in the folder.
        dispatches: dispatches of the rocprofv3 file.
        traced: dispatches of the trace.
        matched: dispatches that are the same.
        regions: added regions.
    """

    name: str
    dispatches: int
    traced: int
    matched: int
    regions: int

    def __str__(self) -> str:
        share = f"{self.matched:,} of {self.traced:,} dispatches of the trace"
        return f"{self.name}: {share} are among {self.dispatches:,}; {amount(self.regions, 'region')} added"


def join(
    recorded: Federation, traced: Federation, folder: Path, force: bool = False, progress: Progress | None = None
) -> list[Joined]:
    """Write a copy of each recorded rank, with the operators of its trace; return the outcome of each.

    Args:
        recorded: rocprofv3's files.
        traced: PyTorch's traces of the same processes.
        folder: new folder; it appears when all is complete.
        force: replace a folder that an earlier run wrote.
        progress: called with (ranks done, ranks in all).

    Raises:
        RocpdError: a trace is of no recorded process, or none of its dispatches can be matched with certainty.
        OutputError: the folder exists or cannot be written.
    """
    pairs = _pairs(recorded, traced)
    done = []
    with folder_complete_or_nothing(folder, force) as temporary:
        for number, (rank, of_trace) in enumerate(pairs.items(), 1):
            name = f"rank{rank}.db"
            process = recorded.where(Filters(ranks=str(rank)))
            merge(process, temporary / name)
            trace = traced.where(Filters(ranks=str(of_trace))) if of_trace is not None else None
            done.append(_join_rank(process, trace, temporary / name))
            if progress:
                progress(number, len(pairs))
    return done


def _pairs(recorded: Federation, traced: Federation) -> dict[int, int | None]:
    """Return recorded rank -> its trace, or None; both are of one process by their pid, or as the only ones.

    Raises:
        RocpdError: a trace is of no recorded process.
    """
    by_pid = {rank.pid: rank.number for rank in recorded.ranks}
    pairs: dict[int, int | None] = {rank.number: None for rank in recorded.ranks}
    for trace in traced.ranks:
        rank = by_pid.get(trace.pid)
        if rank is None and len(recorded.ranks) == len(traced.ranks) == 1:
            rank = recorded.ranks[0].number
        if rank is None or pairs[rank] is not None:
            pids = ", ".join(str(each.pid) for each in recorded.ranks)
            message = f"{trace.opening.path.name}: of pid {trace.pid}, recorded are {pids}"
            raise RocpdError(message, "name the files of one run")
        pairs[rank] = trace.number
    return pairs


def _join_rank(recorded: Federation, traced: Federation | None, path: Path) -> Joined:
    ((_, here),) = recorded.map_ranks(_launched)
    if traced is None:
        return Joined(path.name, len(here.start), 0, 0, 0)
    ((_, there),) = traced.map_ranks(_launched)
    codes = {name: code for code, name in enumerate(dict.fromkeys((*here.names, *there.names)))}
    of_trace, of_file = (
        ProcessDispatches(each.start, each.end, np.array([codes[name] for name in each.names], np.int64))
        for each in (there, here)
    )
    rows, others = matched(of_trace, of_file)
    trace = traced.ranks[0].opening.path.name
    if not len(rows):
        raise RocpdError(
            f"{trace}: no dispatch is certainly one of {recorded.ranks[0].opening.path.name}",
            "both have to be recorded in one run of the program, with its kernels",
        )
    clock = _ThreadClocks(there, here, rows, others)
    ((_, (regions, arguments)),) = traced.map_ranks(_annotations)
    joined = Joined(path.name, len(of_file), len(of_trace), len(rows), len(regions))
    with closing(apsw.Connection(str(path))) as connection, writing(connection), connection:
        copy = _Copy(connection, recorded.ranks[0].suffix)
        copy.add(list(map(clock.moved, regions)), arguments)
        copy.note(f"{trace}: {joined}")
    return joined


def _launched(reader: RankReader) -> _Launched:
    whole = RankReading.of(reader, {}).whole()
    names = OperationNames()
    ops = read_ops(whole, names, stacks=True)
    ops = ops.take(np.flatnonzero(ops.kind == KERNEL))
    ops = ops.take(np.argsort(ops.start, kind="stable"))
    regions, _ = read_regions(whole)
    call = launching_regions(regions.stack, regions.start, regions.end, ops.stack)
    has_call = call >= 0
    row = np.maximum(call, 0)
    nothing = np.zeros(len(ops), np.int64)
    thread, start, end = (
        column[row] if len(column) else nothing for column in (regions.thread, regions.start, regions.end)
    )
    full = [bare_name(names.full[code] or "") for code in ops.name.tolist()]
    return _Launched(ops.start, ops.end, tuple(full), thread, start, end, has_call)


_ANNOTATIONS = """
SELECT R.tid, R.start, R."end", N.string, C.string, E.extdata, R.event_id FROM rocpd_region R
JOIN rocpd_string N ON N.id = R.name_id JOIN rocpd_event E ON E.id = R.event_id
JOIN rocpd_string C ON C.id = E.category_id ORDER BY R.start, R."end" DESC, R.id"""
_ARGUMENTS = "SELECT event_id, position, type, name, value, extdata FROM rocpd_arg ORDER BY event_id, position"


def _annotations(reader: RankReader) -> tuple[list[_Region], list[tuple[Any, ...]]]:
    """Return the program's own regions in PyTorch's trace, without calls, which the other file has; and arguments."""
    regions = [_Region(*row) for row in reader.whole().rows(_ANNOTATIONS)]
    kept = [each for each in regions if each.category in (TORCH_OPERATOR, PYTHON_FUNCTION) or is_marker(each.category)]
    events = {each.event for each in kept}
    return kept, [row for row in reader.whole().rows(_ARGUMENTS) if row[0] in events]


class _ThreadClocks:
    """The mapping of threads and times of a trace to those of the other file.

    A region that starts before a call that launched a matched dispatch, and ends after it, does so there, too: between
    such calls time is mapped linearly, outside of them with the offset of the nearest.
    """

    def __init__(self, there: _Launched, here: _Launched, rows_there: Ints, rows_here: Ints) -> None:
        both = there.has_call[rows_there] & here.has_call[rows_here]
        rows_there, rows_here = rows_there[both], rows_here[both]
        if not len(rows_there):
            hint = "record HIP calls: rocprofv3 --hip-trace"
            raise RocpdError("no matched dispatch has a call in both recordings", hint)
        self._threads: dict[int, int] = {}
        self._edges: dict[int | None, tuple[Ints, Ints]] = {None: _edges(there, here, rows_there, rows_here)}
        for thread in np.unique(there.thread[rows_there]).tolist():
            mine = there.thread[rows_there] == thread
            threads, counts = np.unique(here.thread[rows_here[mine]], return_counts=True)
            self._threads[thread] = int(threads[np.argmax(counts)])
            self._edges[thread] = _edges(there, here, rows_there[mine], rows_here[mine])

    def moved(self, region: _Region) -> _Moved:
        """Return a region with its place in the other file; without a thread there if none of its calls was matched."""
        thread = self._threads.get(region.thread)
        before, after = self._edges[None if thread is None else region.thread]
        start, end = np.interp([region.start, region.end], before, after - before).tolist()
        times = region.start + round(start), region.end + round(end)
        return thread, times[0], max(times), region


def _edges(there: _Launched, here: _Launched, rows_there: Ints, rows_here: Ints) -> tuple[Ints, Ints]:
    """Return starts and ends of calls by both clocks [ns], each ascending."""
    before = np.concatenate([there.call_start[rows_there], there.call_end[rows_there]])
    after = np.concatenate([here.call_start[rows_here], here.call_end[rows_here]])
    before, first = np.unique(before, return_index=True)
    after = np.maximum.accumulate(after[first])
    return before, after


class _Copy:
    """Adds rows to the tables of the only rank in a file, which have its suffix; reads them through views."""

    def __init__(self, connection: apsw.Connection, suffix: str) -> None:
        self._connection, self._suffix = connection, suffix
        strings: Iterable[Any] = connection.execute("SELECT string, id FROM rocpd_string ORDER BY id")
        self._strings: dict[str, int] = dict(strings)
        self._process: tuple[Any, ...] = next(connection.execute("SELECT nid, id FROM rocpd_info_process ORDER BY id"))

    def note(self, what: str) -> None:
        """Add a note on the join to the metadata."""
        self._insert("metadata", ("tag", "value"), [(TAG, what)])

    def add(self, regions: Sequence[_Moved], arguments: Sequence[tuple[Any, ...]]) -> None:
        """Add regions, with an event each, and their arguments."""
        events = self._after("event")
        threads = self._new_threads({each.thread for thread, _, _, each in regions if thread is None})
        numbers = {each.event: events + number for number, (*_, each) in enumerate(regions)}
        self._insert(
            "event",
            ("id", "category_id", "extdata"),
            ((numbers[each.event], self._string(each.category), each.extdata) for *_, each in regions),
        )
        self._insert(
            "region",
            ("nid", "pid", "tid", "start", "end", "name_id", "event_id"),
            (
                (*self._process, threads[each.thread] if thread is None else thread, start, end,
                 self._string(each.name), numbers[each.event])
                for thread, start, end, each in regions
            ),
        )  # fmt: skip
        self._insert(
            "arg",
            ("event_id", "position", "type", "name", "value", "extdata"),
            ((numbers[event], *rest) for event, *rest in arguments),
        )

    def _new_threads(self, unknown: set[int]) -> Mapping[int, int]:
        """Return a new thread for each thread of the trace that launched nothing."""
        first = self._after("info_thread")
        new = {thread: first + number for number, thread in enumerate(sorted(unknown))}
        rows = ((number, *self._process, thread) for thread, number in new.items())
        self._insert("info_thread", ("id", "nid", "pid", "tid"), rows)
        return new

    def _string(self, text: str) -> int:
        if (number := self._strings.get(text)) is None:
            number = self._strings[text] = max(self._strings.values(), default=0) + 1
            self._insert("string", ("id", "string"), [(number, text)])
        return number

    def _after(self, base: str) -> int:
        return int(self._connection.execute(f"SELECT COALESCE(MAX(id), 0) + 1 FROM rocpd_{base}").get)

    def _insert(self, base: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        table, names = quote_name(f"rocpd_{base}{self._suffix}"), ", ".join(map(quote_name, columns))
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
