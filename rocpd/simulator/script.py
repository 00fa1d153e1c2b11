"""Orders API calls, GPU work and markers: a host cursor per thread, a lane of work per stream.

Builds templates call by call; `workload` chooses the calls. A template describes a stretch of a rank's life before it
has times and ids; it is laid out once and stamped out for every step. Holds no clock, no randomness, no SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

from rocpd.base import frozen
from rocpd.schema.trace.events import MARK
from rocpd.simulator.kernels import JITTER, Kernel
from rocpd.simulator.layout import ExchangeKind, ExchangeRequest, GroupKind


class Time(NamedTuple):
    """A point in time, `fixed` ns after an anchor: anchor 0 starts the template, op n gives anchor n + 1."""

    anchor: int
    fixed: int = 0

    def later(self, ns: int) -> Time:
        """Return the time `ns` nanoseconds later."""
        return self._replace(fixed=self.fixed + ns)


class LaneRun(NamedTuple):
    """A piece of work by its lane and its position there; as a start or an end it stands for that time of the piece."""

    lane: int
    position: int


class LaneEnd(NamedTuple):
    """The end of the first pieces of work of a lane, up to the one at `position`."""

    lane: int
    position: int


Term: TypeAlias = Time | LaneEnd
Moment: TypeAlias = Time | LaneRun


@dataclass
class Lane:
    """Device work of one stream between two waits: each piece starts after its launch and after the piece before it.

    Args:
        start: earliest start of any piece.
        scales: whether the pieces take longer on a slow GPU.
        ready: time at which each piece is launched.
        lengths: duration of each piece on a GPU of usual speed [ns].
    """

    start: Time
    scales: bool = True
    ready: list[Time] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def add(self, ready: Time, ns: int) -> int:
        """Append a piece of work; return its position."""
        self.ready.append(ready)
        self.lengths.append(ns)
        return len(self.lengths) - 1


@frozen
class After:
    """Op: the latest of its terms, and whether the host `stalls` after it."""

    terms: tuple[Term, ...]
    stalls: bool = False


@frozen
class Exchange:
    """Op: the end of this rank's part of an exchange, whose kernel starts at anchor `start`.

    `call` is the index of the API region that asks for it, the first of several.
    """

    start: int
    request: ExchangeRequest
    call: int


class Arg(NamedTuple):
    """One argument of an API call."""

    type: str
    name: str
    value: str
    extdata: str = "{}"


@dataclass
class HostRegion:
    """An API call or marker range.

    `parent` is the index of the enclosing region or -1; `jitter` the largest share by which it ends earlier.
    """

    name: str
    category: str
    thread: int
    parent: int
    start: Time
    end: Time
    text: str | None = None
    args: tuple[Arg, ...] = ()
    jitter: float = 0.0


@frozen
class LaunchedWork:
    """Work that a thread launched; `launcher` is the index of the API region."""

    thread: int
    launcher: int
    start: Moment
    end: Moment


@frozen
class Dispatch(LaunchedWork):
    """A kernel run.

    `marker` is the enclosing marker's text; `counters` are the numbers of the counters that have a value; `graph` names
    executable and node.
    """

    kernel: Kernel
    stream: int
    marker: str
    jitter: float
    counters: tuple[int, ...] = ()
    graph: tuple[int, int] | None = None


@frozen
class Copy(LaunchedWork):
    """A copy; `route` holds source and target, H for host and D for device; `size` is in bytes."""

    route: str
    size: int
    marker: str
    jitter: ClassVar[float] = 0.1


@frozen
class Allocation(LaunchedWork):
    """An allocation or free. `slot` numbers the address; `size` is in bytes, 0 for frees.

    An allocation that `leaks` is never freed: every step has it at another address.
    """

    type: str
    level: str
    size: int
    slot: int
    leaks: bool = False
    jitter: ClassVar[float] = 0.3


@frozen
class Sample:
    """A point on track `track` (index into `samples.TRACKS`); `text` is the message of a mark."""

    track: int
    start: Time
    text: str | None = None
    jitter: ClassVar[float] = 0.0

    @property
    def end(self) -> Time:
        """The start, as a point has no length."""
        return self.start


@frozen
class Graph(LaunchedWork):
    """A launch of an executable graph, from its first kernel to its last."""

    exec_id: int
    count: int
    jitter: ClassVar[float] = 0.0


@dataclass
class Template:
    """A laid-out stretch: rows by kind, and the ops and lanes that give their times.

    The last op is the end of the stretch.
    """

    regions: list[HostRegion] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    ops: list[After | Exchange] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)

    @property
    def kinds(self) -> tuple[Sequence[Any], ...]:
        """The rows of each kind, in the order of writing."""
        return self.regions, self.dispatches, self.copies, self.allocations, self.graphs, self.samples

    @property
    def events(self) -> int:
        """Number of dispatches and regions, as `events_per_rank` counts them."""
        return len(self.regions) + len(self.dispatches)


MAIN, WORKER, LOADER = range(3)
COMPUTE, COMPUTE_2, COMM, COPY = 1, 2, 3, 4
"""Streams; 0 is the default stream."""

STREAMS: Mapping[GroupKind, int] = {
    GroupKind.WORLD: COMM,
    GroupKind.DATA: 5,
    GroupKind.TENSOR: 6,
    GroupKind.PIPELINE: 7,
    GroupKind.EXPERT: 8,
}
"""Stream of each communicator."""

HIP, COMPILER, RCCL = "HIP_RUNTIME_API", "HIP_COMPILER_API", "RCCL_API"
HSA, HSA_AMD = "HSA_CORE_API", "HSA_AMD_EXT_API"

LANE_GAP = 400
"""Time between two pieces of work of a stream [ns]."""

_CALL_GAP = 350  # between two calls of a thread [ns]
_SEGMENT_GAP = 5000  # between two segments [ns]
_LATENCY = 1800  # from the end of a launch to the start of its kernel [ns]
_BANDWIDTH = {"HD": 51, "DH": 47, "DD": 1450}  # bytes per ns
_PAGEABLE_BANDWIDTH = 12  # bytes per ns
_KINDS = {"HD": "HostToDevice", "DH": "DeviceToHost", "DD": "DeviceToDevice"}
# Every 11th kernel has counters: several kernels get some, and most rows stay rows of the trace.
_COUNTED_EVERY = 11
CALL_JITTER = 0.45


def stream_arg(stream: int) -> Arg:
    """Return the argument that names a stream, in the profiler's form."""
    value = f"{0x2B81C400 + 0x240 * stream:#x}" if stream else "0"
    return Arg("ihipStream_t*", "stream", value, f'{{"stream_id": {stream}}}')


