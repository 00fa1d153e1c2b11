"""Writes an OTF2 archive: events of locations as they come, definitions once, in order, at the end.

Calls the C library of the `otf2` wheel through its module `_otf2` (functions and constants are those of the OTF2 3 C
API); events go through ctypes directly: the wheel's classes take ten times as long.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _otf2

from rocpd.convert.formats.otf2_rank import ENTER, Location, Metric, RankTrace, Region
from rocpd.errors import OutputError
from rocpd.federate.open.identify import Rank

_CHUNK = 1 << 18
"""Bytes of events of a location that the library holds before it writes them; of definitions 4 MiB."""
_NS_PER_S = 1_000_000_000
_CATEGORY = 0
"""The attribute of each enter and leave: the category of the event, as AMD's traces have it."""
_NO_STRING, _NO_NODE, _NO_GROUP = (
    _otf2.UNDEFINED_STRING,
    _otf2.UNDEFINED_SYSTEM_TREE_NODE,
    _otf2.UNDEFINED_LOCATION_GROUP,
)


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
    """An archive in `folder`: `<name>.otf2`, `<name>.def` and `<name>/`."""

    def __init__(self, folder: Path, name: str) -> None:
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

    @_as_output_error()
    def add(self, trace: RankTrace) -> None:
        """Write the events of a rank, and keep its definitions."""
        definitions = self._definitions
        process = definitions.process(trace)
        title = f"rank {trace.rank.number} · "  # Vampir shows locations of all ranks in one list
        agents = dict.fromkeys([*(each.agent for each in trace.locations), *(each.agent for each in trace.metrics)])
        groups = {
            agent: process if agent is None else definitions.accelerator(trace, agent, process) for agent in agents
        }
        regions = [(definitions.region(region), definitions.string(region.category)) for region in trace.regions]
        for location in trace.locations:
            kind = _otf2.LOCATION_TYPE_CPU_THREAD if location.is_thread else _otf2.LOCATION_TYPE_ACCELERATOR_STREAM
            number = definitions.location(title + location.name, kind, location.events, groups[location.agent])
            self._write(number, lambda writer: self._write_location(writer, location, regions))  # noqa: B023
            self._extend_span(location.time)
        for metric in trace.metrics:
            group = groups[metric.agent]
            number = definitions.location(title + metric.name, _otf2.LOCATION_TYPE_METRIC, len(metric.time), group)
            definition = definitions.metric(metric, number)
            self._write(number, lambda writer: self._write_metric(writer, metric, definition))  # noqa: B023
            self._extend_span(metric.time)

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

    def _extend_span(self, time: Any) -> None:
        if len(time):
            first = int(time[0])
            self._first = first if self._first is None else min(self._first, first)
            self._last = max(self._last, int(time[-1]))

    def _write(self, location: int, fill: Callable[[ctypes.c_void_p], None]) -> None:
        # Readers look for a file of local definitions beside each file of events.
        local = _otf2.Archive_GetDefWriter(self._handle, location)
        writer = _otf2.Archive_GetEvtWriter(self._handle, location)
        fill(ctypes.cast(writer, ctypes.c_void_p))
        _otf2.Archive_CloseDefWriter(self._handle, local)
        _otf2.Archive_CloseEvtWriter(self._handle, writer)

    def _write_location(self, writer: ctypes.c_void_p, location: Location, regions: list[tuple[int, int]]) -> None:
        enter, leave, attributes, add_string = self._enter, self._leave, self._attributes, self._add_string
        wrong = 0
        for time, what, region in zip(
            location.time.tolist(), location.what.tolist(), location.region.tolist(), strict=True
        ):
            number, category = regions[region]
            if what:
                wrong |= add_string(attributes, _CATEGORY, category)
                wrong |= enter(writer, attributes, time, number)  # empties the list
            if what != ENTER:
                wrong |= add_string(attributes, _CATEGORY, category)
                wrong |= leave(writer, attributes, time, number)
        _check(wrong)

    def _write_metric(self, writer: ctypes.c_void_p, metric: Metric, definition: int) -> None:
        kind = (ctypes.c_uint8 * 1)(_otf2.TYPE_DOUBLE.value)
        value = (ctypes.c_double * 1)()
        write = self._metric
        wrong = 0
        for time, number in zip(metric.time.tolist(), metric.value.tolist(), strict=True):
            value[0] = number
            wrong |= write(writer, None, time, definition, 1, kind, value)
        _check(wrong)


