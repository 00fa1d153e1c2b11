"""Owns the order of calls: how a rank sets up, makes a step and tears down. Knows neither times nor ids."""

from __future__ import annotations

import functools

from rocpd.schema.trace.events import MARKER_RANGE
from rocpd.simulator.kernels import KERNELS
from rocpd.simulator.profiles import PROFILE_TABLE, Layer, StepPhase, WorkProfile
from rocpd.simulator.samples import MARK, SMI_TRACKS
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
    WORKER,
    Script,
    address,
    stream_arg,
)
from rocpd.simulator.template import Arg, Template

SPECIAL_EVERY = 16
"""Of so many steps the first one also launches graphs and uses scratch and a workspace."""

_SCRATCH_BYTES = 304 * 32 * 64 * 160
_VIRTUAL_SLOT, _WORKSPACE_SLOT, _FIRST_TRANSIENT = 30, 31, 16
_WORKSPACE_BYTES = 128 << 20
_GRAPHS = (1, 2, 1)


@functools.cache
def step(profile: str, special: bool) -> Template:
    """Lay out one step of a profile."""
    script, chosen = Script(), PROFILE_TABLE[profile]
    last_reduce = -1
    for i, phase in enumerate(chosen.phases):
        script.begin_segment()
        if i == 0:
            _begin_step(script, chosen, special)
        if phase.reduce:
            last_reduce = script.segment
        final = i == len(chosen.phases) - 1
        _phase(script, phase, special and final, last_reduce)
        if final:
            _end_step(script, chosen, special)
        script.end_segment(phase.reduce, phase.waits)
    return script.template


def _begin_step(script: Script, profile: WorkProfile, special: bool) -> None:
    script.enter(MAIN, "roctxThreadRangeA", MARKER_RANGE, text="step {step}")
    script.mark(MAIN, "begin of step {step}")
    script.sample(MAIN, MARK, "step {step} on its way")
    for n, size in enumerate(profile.transient):
        script.allocate(MAIN, "hipMalloc", ("ALLOC", "REAL"), size, _FIRST_TRANSIENT + n)
    if special:
        script.allocate(MAIN, "hipMalloc", ("ALLOC", "REAL"), _WORKSPACE_BYTES, _WORKSPACE_SLOT)
        script.scratch(MAIN, "ALLOC", _SCRATCH_BYTES)


def _end_step(script: Script, profile: WorkProfile, special: bool) -> None:
    for n in range(len(profile.transient)):
        script.allocate(MAIN, "hipFree", ("FREE", "REAL"), 0, _FIRST_TRANSIENT + n)
    if special:
        script.allocate(MAIN, "hipFree", ("FREE", "REAL"), 0, _WORKSPACE_SLOT)
        script.scratch(MAIN, "FREE", _SCRATCH_BYTES)
    script.leave(MAIN)


def _phase(script: Script, phase: StepPhase, graphs: bool, last_reduce: int) -> None:
    thread = (MAIN, WORKER)[phase.thread]
    # Push/pop ranges nest on their thread, thread ranges are marked otherwise: both occur in real traces.
    script.enter(thread, "roctxRangePushA" if thread == MAIN else "roctxThreadRangeA", MARKER_RANGE, text=phase.text)
    for track in SMI_TRACKS:
        script.sample(thread, track)
    for route, size in phase.copies:
        if route[0] == "H":
            script.copy(LOADER, route, size)
    for layer in phase.layers:
        _layer(script, thread, layer)
    for exec_id in _GRAPHS if graphs else ():
        script.launch_graph(thread, exec_id, ("add", "sum", "add"))
    for route, size in phase.copies:
        if route[0] == "D":
            script.copy(thread, route, size)
    if phase.reduce:
        script.all_reduce(thread, phase.reduce)
    script.synchronize(thread)
    if phase.waits:
        script.wait_reduced(thread, last_reduce)
    script.leave(thread)


