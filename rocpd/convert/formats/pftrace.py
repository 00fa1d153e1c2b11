"""The Perfetto trace of a job: a group of tracks per rank, interned names, one sequence per rank.

Writes packets straight to the file, so nothing is dropped, whatever the size. The file's name, categories and tracks of
counters are those of AMD's traces. Field numbers are those of perfetto's
protos/perfetto/trace/{trace_packet,interned_data/interned_data,track_event/track_descriptor}.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from rocpd.base.types import Ints, Progress
from rocpd.convert.deliver.parts import Frame, RankPart, concatenate, open_part
from rocpd.convert.formats import protobuf as pb
from rocpd.convert.formats.packets import FLAGS, NEEDS_STATE, PACKET, SEQUENCE, Encoder, in_time_order
from rocpd.convert.formats.perfetto_colours import correlation
from rocpd.convert.formats.pftrace_job import job_steps
from rocpd.convert.formats.tree import TreeNode, tree
from rocpd.convert.gather.collect import collect_for_viewers
from rocpd.convert.gather.context import Damage
from rocpd.convert.gather.titles import titles_of_job
from rocpd.convert.model import RankEvents, TrackKind
from rocpd.convert.options import ConvertOptions
from rocpd.facts.regions import Steps
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader

_INTERNED, _DESCRIPTOR, _DEFAULTS = 12, 60, 59
_STATE_CLEARED = 1
_BOOTTIME = 6
"""BuiltinClock.BUILTIN_CLOCK_BOOTTIME, trace_processor's own time line: nanoseconds are taken as given."""
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


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_results.pftrace`, or the file as the user named it; see `rocpd.convert.Format.write`."""
    frame = Frame(options.ending_of("_results.pftrace", ".pftrace"))
    has_job = session.runs == 1 and not options.processes  # its steps are of no process
    work = partial(_write_part, titles_of_job(session))
    paths, answers = concatenate(work, session, frame, options, progress, _job if has_job else _nothing)
    Damage.report((damage for damage, _ in answers), session.note)
    _note_size(paths, session.note)
    return paths


def _note_size(paths: Sequence[Path], note: Callable[[str], None]) -> None:
    """Note how to cut a trace that is too large for a browser to be quick with."""
    large = [path for path in paths if path.stat().st_size > _LARGE_BYTES]
    if large:
        shown = ", ".join(f"{path.name} has {path.stat().st_size / 1e6:.0f} MB" for path in large[:3])
        note(f"{shown}: Perfetto's UI will be slow with it; --step 5, --start/--end or --rank 0-3 write a part")


def _nothing(_: object) -> bytes:
    return b""


def _job(answers: Sequence[tuple[Damage, Steps]]) -> bytes:
    """Return the packets of the job as a whole."""
    events = job_steps([steps for _, steps in answers])
    return b"".join(packets(events, _SEQUENCE_OF_JOB)) if events else b""


def _write_part(titles: Mapping[str, str], part: RankPart, reader: RankReader) -> tuple[Damage, Steps]:
    damage = Damage()
    events, steps = collect_for_viewers(reader, part.placement, part.options, damage, titles)
    with open_part(part) as file:
        pid = part.placement.pid if part.options.processes else None
        for data in packets(events, part.placement.position, pid):
            file.write(data)
    return damage, steps


def packets(events: RankEvents, sequence: int, pid: int | None = None) -> Iterator[bytes | memoryview]:
    """Yield the bytes of one rank: descriptors and texts, then its events in order of time.

    Args:
        events: the rank.
        sequence: number of the rank in the file, from 1.
        pid: shows the rank as a process of this pid, distinct in the file, and its threads as threads; None: all as
            plain groups and tracks, whose order Perfetto's UI leaves as it is.
    """
    nodes = tree(events)
    uuids = _uuids(events, nodes, sequence)
    encoder = Encoder(events, sequence, uuids)
    defaults = pb.text(_DEFAULTS, pb.number(58, _BOOTTIME))
    yield _packet(sequence, _STATE_CLEARED, defaults)
    yield from (
        _packet(sequence, NEEDS_STATE, pb.text(_DESCRIPTOR, descriptor))
        for descriptor in _descriptors(events, nodes, sequence << 32, pid)
    )
    yield from _interned(sequence, _KINDS, [correlation(text) for text in events.kinds.texts])
    yield from _interned(sequence, _CATEGORIES, encoder.categories.texts)
    yield from _interned(sequence, _NAMES, events.names.texts)
    yield from _interned(sequence, _STRINGS, events.strings.texts)
    yield from _interned(sequence, _ANNOTATIONS, encoder.annotations.texts)
    yield from in_time_order(encoder.units())


def _uuids(events: RankEvents, nodes: Sequence[TreeNode], sequence: int) -> Ints:
    """Return the uuid of each track: that of its node; of the rank itself where it has none."""
    uuids = np.full(len(events.tracks.all), sequence << 32, np.int64)
    for number, node in enumerate(nodes, start=1):
        if node.track is not None:
            uuids[node.track] += number
    return uuids


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
        counter = _counter(track.unit) if track and track.unit is not None else b""
        yield uuid + _named(node.title) + pb.number(5, parent) + pb.number(12, number) + counter


def _named(title: str) -> bytes:
    return pb.text(2, title) + pb.number(11, _EXPLICIT) + pb.number(15, _NEVER_MERGED)


def _counter(unit: str) -> bytes:
    return pb.text(8, pb.number(3, _BYTES) if unit == "bytes" else pb.text(6, unit) if unit else b"")