class Definitions:
    """The definitions of an archive, each once, numbered from 0."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._nodes: dict[tuple[int, int, int, str | None], int] = {}
        self._groups: list[tuple[int, int, Any, int]] = []
        self._locations: list[tuple[int, Any, int, int]] = []
        self._regions: dict[Region, int] = {}
        self._members: dict[tuple[str, str], int] = {}
        self._metrics: list[tuple[int, int]] = []

    def process(self, trace: RankTrace) -> int:
        """Return a new location group for a rank, below the node it ran on."""
        kind = _otf2.LOCATION_GROUP_TYPE_PROCESS
        self._groups.append((self.string(trace.rank.label), self._host(trace.rank), kind, _NO_GROUP))
        return len(self._groups) - 1

    def accelerator(self, trace: RankTrace, agent: int, process: int) -> int:
        """Return a new location group for what a process does on a GPU, below that GPU of its node."""
        gpu = trace.accelerators[agent]
        node = self._node(gpu.model, gpu.name, self._host(trace.rank))
        name = self.string(f"{trace.rank.label} · {gpu.name}")
        self._groups.append((name, node, _otf2.LOCATION_GROUP_TYPE_ACCELERATOR, process))
        return len(self._groups) - 1

    def _host(self, rank: Rank) -> int:
        return self._node("node", rank.hostname or "?", 0, rank.machine_id)

    def _node(self, kind: str, name: str, parent: int, machine: str | None = None) -> int:
        """Return a node of the system tree, numbered from 1: 0 is the job."""
        key = (self.string(name), self.string(kind), parent, machine)
        return self._nodes.setdefault(key, len(self._nodes) + 1)

    def location(self, name: str, kind: Any, events: int, group: int) -> int:
        """Return a new location."""
        self._locations.append((self.string(name), kind, events, group))
        return len(self._locations) - 1

    def region(self, region: Region) -> int:
        """Return the number of a region."""
        return self._regions.setdefault(region, len(self._regions))

    def metric(self, metric: Metric, location: int) -> int:
        """Return a new metric for a location; metrics of equal name and unit share their member."""
        member = self._members.setdefault((metric.name, metric.unit), len(self._members))
        self._metrics.append((member, location))
        return len(self._metrics) - 1

    def string(self, text: str) -> int:
        """Return the number of a text."""
        return self._strings.setdefault(text.replace("\0", "\\0"), len(self._strings))

    def write(self, writer: Any) -> None:
        """Write all definitions, each after those that it refers to."""
        job, machine, category = self.string("job"), self.string("machine"), self.string("category")
        regions = [(self.string(region.name), region) for region in self._regions]
        members = [(self.string(name), self.string(unit)) for name, unit in self._members]
        for text, number in self._strings.items():
            _otf2.GlobalDefWriter_WriteString(writer, number, text)
        _otf2.GlobalDefWriter_WriteSystemTreeNode(writer, 0, job, machine, _NO_NODE)
        for (name, kind, parent, _), number in self._nodes.items():
            _otf2.GlobalDefWriter_WriteSystemTreeNode(writer, number, name, kind, parent)
            domain = _otf2.SYSTEM_TREE_DOMAIN_ACCELERATOR_DEVICE if parent else _otf2.SYSTEM_TREE_DOMAIN_SHARED_MEMORY
            _otf2.GlobalDefWriter_WriteSystemTreeNodeDomain(writer, number, domain)
        _otf2.GlobalDefWriter_WriteAttribute(writer, _CATEGORY, category, category, _otf2.TYPE_STRING)
        for number, (name, parent, kind, process) in enumerate(self._groups):
            _otf2.GlobalDefWriter_WriteLocationGroup(writer, number, name, kind, parent, process)
        for number, (name, kind, events, group) in enumerate(self._locations):
            _otf2.GlobalDefWriter_WriteLocation(writer, number, name, kind, events, group)
        for number, (name, region) in enumerate(regions):
            role, paradigm = (
                getattr(_otf2, f"{prefix}_{name}")
                for prefix, name in (("REGION_ROLE", region.role), ("PARADIGM", region.paradigm))
            )
            _otf2.GlobalDefWriter_WriteRegion(
                writer, number, name, name, 0, role, paradigm, _otf2.REGION_FLAG_NONE, _NO_STRING, 0, 0
            )
        for number, (name, unit) in enumerate(members):
            _otf2.GlobalDefWriter_WriteMetricMember(
                writer, number, name, 0, _otf2.METRIC_TYPE_OTHER, _otf2.METRIC_ABSOLUTE_NEXT, _otf2.TYPE_DOUBLE,
                _otf2.BASE_DECIMAL, 0, unit,
            )  # fmt: skip
        for number, (member, location) in enumerate(self._metrics):
            kind = _otf2.METRIC_ASYNCHRONOUS
            _otf2.GlobalDefWriter_WriteMetricClass(writer, number, [member], kind, _otf2.RECORDER_KIND_ABSTRACT)
            _otf2.GlobalDefWriter_WriteMetricClassRecorder(writer, number, location)


def _function(name: str, *arguments: Any) -> Callable[..., int]:
    """Return OTF2_EvtWriter_<name> as a separate object: the wheel sets other argument types on its own."""
    function: Any = _otf2.Config.conf.lib[f"OTF2_EvtWriter_{name}"]
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, *arguments]
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]


def _attributes(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return OTF2_AttributeList_<name> as a separate object."""
    function: Any = _otf2.Config.conf.lib[f"OTF2_AttributeList_{name}"]
    function.argtypes, function.restype = arguments, result
    return function  # type: ignore[no-any-return]


def _check(code: int) -> None:
    if code:
        raise OutputError(f"OTF2: events cannot be written (error {code})", "is the disk full?")
