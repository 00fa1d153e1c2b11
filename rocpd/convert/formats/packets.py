"""Encodes the packets of one rank: every event as units of bytes with a time and a rank among equal times.

See `order` for what comes first at one time. Field numbers are those of perfetto's
protos/perfetto/trace/{trace_packet,track_event/track_event}.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Ints
from rocpd.convert.formats import protobuf as pb
from rocpd.convert.formats.order import instant_ties, nesting, ties
from rocpd.convert.model import Annotation, Counters, Instants, Ragged, RankEvents, Slices
from rocpd.facts.columns import TextCodes, distinct
from rocpd.schema.rules.categories import trace_category

PACKET, TIMESTAMP, SEQUENCE, FLAGS, EVENT = 1, 8, 10, 13, 11
TYPE, TRACK, NAME, CATEGORY, ANNOTATION, FLOW, DOUBLE, CORRELATION = 9, 11, 10, 3, 4, 47, 44, 54
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
NEEDS_STATE = 2
"""SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE"""

_CHUNK = 1 << 14
"""Units encoded at once: their bytes stay within the processor's cache."""


@frozen
class Units:
    """Units of one kind: `encode` returns the bytes of some of them, a row each, all equally long."""

    time: Ints
    tie: Ints
    encode: Callable[[Ints], pb.Bytes]


class Encoder:
    """Turns the events of one rank into bytes.

    Args:
        events: the rank.
        sequence: trusted_packet_sequence_id of its packets.
        uuids: uuid of each track, by index.

    Attributes:
        annotations: names of annotations; the interning id of each text is its number + 1.
        categories: the categories of the trace, interned likewise; an event's own is its annotation `category`.
    """

    def __init__(self, events: RankEvents, sequence: int, uuids: Ints) -> None:
        self._events = events
        self._head = pb.number(SEQUENCE, sequence) + pb.number(FLAGS, NEEDS_STATE)
        self._uuids = uuids
        self.annotations = TextCodes[str]()
        self.categories = TextCodes[str]()
        own = events.categories.texts
        self._categories = np.array([self.categories.code(trace_category(text)) for text in own], np.int64)
        self._own_categories = np.array([events.strings.code(text) for text in own], np.int64)
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
        at = ties(slices, self._nests)
        rows = np.flatnonzero(at.lasting)
        yield Units(slices.end[rows], at.end[rows], partial(self._ends, slices, rows))
        for shape in _shapes(slices):
            lasting = shape[at.lasting[shape]]
            yield Units(slices.start[lasting], at.start[lasting], partial(self._begins, slices, lasting))
            points = shape[~at.lasting[shape]]
            yield Units(slices.start[points], at.start[points], partial(self._marks, slices, points))

    def _begins(self, slices: Slices, shape: Ints, chosen: Ints) -> pb.Bytes:
        rows = shape[chosen]
        return pb.rows(self._begin(slices, rows), len(rows))

    def _ends(self, slices: Slices, shape: Ints, chosen: Ints) -> pb.Bytes:
        rows = shape[chosen]
        return pb.rows(self._packet(END, slices.end[rows], slices.track[rows]), len(rows))

    def _marks(self, slices: Slices, shape: Ints, chosen: Ints) -> pb.Bytes:
        rows = shape[chosen]
        end = self._packet(END, slices.end[rows], slices.track[rows])
        return pb.rows([*self._begin(slices, rows), *end], len(rows))

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
        tie = instant_ties(len(instants))
        for shape in _groups(len(instants), [a.present for a in instants.annotations]):
            yield Units(instants.time[shape], tie[shape], partial(self._points, instants, shape))

    def _points(self, instants: Instants, shape: Ints, chosen: Ints) -> pb.Bytes:
        rows = shape[chosen]
        packet = self._packet(INSTANT, instants.time[rows], instants.track[rows], self._about(instants, rows))
        return pb.rows(packet, len(rows))

    def _of_counters(self, counters: Counters) -> Units:
        def encode(i: Ints) -> pb.Bytes:
            value = pb.fixed(DOUBLE, counters.value[i])
            return pb.rows(self._packet(COUNTER, counters.time[i], counters.track[i], value), len(i))

        return Units(counters.time, np.arange(len(counters), dtype=np.int64), encode)


def in_time_order(units: Sequence[Units]) -> Iterator[memoryview]:
    """Yield the bytes of all units in order of time and tie, some thousand units at a time."""
    if not units:
        return
    group = np.repeat(np.arange(len(units), dtype=np.int16), [len(u.time) for u in units])
    row = np.concatenate([np.arange(len(u.time)) for u in units])
    order = np.lexsort((np.concatenate([u.tie for u in units]), np.concatenate([u.time for u in units])))
    for first in range(0, len(order), _CHUNK):
        chunk = order[first : first + _CHUNK]
        yield _chunk(units, group[chunk], row[chunk])


def _chunk(units: Sequence[Units], group: np.ndarray, row: Ints) -> memoryview:
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
    if values.dtype == np.float64:
        return pb.fixed(5, values)
    return pb.numbers(4, values.astype(np.int64, copy=False))


def _take(column: Ragged, rows: Ints) -> list[Ints]:
    """Return the first, second … values of all rows; all of `rows` have equally many."""
    first = column.first[rows]
    count = int(column.first[rows[0] + 1] - first[0]) if len(rows) else 0
    return [column.values[first + i] for i in range(count)]


def _shapes(slices: Slices) -> list[Ints]:
    """Group rows whose start has the same fields: the same annotations, as many arguments and flows."""
    marks: list[np.ndarray | None] = [annotation.present for annotation in slices.annotations]
    marks += [slices.arguments[0].counts] if slices.arguments else []
    marks += [slices.flows.counts] if slices.flows else []
    return _groups(len(slices), marks)


def _groups(count: int, marks: Sequence[np.ndarray | None]) -> list[Ints]:
    key = np.zeros(count, np.int64)
    for mark in marks:
        if mark is not None and count:
            spread = int(mark.max()) + 1
            key = key * spread + mark
            if key.max() >= 1 << 31:
                key = np.unique(key, return_inverse=True)[1]
    if not count:
        return []
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
