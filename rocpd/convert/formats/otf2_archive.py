"""Writes an OTF2 archive: events of locations as they come, definitions once, in order, at the end.

Calls the C library of the `otf2` wheel through its module `_otf2` (functions and constants are those of the OTF2 3 C
API); events go through ctypes directly: the wheel's classes take ten times as long.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import _otf2
import numpy as np

from rocpd.base.errors import OutputError
from rocpd.base.types import Ints
from rocpd.convert.formats.otf2_collectives import JobCollectives, LineCollectives, Participation
from rocpd.convert.formats.otf2_definitions import CATEGORY, Definitions
from rocpd.convert.formats.otf2_rank import ENTER, ClockOffset, Location, Metric, RankTrace

_CHUNK = 1 << 18
"""Bytes of events of a location that the library holds before it writes them; of definitions 4 MiB."""
_NS_PER_S = 1_000_000_000


# OTF2_ErrorCallback: user data, file, line, function, code, format of a message, its va_list; returns the code. The
# library writes its errors to stderr unless somebody takes them; all of them come back as codes.
_ErrorCallback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
    ctypes.c_void_p,
)  # fmt: skip
_say_nothing = _ErrorCallback(lambda *words: words[4])
_otf2.Config.conf.lib.OTF2_Error_RegisterCallback(_say_nothing, None)


@contextlib.contextmanager
def _as_output_error() -> Iterator[None]:
    try:
        yield
    except _otf2.ErrorCodes.Error as error:
        raise OutputError(f"OTF2: cannot be written: {error}", "is the disk full?") from error


class Archive:
    """An archive in `folder`: `<name>.otf2`, `<name>.def` and `<name>/`, with the collectives of its lines.

    Args:
        folder, name: where.
        collectives: those of all lines.
        clocks: rank number -> how its times become those of the common line; other ranks have those.
    """

    def __init__(
        self, folder: Path, name: str, collectives: JobCollectives, clocks: Mapping[int, ClockOffset] | None = None
    ) -> None:
        self._collectives = collectives
        self._clocks = clocks or {}
        self._handle = _otf2.Archive_Open(
            str(folder), name, _otf2.FILEMODE_WRITE, _CHUNK, 16 * _CHUNK, _otf2.SUBSTRATE_POSIX, _otf2.COMPRESSION_NONE
        )
        # The library keeps pointers to these callbacks: they must live as long as the archive.
        self._callbacks = _otf2.FlushCallbacks(pre_flush=lambda *_: _otf2.FLUSH, post_flush=None)
        _otf2.Archive_SetFlushCallbacks(self._handle, self._callbacks, None)
        _otf2.Archive_SetSerialCollectiveCallbacks(self._handle)
        _otf2.Archive_SetCreator(self._handle, "rocpd")
        _otf2.Archive_OpenDefFiles(self._handle)
        _otf2.Archive_OpenEvtFiles(self._handle)
        self._definitions = Definitions()
        self._first: int | None = None
        self._last = 0
        self._attributes = ctypes.c_void_p(_attributes("New", ctypes.c_void_p)())
        self._add_string = _attributes("AddStringRef", ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
        self._enter = _function("Enter", ctypes.c_uint32)
        self._leave = _function("Leave", ctypes.c_uint32)
        self._metric = _function(
            "Metric", ctypes.c_uint32, ctypes.c_uint8, ctypes.POINTER(ctypes.c_uint8), ctypes.POINTER(ctypes.c_double)
        )
        self._begin = _function("MpiCollectiveBegin")
        self._end = _function(
            "MpiCollectiveEnd", ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64
        )

    @_as_output_error()
    def add(self, trace: RankTrace) -> None:
        """Write the events of a rank, and keep its definitions."""
        definitions = self._definitions
        process, clock = definitions.process(trace), self._clocks.get(trace.rank.number)
        title = f"rank {trace.rank.number} · "  # Vampir shows locations of all ranks in one list
        agents = dict.fromkeys([*(each.agent for each in trace.locations), *(each.agent for each in trace.metrics)])
        groups = {
            agent: process if agent is None else definitions.accelerator(trace, agent, process) for agent in agents
        }
        regions = [(definitions.region(region), definitions.string(region.category)) for region in trace.regions]
        for location in trace.locations:
            kind = _otf2.LOCATION_TYPE_CPU_THREAD if location.is_thread else _otf2.LOCATION_TYPE_ACCELERATOR_STREAM
            collectives = self._collectives.get(location.line) if location.line else None
            events = location.events + (2 * len(collectives) if collectives else 0)
            number = definitions.location(title + location.name, kind, events, groups[location.agent])
            if collectives and location.line:
                definitions.line(location.line, number)
            self._write(number, partial(self._write_location, location, regions, collectives), clock)
            self._extend_span(location.time, clock)
        for metric in trace.metrics:
            group = groups[metric.agent]
            number = definitions.location(title + metric.name, _otf2.LOCATION_TYPE_METRIC, len(metric.time), group)
            definition = definitions.metric(metric, number)
            self._write(number, partial(self._write_metric, metric, definition), clock)
            self._extend_span(metric.time, clock)

    @_as_output_error()
    def close(self) -> None:
        """Write the definitions and close the archive."""
        _otf2.Archive_CloseEvtFiles(self._handle)
        _otf2.Archive_CloseDefFiles(self._handle)
        writer = _otf2.Archive_GetGlobalDefWriter(self._handle)
        first = self._first or 0
        length = self._last - first + 1 if self._first is not None else 0
        _otf2.GlobalDefWriter_WriteClockProperties(writer, _NS_PER_S, first, length, _otf2.UNDEFINED_TIMESTAMP)
        self._definitions.write(writer)
        _otf2.Archive_CloseGlobalDefWriter(self._handle, writer)
        handle, self._handle = self._handle, None
        _otf2.Archive_Close(handle)

    def abandon(self) -> None:
        """Close the archive unfinished; idempotent."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(_otf2.ErrorCodes.Error):
                _otf2.Archive_Close(handle)

    def _extend_span(self, time: Ints, clock: ClockOffset | None) -> None:
        if len(time):
            first, last = int(time[0]), int(time[-1])
            if clock:
                first, last = clock.shift.to_line(first), clock.shift.to_line(last)
            self._first = first if self._first is None else min(self._first, first)
            self._last = max(self._last, last)

    def _write(self, location: int, fill: Callable[[ctypes.c_void_p], None], clock: ClockOffset | None) -> None:
        # Readers look for a file of local definitions beside each file of events.
        local = _otf2.Archive_GetDefWriter(self._handle, location)
        for time, offset, deviation in clock.records() if clock else ():
            _otf2.DefWriter_WriteClockOffset(local, time, offset, deviation)
        writer = _otf2.Archive_GetEvtWriter(self._handle, location)
        fill(ctypes.cast(writer, ctypes.c_void_p))
        _otf2.Archive_CloseDefWriter(self._handle, local)
        _otf2.Archive_CloseEvtWriter(self._handle, writer)

    def _write_location(
        self,
        location: Location,
        regions: list[tuple[int, int]],
        collectives: LineCollectives | None,
        writer: ctypes.c_void_p,
    ) -> None:
        first = 0
        for until, write in self._collective_events(writer, location, collectives) if collectives else ():
            self._write_regions(writer, location, regions, slice(first, until))
            _check(write())
            first = until
        self._write_regions(writer, location, regions, slice(first, None))

    def _write_regions(
        self, writer: ctypes.c_void_p, location: Location, regions: list[tuple[int, int]], rows: slice
    ) -> None:
        enter, leave, attributes, add_string = self._enter, self._leave, self._attributes, self._add_string
        wrong = 0
        for time, what, region in zip(
            location.time[rows].tolist(), location.what[rows].tolist(), location.region[rows].tolist(), strict=True
        ):
            number, category = regions[region]
            if what:
                wrong |= add_string(attributes, CATEGORY, category)
                wrong |= enter(writer, attributes, time, number)  # empties the list
            if what != ENTER:
                wrong |= add_string(attributes, CATEGORY, category)
                wrong |= leave(writer, attributes, time, number)
        _check(wrong)

    def _collective_events(
        self, writer: ctypes.c_void_p, location: Location, collectives: LineCollectives
    ) -> Iterator[tuple[int, Callable[[], int]]]:
        """Yield what writes each begin and end, with the row of the location that it comes before.

        A collective begins after its kernel is entered and ends before it is left.
        """
        ends = {code: self._end_arguments(collectives.kinds[code]) for code in np.unique(collectives.kind).tolist()}
        begin_row = np.searchsorted(location.time, collectives.start, side="right")
        end_row = np.searchsorted(location.time, collectives.end, side="left")
        begin_row = np.minimum(begin_row, end_row)  # one without length
        columns = (begin_row, end_row, collectives.start, collectives.end, collectives.kind)
        for begins, ended, start, end, kind in zip(*(column.tolist() for column in columns), strict=True):
            yield begins, partial(self._begin, writer, None, start)
            yield ended, partial(self._end, writer, None, end, *ends[kind])

    def _end_arguments(self, kind: Participation) -> tuple[int, ...]:
        operation = getattr(_otf2, f"COLLECTIVE_OP_{kind.operation}").value
        root = _otf2.COLLECTIVE_ROOT_NONE.value if kind.root is None else kind.root
        return operation, self._definitions.communicator(kind.communicator), root, kind.sent, kind.received

    def _write_metric(self, metric: Metric, definition: int, writer: ctypes.c_void_p) -> None:
        kind = (ctypes.c_uint8 * 1)(_otf2.TYPE_DOUBLE.value)
        value = (ctypes.c_double * 1)()
        write = self._metric
        wrong = 0
        for time, number in zip(metric.time.tolist(), metric.value.tolist(), strict=True):
            value[0] = number
            wrong |= write(writer, None, time, definition, 1, kind, value)
        _check(wrong)


def _function(name: str, *arguments: Any) -> Callable[..., int]:
    """Return OTF2_EvtWriter_<name>, which takes a writer, attributes and a time [ns] first."""
    return _callable(f"EvtWriter_{name}", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, *arguments)


def _attributes(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return OTF2_AttributeList_<name>."""
    return _callable(f"AttributeList_{name}", result, *arguments)


def _callable(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return OTF2_<name> as an object of our own: the wheel sets other argument types on its own.

    Most calls fill a buffer in less time than giving Python's lock away and taking it back takes: it is kept.
    """
    library = _otf2.Config.conf.lib
    function: Any = ctypes.PyDLL(library._name, handle=library._handle)[f"OTF2_{name}"]
    function.argtypes, function.restype = arguments, result
    return function  # type: ignore[no-any-return]


def _check(code: int) -> None:
    if code:
        raise OutputError(f"OTF2: events cannot be written (error {code})", "is the disk full?")
