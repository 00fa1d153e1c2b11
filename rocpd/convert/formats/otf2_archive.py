"""Writes an OTF2 archive: events of locations as they come, definitions once, in order, at the end.

Calls the C library of the `otf2` wheel through its module `_otf2` (functions and constants are those of the OTF2 3 C
API); events go through ctypes directly, as the wheel's classes take ten times as long.

Only paradigms with a class in OTF2 are defined. Regions are in a group per category, by which viewers colour and filter
them. Communicators are of paradigm HIP: their members are streams of GPUs, and a member is numbered by its place in the
group of all these streams.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import _otf2
import numpy as np

from rocpd.base import Ints, WriteError, by_key
from rocpd.convert.formats.otf2_rank import (
    ENTER,
    ClockOffset,
    JobCollectives,
    Line,
    LineCollectives,
    Location,
    Metric,
    Participation,
    RankTrace,
)
from rocpd.facts.columns import distinct
from rocpd.federate.open.identify import Rank

_Definition: TypeAlias = tuple[Any, ...]
"""A function of `_otf2` that writes a definition, and its arguments after the writer."""

CATEGORY = 0
"""The attribute of each enter and leave: the category of the event, named as in AMD's traces."""
_NO_STRING, _NO_NODE = _otf2.UNDEFINED_STRING, _otf2.UNDEFINED_SYSTEM_TREE_NODE
_NO_GROUP, _NO_COMMUNICATOR = _otf2.UNDEFINED_LOCATION_GROUP, _otf2.UNDEFINED_COMM
_PARADIGM_CLASSES = {
    "HIP": "ACCELERATOR",
    "MPI": "PROCESS",
    "SHMEM": "PROCESS",
    "OPENMP": "THREAD_FORK_JOIN",
    "PTHREAD": "THREAD_CREATE_WAIT",
}
"""Paradigm -> its class in OTF2; other paradigms have none."""


class _Numbers(dict[Any, int]):
    """Numbers of things, from 0 in the order of first use."""

    def __missing__(self, thing: object) -> int:
        return self.setdefault(thing, len(self))


