"""The Perfetto trace of a job: a group of tracks per rank, interned names, one sequence per rank.

Writes packets straight to the file, so that nothing is dropped at any size. The file's name, categories and tracks of
counters are named as in AMD's traces. An event consists of units: bytes with a time and a position among equal times
(see `layout`). The steps of the job stand above the ranks, and are made of the steps of each rank. Sampled call stacks
are packets of perf_sample, which Perfetto's UI shows as flame graphs. Field numbers are those of perfetto's
protos/perfetto/trace: {trace_packet,interned_data/interned_data,track_event/track_descriptor}.proto,
track_event/track_event.proto and profiling/{profile_packet,profile_common}.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from rocpd.base import Ints, Progress, frozen
from rocpd.convert.deliver import Frame, RankPart
from rocpd.convert.formats import protobuf as pb
from rocpd.convert.formats.layout import TreeNode, instant_ties, nesting, ties, tree, write_for_viewers
from rocpd.convert.gather.cpu import STEP
from rocpd.convert.model import Annotation, Counters, Instants, Ragged, RankEvents, Slices, Track, TrackKind
from rocpd.convert.options import ConvertOptions
from rocpd.facts.columns import TextCodes, distinct, grouped
from rocpd.facts.regions import Steps, frames_of
from rocpd.federate.federation import Federation
from rocpd.schema.rules.categories import trace_category

SAMPLE = 66
"""TracePacket.perf_sample"""
FUNCTIONS, FRAMES, CALLSTACKS, MAPPINGS = 5, 6, 7, 19
"""Fields of InternedData."""
_MAPPING = 1
"""The only mapping: the library of a function, if known, is part of its name."""
_INTERNED, _DESCRIPTOR, _DEFAULTS = 12, 60, 59
_STATE_CLEARED = 1
_BOOTTIME = 6
"""BuiltinClock.BUILTIN_CLOCK_BOOTTIME, trace_processor's own time line: nanoseconds stay as they are."""
_CATEGORIES, _NAMES, _ANNOTATIONS, _STRINGS, _KINDS = 1, 2, 3, 29, 43
_EXPLICIT = 3
"""TrackDescriptor.ChildTracksOrdering.EXPLICIT"""
_NEVER_MERGED = 2
"""TrackDescriptor.SiblingMergeBehavior.NONE: tracks of equal name stay apart."""
_EXPLICIT_PROCESSES = 1
"""TrackDescriptor.ProcessOrdering.PROCESS_ORDERING_EXPLICIT, of the track 0"""
_BYTES = 3
"""CounterDescriptor.Unit.UNIT_SIZE_BYTES"""
_SEQUENCE_OF_JOB = 1 << 30
"""trusted_packet_sequence_id above those of ranks"""
_LARGE_BYTES = 100_000_000
_BATCH = 1000
"""Interned texts per packet."""


