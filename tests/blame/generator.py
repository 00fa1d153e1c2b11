"""A second maker of jobs whose cause of lost time is known: a discrete-event model that shares no code with the
simulator, so that what both make is found by analyses for the facts, not for the way in which one program makes them.

Each rank is a host thread that launches kernels on a compute stream and exchanges on a stream for each kind of group;
events order streams. Everything takes as long as chance and what is planted say; what waits for whom gives the rest.
Chance depends on seed, rank and place alone: the same seed without a plant is the same job but for the plant. Times are
true ones [ns]; `files` writes them as clocks of nodes show them.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

LAUNCH, ENQUEUE, SYNC = 5_000, 900, 2_500  # what calls cost the host: launching, recording events, noticing an end [ns]
LATENCY, GAP = 3_000, 600  # from the end of a launch to its start, between two operations of a stream [ns]
TRANSFER_LATENCY, RATE = 20_000, 200.0  # of exchanges: [ns], bytes per ns
APART = 4_000  # members of an exchange end within so long [ns]
SMALL, LARGE = 4 << 20, 32 << 20  # bytes of activations, of gradients
MICRO_BATCHES = 2  # in a pipeline

STREAMS = {"compute": 1, "dp": 2, "tp": 3, "pp": 4, "ep": 5}
_OF_THREAD, _STACKS = 10, 1_000_000  # numbers of streams, and of stacks, from one thread to the next

KERNELS = {
    "compute": "gemm_kernel(float const*, float const*, float*, int)",
    "optimizer": "adamw_kernel(float*, float const*, int)",
    "all-reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "exchange": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
}


@dataclass(frozen=True)
class Shape:
    """A job before anything is planted.

    Args:
        tp: ranks that share each layer; they count fastest, then the data, then the stages.
        pp: stages; each holds `layers` layers.
        ep: neighbours among those that share the data that exchange tokens before and after each layer's experts.
        kernels: of a layer.
        micros: what each takes [us].
        noise: deviation of what a rank computes in a step, as a share; `rho` is its memory from one step to the next.
        heavy: whether that noise has heavy tails: Student's t of three degrees.
        host_jitter: the host comes up to so late to each step [us].
        rccl: how much of RCCL's calls is recorded: `none`, `calls`, or `sizes` with the making of communicators too.
        events: whether waits between streams are recorded.
        gpus: of a process, which has a thread for each: neighbours among the ranks here are one rank of its files.
        marks: whether each of these threads marks its steps; else the first one alone does.
    """

    ranks: int = 8
    nodes: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1
    steps: int = 16
    layers: int = 4
    kernels: int = 6
    micros: float = 70.0
    noise: float = 0.01
    rho: float = 0.0
    heavy: bool = False
    host_jitter: float = 0.0
    rccl: str = "none"
    events: bool = True
    gpus: int = 1
    marks: bool = True
    seed: int = 0

    @property
    def dp(self) -> int:
        """Ranks that share the data."""
        return self.ranks // (self.tp * self.pp)

    def node(self, rank: int) -> int:
        """Return the node of a rank: they are dealt in blocks."""
        return rank * self.nodes // self.ranks

    def on_node(self, node: int) -> tuple[int, ...]:
        """Return the ranks of a node."""
        return tuple(rank for rank in range(self.ranks) if self.node(rank) == node)

    def stage(self, rank: int) -> int:
        """Return the stage of a rank."""
        return rank // (self.tp * self.dp)

    def group(self, kind: str, rank: int) -> tuple[int, ...]:
        """Return the ranks that exchange as `kind` with a rank, itself included."""
        in_stage = self.tp * self.dp
        if kind == "tp":
            return tuple(range(rank - rank % self.tp, rank - rank % self.tp + self.tp))
        if kind == "pp":
            return tuple(range(rank % in_stage, self.ranks, in_stage))
        data = range(self.stage(rank) * in_stage + rank % self.tp, (self.stage(rank) + 1) * in_stage, self.tp)
        at = data.index(rank) // self.ep * self.ep
        return tuple(data) if kind == "dp" else tuple(data[at : at + self.ep])


@dataclass(frozen=True)
class Plant:
    """A cause of lost time.

    Args:
        kind: `compute`: kernels take `size` % longer; `stall`: the host does nothing for `size` us in the middle of a
            step; `late`: it comes `size` us late to a step; `link`: transfers of a group take `size` times as long;
            `kernels`: in so many layers there is one kernel more.
        ranks: whom it strikes, of a link the group.
        steps: when; none: always.
    """

    kind: str
    size: float
    ranks: tuple[int, ...]
    steps: tuple[int, ...] = ()

    def strikes(self, kind: str, rank: int, step: int) -> bool:
        """Whether it is of a kind and strikes a rank in a step."""
        return self.kind == kind and rank in self.ranks and (not self.steps or step in self.steps)


class Moment:
    """A time that is not known yet, and the processes that wait for it."""

    def __init__(self) -> None:
        self.time: int | None = None
        self.waiting: list[Process] = []


Process = Generator[Moment, int, None]
"""Waits for moments that it yields, and gets their times."""


class Engine:
    """Runs processes until all have ended."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Process, int | None]] = deque()

    def start(self, process: Process) -> None:
        """Let a process run."""
        self._ready.append((process, None))

    def fire(self, moment: Moment, time: int) -> None:
        """Say when a moment is."""
        moment.time = time
        self._ready.extend((process, time) for process in moment.waiting)

    def run(self) -> None:
        """Run until nothing can go on."""
        while self._ready:
            process, time = self._ready.popleft()
            try:
                moment = next(process) if time is None else process.send(time)
                while moment.time is not None:
                    moment = process.send(moment.time)
                moment.waiting.append(process)
            except StopIteration:
                pass