class Definitions:
    """The definitions of an archive, each once, numbered from 0.

    Attributes:
        regions, communicators: their numbers.
        lines: lines that take part in collectives -> their locations.
    """

    def __init__(self) -> None:
        self.regions, self.communicators = _Numbers(), _Numbers()
        self.lines: dict[Line, int] = {}
        self._strings, self._members = _Numbers({"": 0}), _Numbers()
        self._nodes: dict[tuple[int, int, int, str | None], int] = {}
        self._groups: list[tuple[int, int, Any, int]] = []
        self._locations: list[tuple[int, Any, int, int]] = []
        self._metrics: list[tuple[int, int]] = []

    def process(self, trace: RankTrace) -> int:
        """Return a new location group for a rank, below its node."""
        kind = _otf2.LOCATION_GROUP_TYPE_PROCESS
        self._groups.append((self.string(trace.rank.label), self._host(trace.rank), kind, _NO_GROUP))
        return len(self._groups) - 1

    def accelerator(self, trace: RankTrace, agent: int, process: int) -> int:
        """Return a new location group for the work of a process on a GPU, below this GPU of its node."""
        gpu = trace.accelerators[agent]
        node = self._node(gpu.model, gpu.name, self._host(trace.rank))
        name = self.string(f"{trace.rank.label} · {gpu.name}")
        self._groups.append((name, node, _otf2.LOCATION_GROUP_TYPE_ACCELERATOR, process))
        return len(self._groups) - 1

    def _host(self, rank: Rank) -> int:
        return self._node("node", rank.hostname or "?", 0, rank.machine_id)

    def _node(self, kind: str, name: str, parent: int, machine: str | None = None) -> int:
        """Return a node of the system tree; numbers start from 1, since 0 is the job."""
        key = (self.string(name), self.string(kind), parent, machine)
        return self._nodes.setdefault(key, len(self._nodes) + 1)

    def location(self, name: str, kind: Any, events: int, group: int) -> int:
        """Return a new location."""
        self._locations.append((self.string(name), kind, events, group))
        return len(self._locations) - 1

    def metric(self, metric: Metric, location: int) -> int:
        """Return a new metric for a location; metrics of equal name and unit share a member."""
        self._metrics.append((self._members[metric.name, metric.unit], location))
        return len(self._metrics) - 1

    def string(self, text: str) -> int:
        """Return the number of a text."""
        return self._strings[text.replace("\0", "\\0")]

    def write(self, writer: Any) -> None:
        """Write all definitions, each after the definitions that it refers to."""
        definitions = [
            *self._paradigms(), *self._tree(), *self._places(), *self._what_happens(), *self._groups_of_members(),
            *self._measured(),
        ]  # fmt: skip
        for text, number in self._strings.items():
            _otf2.GlobalDefWriter_WriteString(writer, number, text)
        for define, *values in definitions:
            define(writer, *values)

    def _paradigms(self) -> Iterator[_Definition]:
        used = {region.paradigm for region in self.regions} | ({"HIP"} if self.communicators else set())
        for name in sorted(used & _PARADIGM_CLASSES.keys()):
            paradigm, kind = _constant("PARADIGM", name), _constant("PARADIGM_CLASS", _PARADIGM_CLASSES[name])
            yield _otf2.GlobalDefWriter_WriteParadigm, paradigm, self.string(name), kind

    def _tree(self) -> Iterator[_Definition]:
        job, machine, category = self.string("job"), self.string("machine"), self.string("category")
        yield _otf2.GlobalDefWriter_WriteSystemTreeNode, 0, job, machine, _NO_NODE
        for (name, kind, parent, _), number in self._nodes.items():
            yield _otf2.GlobalDefWriter_WriteSystemTreeNode, number, name, kind, parent
            domain = _otf2.SYSTEM_TREE_DOMAIN_ACCELERATOR_DEVICE if parent else _otf2.SYSTEM_TREE_DOMAIN_SHARED_MEMORY
            yield _otf2.GlobalDefWriter_WriteSystemTreeNodeDomain, number, domain
        yield _otf2.GlobalDefWriter_WriteAttribute, CATEGORY, category, category, _otf2.TYPE_STRING

    def _places(self) -> Iterator[_Definition]:
        for number, (name, parent, kind, process) in enumerate(self._groups):
            yield _otf2.GlobalDefWriter_WriteLocationGroup, number, name, kind, parent, process
        for number, (name, kind, events, group) in enumerate(self._locations):
            yield _otf2.GlobalDefWriter_WriteLocation, number, name, kind, events, group

    def _what_happens(self) -> Iterator[_Definition]:
        for region, number in self.regions.items():
            name, flag = self.string(region.name), _otf2.REGION_FLAG_NONE
            role, paradigm = _constant("REGION_ROLE", region.role), _constant("PARADIGM", region.paradigm)
            yield _otf2.GlobalDefWriter_WriteRegion, number, name, name, 0, role, paradigm, flag, _NO_STRING, 0, 0

    def _groups_of_members(self) -> Iterator[_Definition]:
        """Yield a group of regions per category, then the communicators."""
        categories = by_key((region.category, number) for region, number in self.regions.items())
        for number, (category, regions) in enumerate(categories.items()):
            yield _group(number, self.string(category), "REGIONS", "NONE", regions)
        if not self.communicators:
            return
        locations = sorted(self.lines.values())
        places = {line: locations.index(location) for line, location in self.lines.items()}
        number = len(categories)
        yield _group(number, self.string("streams of collectives"), "COMM_LOCATIONS", "HIP", locations)
        for communicator, comm in self.communicators.items():
            name = self.string(communicator.name)
            number += 1
            yield _group(number, name, "COMM_GROUP", "HIP", [places[line] for line in communicator.members])
            yield _otf2.GlobalDefWriter_WriteComm, comm, name, number, _NO_COMMUNICATOR, _otf2.COMM_FLAG_NONE

    def _measured(self) -> Iterator[_Definition]:
        for (name, unit), number in self._members.items():
            yield (
                _otf2.GlobalDefWriter_WriteMetricMember, number, self.string(name), 0, _otf2.METRIC_TYPE_OTHER,
                _otf2.METRIC_ABSOLUTE_NEXT, _otf2.TYPE_DOUBLE, _otf2.BASE_DECIMAL, 0, self.string(unit),
            )  # fmt: skip
        for number, (member, location) in enumerate(self._metrics):
            kind, recorder = _otf2.METRIC_ASYNCHRONOUS, _otf2.RECORDER_KIND_ABSTRACT
            yield _otf2.GlobalDefWriter_WriteMetricClass, number, [member], kind, recorder
            yield _otf2.GlobalDefWriter_WriteMetricClassRecorder, number, location