def _dim(size: tuple[int, int, int]) -> str:
    return f"{{z={size[2]}, y={size[1]}, x={size[0]}}}"


class Script:
    """A template in the making.

    Args:
        kernels: launchable kernels, by key.
        counters: numbers of the counters of counted dispatches.
        factor: factor on the duration of each host call.
        gap: time before each launch [ns].
    """

    def __init__(
        self, kernels: Mapping[str, Kernel], counters: tuple[int, ...] = (), factor: float = 1.0, gap: int = 0
    ) -> None:
        self._counters, self._factor, self._gap = counters, factor, gap
        self.template = Template()
        self._kernels = kernels
        self._at = Time(0)
        self._base = self._at  # device work starts no earlier
        self._cursor: dict[int, Time] = {}
        self._lanes: dict[int, int] = {}  # the current lane of each stream
        self._exchanged: dict[int, Time] = {}  # end of the last exchange of each stream
        self._open: dict[int, list[int]] = {}
        self._markers: dict[int, list[str]] = {}

    def begin_segment(self) -> None:
        """Wait for everything so far except exchanges; all threads go on from there."""
        if self._cursor:
            self._at = self._latest([*self._cursor.values(), *self._busy()]).later(_SEGMENT_GAP)
        self._cursor = {}
        self._restart(self._at)

    def finish(self) -> Template:
        """Return the template, which ends when all its work has ended."""
        self._after([*self._cursor.values(), *self._busy(), *self._exchanged.values()])
        return self.template

    def now(self, thread: int) -> Time:
        """Return the host time that `thread` has reached."""
        return self._cursor.setdefault(thread, self._at.later(2000))

    def enter(self, thread: int, name: str, category: str, args: tuple[Arg, ...] = (), text: str | None = None) -> int:
        """Open a region; later regions of the thread lie inside it. Return its index."""
        stack = self._open.setdefault(thread, [])
        start = self.now(thread)
        self.template.regions.append(
            HostRegion(name, category, thread, stack[-1] if stack else -1, start, start, text, args)
        )
        stack.append(len(self.template.regions) - 1)
        if text is not None:
            self._markers.setdefault(thread, []).append(text)
        self._cursor[thread] = start.later(_CALL_GAP)
        return stack[-1]

    def leave(self, thread: int) -> None:
        """Close the innermost open region of the thread."""
        region = self.template.regions[self._open[thread].pop()]
        region.end = self.now(thread)
        if region.text is not None:
            self._markers[thread].pop()
        self._cursor[thread] = region.end.later(_CALL_GAP)

    def call(self, thread: int, name: str, category: str, ns: int, args: tuple[Arg, ...] = ()) -> int:
        """Make a call of about `ns` nanoseconds that encloses nothing. Return its index."""
        index = self.enter(thread, name, category, args)
        region = self.template.regions[index]
        self._cursor[thread] = region.start.later(int(ns * self._factor))
        self.leave(thread)
        region.jitter = CALL_JITTER
        return index

    def spend(self, thread: int, ns: int) -> None:
        """Let the thread spend time outside of calls [ns]."""
        self._cursor[thread] = self.now(thread).later(ns)

    def stall(self, thread: int) -> None:
        """Let the thread pause for the stall of its host in this round."""
        self._cursor[thread] = Time(self._anchor(After((self.now(thread),), stalls=True)))

    def mark(self, thread: int, text: str) -> None:
        """Set a zero-length mark."""
        self.template.regions[self.call(thread, "roctxMarkA", MARK, 0)].text = text

    def sample(self, thread: int, track: int, text: str | None = None) -> None:
        """Take a sample at the current time of the thread."""
        self.template.samples.append(Sample(track, self.now(thread), text))

    def launch(self, thread: int, key: str, stream: int) -> None:
        """Launch a kernel on a stream."""
        kernel = self._kernels[key]
        self.spend(thread, self._gap)
        if kernel.module:
            launcher = self.call(thread, "hipExtModuleLaunchKernel", HIP, 5200, _module_args(kernel, stream))
        else:
            shape = (
                Arg("rocprofiler_dim3_t", "gridDim", _dim(kernel.grid)),
                Arg("rocprofiler_dim3_t", "blockDim", _dim(kernel.block)),
            )
            self.call(thread, "__hipPushCallConfiguration", COMPILER, 130, shape)
            self.call(thread, "__hipPopCallConfiguration", COMPILER, 130)
            launcher = self.call(thread, "hipLaunchKernel", HIP, 4600, _launch_args(kernel, stream))
        is_counted = len(self.template.dispatches) % _COUNTED_EVERY == 2
        self._run(thread, kernel, stream, launcher, self._counters if is_counted else ())

    def _run(
        self,
        thread: int,
        kernel: Kernel,
        stream: int,
        launcher: int,
        counters: tuple[int, ...] = (),
        graph: tuple[int, int] | None = None,
    ) -> Dispatch:
        run = self._add(stream, self.now(thread).later(_LATENCY), int(kernel.micros * 1000))
        dispatch = Dispatch(thread, launcher, run, run, kernel, stream, self.marker(thread), JITTER, counters, graph)
        self.template.dispatches.append(dispatch)
        return dispatch

    def marker(self, thread: int) -> str:
        """Return the text of the innermost open marker that is the same in every step, or an empty text."""
        texts = [t for t in self._markers.get(thread, []) if "{" not in t]
        return texts[-1] if texts else ""

    def launch_graph(self, thread: int, exec_id: int, keys: tuple[str, ...]) -> None:
        """Launch an executable graph of several kernels by one call."""
        launcher = self.call(thread, "hipGraphLaunch", HIP, 9000, (stream_arg(COMPUTE),))
        kernels = [self._kernels[key] for key in keys]
        runs = [self._run(thread, k, COMPUTE, launcher, graph=(exec_id, n)) for n, k in enumerate(kernels)]
        self.template.graphs.append(Graph(thread, launcher, runs[0].start, runs[-1].end, exec_id, len(runs)))

    def copy(self, thread: int, route: str, size: int, pageable: bool = False) -> None:
        """Copy `size` bytes; `route` is HD, DH or DD. Copies from the device wait for computing work.

        The call for a copy of pageable memory waits for the copy.
        """
        args = (
            Arg("void*", "dst", "0x7f2a40000000"),
            Arg("void const*", "src", "0x7f2b80000000"),
            Arg("unsigned long", "sizeBytes", str(size)),
            Arg("hipMemcpyKind", "kind", _KINDS[route]),
            stream_arg(COPY),
        )
        launcher = self.enter(thread, "hipMemcpyAsync", HIP, args)
        self.call(thread, "hsa_amd_memory_async_copy_on_engine", HSA_AMD, 3900)
        if not pageable:
            self.leave(thread)
        ready = self.now(thread).later(_LATENCY)
        if route[0] == "D":
            self._lanes[COPY] = self._new_lane(self._latest([*self._busy(), ready]), False)
        rate = _PAGEABLE_BANDWIDTH if pageable else _BANDWIDTH[route]
        run = self._add(COPY, ready, 1900 + size // rate)
        self.template.copies.append(Copy(thread, launcher, run, run, route, size, self.marker(thread)))
        if pageable:
            self._cursor[thread] = self._latest([LaneEnd(*run)]).later(600)
            self.leave(thread)

    def allocate(
        self, thread: int, call: str, kind: tuple[str, str], size: int, slot: int, leaks: bool = False
    ) -> None:
        """Allocate or free (`size` 0) by a call; `kind` is type and level, such as ("ALLOC", "REAL")."""
        args: tuple[Arg, ...]
        if kind[0] == "ALLOC":
            args = (Arg("void**", "ptr", "0x7ffec98be478"), Arg("unsigned long", "size", str(size)))
        else:
            args = (Arg("void*", "ptr", f"{address(slot):#x}"),)
        launcher = self.enter(thread, call, HIP, args)
        start = self.now(thread).later(2000)
        self._cursor[thread] = start.later(21000)
        self.leave(thread)
        self.template.allocations.append(
            Allocation(thread, launcher, start, start.later(18000), *kind, size, slot, leaks)
        )

    def scratch(self, thread: int, operation: str, size: int) -> None:
        """Allocate or free (`size` 0) scratch, which the runtime does without a call."""
        start = self.now(thread)
        self._cursor[thread] = start.later(7000)
        self.template.allocations.append(
            Allocation(thread, -1, start, start.later(6000), operation, "SCRATCH", size, 0)
        )

    def exchange(self, thread: int, request: ExchangeRequest, on_compute: bool = False) -> None:
        """Exchange with other ranks: from this rank's arrival until all have arrived and are done.

        Args:
            thread: the calling thread.
            request: the exchange.
            on_compute: whether to use the stream of the computation.
        """
        stream = COMPUTE if on_compute else STREAMS[request.group]
        before, (function, arguments) = calls_of(request, stream_arg(stream))
        calls = [self.call(thread, name, RCCL, 400, args) for name, args in before]
        calls.append(self.enter(thread, function, RCCL, arguments))
        kernel = self._kernels["sendrecv" if request.kind is ExchangeKind.ALL_TO_ALL else "nccl"]
        launcher = self.call(thread, "hipExtLaunchKernel", HIP, 5600, _launch_args(kernel, stream))
        self.leave(thread)
        waits: list[Term] = [] if request.receives else self._busy()
        if stream in self._exchanged:
            waits.append(self._exchanged[stream].later(1000))
        start = self._after([*waits, self.now(thread).later(_LATENCY)])
        asking = calls[1] if before else calls[0]  # the first call after the one that opens a group
        end = Time(self._anchor(Exchange(start, request, asking)))
        self._exchanged[stream] = end
        dispatch = Dispatch(thread, launcher, Time(start), end, kernel, stream, self.marker(thread), 0.0)
        self.template.dispatches.append(dispatch)
        if request.blocks or on_compute:
            copying = {COPY: self._lanes[COPY]} if COPY in self._lanes else {}
            self._restart(end.later(2000))
            self._lanes = copying

    def synchronize(self, thread: int, *, device: bool = False) -> None:
        """Wait for all launched work of this segment except exchanges; `device`: by the call for the whole device."""
        done = self._latest([*self._busy(), self.now(thread).later(3000)])
        call, arguments = ("hipDeviceSynchronize", ()) if device else ("hipStreamSynchronize", (stream_arg(COMPUTE),))
        self._wait(thread, done, call, arguments)

    def wait_exchanged(self, thread: int, stream: int) -> None:
        """Wait for all exchanges so far."""
        done = self._latest([self.now(thread).later(3000), *self._exchanged.values()])
        self._wait(thread, done, "hipStreamSynchronize", (stream_arg(stream),))

    def wait_for_job(self, thread: int) -> None:
        """Wait for an anchor whose time other ranks determine."""
        self._cursor[thread] = Time(self._after([]))

    def _wait(self, thread: int, done: Time, call: str, arguments: tuple[Arg, ...]) -> None:
        self.enter(thread, call, HIP, arguments)
        self.enter(thread, "hsa_signal_wait_scacquire", HSA)
        self._cursor[thread] = done.later(300)
        self.leave(thread)
        self.leave(thread)
        self._restart(done)

    def _busy(self) -> list[Term]:
        """Return the ends of all device work so far, except exchanges."""
        last = {lane: len(self.template.lanes[lane].lengths) - 1 for lane in self._lanes.values()}
        return [self._base, *(LaneEnd(lane, position) for lane, position in last.items() if position >= 0)]

    def _restart(self, base: Time) -> None:
        """Let device work continue at `base`, after all work so far."""
        self._base = base
        self._lanes = {}

    def _add(self, stream: int, ready: Time, ns: int) -> LaneRun:
        """Append work to the lane of a stream."""
        if stream not in self._lanes:
            self._lanes[stream] = self._new_lane(self._base, stream != COPY)
        lane = self._lanes[stream]
        return LaneRun(lane, self.template.lanes[lane].add(ready, ns))

    def _new_lane(self, start: Time, scales: bool) -> int:
        self.template.lanes.append(Lane(start, scales))
        return len(self.template.lanes) - 1

    def _latest(self, terms: Sequence[Term]) -> Time:
        """Return the latest of the terms; without a new anchor if all terms share one."""
        times = [term for term in terms if isinstance(term, Time)]
        if len(times) == len(terms) and len({time.anchor for time in times}) == 1:
            return max(times)
        return Time(self._after(terms))

    def _after(self, terms: Iterable[Term]) -> int:
        return self._anchor(After(tuple(terms)))

    def _anchor(self, op: After | Exchange) -> int:
        """Append an op; return its anchor."""
        self.template.ops.append(op)
        return len(self.template.ops)


Call: TypeAlias = tuple[str, tuple[Arg, ...]]
"""A function and its arguments."""

_TYPES = {4: ("ncclFloat32", 4), 8: ("ncclFloat64", 8)}
_BUFFERS = Arg("void const*", "sendbuff", "0x7f2a40000000"), Arg("void*", "recvbuff", "0x7f2a40000000")


def word(group: GroupKind, fact: str) -> str:
    """Return the placeholder for a fact about a rank's communicator: `comm`, `size`, `rank`, `-1`, `1`."""
    return f"{{{group}.{fact}}}"


def initialisation(group: GroupKind) -> Call:
    """Return the call that makes a communicator."""
    return "ncclCommInitRank", (
        Arg("ncclComm**", "comm", word(group, "comm")),
        Arg("int", "nranks", word(group, "size")),
        Arg("int", "myrank", word(group, "rank")),
    )


def destruction(group: GroupKind) -> Call:
    """Return the call that ends a communicator."""
    return "ncclCommDestroy", (_communicator(group),)


def elements_of(request: ExchangeRequest) -> tuple[str, int, int]:
    """Return the type of the exchanged elements, their bytes, and their number per call."""
    datatype, width = _TYPES.get(request.size, ("ncclBfloat16", 2))
    return datatype, width, max(1, request.size // width // max(1, request.members))


def calls_of(request: ExchangeRequest, stream: Arg) -> tuple[tuple[Call, ...], Call]:
    """Return the calls before the one that launches the kernel, and the launching one."""
    communicator = _communicator(request.group)
    datatype, _, elements = elements_of(request)
    count = Arg("unsigned long", "count", str(elements))
    kind = Arg("ncclDataType_t", "datatype", datatype)
    if request.peer:
        is_send = request.kind is ExchangeKind.SEND
        name, buffer = ("ncclSend", _BUFFERS[0]) if is_send else ("ncclRecv", _BUFFERS[1])
        peer = Arg("int", "peer", word(request.group, str(request.peer)))
        return (("ncclGroupStart", ()), (name, (buffer, count, kind, peer, communicator, stream))), _GROUP_END
    if request.kind is ExchangeKind.ALL_GATHER:
        return (), ("ncclAllGather", (*_BUFFERS, count._replace(name="sendcount"), kind, communicator, stream))
    if request.kind is ExchangeKind.ALL_TO_ALL:
        return _to_all(request.members, (count, kind), (communicator, stream)), _GROUP_END
    operation = Arg("ncclRedOp_t", "op", "ncclSum")
    return (), ("ncclAllReduce", (*_BUFFERS, count, kind, operation, communicator, stream))


def _to_all(members: int, what: tuple[Arg, ...], where: tuple[Arg, ...]) -> tuple[Call, ...]:
    """Return a send to each member and a receive from each, which is PyTorch's all-to-all."""
    calls: list[Call] = [("ncclGroupStart", ())]
    for member in range(members):
        peer = Arg("int", "peer", str(member))
        calls += [
            (name, (buffer, *what, peer, *where))
            for name, buffer in zip(("ncclSend", "ncclRecv"), _BUFFERS, strict=True)
        ]
    return tuple(calls)


_GROUP_END: Call = ("ncclGroupEnd", ())


def _communicator(group: GroupKind) -> Arg:
    return Arg("ncclComm*", "comm", word(group, "comm"))


def address(slot: int) -> int:
    """Return the device address of allocation `slot`."""
    return 0x7F2A40000000 + (slot << 34)


def _launch_args(kernel: Kernel, stream: int) -> tuple[Arg, ...]:
    return (
        Arg("void const*", "function_address", f"{0x208AC0 + 64 * len(kernel.mangled):#x}"),
        Arg("rocprofiler_dim3_t", "numBlocks", _dim(kernel.groups)),
        Arg("rocprofiler_dim3_t", "dimBlocks", _dim(kernel.block)),
        Arg("void**", "args", "0x7ffec98be560"),
        Arg("unsigned long", "sharedMemBytes", "0"),
        stream_arg(stream),
    )


def _module_args(kernel: Kernel, stream: int) -> tuple[Arg, ...]:
    return (
        Arg("ihipModuleSymbol_t*", "f", f"{0x2C0AC0 + 64 * kernel.lds:#x}"),
        Arg("unsigned int", "globalWorkSizeX", str(kernel.grid[0])),
        Arg("unsigned int", "localWorkSizeX", str(kernel.block[0])),
        stream_arg(stream),
    )
