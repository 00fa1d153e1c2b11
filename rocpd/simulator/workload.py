"""The work of a rank: the shape of each profile, the calls of set-up, steps and tear-down, and their recorded part.

Knows neither times nor ids.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from rocpd.base import frozen
from rocpd.schema.trace.events import MARKER_RANGE
from rocpd.simulator.hardware import MEMORY_BYTES
from rocpd.simulator.kernels import HOTTEST, KERNELS, Kernel, kernels_of
from rocpd.simulator.layout import ExchangeKind, ExchangeRequest, GroupKind, Layout
from rocpd.simulator.options import Plant, Planting, Rccl
from rocpd.simulator.samples import MARK, SMI_TRACKS, of_kernels
from rocpd.simulator.script import (
    COMM,
    COMPILER,
    COMPUTE,
    COMPUTE_2,
    COPY,
    HIP,
    HSA,
    LOADER,
    MAIN,
    RCCL,
    STREAMS,
    WORKER,
    Arg,
    HostRegion,
    Script,
    Template,
    address,
    destruction,
    initialisation,
    stream_arg,
)

MIB = 1 << 20

Work: TypeAlias = str | ExchangeRequest
"""A kernel by its key, with `@2` for the second compute stream, or an exchange with other ranks."""


@frozen
class Layer:
    """Work that is launched in order, under a marker unless `text` is empty."""

    text: str
    work: tuple[Work, ...]


@frozen
class StepPhase:
    """A marked part of a step, ending with a synchronisation.

    Args:
        text: marker text.
        thread: index of the thread that launches: 0 main, 1 autograd.
        layers: the work.
        copies: (route, bytes) per copy; a route is source and target, H the host and D the device.
        reduce: bytes of the all-reduce that ends the phase, 0 for none.
        waits: whether the phase also waits for every exchange so far before it ends.
        receives: stages to the sender of its input, 0 for none.
        sends: stages to the receiver of its output, 0 for none.
    """

    text: str
    thread: int
    layers: tuple[Layer, ...]
    copies: tuple[tuple[str, int], ...] = ()
    reduce: int = 0
    waits: bool = False
    receives: int = 0
    sends: int = 0


@frozen
class WorkProfile:
    """One shape of job.

    Args:
        command: command line of each process.
        phases: in order of a step.
        resident: bytes held from start to end, one allocation each.
        transient: bytes allocated at the start of a step and freed at its end, one allocation each.
    """

    command: str
    phases: tuple[StepPhase, ...]
    resident: tuple[int, ...]
    transient: tuple[int, ...]


_ACTIVATIONS = 8 * MIB
_GRADIENTS = 48 * MIB
_GATHER = ExchangeRequest(ExchangeKind.ALL_GATHER, GroupKind.TENSOR, _ACTIVATIONS, blocks=True)
_REDUCE = ExchangeRequest(ExchangeKind.ALL_REDUCE, GroupKind.TENSOR, _ACTIVATIONS, blocks=True)
_EXPERTS = ExchangeRequest(ExchangeKind.ALL_TO_ALL, GroupKind.EXPERT, _ACTIVATIONS, blocks=True)
_NORM = ExchangeRequest(ExchangeKind.ALL_REDUCE, GroupKind.WORLD, 8, blocks=True)
_LOSS = ExchangeRequest(ExchangeKind.ALL_REDUCE, GroupKind.WORLD, 4)

_ATTENTION: tuple[Work, ...] = ("norm", _GATHER, "gemm_nt", "attention", "gemm_nt", _REDUCE, "add")
_MLP: tuple[Work, ...] = (_EXPERTS, "gemm_nt", "silu", "gemm_nn", _EXPERTS)
_BLOCK: tuple[Work, ...] = (*_ATTENTION, "norm", *_MLP, _REDUCE, "add")
_MLP_BWD: tuple[Work, ...] = (
    *(_EXPERTS, "gemm_nn", "gemm_tn@2", "silu", "gemm_nn", "gemm_tn@2", _EXPERTS),
    *(_REDUCE, "norm_bwd", "add"),
)
_ATTENTION_BWD: tuple[Work, ...] = (
    *("gemm_nn", "gemm_tn@2", "attention_bwd", "gemm_nn", "gemm_tn@2"),
    *(_REDUCE, "norm_bwd", "add"),
)
_LAYERS = 3
_MICRO_BATCHES = 2  # in a pipeline, so that its stages can overlap


def _llm(stage: int, stages: int) -> WorkProfile:
    batches = _MICRO_BATCHES if stages > 1 else 1
    phases = [_forward(stage, stages) for _ in range(batches)]
    for batch in range(batches):
        phases += _backward(stage, stages, batch == batches - 1)
    update = Layer("", (_NORM, "adam", "adam", "fill", "sum", _LOSS))
    phases.append(StepPhase("optimizer", 0, (update,), (("DD", 64 * MIB), ("DH", 4)), waits=True))
    return WorkProfile(
        "python3 pretrain.py --model 8b --bf16 --micro-batch 2",
        tuple(phases),
        (1308 * MIB, 1308 * MIB, 2616 * MIB),
        (384 * MIB, 192 * MIB),
    )


def _forward(stage: int, stages: int) -> StepPhase:
    layers = [Layer(f"layer {i}", _BLOCK) for i in range(_LAYERS)]
    is_first, is_last = stage == 0, stage == stages - 1
    if is_last:
        layers.append(Layer("loss", ("gemm_nt", "sum")))
    load = (("HD", 8 * MIB), ("HD", 32768)) if is_first else ()
    return StepPhase("forward", 0, tuple(layers), load, receives=0 if is_first else -1, sends=0 if is_last else 1)


def _backward(stage: int, stages: int, is_last_batch: bool) -> list[StepPhase]:
    block = (*_MLP_BWD, *_ATTENTION_BWD)
    return [
        StepPhase(
            "backward",
            1,
            (Layer(f"layer {i} backward", block),),
            reduce=_GRADIENTS if is_last_batch else 0,
            waits=is_last_batch and i == 0,
            receives=1 if i == _LAYERS - 1 and stage < stages - 1 else 0,
            sends=-1 if i == 0 and stage > 0 else 0,
        )
        for i in reversed(range(_LAYERS))
    ]


def _gemm() -> WorkProfile:
    forward = Layer("products", ("bmm", "gemm_nt", "gemm_nn@2", "add") * 5)
    backward = Layer("gradients", ("gemm_tn", "gemm_nn@2", "bmm", "bmm@2") * 8)
    return WorkProfile(
        "./batched_gemm --batch 128 --repeat 5",
        (
            StepPhase("forward", 0, (forward,), (("HD", 8 * MIB), ("HD", 8 * MIB))),
            StepPhase("backward", 1, (backward,), reduce=32 * MIB, waits=True),
            StepPhase("optimizer", 0, (Layer("", ("add", "add", "fill")),), (("DD", 16 * MIB), ("DH", MIB))),
        ),
        (768 * MIB, 768 * MIB),
        (96 * MIB, 48 * MIB),
    )


def _hpc() -> WorkProfile:
    exchange = (("DH", 520192), ("DH", 520192), ("HD", 520192), ("HD", 520192))
    sweep = ("halo@2", "smooth", "spmv", "waxpby")
    return WorkProfile(
        "./xhpcg 104 104 104",
        (
            StepPhase("forward sweep", 0, tuple(Layer(f"grid {i}", sweep * 2) for i in range(4)), exchange),
            StepPhase("residual", 0, (Layer("", ("halo@2", "spmv", "dot")),), reduce=8, waits=True),
            StepPhase("backward sweep", 1, tuple(Layer(f"grid {i}", sweep * 2) for i in (3, 2, 1, 0)), exchange),
            StepPhase("norm", 1, (Layer("", ("waxpby", "waxpby@2", "dot")),), (("DD", 8998912),), 8, True),
            StepPhase("update", 0, (Layer("", ("waxpby", "waxpby", "fill")),), (("DH", 8),)),
        ),
        (243 * MIB, 35 * MIB, 18 * MIB),
        (16 * MIB, 2 * MIB),
    )


@functools.cache
def profile_of(name: str, stage: int = 0, stages: int = 1) -> WorkProfile:
    """Return the shape of the work of a pipeline stage; only `llm` has more than one."""
    if name == "llm":
        return _llm(stage, stages)
    return _gemm() if name == "gemm" else _hpc()


SPECIAL_EVERY = 16
"""The first of this many steps also launches graphs, uses scratch, and allocates memory that it frees at its end."""

_SCRATCH_BYTES = 304 * 32 * 64 * 160
_FIRST_TRANSIENT, _VIRTUAL_SLOT, _WORKSPACE_SLOT, _LEAK_SLOT, _FIRST_BALLAST = 16, 30, 31, 32, 36
_WORKSPACE_BYTES = 128 << 20
_BALLAST_BYTES = 15 << 30  # of one allocation: addresses of slots are 16 GiB apart
_GRAPHS = (1, 2, 1)
_CUT_INTO = 4  # small kernels
_FOREIGN = {"llm": "spmv", "gemm": "spmv", "hpc": "bmm"}  # kernel that no other work of a profile runs
_SMALL_KERNEL_GAP = 5000  # before each launch of a small kernel [ns]
_SMALL_COPY = 16384


@frozen
class Role:
    """The role of a rank, which determines its calls."""

    profile: str
    layout: Layout
    stage: int
    planting: Planting

    @property
    def work(self) -> WorkProfile:
        """The shape of its work."""
        return profile_of(self.profile, self.stage, self.layout.pp)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """The launchable kernels, by key."""
        return kernels_of(self.profile, self.planting, self.layout.has(GroupKind.EXPERT))

    def script(self) -> Script:
        """Return an empty script for the role."""
        factor = self.planting.size(Plant.PROFILER_COST, 1.0)
        gap = int(self.planting.size(Plant.LAUNCH_BOUND, 0.0) * 1000)
        gap += _SMALL_KERNEL_GAP if Plant.SMALL_KERNELS in self.planting else 0
        return Script(self.kernels, of_kernels(self.planting.counts_much), factor, gap)


def streams_of(layout: Layout) -> tuple[int, ...]:
    """Return the streams of the ranks of a job."""
    return tuple(sorted({0, COMPUTE, COMPUTE_2, COMM, COPY, *(STREAMS[kind] for kind in layout.communicators())}))


@functools.cache
def step(role: Role, special: bool) -> Template:
    """Lay out one step."""
    script, phases = role.script(), role.work.phases
    for i, phase in enumerate(phases):
        script.begin_segment()
        if i == 0:
            _begin_step(script, role, special)
        final = i == len(phases) - 1
        _phase(script, role, phase, final and (special or Plant.LOST_GRAPH_KERNELS in role.planting))
        if final:
            _end_step(script, role, special)
    return script.finish()


def _begin_step(script: Script, role: Role, special: bool) -> None:
    script.enter(MAIN, "roctxThreadRangeA", MARKER_RANGE, text="step {step}")
    script.mark(MAIN, "begin of step {step}")
    script.sample(MAIN, MARK, "step {step} on its way")
    if special or Plant.STEADY_ALLOCATION in role.planting:
        for n, size in enumerate(role.work.transient):
            script.allocate(MAIN, "hipMalloc", ("ALLOC", "REAL"), size, _FIRST_TRANSIENT + n)
    if special:
        script.allocate(MAIN, "hipMalloc", ("ALLOC", "REAL"), _WORKSPACE_BYTES, _WORKSPACE_SLOT)
        script.scratch(MAIN, "ALLOC", _SCRATCH_BYTES)
    _begin_badly(script, role.planting)


def _begin_badly(script: Script, planting: Planting) -> None:
    """Make the calls that no step of a good job makes."""
    if leaked := int(planting.size(Plant.LEAK, 0.0) * MIB):
        script.allocate(MAIN, "hipMalloc", ("ALLOC", "REAL"), leaked, _LEAK_SLOT, leaks=True)
    if Plant.SLOW_INPUT in planting:
        script.enter(MAIN, "roctxRangePushA", MARKER_RANGE, text="load batch")
        script.spend(MAIN, int(planting.size(Plant.SLOW_INPUT, 0.0) * 1000))
        script.leave(MAIN)
    if Plant.MODULE_LOADS in planting:
        script.call(MAIN, "hipModuleLoadData", HIP, 420_000, (Arg("void const*", "image", "0x7f2b30000000"),))
    if Plant.HOST_STALL in planting:
        script.stall(MAIN)
    for _ in range(int(planting.size(Plant.SMALL_COPIES, 0.0))):
        script.copy(MAIN, "HD", _SMALL_COPY)


def _end_step(script: Script, role: Role, special: bool) -> None:
    if special or Plant.STEADY_ALLOCATION in role.planting:
        for n in range(len(role.work.transient)):
            script.allocate(MAIN, "hipFree", ("FREE", "REAL"), 0, _FIRST_TRANSIENT + n)
    if special:
        script.allocate(MAIN, "hipFree", ("FREE", "REAL"), 0, _WORKSPACE_SLOT)
        script.scratch(MAIN, "FREE", 0)
    script.leave(MAIN)


def _phase(script: Script, role: Role, phase: StepPhase, graphs: bool) -> None:
    thread = (MAIN, WORKER)[phase.thread]
    # Push/pop ranges nest on their thread, thread ranges are marked otherwise: both occur in real traces.
    script.enter(thread, "roctxRangePushA" if thread == MAIN else "roctxThreadRangeA", MARKER_RANGE, text=phase.text)
    for track in SMI_TRACKS:
        script.sample(thread, track)
    _load(script, thread, role, phase)
    if phase.receives:
        _pass_on(script, thread, role, ExchangeKind.RECEIVE, phase.receives)
    for layer in phase.layers:
        _layer(script, thread, role, layer)
    for exec_id in _GRAPHS if graphs else ():
        script.launch_graph(thread, exec_id, ("add", "sum", "add"))
    for route, size in phase.copies:
        if route[0] == "D":
            script.copy(thread, route, size)
    if phase.sends:
        _pass_on(script, thread, role, ExchangeKind.SEND, phase.sends)
    if phase.reduce:
        size = int(phase.reduce * role.planting.size(Plant.EXPOSED_COMMUNICATION, 1.0))
        _exchange(script, thread, role, ExchangeRequest(ExchangeKind.ALL_REDUCE, role.layout.gradients, size))
    script.synchronize(thread)
    if phase.waits or (phase.reduce and Plant.LOST_OVERLAP in role.planting):
        script.wait_exchanged(thread, STREAMS[role.layout.gradients])
    script.leave(thread)


def _load(script: Script, thread: int, role: Role, phase: StepPhase) -> None:
    """Copy to the device; if a call waits for its copy, the thread that needs the data makes the call."""
    pageable = Plant.PAGEABLE_COPIES in role.planting
    for route, size in phase.copies:
        if route[0] == "H":
            script.copy(thread if pageable else LOADER, route, size, pageable)


def _pass_on(script: Script, thread: int, role: Role, kind: ExchangeKind, peer: int) -> None:
    request = ExchangeRequest(kind, GroupKind.PIPELINE, _ACTIVATIONS, blocks=kind is ExchangeKind.RECEIVE, peer=peer)
    _exchange(script, thread, role, request)


def _exchange(script: Script, thread: int, role: Role, request: ExchangeRequest) -> None:
    if role.layout.has(request.group):
        if request.kind is ExchangeKind.ALL_TO_ALL:
            request = replace(request, members=role.layout.size(request.group))
        script.exchange(thread, request, Plant.SAME_STREAM in role.planting)


def _layer(script: Script, thread: int, role: Role, layer: Layer) -> None:
    if layer.text:
        script.enter(thread, "roctxRangePushA", MARKER_RANGE, text=layer.text)
    launched = 0
    for work in layer.work:
        if isinstance(work, ExchangeRequest):
            _exchange(script, thread, role, work)
            continue
        name, _, stream = work.partition("@")
        for kernel in _runs(role, name):
            script.launch(thread, kernel, COMPUTE_2 if stream else COMPUTE)
        launched += 1
        if Plant.SYNCHRONOUS_CALLS in role.planting and launched % 2 == 0:
            script.synchronize(thread, device=True)
    if layer.text:
        script.leave(thread)


def _runs(role: Role, name: str) -> Iterator[str]:
    """Yield the kernels for one piece of work."""
    planting, is_hot = role.planting, name == HOTTEST[role.profile]
    times = _CUT_INTO if Plant.SMALL_KERNELS in planting else 1
    times *= int(planting.size(Plant.MORE_CALLS, 1)) if is_hot else 1
    yield from [name] * times
    if is_hot and Plant.NEW_KERNEL in planting:
        yield _FOREIGN[role.profile]


@functools.cache
def setup(role: Role) -> Template:
    """Lay out the time before the first step."""
    script, chosen = role.script(), role.work
    script.begin_segment()
    script.call(MAIN, "__hipRegisterFatBinary", COMPILER, 9800, (Arg("void const*", "data", "0x208ac0"),))
    for kernel in KERNELS:
        if not kernel.module and kernel.key in role.kernels:
            script.call(MAIN, "__hipRegisterFunction", COMPILER, 900, _register_args(kernel.mangled))
    script.enter(MAIN, "roctxRangePushA", MARKER_RANGE, text="initialise")
    script.enter(MAIN, "hipSetDevice", HIP, (Arg("int", "deviceId", "0"),))
    script.call(MAIN, "hsa_init", HSA, 2_400_000)
    script.call(MAIN, "hsa_iterate_agents", HSA, 61_000)
    script.leave(MAIN)
    for stream in streams_of(role.layout)[1:]:
        script.enter(MAIN, "hipStreamCreateWithFlags", HIP, (stream_arg(stream),))
        script.call(MAIN, "hsa_queue_create", HSA, 310_000)
        script.leave(MAIN)
    script.allocate(MAIN, "hipMemAddressReserve", ("ALLOC", "VIRTUAL"), sum(chosen.resident), _VIRTUAL_SLOT)
    for slot, size in _resident(role):
        script.allocate(MAIN, "hipMalloc", ("ALLOC", "REAL"), size, slot)
    script.launch(MAIN, "fill", 0)
    script.copy(MAIN, "HD", _state_bytes(chosen))
    for group in role.layout.communicators():
        name, args = initialisation(group)
        script.call(MAIN, name, RCCL, 4_000_000, args)
    script.synchronize(MAIN)
    _barrier(script, role, connects=True)
    script.leave(MAIN)
    return script.finish()


def _resident(role: Role) -> list[tuple[int, int]]:
    """Return slot and bytes of the memory held from start to end."""
    held = list(enumerate(role.work.resident))
    missing = int(MEMORY_BYTES * role.planting.size(Plant.MEMORY_PEAK, 0.0) / 100) - sum(role.work.resident)
    for n in range(max(0, -(-missing // _BALLAST_BYTES))):
        held.append((_FIRST_BALLAST + n, min(_BALLAST_BYTES, missing - n * _BALLAST_BYTES)))
    return held


def _barrier(script: Script, role: Role, connects: bool = False) -> None:
    """Let all ranks wait for the last of them."""
    _exchange(script, MAIN, role, replace(_BARRIER, connects=connects))
    script.wait_exchanged(MAIN, COMM)


_BARRIER = ExchangeRequest(ExchangeKind.BARRIER, GroupKind.WORLD, 4)


def _register_args(mangled: str) -> tuple[Arg, ...]:
    return (
        Arg("void**", "modules", "0x27fbc460"),
        Arg("void const*", "hostFunction", f"{0x201200 + 8 * len(mangled):#x}"),
        Arg("char*", "deviceFunction", mangled),
        Arg("char const*", "deviceName", mangled),
        Arg("unsigned int", "threadLimit", "4294967295"),
    )


@functools.cache
def teardown(role: Role) -> Template:
    """Lay out the time after the last step."""
    script, chosen = role.script(), role.work
    script.begin_segment()
    script.enter(MAIN, "roctxRangePushA", MARKER_RANGE, text="shut down")
    script.copy(MAIN, "DH", _state_bytes(chosen))
    script.synchronize(MAIN)
    _barrier(script, role)
    for group in role.layout.communicators():
        name, args = destruction(group)
        script.call(MAIN, name, RCCL, 800_000, args)
    for slot, _ in _resident(role):
        script.allocate(MAIN, "hipFree", ("FREE", "REAL"), 0, slot)
    reserved = (Arg("void*", "devPtr", f"{address(_VIRTUAL_SLOT):#x}"),)
    script.call(MAIN, "hipMemUnmap", HIP, 12_000, reserved)
    script.allocate(MAIN, "hipMemAddressFree", ("FREE", "VIRTUAL"), 0, _VIRTUAL_SLOT)
    script.leave(MAIN)
    script.call(MAIN, "__hipUnregisterFatBinary", COMPILER, 7000, (Arg("void**", "modules", "0x27fbc460"),))
    return script.finish()


@functools.cache
def idle() -> Template:
    """Lay out the life of a process without GPU work: it starts, waits until anchor 1, and ends."""
    script = Script({})
    script.begin_segment()
    script.enter(MAIN, "hipSetDevice", HIP, (Arg("int", "deviceId", "0"),))
    script.call(MAIN, "hsa_init", HSA, 2_400_000)
    script.leave(MAIN)
    script.enter(MAIN, "roctxRangePushA", MARKER_RANGE, text="serve batches")
    script.wait_for_job(MAIN)
    script.leave(MAIN)
    return script.finish()


def _state_bytes(profile: WorkProfile) -> int:
    # Bounded, so that loading and saving never take longer than the steps of a small job.
    return min(profile.resident[-1], 64 << 20)


Launched = TypeVar("Launched", bound=Any)

_LAUNCHES = frozenset({"hipExtModuleLaunchKernel", "hipLaunchKernel"})
_SIZE = "nranks"


@frozen
class Recording:
    """The choice of recorded events, without the lost ones."""

    rccl: str
    planting: Planting

    def recorded(self, template: Template) -> Template:
        """Return the template with only the recorded rows; ops and lanes stay."""
        regions = template.regions
        lost = self._lost(Plant.LOST_LAUNCHES, [n for n, region in enumerate(regions) if region.name in _LAUNCHES])
        there = [n for n, region in enumerate(regions) if n not in lost and self._has_call(region)]
        if len(there) < len(regions):
            template = _keep_regions(template, there)
        if self.rccl == Rccl.CALLS:
            template = replace(template, regions=[_without_size(region) for region in template.regions])
        computing = [n for n, dispatch in enumerate(template.dispatches) if not dispatch.kernel.communicates]
        lost = self._lost(Plant.LOST_DISPATCHES, computing)
        dispatches = [dispatch for n, dispatch in enumerate(template.dispatches) if n not in lost]
        if Plant.LOST_GRAPH_KERNELS in self.planting:
            dispatches = [dispatch for dispatch in dispatches if dispatch.graph is None]
            template = replace(template, graphs=[])
        return replace(template, dispatches=dispatches)

    def _has_call(self, region: HostRegion) -> bool:
        if region.category in (HIP, COMPILER):
            return Plant.NO_HIP_TRACE not in self.planting
        return region.category != RCCL or self.rccl != Rccl.NONE

    def _lost(self, plant: Plant, rows: Sequence[int]) -> frozenset[int]:
        """Return the rows that a plant loses: every n-th, where n is its size; empty if it is not planted."""
        every = int(self.planting.size(plant, 0.0))
        return frozenset(rows[every // 2 :: every] if every else ())


def _keep_regions(template: Template, there: Sequence[int]) -> Template:
    """Return the template with only some regions; content of a removed region moves into the region around it."""
    numbers = {old: new for new, old in enumerate(there)}

    def around(region: int) -> int:
        while region >= 0 and region not in numbers:
            region = template.regions[region].parent
        return numbers.get(region, -1)

    def launched(rows: Sequence[Launched]) -> list[Launched]:
        return [replace(row, launcher=numbers.get(row.launcher, -1)) for row in rows]

    regions = [template.regions[n] for n in there]
    work = {name: launched(getattr(template, name)) for name in ("dispatches", "copies", "allocations", "graphs")}
    return replace(template, regions=[replace(region, parent=around(region.parent)) for region in regions], **work)


def _without_size(region: HostRegion) -> HostRegion:
    args = tuple(arg for arg in region.args if arg.name != _SIZE)
    return region if len(args) == len(region.args) else replace(region, args=args)