class SampledStacks:
    """The sampled call stacks of a rank.

    Args:
        events: the rank.
        pid: the process that shows the samples.
    """

    def __init__(self, events: RankEvents, pid: int) -> None:
        self._pid = pb.number(2, pid)
        of_track = [-1 if track.sampled is None else track.sampled for track in events.tracks.all]
        self._threads = np.array(of_track, np.int64)
        self._frames = TextCodes[str]()
        self._stacks: dict[int, tuple[int, ...]] = {}  # number of its text -> its frames, outermost first
        for batch in events.instants:
            for code in distinct(self._codes(batch)[self.rows(batch)]).tolist():
                self._stacks[code] = tuple(map(self._frames.code, frames_of(events.strings.texts[code])))

    def __bool__(self) -> bool:
        return bool(self._stacks)

    def interned(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield fields of InternedData, with the entries of each."""
        numbers = range(1, len(self._frames.texts) + 1)
        yield MAPPINGS, [pb.number(1, _MAPPING)]
        yield FUNCTIONS, [pb.number(1, i) + pb.text(2, self._frames.texts[i - 1]) for i in numbers]
        yield FRAMES, [pb.number(1, i) + pb.number(2, i) + pb.number(3, _MAPPING) + pb.number(4, i) for i in numbers]
        stacks = (
            pb.number(1, code + 1) + b"".join(pb.number(2, frame + 1) for frame in frames)
            for code, frames in self._stacks.items()
        )
        yield CALLSTACKS, list(stacks)

    def rows(self, batch: Instants) -> Ints:
        """Return the rows of a batch of samples that have a stack and a thread."""
        return np.flatnonzero((self._codes(batch) >= 0) & (self._threads[batch.track] >= 0))

    def sample(self, batch: Instants, rows: Ints) -> list[pb.Part]:
        """Return the fields of the packet for some samples."""
        threads, stacks = self._threads[batch.track[rows]], self._codes(batch)[rows]
        return pb.message(SAMPLE, [self._pid, *pb.numbers(3, threads), *pb.numbers(4, stacks + 1)])

    def _codes(self, batch: Instants) -> Ints:
        """Return the number of the text of each stack, -1 without a stack."""
        stacks = next((each for each in batch.annotations if each.name == "call_stack"), None)
        if stacks is None:
            return np.full(len(batch), -1)
        codes = stacks.values.astype(np.int64, copy=False)
        return codes if stacks.present is None else np.where(stacks.present, codes, -1)


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_results.pftrace`, or the file as the user named it; see `rocpd.convert.Format.write`."""
    frame = Frame(options.ending_of("_results.pftrace", ".pftrace"))
    has_job = session.runs == 1 and not options.processes  # its steps belong to no process
    paths = write_for_viewers(_of_rank, session, frame, options, progress, *([_of_job] if has_job else []))
    if large := [path for path in paths if path.stat().st_size > _LARGE_BYTES]:
        shown = ", ".join(f"{path.name} has {path.stat().st_size / 1e6:.0f} MB" for path in large[:3])
        cut = "--step 5, --start/--end or --rank 0-3 write a part"
        session.note(f"{shown}: Perfetto's UI will be slow with it; {cut}")
    return paths


def _of_rank(events: RankEvents, part: RankPart) -> Iterator[bytes | memoryview]:
    return packets(events, part.placement.position, part.placement.pid if part.options.processes else None)


def _of_job(ranks: Sequence[Steps]) -> bytes:
    """Return the packets of the job as a whole."""
    events = job_steps(ranks)
    return b"".join(packets(events, _SEQUENCE_OF_JOB)) if events else b""


def packets(events: RankEvents, sequence: int, pid: int | None = None) -> Iterator[bytes | memoryview]:
    """Yield the bytes of one rank: descriptors and texts, then its events in order of time.

    Args:
        events: the rank.
        sequence: number of the rank in the file, from 1.
        pid: shows the rank as a process of this pid, distinct in the file, and its threads as threads; None: shows all
            as plain groups and tracks, whose order Perfetto's UI keeps.
    """
    nodes = tree(events)
    uuids = _uuids(events, nodes, sequence)
    stacks = SampledStacks(events, sequence if pid is None else pid)
    encoder = Encoder(events, sequence, uuids, stacks)
    yield _plain_packet(sequence, _STATE_CLEARED, pb.text(_DEFAULTS, pb.number(58, _BOOTTIME)))
    yield from (
        _plain_packet(sequence, NEEDS_STATE, pb.text(_DESCRIPTOR, descriptor))
        for descriptor in _descriptors(events, nodes, sequence << 32, pid)
    )
    yield from _interned(sequence, _KINDS, [correlation(text) for text in events.kinds.texts])
    yield from _interned(sequence, _CATEGORIES, encoder.categories.texts)
    yield from _interned(sequence, _NAMES, events.names.texts)
    yield from _interned(sequence, _STRINGS, events.strings.texts)
    yield from _interned(sequence, _ANNOTATIONS, encoder.annotations.texts)
    if stacks:
        if pid is None:
            process = pb.text(3, pb.number(1, sequence) + pb.text(6, f"{events.label}: call stacks"))
            descriptor = pb.number(1, (sequence << 32) + len(nodes) + 1) + process
            yield _plain_packet(sequence, NEEDS_STATE, pb.text(_DESCRIPTOR, descriptor))
        for field, entries in stacks.interned():
            yield from _interned_entries(sequence, field, entries)
    yield from in_time_order(encoder.units())


def _uuids(events: RankEvents, nodes: Sequence[TreeNode], sequence: int) -> Ints:
    """Return the uuid of each track: the uuid of its node, or of the rank if it has no node."""
    uuids = np.full(len(events.tracks.all), sequence << 32, np.int64)
    for number, node in enumerate(nodes, start=1):
        if node.track is not None:
            uuids[node.track] += number
    return uuids


def _plain_packet(sequence: int, flags: int, content: bytes) -> bytes:
    return pb.text(PACKET, pb.number(SEQUENCE, sequence) + pb.number(FLAGS, flags) + content)


def _interned(sequence: int, field: int, texts: Sequence[str]) -> Iterator[bytes]:
    """Yield packets of InternedData: iid = position + 1, then the text (name and str are both field 2)."""
    return _interned_entries(sequence, field, [pb.number(1, i) + pb.text(2, text) for i, text in enumerate(texts, 1)])


def _interned_entries(sequence: int, field: int, entries: Sequence[bytes]) -> Iterator[bytes]:
    for first in range(0, len(entries), _BATCH):
        fields = (pb.text(field, entry) for entry in entries[first : first + _BATCH])
        yield _plain_packet(sequence, NEEDS_STATE, pb.text(_INTERNED, b"".join(fields)))


def _descriptors(events: RankEvents, nodes: Sequence[TreeNode], rank: int, pid: int | None) -> Iterator[bytes]:
    """Yield the descriptors of the rank, whose uuid is `rank`, and of its nodes, whose uuids follow."""
    if pid is None:
        yield pb.number(1, rank) + _named(events.label) + pb.text(14, events.about)
    else:
        yield pb.number(1, 0) + pb.number(19, _EXPLICIT_PROCESSES)
        labels = b"".join(pb.text(8, clock) for clock in events.about.splitlines()[1:])
        process = pb.number(1, pid) + pb.text(6, events.label) + labels
        yield pb.number(1, rank) + pb.text(3, process) + pb.number(12, rank >> 32)
    places = {node.track: rank + number for number, node in enumerate(nodes, start=1)}
    for number, node in enumerate(nodes, start=1):
        track = None if node.track is None else events.tracks.all[node.track]
        uuid, parent = pb.number(1, rank + number), rank if node.parent is None else rank + 1 + node.parent
        if pid is not None and track and track.tid is not None:
            thread = pb.number(1, pid) + pb.number(2, track.tid & 0xFFFFFFFFFFFFFFFF) + pb.text(5, track.name)
            yield uuid + pb.text(4, thread)
            continue
        if pid is not None and track and track.kind is TrackKind.THREAD and track.lane:
            parent = places.get(track.base, parent)
        counter = _counter_unit(track.unit) if track and track.unit is not None else b""
        yield uuid + _named(node.title) + pb.number(5, parent) + pb.number(12, number) + counter


def _named(title: str) -> bytes:
    return pb.text(2, title) + pb.number(11, _EXPLICIT) + pb.number(15, _NEVER_MERGED)


def _counter_unit(unit: str) -> bytes:
    return pb.text(8, pb.number(3, _BYTES) if unit == "bytes" else pb.text(6, unit) if unit else b"")


PACKET, TIMESTAMP, SEQUENCE, FLAGS, EVENT = 1, 8, 10, 13, 11
TYPE, TRACK, NAME, CATEGORY, ANNOTATION, FLOW, DOUBLE, CORRELATION = 9, 11, 10, 3, 4, 47, 44, 54
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
NEEDS_STATE = 2
"""SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE"""

_UNITS_AT_ONCE = 1 << 14
"""Units per batch: their bytes stay within the processor's cache."""


@frozen
class Units:
    """Units of one kind: `encode` returns the bytes of chosen units, one row each, all of the same length."""

    time: Ints
    tie: Ints
    encode: Callable[[Ints], pb.Bytes]


class Encoder:
    """Turns the events of one rank into bytes.

    Args:
        events: the rank.
        sequence: trusted_packet_sequence_id of its packets.
        uuids: uuid of each track, by index.
        stacks: the sampled call stacks.

    Attributes:
        annotations: names of annotations; the interning id of each text is its number + 1.
        categories: the categories of the trace, interned in the same way; the category of an event is an annotation.
    """

    def __init__(self, events: RankEvents, sequence: int, uuids: Ints, stacks: SampledStacks) -> None:
        self._events = events
        self._stacks = stacks
        self._head = pb.number(SEQUENCE, sequence) + pb.number(FLAGS, NEEDS_STATE)
        self._uuids = uuids
        self.annotations = TextCodes[str]()
        self.categories = TextCodes[str]()
        texts = events.categories.texts
        self._categories = np.array([self.categories.code(trace_category(text)) for text in texts], np.int64)
        self._own_categories = np.array([events.strings.code(text) for text in texts], np.int64)
        self._category = pb.number(1, self.annotations.code("category") + 1)
        batches: list[Slices | Instants] = [*events.slices, *events.instants]
        for annotation in (a for batch in batches for a in batch.annotations):
            self.annotations.code(annotation.name)
        self._arguments = np.zeros(len(events.names.texts), np.int64)
        for slices in events.slices:
            for name in distinct(slices.arguments[0].values).tolist() if slices.arguments else ():
                self._arguments[name] = self.annotations.code(events.names.texts[name])
        self._nests = nesting(events.tracks.all)

    def units(self) -> list[Units]:
        """Return all units of the rank."""
        units: list[Units] = []
        for slices in self._events.slices:
            units += self._of_slices(slices)
        for instants in self._events.instants:
            units += self._of_instants(instants)
        units += [self._of_counters(counters) for counters in self._events.counters]
        return [each for each in units if len(each.time)]

    def _packet(self, kind: int, time: Ints, track: Ints, more: Sequence[pb.Part] = ()) -> list[pb.Part]:
        event = [pb.number(TYPE, kind), *pb.numbers(TRACK, self._uuids[track]), *more]
        return pb.message(PACKET, [*pb.numbers(TIMESTAMP, time), self._head, *pb.message(EVENT, event)])

    def _of_slices(self, slices: Slices) -> Iterator[Units]:
        at, begin = ties(slices, self._nests), partial(self._begin, slices)

        def end(rows: Ints) -> list[pb.Part]:
            return self._packet(END, slices.end[rows], slices.track[rows])

        yield _units(slices.end, at.end, np.flatnonzero(at.lasting), end)
        for shape in _shapes(slices):
            yield _units(slices.start, at.start, shape[at.lasting[shape]], begin)
            points = shape[~at.lasting[shape]]
            yield _units(slices.start, at.start, points, lambda rows: [*begin(rows), *end(rows)])

    def _begin(self, slices: Slices, rows: Ints) -> list[pb.Part]:
        more = self._about(slices, rows)
        if slices.arguments:
            names, values = (_take(column, rows) for column in slices.arguments)
            for name, value in zip(names, values, strict=True):
                more += pb.message(ANNOTATION, [*pb.numbers(1, self._arguments[name] + 1), *pb.numbers(17, value + 1)])
        if slices.flows:
            for ids in _take(slices.flows, rows):
                more += pb.fixed(FLOW, ids)
        return self._packet(BEGIN, slices.start[rows], slices.track[rows], more)

    def _about(self, batch: Slices | Instants, rows: Ints) -> list[pb.Part]:
        category = batch.category[rows]
        more = [*pb.numbers(NAME, batch.name[rows] + 1), *pb.numbers(CATEGORY, self._categories[category] + 1)]
        if isinstance(batch, Instants) or batch.is_recorded:
            more += pb.message(ANNOTATION, [self._category, *pb.numbers(17, self._own_categories[category] + 1)])
        if isinstance(batch, Slices) and batch.kind is not None:
            more += pb.numbers(CORRELATION, batch.kind[rows] + 1)
        for annotation in batch.annotations:
            if annotation.present is not None and not annotation.present[rows[0]]:
                continue
            name = pb.number(1, self.annotations.code(annotation.name) + 1)
            more += pb.message(ANNOTATION, [name, *_value(annotation, rows)])
        return more

    def _of_instants(self, instants: Instants) -> Iterator[Units]:
        def point(rows: Ints) -> list[pb.Part]:
            return self._packet(INSTANT, instants.time[rows], instants.track[rows], self._about(instants, rows))

        for shape in _groups(len(instants), [a.present for a in instants.annotations]):
            yield _units(instants.time, instant_ties(len(instants)), shape, point)

        def sample(rows: Ints) -> list[pb.Part]:
            packet = [*pb.numbers(TIMESTAMP, instants.time[rows]), self._head, *self._stacks.sample(instants, rows)]
            return pb.message(PACKET, packet)

        yield _units(instants.time, instant_ties(len(instants)), self._stacks.rows(instants), sample)

    def _of_counters(self, counters: Counters) -> Units:
        def value(i: Ints) -> list[pb.Part]:
            return self._packet(COUNTER, counters.time[i], counters.track[i], pb.fixed(DOUBLE, counters.value[i]))

        rows = np.arange(len(counters), dtype=np.int64)
        return _units(counters.time, rows, rows, value)


def _units(time: Ints, tie: Ints, rows: Ints, fields: Callable[[Ints], list[pb.Part]]) -> Units:
    """Return units of some rows of columns; `fields` returns the bytes of rows, which all have the same fields."""

    def encode(chosen: Ints) -> pb.Bytes:
        return pb.rows(fields(rows[chosen]), len(chosen))

    return Units(time[rows], tie[rows], encode)


def in_time_order(units: Sequence[Units]) -> Iterator[memoryview]:
    """Yield the bytes of all units in order of time and tie, in batches of some thousand units."""
    if not units:
        return
    group = np.repeat(np.arange(len(units), dtype=np.int16), [len(u.time) for u in units])
    row = np.concatenate([np.arange(len(u.time)) for u in units])
    order = np.lexsort((np.concatenate([u.tie for u in units]), np.concatenate([u.time for u in units])))
    for first in range(0, len(order), _UNITS_AT_ONCE):
        chunk = order[first : first + _UNITS_AT_ONCE]
        yield _encoded(units, group[chunk], row[chunk])


def _encoded(units: Sequence[Units], group: np.ndarray, row: Ints) -> memoryview:
    size = np.empty(len(group), np.int64)
    pieces = []
    for number in np.flatnonzero(np.bincount(group)).tolist():
        members = np.flatnonzero(group == number)
        matrix = units[number].encode(row[members])
        size[members] = matrix.shape[1]
        pieces.append((members, matrix))
    offsets = np.zeros(len(group) + 1, np.int64)
    np.cumsum(size, out=offsets[1:])
    buffer = np.empty(int(offsets[-1]), np.uint8)
    for members, matrix in pieces:
        width = matrix.shape[1]
        # One unaligned record per unit: numpy copies each row to its place at once.
        record = np.dtype((np.void, width))
        target = np.ndarray((len(buffer) - width + 1,), record, buffer, strides=(1,))
        target[offsets[members]] = matrix.view(record).ravel()
    return buffer.data


def _value(annotation: Annotation, rows: Ints) -> list[pb.Part]:
    values = annotation.values[rows]
    if annotation.text:
        return pb.numbers(17, values.astype(np.int64, copy=False) + 1)
    return pb.fixed(5, values) if values.dtype == np.float64 else pb.numbers(4, values.astype(np.int64, copy=False))


def _take(column: Ragged, rows: Ints) -> list[Ints]:
    """Return the first, second … values of all rows; `rows` all have the same number of values."""
    first = column.first[rows]
    count = int(column.first[rows[0] + 1] - first[0]) if len(rows) else 0
    return [column.values[first + i] for i in range(count)]


def _shapes(slices: Slices) -> list[Ints]:
    """Group rows whose starts have the same fields: the same annotations, and equally many arguments and flows."""
    marks: list[np.ndarray | None] = [annotation.present for annotation in slices.annotations]
    marks += [slices.arguments[0].counts] if slices.arguments else []
    marks += [slices.flows.counts] if slices.flows else []
    return _groups(len(slices), marks)


def _groups(count: int, marks: Sequence[np.ndarray | None]) -> list[Ints]:
    return [rows for _, rows in grouped([np.zeros(count, np.int64), *(mark for mark in marks if mark is not None)])]


_NS_PER_MS = 1_000_000


def job_steps(ranks: Sequence[Steps]) -> RankEvents | None:
    """Return the steps of the job with the time of each as a counter; None if fewer than two ranks have steps.

    A step of the job lasts from its first start to its last end on any rank. Where ranks are apart it is shown only
    until the next one starts; the counter has the true time.
    """
    if sum(map(bool, ranks)) < 2:
        return None
    times: dict[int, tuple[int, int]] = {}
    for number, (start, end) in (step for of_rank in ranks for step in of_rank.items()):
        first, last = times.get(number, (start, end))
        times[number] = min(first, start), max(last, end)
    numbers = sorted(times, key=times.__getitem__)
    start, end = np.array([times[number] for number in numbers], np.int64).T
    events = RankEvents(-1, f"job · {len(ranks)} ranks", "steps, each from its first start to its last end on any rank")
    track = np.full(len(start), events.tracks.index("steps", Track("steps", TrackKind.GPU_TIME, nests=True)))
    name = np.array([events.names.code(f"step {number}") for number in numbers], np.int64)
    until = np.minimum(end, np.append(start[1:], end[-1:]))
    duration = Annotation("duration_ms", (end - start) / _NS_PER_MS)
    steps = Slices.calculated(track, (start, until), name, events.categories.code(STEP), annotations=(duration,))
    events.slices = [steps]
    counter = events.tracks.index("time", Track("step time", TrackKind.COUNTER, unit="ms"))
    points = np.append(start, end[-1]), np.append((end - start) / _NS_PER_MS, 0.0)
    events.counters = [Counters(np.full(len(start) + 1, counter), *points)]
    return events


# Slices of one kind of work have one colour in Perfetto's UI, as close as possible to `rocpd.table.palette`. A trace
# cannot set colours. The UI calculates the colour of a slice from its correlation id if it has one, else from its name:
# hue and lightness are hashes of the text (ui/src/components/colorizer.ts). So the correlation id is the kind, followed
# by invisible characters chosen for the right hashes; saturation is fixed, so that grey is an olive. Versions before 51
# colour by name.
_UNSEEN = "\u200b\u200c\u200d\u2060"  # zero-width space, non-joiner, joiner; word joiner
_CHOSEN = {
    "GEMM": "2103",
    "attention": "1223",
    "communication": "2301",
    "elementwise": "1103",
    "reduction": "2320",
    "copy": "1031",
    "other": "021",
    "compute": "211",
    "exposed communication": "0301",
    "hidden communication": "332",
    "exposed copies": "3033",
}
"""Kind of work -> indices of the invisible characters after it."""


def correlation(kind: str) -> str:
    """Return the correlation id of slices of a kind; the kind itself if no colour is chosen for it.

    >>> correlation("GEMM").startswith("GEMM"), correlation("mine")
    (True, 'mine')
    """
    return kind + "".join(_UNSEEN[int(digit)] for digit in _CHOSEN.get(kind, ""))
