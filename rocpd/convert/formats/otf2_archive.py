"""Writes an OTF2 archive: events of locations as they come, definitions once, in order, at the end.

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

import numpy as np

from rocpd.base import Ints, WriteError, by_key
from rocpd.convert.formats import otf2_library as otf2
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
"""The kind of a definition, and its values."""

CATEGORY = 0
"""The attribute of each enter and leave: the category of the event, named as in AMD's traces."""


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
        self._groups.append((self.string(trace.rank.label), self._host(trace.rank), otf2.PROCESS, otf2.NONE))
        return len(self._groups) - 1

    def accelerator(self, trace: RankTrace, agent: int, process: int) -> int:
        """Return a new location group for the work of a process on a GPU, below this GPU of its node."""
        gpu = trace.accelerators[agent]
        node = self._node(gpu.model, gpu.name, self._host(trace.rank))
        name = self.string(f"{trace.rank.label} · {gpu.name}")
        self._groups.append((name, node, otf2.ACCELERATOR, process))
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

    def write(self, writer: int) -> None:
        """Write all definitions, each after the definitions that it refers to."""
        definitions = [
            *self._paradigms(), *self._tree(), *self._places(), *self._what_happens(), *self._groups_of_members(),
            *self._measured(),
        ]  # fmt: skip
        for text, number in self._strings.items():
            otf2.define(writer, "String", number, text.encode())
        for kind, *values in definitions:
            otf2.define(writer, kind, *values)

    def _paradigms(self) -> Iterator[_Definition]:
        used = {region.paradigm for region in self.regions} | ({"HIP"} if self.communicators else set())
        for name in sorted(used & otf2.PARADIGM_CLASSES.keys()):
            yield "Paradigm", otf2.PARADIGMS[name], self.string(name), otf2.PARADIGM_CLASSES[name]

    def _tree(self) -> Iterator[_Definition]:
        job, machine, category = self.string("job"), self.string("machine"), self.string("category")
        yield "SystemTreeNode", 0, job, machine, otf2.NONE
        for (name, kind, parent, _), number in self._nodes.items():
            yield "SystemTreeNode", number, name, kind, parent
            domain = otf2.DEVICE if parent else otf2.SHARED_MEMORY
            yield "SystemTreeNodeDomain", number, domain
        yield "Attribute", CATEGORY, category, category, otf2.STRING

    def _places(self) -> Iterator[_Definition]:
        for number, (name, parent, kind, process) in enumerate(self._groups):
            yield "LocationGroup", number, name, kind, parent, process
        for number, (name, kind, events, group) in enumerate(self._locations):
            yield "Location", number, name, kind, events, group

    def _what_happens(self) -> Iterator[_Definition]:
        for region, number in self.regions.items():
            name = self.string(region.name)
            role, paradigm = otf2.ROLES[region.role], otf2.PARADIGMS[region.paradigm]
            yield "Region", number, name, name, 0, role, paradigm, 0, otf2.NONE, 0, 0

    def _groups_of_members(self) -> Iterator[_Definition]:
        """Yield a group of regions per category, then the communicators."""
        categories = by_key((region.category, number) for region, number in self.regions.items())
        for number, (category, regions) in enumerate(categories.items()):
            yield _group(number, self.string(category), otf2.REGIONS, "NONE", regions)
        if not self.communicators:
            return
        locations = sorted(self.lines.values())
        places = {line: locations.index(location) for line, location in self.lines.items()}
        number = len(categories)
        yield _group(number, self.string("streams of collectives"), otf2.COMM_LOCATIONS, "HIP", locations)
        for communicator, comm in self.communicators.items():
            name = self.string(communicator.name)
            number += 1
            yield _group(number, name, otf2.COMM_GROUP, "HIP", [places[line] for line in communicator.members])
            yield "Comm", comm, name, number, otf2.NONE, 0

    def _measured(self) -> Iterator[_Definition]:
        for (name, unit), number in self._members.items():
            yield (
                "MetricMember", number, self.string(name), 0, otf2.OTHER,
                otf2.ABSOLUTE_NEXT, otf2.DOUBLE, otf2.DECIMAL, 0, self.string(unit),
            )  # fmt: skip
        for number, (member, location) in enumerate(self._metrics):
            kind, recorder = otf2.ASYNCHRONOUS, otf2.ABSTRACT
            yield "MetricClass", number, 1, ctypes.byref(ctypes.c_uint32(member)), kind, recorder
            yield "MetricClassRecorder", number, location


def _group(number: int, name: int, kind: int, paradigm: str, members: Sequence[int]) -> _Definition:
    listed = (ctypes.c_uint64 * len(members))(*members)
    return "Group", number, name, kind, otf2.PARADIGMS[paradigm], 0, len(members), listed


_CHUNK, _OF_DEFINITIONS = 1 << 18, 1 << 22
"""Bytes of events of a location, and of definitions, that the library holds before it writes them."""
_NS_PER_S = 1_000_000_000