def _group(number: int, name: int, kind: str, paradigm: str, members: Sequence[int]) -> _Definition:
    constants = _constant("GROUP_TYPE", kind), _constant("PARADIGM", paradigm), _otf2.GROUP_FLAG_NONE
    return _otf2.GlobalDefWriter_WriteGroup, number, name, *constants, members


def _constant(kind: str, name: str) -> Any:
    return getattr(_otf2, f"{kind}_{name}")


_CHUNK, _OF_DEFINITIONS = 1 << 18, 1 << 22
"""Bytes of events of a location, and of definitions, that the library holds before it writes them."""
_NS_PER_S = 1_000_000_000


# OTF2_ErrorCallback: user data, file, line, function, code, format of a message, its va_list; returns the code. The
# library writes its errors to stderr unless a callback takes them; all of them are returned as codes, too.
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
        raise _refused(error) from error


class Archive:
    """An archive in `folder`: `<name>.otf2`, `<name>.def` and `<name>/`, with the collectives of its lines.

    Args:
        folder, name: the place of the archive.
        collectives: collectives of all lines.
        clocks: rank number -> offset of its clock; times of other ranks are on the common time line.
    """

    def __init__(
        self, folder: Path, name: str, collectives: JobCollectives, clocks: Mapping[int, ClockOffset] | None = None
    ) -> None:
        self._collectives = collectives
        self._clocks = clocks or {}
        # After a larger block was freed, the C library keeps the memory of a location's definitions for the next one
        # (M_MMAP_THRESHOLD in mallopt(3)); new pages would take it 2 ms a location.
        np.empty(4 * _OF_DEFINITIONS, np.uint8)
        self._handle = _otf2.Archive_Open(
            str(folder), name, _otf2.FILEMODE_WRITE, _CHUNK, _OF_DEFINITIONS, _otf2.SUBSTRATE_POSIX,
            _otf2.COMPRESSION_NONE,
        )  # fmt: skip
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
        self._attributes = ctypes.c_void_p(_callable("AttributeList_New", ctypes.c_void_p)())
        self._add_string = _callable(
            "AttributeList_AddStringRef", ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32
        )
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
        regions = [(definitions.regions[region], definitions.string(region.category)) for region in trace.regions]
        for location in trace.locations:
            kind = _otf2.LOCATION_TYPE_CPU_THREAD if location.is_thread else _otf2.LOCATION_TYPE_ACCELERATOR_STREAM
            collectives = self._collectives.get(location.line) if location.line else None
            events = location.events + (2 * len(collectives) if collectives else 0)
            number = definitions.location(title + location.name, kind, events, groups[location.agent])
            if collectives and location.line:
                definitions.lines[location.line] = number
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
        """Close the archive unfinished; further calls do nothing."""
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
        """Yield a writer for each begin and end of a collective, with the row of the location before which it belongs.

        A collective begins after its kernel is entered and ends before it is left.
        """
        ends = {code: self._end_arguments(collectives.kinds[code]) for code in distinct(collectives.kind).tolist()}
        begin_row = np.searchsorted(location.time, collectives.start, side="right")
        end_row = np.searchsorted(location.time, collectives.end, side="left")
        begin_row = np.minimum(begin_row, end_row)  # a collective without length
        columns = (begin_row, end_row, collectives.start, collectives.end, collectives.kind)
        for begins, ended, start, end, kind in zip(*(column.tolist() for column in columns), strict=True):
            yield begins, partial(self._begin, writer, None, start)
            yield ended, partial(self._end, writer, None, end, *ends[kind])

    def _end_arguments(self, kind: Participation) -> tuple[int, ...]:
        operation = getattr(_otf2, f"COLLECTIVE_OP_{kind.operation}").value
        root = _otf2.COLLECTIVE_ROOT_NONE.value if kind.root is None else kind.root
        return operation, self._definitions.communicators[kind.communicator], root, kind.sent, kind.received

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


def _callable(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return OTF2_<name> as a separate function object, since the wheel sets other argument types on its own.

    Python's lock is kept during calls: most of them fill a buffer in less time than releasing and taking it needs.
    """
    library = _otf2.Config.conf.lib
    function: Any = ctypes.PyDLL(library._name, handle=library._handle)[f"OTF2_{name}"]
    function.argtypes, function.restype = arguments, result
    return function  # type: ignore[no-any-return]


def _check(code: int) -> None:
    if code:
        raise _refused(f"error {code}")


def _refused(reason: object) -> WriteError:
    """Return the error of an output that has no name yet; the library does not pass on the system's message."""
    return WriteError.of(OSError(errno.EIO, f"{reason}, says OTF2; is the disk full?"))