@dataclass
class Meeting:
    """An exchange of a group: all members are in it from the arrival of the last one on, and leave it together."""

    members: tuple[int, ...]
    ns: int
    arrived: dict[int, int] = field(default_factory=dict)
    over: Moment = field(default_factory=Moment)


@dataclass
class Operation:
    """Work of a GPU: a kernel, or a rank's part of an exchange."""

    name: str
    stream: int
    stack: int
    step: int
    start: int = 0
    end: int = 0
    done: Moment = field(default_factory=Moment)
    meeting: Meeting | None = None


@dataclass
class Call:
    """A call or a range of markers, with `arguments` by name; `stack` is that of what it launches."""

    name: str
    category: str
    start: int
    end: int = 0
    stack: int = 0
    parent: int = 0
    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


class Rank:
    """One thread, mostly that of a process: what its host does, and what its GPU does of it."""

    def __init__(self, number: int, job: Job) -> None:
        self.number, self._job, self._shape = number, job, job.shape
        self.now = 1_000_000 + int(job.chance("start", number).random() * 50_000)
        self.calls: list[Call] = []
        self.operations: list[Operation] = []
        self.communicators: dict[str, str] = {}
        self._chance = job.chance("host", number)
        self._last: dict[int, Operation] = {}  # of each stream
        self._before: dict[int, list[Operation]] = defaultdict(list)  # what the next one of a stream waits for
        self._open: list[Call] = []
        self.thread = number % job.shape.gpus
        self.streams = {kind: stream + _OF_THREAD * self.thread for kind, stream in STREAMS.items()}
        self._stack = _STACKS * self.thread
        self._step, self._stall = -1, 0
        for n, kind in enumerate(("dp", "tp", "pp", "ep")):
            if len(self._shape.group(kind, number)) > 1:
                self.communicators[kind] = f"{0x55D0C0000000 + 0x100000 * number + 0x4000 * n:#x}"

    def live(self) -> Process:
        """Make the communicators, then all steps."""
        for kind, address in self.communicators.items():
            members = self._shape.group(kind, self.number)
            place = {"nranks": str(len(members)), "myrank": str(members.index(self.number))}
            with_address = {"comm": address, **place}
            self._call("ncclCommInitRank", "RCCL_API", 300_000, with_address)
        for step in range(self._shape.steps):
            self._step = step
            late = self._planted("late") + self._chance.random() * self._shape.host_jitter
            self.now += 4_000 + int(late * 1000)
            self._enter("roctxRangePushA", "MARKER_CORE_RANGE_API", text=f"step {step}")
            self._stall = int(self._planted("stall") * 1000)
            if self._shape.pp == 1:
                self._layers()
            else:
                self._pipeline()
            yield from self._end_step()
            self._leave()

    def _layers(self) -> None:
        """Make one pass over all layers; gradients of every second one are added up while others compute.

        Those of layers with experts are added up at the end.
        """
        for layer in range(self._shape.layers):
            self._layer(layer)
            if (layer % 2 and self._shape.ep == 1) or layer == self._shape.layers - 1:
                self._exchange("dp", LARGE, blocks=False)

    def _pipeline(self) -> None:
        """Pass micro-batches forwards through the stages, then their gradients backwards; then add these up."""
        stage, last = self._shape.stage(self.number), self._shape.pp - 1
        for way, first, final in ((1, 0, last), (-1, last, 0)):
            for _ in range(MICRO_BATCHES):
                if stage != first:
                    self._transfer(stage - way, stage)
                for layer in range(self._shape.layers):
                    self._layer(layer)
                if stage != final:
                    self._transfer(stage, stage + way)
        self._exchange("dp", LARGE, blocks=False)

    def _layer(self, layer: int) -> None:
        self._exchange("ep", SMALL, blocks=True)
        for n in range(self._shape.kernels + (layer < self._planted("kernels"))):
            if (layer, n) == (self._shape.layers // 2, 0):
                self.now, self._stall = self.now + self._stall, 0
            self._launch("compute", self._shape.micros)
        self._exchange("ep", SMALL, blocks=True)
        self._exchange("tp", SMALL, blocks=True)

    def _end_step(self) -> Process:
        """Wait for the gradients on the GPU, then for all of its work on the host."""
        if "dp" in self.communicators:
            self._order("dp", "compute")
        self._launch("optimizer", self._shape.micros)
        start, stream = self.now, self.streams["compute"]
        done = yield self._last[stream].done
        arguments = {"stream": _stream(stream)}
        self.now = max(start + SYNC, done + SYNC)
        self.calls.append(Call("hipStreamSynchronize", "HIP_RUNTIME_API", start, self.now, arguments=arguments))

    def _planted(self, kind: str) -> float:
        return sum(plant.size for plant in self._job.plants if plant.strikes(kind, self.number, self._step))

    def _enter(self, name: str, category: str, arguments: dict[str, str] | None = None, text: str = "") -> None:
        self._stack += 1
        parent = self._open[-1].stack if self._open else 0
        self._open.append(Call(name, category, self.now, 0, self._stack, parent, text, arguments or {}))
        self.calls.append(self._open[-1])
        self.now += 150

    def _leave(self) -> int:
        self.now += 150
        call = self._open.pop()
        call.end = self.now
        return call.stack

    def _call(self, name: str, category: str, ns: int, arguments: dict[str, str]) -> int:
        """Make a call of about so long; return its stack id."""
        self._enter(name, category, arguments)
        self.now += int(ns * (0.9 + 0.2 * self._chance.random()))
        return self._leave()

    def _launch(self, kind: str, micros: float) -> None:
        """Launch a kernel that computes."""
        noise = 1 + 0.002 * self._chance.gauss(0, 1)
        stack = self._call("hipLaunchKernel", "HIP_RUNTIME_API", LAUNCH, {"stream": _stream(self.streams["compute"])})
        factor = self._job.factors[self.number, self._step] * (1 + self._planted("compute") / 100)
        self._enqueue(KERNELS[kind], self.streams["compute"], stack, int(micros * 1000 * noise * factor))

    def _exchange(self, kind: str, size: int, blocks: bool) -> None:
        """Exchange with a group after what was computed; what `blocks` is waited for by what computes next."""
        if kind not in self.communicators:
            return
        members = self._shape.group(kind, self.number)
        common = {"count": str(size // 2), "datatype": "ncclBfloat16", "comm": self.communicators[kind]}
        if kind == "ep":
            share = common | {"count": str(size // 2 // len(members))}
            peers = [str(n) for n in range(len(members))]
            calls = [(name, share | {"peer": peer}) for peer in peers for name in ("ncclSend", "ncclRecv")]
            self._communicate(kind, "exchange", calls, self._job.meeting(kind, members, self.number, size, self._step))
        else:
            meeting = self._job.meeting(kind, members, self.number, 2 * size, self._step)
            self._communicate(kind, "all-reduce", [("ncclAllReduce", common)], meeting)
        if blocks:
            self._order(kind, "compute")

    def _transfer(self, sender: int, receiver: int) -> None:
        """Send to another stage, or receive from it, which what computes next waits for."""
        members, stage = self._shape.group("pp", self.number), self._shape.stage(self.number)
        sends = stage == sender
        peer = receiver if sends else sender
        arguments = {"count": str(SMALL // 2), "datatype": "ncclBfloat16", "peer": str(peer)}
        arguments |= {"comm": self.communicators["pp"]}
        meeting = self._job.meeting("pp", (members[sender], members[receiver]), self.number, SMALL, self._step)
        self._communicate("pp", "exchange", [("ncclSend" if sends else "ncclRecv", arguments)], meeting, waits=sends)
        if not sends:
            self._order("pp", "compute")

    def _communicate(
        self, kind: str, kernel: str, calls: Sequence[tuple[str, dict[str, str]]], meeting: Meeting, waits: bool = True
    ) -> None:
        """Make RCCL's calls, the last of which launches the kernel; sends and receives come in groups."""
        stream = self.streams[kind]
        if waits:
            self._order("compute", kind)
        if kernel == "exchange":
            for name, arguments in (("ncclGroupStart", {}), *calls):
                self._call(name, "RCCL_API", 300, arguments)
            calls = [("ncclGroupEnd", {})]
        (name, arguments), *_ = calls
        self._enter(name, "RCCL_API", arguments)
        stack = self._call("hipExtLaunchKernel", "HIP_RUNTIME_API", LAUNCH, {"stream": _stream(stream)})
        self._leave()
        self._enqueue(KERNELS[kernel], stream, stack, meeting=meeting)

    def _order(self, first: str, then: str) -> None:
        """Let the next operation of one stream wait for the last one of another, by an event."""
        before, after = self.streams[first], self.streams[then]
        if before not in self._last:
            return
        event = f"{0x7F00AA000000 + 0x80 * (len(self.calls) + _STACKS * self.thread):#x}"
        for name, stream in (("hipEventRecord", before), ("hipStreamWaitEvent", after)):
            self._call(name, "HIP_RUNTIME_API", ENQUEUE, {"event": event, "stream": _stream(stream)})
        self._before[after] += [self._last[before], *self._before[before]]

    def _enqueue(self, name: str, stream: int, stack: int, ns: int = 0, meeting: Meeting | None = None) -> None:
        operation = Operation(name, stream, stack, self._step, meeting=meeting)
        waits, self._before[stream] = self._before[stream], []
        self._job.engine.start(self._run(operation, self.now, self._last.get(stream), waits, ns))
        self._last[stream] = operation
        self.operations.append(operation)

    def _run(
        self, operation: Operation, launched: int, before: Operation | None, waits: Iterable[Operation], ns: int
    ) -> Process:
        """Start when it is launched and all that it waits for is done; end after so long, or with the exchange."""
        start = launched + LATENCY
        if before is not None:
            start = max(start, GAP + (yield before.done))
        for other in waits:
            start = max(start, GAP + (yield other.done))
        operation.start, end = start, start + ns
        if operation.meeting is not None:
            self._job.arrive(operation.meeting, self.number, start)
            apart = self._job.chance("end", self.number, operation.stack).random() * APART
            end = (yield operation.meeting.over) + int(apart)
        operation.end = end
        self._job.engine.fire(operation.done, end)


def _stream(number: int) -> str:
    return f"{0x2B81C400 + 0x240 * number:#x}"


class Job:
    """A job that has run: `ranks` hold its calls and operations, `meetings` its exchanges.

    Args:
        shape: what it is without what is planted.
        plants: causes of lost time.
    """

    def __init__(self, shape: Shape, plants: Sequence[Plant] = ()) -> None:
        self.shape, self.plants = shape, tuple(plants)
        self.engine = Engine()
        self.factors = factors(shape)
        self.meetings: dict[tuple[str, tuple[int, ...], int], Meeting] = {}
        self._met: dict[tuple[str, tuple[int, ...], int], int] = defaultdict(int)
        self.ranks = tuple(Rank(number, self) for number in range(shape.ranks))
        for rank in self.ranks:
            self.engine.start(rank.live())
        self.engine.run()
        if any(not operation.end for rank in self.ranks for operation in rank.operations):
            raise RuntimeError("ranks wait for each other")

    def chance(self, *place: object) -> random.Random:
        """Return the chance of a place."""
        return random.Random(f"{self.shape.seed} {place}")

    def meeting(self, kind: str, members: tuple[int, ...], rank: int, size: int, step: int) -> Meeting:
        """Return the exchange that comes next for a rank of a group."""
        number = self._met[kind, members, rank]
        self._met[kind, members, rank] += 1
        key = (kind, members, number)
        if key not in self.meetings:
            group = self.shape.group(kind, rank)
            links = [
                p.size for p in self.plants if p.kind == "link" and p.ranks == group and p.strikes("link", rank, step)
            ]
            spread = 1 + 0.01 * self.chance(*key).gauss(0, 1)
            ns = TRANSFER_LATENCY + size / RATE * float(np.prod(links)) * spread
            self.meetings[key] = Meeting(members, int(ns))
        return self.meetings[key]

    def arrive(self, meeting: Meeting, rank: int, time: int) -> None:
        """Note that a rank has come to an exchange."""
        meeting.arrived[rank] = time
        if len(meeting.arrived) == len(meeting.members):
            self.engine.fire(meeting.over, max(meeting.arrived.values()) + meeting.ns)

    @property
    def waiting(self) -> int:
        """How long ranks waited in exchanges for others, in all [ns]."""
        return sum(max(m.arrived.values()) * len(m.members) - sum(m.arrived.values()) for m in self.meetings.values())

    @property
    def ends(self) -> list[int]:
        """When the last rank ends each step [ns]."""
        marked = [[call.end for call in rank.calls if call.text] for rank in self.ranks]
        return [max(ends) for ends in zip(*marked, strict=True)]

    @property
    def lengths(self) -> list[int]:
        """How long each step takes, from the end of the one before [ns]."""
        first = min(call.start for rank in self.ranks for call in rank.calls if call.text)
        return np.diff(self.ends, prepend=first).tolist()


def factors(shape: Shape) -> npt.NDArray[np.float64]:
    """Return how much longer each rank computes in each step by chance: `[rank, step]`."""
    chance, size = np.random.default_rng([shape.seed, 77]), (shape.ranks, shape.steps)
    noise = chance.standard_t(3, size) / np.sqrt(3) if shape.heavy else chance.standard_normal(size)
    for step in range(1, shape.steps):
        noise[:, step] = shape.rho * noise[:, step - 1] + np.sqrt(1 - shape.rho**2) * noise[:, step]
    return np.maximum(0.5, 1 + shape.noise * noise)


@dataclass(frozen=True)
class Truth:
    """What a planted cause costs, by the same seed without it.

    Args:
        cost: of the job [ns].
        costs: of each step [ns].
        waiting: share of all waiting in exchanges that goes with it.
    """

    plant: Plant
    cost: int
    costs: tuple[int, ...]
    waiting: float


@lru_cache(8)
def played(shape: Shape, plants: tuple[Plant, ...] = ()) -> Job:
    """Return a job to look at; a test asks for the same one to write it and to know what it costs."""
    return Job(shape, plants)


def truths(job: Job) -> tuple[Truth, ...]:
    """Return what each planted cause costs while the others stay."""
    found = []
    for n, plant in enumerate(job.plants):
        without = played(job.shape, job.plants[:n] + job.plants[n + 1 :])
        costs = tuple(a - b for a, b in zip(job.lengths, without.lengths, strict=True))
        found.append(Truth(plant, sum(costs), costs, 1 - without.waiting / max(1, job.waiting)))
    return tuple(found)
