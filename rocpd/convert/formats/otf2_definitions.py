"""The definitions of an OTF2 archive: what its events refer to, each once.

Functions and constants are those of the OTF2 3 C API, in the module `_otf2` of the `otf2` wheel. Paradigms are those of
which OTF2 knows a class. Regions are in a group per category, by which viewers colour and filter them. Communicators
are of paradigm HIP: their members are streams of GPUs, and the number of a member is its place in the group of all such
streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import _otf2

from rocpd.convert.formats.otf2_collectives import Communicator, Line
from rocpd.convert.formats.otf2_rank import Metric, RankTrace, Region
from rocpd.federate.open.identify import Rank

_Definition: TypeAlias = tuple[Any, ...]
"""A function of `_otf2` that writes a definition, and its arguments after the writer."""

CATEGORY = 0
"""The attribute of each enter and leave: the category of the event, as AMD's traces have it."""
_NO_STRING, _NO_NODE, _NO_GROUP, _NO_COMMUNICATOR = (
    _otf2.UNDEFINED_STRING,
    _otf2.UNDEFINED_SYSTEM_TREE_NODE,
    _otf2.UNDEFINED_LOCATION_GROUP,
    _otf2.UNDEFINED_COMM,
)
_PARADIGM_CLASSES = {
    "HIP": "ACCELERATOR",
    "MPI": "PROCESS",
    "SHMEM": "PROCESS",
    "OPENMP": "THREAD_FORK_JOIN",
    "PTHREAD": "THREAD_CREATE_WAIT",
}
"""Paradigm -> OTF2's class of it; others have none."""


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
        self._lines: dict[Line, int] = {}
        self._communicators: dict[Communicator, int] = {}

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

    def line(self, line: Line, location: int) -> None:
        """Note the location of a line that takes part in collectives."""
        self._lines[line] = location

    def communicator(self, communicator: Communicator) -> int:
        """Return the number of a communicator."""
        return self._communicators.setdefault(communicator, len(self._communicators))

    def string(self, text: str) -> int:
        """Return the number of a text."""
        return self._strings.setdefault(text.replace("\0", "\\0"), len(self._strings))

    def write(self, writer: Any) -> None:
        """Write all definitions, each after those that it refers to."""
        definitions = [
            *self._paradigms(), *self._tree(), *self._places(), *self._what_happens(), *self._groups_of_members(),
            *self._measured(),
        ]  # fmt: skip
        for text, number in self._strings.items():
            _otf2.GlobalDefWriter_WriteString(writer, number, text)
        for define, *values in definitions:
            define(writer, *values)

    def _paradigms(self) -> Iterator[_Definition]:
        used = {region.paradigm for region in self._regions} | ({"HIP"} if self._communicators else set())
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
        for region, number in self._regions.items():
            name, flag = self.string(region.name), _otf2.REGION_FLAG_NONE
            role, paradigm = _constant("REGION_ROLE", region.role), _constant("PARADIGM", region.paradigm)
            yield _otf2.GlobalDefWriter_WriteRegion, number, name, name, 0, role, paradigm, flag, _NO_STRING, 0, 0

    def _groups_of_members(self) -> Iterator[_Definition]:
        """Yield a group of regions per category, then the communicators."""
        categories: dict[str, list[int]] = {}
        for region, number in self._regions.items():
            categories.setdefault(region.category, []).append(number)
        for number, (category, regions) in enumerate(categories.items()):
            yield _group(number, self.string(category), "REGIONS", "NONE", regions)
        if not self._communicators:
            return
        locations = sorted(self._lines.values())
        places = {line: locations.index(location) for line, location in self._lines.items()}
        number = len(categories)
        yield _group(number, self.string("streams of collectives"), "COMM_LOCATIONS", "HIP", locations)
        for communicator, comm in self._communicators.items():
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