@contextlib.contextmanager
def _as_output_error() -> Iterator[None]:
    """Turn a refusal into the error of an output without a name yet; the library passes on no message of the system."""
    try:
        yield
    except otf2.RefusedError as error:
        raise WriteError.of(OSError(errno.EIO, f"{error}, says OTF2; is the disk full?")) from error


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
        self._handle: int | None = otf2.open_archive(folder, name, _CHUNK, _OF_DEFINITIONS)
        self._definitions = Definitions()
        self._first: int | None = None
        self._last = 0
        self._attributes = otf2.get("AttributeList_New", "")
        self._add_string = otf2.quick("AttributeList_AddStringRef", "pII")
        self._enter = otf2.quick("EvtWriter_Enter", "ppQI")
        self._leave = otf2.quick("EvtWriter_Leave", "ppQI")
        self._metric = otf2.quick("EvtWriter_Metric", "ppQIBpp")
        self._begin = otf2.quick("EvtWriter_MpiCollectiveBegin", "ppQ")
        self._end = otf2.quick("EvtWriter_MpiCollectiveEnd", "ppQBIIQQ")

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
            kind = otf2.CPU_THREAD if location.is_thread else otf2.STREAM
            collectives = self._collectives.get(location.line) if location.line else None
            events = location.events + (2 * len(collectives) if collectives else 0)
            number = definitions.location(title + location.name, kind, events, groups[location.agent])
            if collectives and location.line:
                definitions.lines[location.line] = number
            self._write(number, partial(self._write_location, location, regions, collectives), clock)
            self._extend_span(location.time, clock)
        for metric in trace.metrics:
            group = groups[metric.agent]
            number = definitions.location(title + metric.name, otf2.METRIC, len(metric.time), group)
            definition = definitions.metric(metric, number)
            self._write(number, partial(self._write_metric, metric, definition), clock)
            self._extend_span(metric.time, clock)

    @_as_output_error()
    def close(self) -> None:
        """Write the definitions and close the archive."""
        otf2.do("Archive_CloseEvtFiles", self._handle)
        otf2.do("Archive_CloseDefFiles", self._handle)
        writer = otf2.get("Archive_GetGlobalDefWriter", "p", self._handle)
        first = self._first or 0
        length = self._last - first + 1 if self._first is not None else 0
        otf2.define(writer, "ClockProperties", _NS_PER_S, first, length, otf2.NO_TIME)
        self._definitions.write(writer)
        otf2.do("Archive_CloseGlobalDefWriter", self._handle, "p", writer)
        handle, self._handle = self._handle, None
        otf2.do("Archive_Close", handle)

    def abandon(self) -> None:
        """Close the archive unfinished; further calls do nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(otf2.RefusedError):
                otf2.do("Archive_Close", handle)

    def _extend_span(self, time: Ints, clock: ClockOffset | None) -> None:
        if len(time):
            first, last = int(time[0]), int(time[-1])
            if clock:
                first, last = clock.shift.to_line(first), clock.shift.to_line(last)
            self._first = first if self._first is None else min(self._first, first)
            self._last = max(self._last, last)

    def _write(self, location: int, fill: Callable[[int], None], clock: ClockOffset | None) -> None:
        # Readers look for a file of local definitions beside each file of events.
        local = otf2.get("Archive_GetDefWriter", "pQ", self._handle, location)
        for record in clock.records() if clock else ():
            otf2.do("DefWriter_WriteClockOffset", local, "Qqd", *record)
        writer = otf2.get("Archive_GetEvtWriter", "pQ", self._handle, location)
        fill(writer)
        otf2.do("Archive_CloseDefWriter", self._handle, "p", local)
        otf2.do("Archive_CloseEvtWriter", self._handle, "p", writer)

    def _write_location(
        self,
        location: Location,
        regions: list[tuple[int, int]],
        collectives: LineCollectives | None,
        writer: int,
    ) -> None:
        first = 0
        for until, write in self._collective_events(writer, location, collectives) if collectives else ():
            self._write_regions(writer, location, regions, slice(first, until))
            otf2.check(write())
            first = until
        self._write_regions(writer, location, regions, slice(first, None))

    def _write_regions(self, writer: int, location: Location, regions: list[tuple[int, int]], rows: slice) -> None:
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
        otf2.check(wrong)

    def _collective_events(
        self, writer: int, location: Location, collectives: LineCollectives
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
        operation, root = otf2.COLLECTIVES[kind.operation], otf2.NONE if kind.root is None else kind.root
        return operation, self._definitions.communicators[kind.communicator], root, kind.sent, kind.received

    def _write_metric(self, metric: Metric, definition: int, writer: int) -> None:
        kind = (ctypes.c_uint8 * 1)(otf2.DOUBLE)
        value = (ctypes.c_double * 1)()
        write = self._metric
        wrong = 0
        for time, number in zip(metric.time.tolist(), metric.value.tolist(), strict=True):
            value[0] = number
            wrong |= write(writer, None, time, definition, 1, kind, value)
        otf2.check(wrong)