def _layer(script: Script, thread: int, layer: Layer) -> None:
    if layer.text:
        script.enter(thread, "roctxRangePushA", MARKER_RANGE, text=layer.text)
    for key in layer.work:
        name, _, stream = key.partition("@")
        script.launch(thread, name, COMPUTE_2 if stream else COMPUTE)
    if layer.text:
        script.leave(thread)


@functools.cache
def setup(profile: str) -> Template:
    """Lay out what happens before the first step."""
    script, chosen = Script(), PROFILE_TABLE[profile]
    script.begin_segment()
    script.call(MAIN, "__hipRegisterFatBinary", COMPILER, 9800, (Arg("void const*", "data", "0x208ac0"),))
    for kernel in KERNELS:
        if not kernel.module:
            script.call(MAIN, "__hipRegisterFunction", COMPILER, 900, _register_args(kernel.mangled))
    script.enter(MAIN, "roctxRangePushA", MARKER_RANGE, text="initialise")
    script.enter(MAIN, "hipSetDevice", HIP, (Arg("int", "deviceId", "0"),))
    script.call(MAIN, "hsa_init", HSA, 2_400_000)
    script.call(MAIN, "hsa_iterate_agents", HSA, 61_000)
    script.leave(MAIN)
    for stream in (COMPUTE, COMPUTE_2, COMM, COPY):
        script.enter(MAIN, "hipStreamCreateWithFlags", HIP, (stream_arg(stream),))
        script.call(MAIN, "hsa_queue_create", HSA, 310_000)
        script.leave(MAIN)
    script.allocate(MAIN, "hipMemAddressReserve", ("ALLOC", "VIRTUAL"), sum(chosen.resident), _VIRTUAL_SLOT)
    for slot, size in enumerate(chosen.resident):
        script.allocate(MAIN, "hipMalloc", ("ALLOC", "REAL"), size, slot)
    script.launch(MAIN, "fill", 0)
    script.copy(MAIN, "HD", _state_bytes(chosen))
    script.call(
        MAIN, "ncclCommInitRank", RCCL, 4_000_000, (Arg("int", "nranks", "{ranks}"), Arg("int", "myrank", "{rank}"))
    )
    script.synchronize(MAIN)
    script.leave(MAIN)
    script.end_segment(0, False)
    return script.template


def _register_args(mangled: str) -> tuple[Arg, ...]:
    return (
        Arg("void**", "modules", "0x27fbc460"),
        Arg("void const*", "hostFunction", f"{0x201200 + 8 * len(mangled):#x}"),
        Arg("char*", "deviceFunction", mangled),
        Arg("char const*", "deviceName", mangled),
        Arg("unsigned int", "threadLimit", "4294967295"),
    )


@functools.cache
def teardown(profile: str) -> Template:
    """Lay out what happens after the last step."""
    script, chosen = Script(), PROFILE_TABLE[profile]
    script.begin_segment()
    script.enter(MAIN, "roctxRangePushA", MARKER_RANGE, text="shut down")
    script.copy(MAIN, "DH", _state_bytes(chosen))
    script.call(MAIN, "ncclCommDestroy", RCCL, 800_000)
    script.synchronize(MAIN)
    for slot in range(len(chosen.resident)):
        script.allocate(MAIN, "hipFree", ("FREE", "REAL"), 0, slot)
    reserved = (Arg("void*", "devPtr", f"{address(_VIRTUAL_SLOT):#x}"),)
    script.call(MAIN, "hipMemUnmap", HIP, 12_000, reserved)
    script.allocate(MAIN, "hipMemAddressFree", ("FREE", "VIRTUAL"), 0, _VIRTUAL_SLOT)
    script.leave(MAIN)
    script.call(MAIN, "__hipUnregisterFatBinary", COMPILER, 7000, (Arg("void**", "modules", "0x27fbc460"),))
    script.end_segment(0, False)
    return script.template


def _state_bytes(profile: WorkProfile) -> int:
    # Bounded, so that loading and saving never outlast the steps of a small job.
    return min(profile.resident[-1], 64 << 20)
