"""The Perfetto trace of a job: process, thread, agent and counter tracks, interned names, one sequence per rank.

Writes packets straight to the file, so nothing is dropped, whatever the size. The file's name, categories and tracks of
counters are those of AMD's traces. Field numbers are those of perfetto's
protos/perfetto/trace/{trace_packet,interned_data/interned_data,track_event/track_descriptor}.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rocpd.convert.deliver.parts import Frame, RankPart, concatenate, open_part
from rocpd.convert.formats import protobuf as pb
from rocpd.convert.formats.packets import FLAGS, NEEDS_STATE, PACKET, SEQUENCE, Encoder, in_time_order
from rocpd.convert.gather.collect import collect
from rocpd.convert.gather.context import Damage
from rocpd.convert.model import RankEvents, Track
from rocpd.convert.options import ConvertOptions
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.align import Clock
from rocpd.types import Ints, Progress

_INTERNED, _DESCRIPTOR, _DEFAULTS = 12, 60, 59
_STATE_CLEARED = 1
_BOOTTIME = 6
"""BuiltinClock.BUILTIN_CLOCK_BOOTTIME, trace_processor's own time line: nanoseconds are taken as given."""
_CATEGORIES, _NAMES, _ANNOTATIONS, _STRINGS = 1, 2, 3, 29
_EXPLICIT = 3
"""TrackDescriptor.ChildTracksOrdering.EXPLICIT"""
_NEVER_MERGED = 2
"""TrackDescriptor.SiblingMergeBehavior.NONE: tracks of equal name stay apart."""
_BATCH = 1000
"""Interned texts per packet."""


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_results.pftrace`, or the file as the user named it; see `rocpd.convert.Format.write`."""
    frame = Frame(options.ending_of("_results.pftrace", ".pftrace"))
    paths, damages = concatenate(_write_part, session, frame, options, progress)
    Damage.report(damages, session.note)
    return paths


def _write_part(part: RankPart, reader: RankReader) -> Damage:
    damage = Damage()
    events = collect(reader, part.placement, part.options, damage)
    with open_part(part) as file:
        for data in packets(events, part.placement.position, part.placement.pid, part.placement.clock):
            file.write(data)
    return damage


def packets(events: RankEvents, sequence: int, pid: int, clock: Clock | None = None) -> Iterator[bytes | memoryview]:
    """Yield the bytes of one rank: descriptors and texts, then its events in order of time.

    Args:
        events: the rank.
        sequence: number of the rank in the file, from 1.
        pid: pid of the process in the trace, distinct in the file.
        clock: how its times came to the common time line, which labels the process; None where all share a clock.
    """
    uuids = (sequence << 32) + 1 + np.arange(len(events.tracks.all), dtype=np.int64)
    encoder = Encoder(events, sequence, uuids)
    defaults = pb.text(_DEFAULTS, pb.number(58, _BOOTTIME))
    yield _packet(sequence, _STATE_CLEARED, defaults)
    yield from (
        _packet(sequence, NEEDS_STATE, pb.text(_DESCRIPTOR, d))
        for d in _descriptors(events, sequence, pid, uuids, "" if clock is None else str(clock))
    )
    yield from _interned(sequence, _CATEGORIES, encoder.categories.texts)
    yield from _interned(sequence, _NAMES, events.names.texts)
    yield from _interned(sequence, _STRINGS, events.strings.texts)
    yield from _interned(sequence, _ANNOTATIONS, encoder.annotations.texts)
    yield from in_time_order(encoder.units())


def _packet(sequence: int, flags: int, content: bytes) -> bytes:
    return pb.text(PACKET, pb.number(SEQUENCE, sequence) + pb.number(FLAGS, flags) + content)


def _interned(sequence: int, field: int, texts: Sequence[str]) -> Iterator[bytes]:
    """Yield packets of InternedData: iid = position + 1, then the text (name and str are both field 2)."""
    for first in range(0, len(texts), _BATCH):
        entries = (
            pb.text(field, pb.number(1, first + i) + pb.text(2, value))
            for i, value in enumerate(texts[first : first + _BATCH], start=1)
        )
        yield _packet(sequence, NEEDS_STATE, pb.text(_INTERNED, b"".join(entries)))


def _descriptors(events: RankEvents, sequence: int, pid: int, uuids: Ints, label: str) -> Iterator[bytes]:
    process = sequence << 32
    known = pb.number(1, pid) + pb.text(6, events.label) + (pb.text(8, label) if label else b"")
    yield pb.number(1, process) + pb.text(3, known) + pb.number(11, _EXPLICIT)
    tracks = events.tracks.all
    in_order = sorted(range(len(tracks)), key=lambda i: (tracks[i].base, tracks[i].lane))
    order = {index: rank for rank, index in enumerate(in_order)}
    for index, track in enumerate(tracks):
        parent = process if track.parent is None else int(uuids[track.parent])
        yield _descriptor(track, int(uuids[index]), parent, pid) + pb.number(12, order[index])


def _descriptor(track: Track, uuid: int, parent: int, pid: int) -> bytes:
    head = pb.number(1, uuid)
    if track.tid is not None:
        thread = pb.number(1, pid) + pb.number(2, track.tid & 0xFFFFFFFFFFFFFFFF) + pb.text(5, track.name)
        return head + pb.text(4, thread)
    head += pb.text(2, track.name) + pb.number(5, parent) + pb.number(15, _NEVER_MERGED)
    if track.unit is None:
        return head
    unit = pb.number(3, 3) if track.unit == "bytes" else pb.text(6, track.unit) if track.unit else b""
    return head + pb.text(8, unit)
