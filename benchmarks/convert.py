"""Converters against loops that only read, and against the libraries that write the same formats event by event."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import rocpd
from benchmarks.against import ROOT, checked_out, run_of
from benchmarks.measure import cpu_seconds, job, medians, seconds
from rocpd.convert import FORMATS
from rocpd.convert.deliver import RankPart, placements
from rocpd.convert.gather.collect import collect
from rocpd.convert.gather.context import Damage
from rocpd.convert.options import ConvertOptions
from rocpd.schema.quote import quote_name

EVENTS = 300_000
RANKS = 8
_QUICKEST = "0a5345d"

_EVENT = ("id", "category_id", "stack_id")
_LAUNCH = ("start", "end", "queue_id", "stream_id", "event_id")
_DISPATCH = (
    "agent_id", "kernel_id", "dispatch_id", "region_name_id", *_LAUNCH, "grid_size_x", "grid_size_y", "grid_size_z",
    "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "group_segment_size", "private_segment_size",
)  # fmt: skip
_COPY = ("name_id", "dst_agent_id", "src_agent_id", "size", *_LAUNCH)
_ALLOCATION = ("type", "level", "agent_id", "address", "size", *_LAUNCH)
_TRACE = {
    "rocpd_kernel_dispatch": _DISPATCH,
    "rocpd_region": ("tid", "start", "end", "name_id", "event_id"),
    "rocpd_event": _EVENT,
    "rocpd_memory_copy": _COPY,
    "rocpd_memory_allocate": _ALLOCATION,
    "rocpd_sample": ("track_id", "timestamp", "event_id"),
    "rocpd_pmc_event": ("event_id", "pmc_id", "value"),
    "rocpd_graph_launch": ("agent_id", "queue_id", "start", "end", "graph_exec_id", "event_id"),
}
_ROW = ("id", "guid", "nid", "pid")
_DOCUMENTS = ("call_stack", "line_info", "extdata")
USED: dict[str, dict[str, tuple[str, ...]]] = {
    "pftrace": _TRACE,
    "csv": {
        **_TRACE,
        "rocpd_kernel_dispatch": (*_DISPATCH, "id", "tid"),
        "rocpd_region": ("id", "tid", "pid", "start", "end", "name_id", "event_id"),
        "rocpd_sample": ("id", "track_id", "timestamp", "event_id"),
    },
    "parquet": {
        "rocpd_kernel_dispatch": (*_ROW, *_DISPATCH, "tid"),
        "rocpd_region": (*_ROW, "tid", "start", "end", "name_id", "event_id"),
        "rocpd_event": (*_EVENT, "parent_stack_id", "correlation_id", *_DOCUMENTS),
        "rocpd_memory_copy": (*_ROW, *_COPY, "tid", "region_name_id", "dst_address", "src_address"),
        "rocpd_memory_allocate": (*_ROW, *_ALLOCATION, "tid"),
        "rocpd_sample": ("id", "guid", "track_id", "timestamp", "event_id"),
        "rocpd_pmc_event": ("id", "guid", "event_id", "pmc_id", "value"),
        "rocpd_graph_launch": (*_ROW, "agent_id", "queue_id", "start", "end", "graph_exec_id", "event_id"),
        "rocpd_arg": ("event_id", "position", "type", "name", "value", "extdata"),
    },
}  # fmt: skip
"""Columns of the base tables that a format uses: what a bare scan reads."""


def run() -> None:
    """Print the time of each format as a multiple of a bare scan, and the other bars of converters."""
    files = job(RANKS, EVENTS)
    with (
        tempfile.TemporaryDirectory() as folder,
        rocpd.connect(files) as session,
        rocpd.connect(files, jobs=1) as alone,
    ):
        options = ConvertOptions(Path(folder), force=True)
        _against_scans(session, alone, options)
        _against_libraries(session, options)
    _per_rank()
    _memory()
    _against_earlier(files[:2])


def _against_scans(session: rocpd.Session, alone: rocpd.Session, options: ConvertOptions) -> None:
    print(f"{RANKS} ranks of {EVENTS} dispatches and regions; bar: 3 x scan")
    print(f"{'format':10} {'seconds':>8} {'one core':>9} {'scan':>8} {'x scan':>8}")
    for name, columns in USED.items():
        times = medians(
            {
                "all": _writer(name, session, options),
                "one": _writer(name, alone, options),
                "scan": partial(_scan, session, columns),
            },
            runs=3,
        )
        ratio = times["all"] / times["scan"]
        print(f"{name:10} {times['all']:8.2f} {times['one']:9.2f} {times['scan']:8.2f} {ratio:8.2f}", flush=True)


def _writer(name: str, session: rocpd.Session, options: ConvertOptions) -> Callable[[], object]:
    return lambda: FORMATS[name].write(session, options)


def _scan(session: rocpd.Session, used: dict[str, tuple[str, ...]]) -> None:
    """Loop in Python over one cursor per table reading the columns used; no joins, one thread."""
    for rank in session.ranks:
        connection = rank.opening.connect()
        tables = session.rank_tables(rank.number)
        for base, columns in used.items():
            have = [column for column in columns if column in tables.columns.get(base, ())]
            for _ in connection.execute(f"SELECT {', '.join(map(quote_name, have))} FROM {tables.name(base)}"):
                pass
        connection.close()


def _against_libraries(session: rocpd.Session, options: ConvertOptions) -> None:
    ranks = 2
    with rocpd.connect([rank.opening.path for rank in session.ranks[:ranks]]) as some:
        ours = seconds(_writer("otf2", some, options))
        wheel = seconds(lambda: _wheel_loop(options.folder / "wheel", some, options))
    print(f"otf2: {ours:.2f} s for {ranks} ranks, the wheel's own loop {wheel:.2f} s: {ours / wheel:.2f} x (bar: 1.5)")
    ours, other = _per_slice(session, options)
    ratio = other / ours
    print(
        f"pftrace encoder: {ours * 1e6:.2f} us a slice, perfetto's protobuf {other * 1e6:.2f}: {ratio:.1f} x (bar: 4)"
    )


def _against_earlier(files: list[Path]) -> None:
    """Print the CPU of OTF2 by that of the commit that was quickest."""
    with checked_out(_QUICKEST) as old, tempfile.TemporaryDirectory() as out:
        words = ["convert", "-f", "otf2", "-d", out, "--force", *map(str, files)]
        times = medians({"old": partial(run_of, old, words), "new": partial(run_of, ROOT, words)}, 3, cpu_seconds)
    print(f"otf2 takes {times['new'] / times['old']:.2f} x the CPU of {_QUICKEST} (bar: 1)")


def _wheel_loop(folder: Path, session: rocpd.Session, options: ConvertOptions) -> None:
    """Write the same events through the classes of the otf2 wheel."""
    import otf2

    from rocpd.convert.formats.otf2_rank import ENTER, trace

    shutil.rmtree(folder, ignore_errors=True)
    with otf2.writer.open(str(folder), timer_resolution=1_000_000_000) as archive:
        root = archive.definitions.system_tree_node("job")
        for placement in placements(session):
            reader = session.reader(placement.rank.number)
            rank = trace(RankPart(placement, folder, options), reader)
            group = archive.definitions.location_group(rank.rank.label, system_tree_parent=root)
            regions = [archive.definitions.region(region.name) for region in rank.regions]
            for location in rank.locations:
                out = archive.event_writer(location.name, group=group)
                rows = zip(location.time.tolist(), location.what.tolist(), location.region.tolist(), strict=True)
                for time, what, region in rows:
                    if what:
                        out.enter(time, regions[region])
                    if what != ENTER:
                        out.leave(time, regions[region])
            for metric in rank.metrics:
                out = archive.event_writer(metric.name, group=group)
                member = archive.definitions.metric_member(metric.name)
                members = archive.definitions.metric_class(members=(member,))
                for time, value in zip(metric.time.tolist(), metric.value.tolist(), strict=True):
                    out.metric(time, members, value)


def _per_slice(session: rocpd.Session, options: ConvertOptions) -> tuple[float, float]:
    """Return seconds per slice of our encoder, and of perfetto's Python protobuf writing the same packets."""
    import numpy as np
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    from rocpd.convert.formats.pftrace import Encoder, SampledStacks, in_time_order, packets

    events = collect(session.reader(0), placements(session)[0], options, Damage())
    count = sum(len(slices) for slices in events.slices)
    uuids = 1 + np.arange(len(events.tracks.all), dtype=np.int64)
    encoder = Encoder(events, 1, uuids, SampledStacks(events, 1))
    ours = min(seconds(lambda: list(in_time_order(encoder.units()))) for _ in range(3))
    parsed = Trace()
    parsed.ParseFromString(b"".join(map(bytes, packets(events, 1, 1))))
    pieces = list(parsed.packet)
    some = [_plain(packet) for packet in pieces[:: max(1, len(pieces) // 60_000)]]
    other = seconds(lambda: _protobuf(some)) / len(some) * len(pieces)
    return ours / count, other / count


def _plain(packet: Any) -> tuple[Any, ...]:
    event = packet.track_event
    annotations = [(annotation.name_iid, annotation.int_value) for annotation in event.debug_annotations]
    categories = list(event.category_iids)
    return packet.timestamp, event.type, event.track_uuid, event.name_iid, categories, annotations, list(event.flow_ids)


def _protobuf(events: Iterable[tuple[Any, ...]]) -> bytes:
    """Write events as packets through perfetto's Python classes."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    out = Trace()
    for time, kind, track, name, categories, notes, flows in events:
        packet = out.packet.add()
        packet.timestamp, packet.trusted_packet_sequence_id, packet.sequence_flags = time, 1, 2
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        if name:
            event.name_iid = name
            event.category_iids.extend(categories)
        for key, value in notes:
            field = event.debug_annotations.add()
            field.name_iid, field.int_value = key, value
        event.flow_ids.extend(flows)
    return bytes(out.SerializeToString())


def _per_rank() -> None:
    times = {}
    for ranks in (2, 16):
        files = job(32, EVENTS)[:ranks]
        with tempfile.TemporaryDirectory() as folder, rocpd.connect(files) as session:
            for name in USED:
                write = _writer(name, session, ConvertOptions(Path(folder), force=True))
                times[name, ranks] = min(seconds(write) for _ in range(2)) / ranks
    for name in USED:
        print(f"{name}: time per rank at 16 is {times[name, 16] / times[name, 2]:.2f} x that at 2 (bar: 1.25)")


def _memory() -> None:
    """Print the peak memory of a conversion with all its processes, for 2 and for 32 ranks."""
    for name in (*USED, "otf2", "json"):
        peaks = [peak(name, job(32, EVENTS)[:ranks]) / 1e6 for ranks in (2, 32)]
        print(
            f"{name}: peak {peaks[0]:.0f} MB for 2 ranks, {peaks[1]:.0f} for 32: {peaks[1] / peaks[0]:.2f} x (bar: 1.3)"
        )


def peak(name: str, files: list[Path]) -> int:
    """Return the largest sum of resident memory of a conversion and its children [bytes]."""
    import time

    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("rocpd")), "convert", "-f", name, "-d", folder, *map(str, files)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        most = 0
        while process.poll() is None:
            most = max(most, _resident(process.pid))
            time.sleep(0.02)
    assert process.returncode == 0
    return most


def _resident(pid: int) -> int:
    """Return the proportional memory of a process and its children [bytes]: shared pages count once."""
    total = 0
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    total += next((int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")), 0)
    return total + sum(_resident(int(child)) for child in children)
