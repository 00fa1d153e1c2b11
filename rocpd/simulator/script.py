"""Owns how API calls, GPU work and markers follow each other: a host cursor per thread, a device cursor per stream.

Builds templates call by call; which calls are made is up to `layout`.
"""

from __future__ import annotations

from rocpd.schema.trace.events import MARK
from rocpd.simulator.kernels import KERNELS, Kernel
from rocpd.simulator.template import Allocation, Arg, Copy, Dispatch, Graph, HostRegion, Sample, Template, Time

MAIN, WORKER, LOADER = range(3)
COMPUTE, COMPUTE_2, COMM, COPY = 1, 2, 3, 4
"""Streams; 0 is the default stream."""

HIP, COMPILER, RCCL = "HIP_RUNTIME_API", "HIP_COMPILER_API", "RCCL_API"
HSA, HSA_AMD = "HSA_CORE_API", "HSA_AMD_EXT_API"

_BY_KEY = {kernel.key: kernel for kernel in KERNELS}
_CALL_GAP = 350  # between two calls of a thread [ns]
_LATENCY = 1800  # from the end of a launch to the start of its kernel [ns]
_BANDWIDTH = {"HD": 51, "DH": 47, "DD": 1450}  # bytes per ns
_KINDS = {"HD": "HostToDevice", "DH": "DeviceToHost", "DD": "DeviceToDevice"}
# Every 11th kernel has counters: several names get some, and rows stay dominated by the trace.
_COUNTED_EVERY = 11
CALL_JITTER, KERNEL_JITTER = 0.45, 0.16


def stream_arg(stream: int) -> Arg:
    """Return the argument that names a stream, as the profiler annotates it."""
    value = f"{0x2B81C400 + 0x240 * stream:#x}" if stream else "0"
    return Arg("ihipStream_t*", "stream", value, f'{{"stream_id": {stream}}}')


def _dim(size: tuple[int, int, int]) -> str:
    return f"{{z={size[2]}, y={size[1]}, x={size[0]}}}"


class Script:
    """A template in the making."""

    def __init__(self) -> None:
        self.template = Template()
        self._cursor: dict[int, Time] = {}
        self._free: dict[int, int] = {}
        self._open: dict[int, list[int]] = {}
        self._markers: dict[int, list[str]] = {}

    @property
    def segment(self) -> int:
        """Index of the segment being written."""
        return len(self.template.nominal)

    def begin_segment(self) -> None:
        """Set all cursors to the start of the next segment."""
        self._cursor = {}
        self._free = {}

    def end_segment(self, reduce: int, waits: bool) -> None:
        """Close the segment: what it takes at stretch 1 is now known."""
        here = [t.fixed + t.scaled for t in self._cursor.values() if t.anchor == 3 * self.segment]
        self.template.nominal.append(max([*here, *self._free.values()]) + 1000)
        self.template.reduce.append(reduce)
        self.template.waits.append(waits)

    def now(self, thread: int) -> Time:
        """Return the host time that `thread` has reached."""
        return self._cursor.setdefault(thread, Time(3 * self.segment, 2000))

    def enter(self, thread: int, name: str, category: str, args: tuple[Arg, ...] = (), text: str | None = None) -> int:
        """Open a region; later regions of the thread lie inside it. Returns its index."""
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
        """Make a call of about `ns` nanoseconds that encloses nothing. Returns its index."""
        index = self.enter(thread, name, category, args)
        region = self.template.regions[index]
        self._cursor[thread] = region.start.later(ns)
        self.leave(thread)
        region.jitter = CALL_JITTER
        return index

    def mark(self, thread: int, text: str) -> None:
        """Set a zero-length mark."""
        index = self.call(thread, "roctxMarkA", MARK, 0)
        self.template.regions[index].text = text

    def sample(self, thread: int, track: int, text: str | None = None) -> None:
        """Take a sample where the thread is."""
        self.template.samples.append(Sample(track, self.now(thread), text))

    def launch(self, thread: int, key: str, stream: int) -> None:
        """Launch a kernel on a stream."""
        kernel = _BY_KEY[key]
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
        counted = len(self.template.dispatches) % _COUNTED_EVERY == 2
        self._run(thread, kernel, stream, launcher, counted)

    def _run(
        self,
        thread: int,
        kernel: Kernel,
        stream: int,
        launcher: int,
        counted: bool,
        graph: tuple[int, int] | None = None,
    ) -> Dispatch:
        start = max(self._free.get(stream, 0), self.now(thread).fixed + _LATENCY)
        finish = start + int(kernel.micros * 1000)
        self._free[stream] = finish + 400
        at, marker = 3 * self.segment, self.marker(thread)
        times = (Time(at, 0, start), Time(at, 0, finish))
        dispatch = Dispatch(kernel.key, stream, thread, launcher, marker, *times, KERNEL_JITTER, counted, graph)
        self.template.dispatches.append(dispatch)
        return dispatch

    def marker(self, thread: int) -> str:
        """Return the text of the innermost open marker that is the same in every step, else the empty text."""
        texts = [t for t in self._markers.get(thread, []) if "{" not in t]
        return texts[-1] if texts else ""

    def launch_graph(self, thread: int, exec_id: int, keys: tuple[str, ...]) -> None:
        """Launch an executable graph of several kernels by one call."""
        launcher = self.call(thread, "hipGraphLaunch", HIP, 9000, (stream_arg(COMPUTE),))
        runs = [self._run(thread, _BY_KEY[k], COMPUTE, launcher, False, (exec_id, n)) for n, k in enumerate(keys)]
        self.template.graphs.append(Graph(exec_id, len(runs), thread, launcher, runs[0].start, runs[-1].end))

    def copy(self, thread: int, route: str, size: int) -> None:
        """Copy `size` bytes; `route` is HD, DH or DD. Copies from the device wait for what computes."""
        args = (
            Arg("void*", "dst", "0x7f2a40000000"),
            Arg("void const*", "src", "0x7f2b80000000"),
            Arg("unsigned long", "sizeBytes", str(size)),
            Arg("hipMemcpyKind", "kind", _KINDS[route]),
            stream_arg(COPY),
        )
        launcher = self.enter(thread, "hipMemcpyAsync", HIP, args)
        self.call(thread, "hsa_amd_memory_async_copy_on_engine", HSA_AMD, 3900)
        self.leave(thread)
        ready = max(self._free.values(), default=0) if route[0] == "D" else self._free.get(COPY, 0)
        start = max(ready, self.now(thread).fixed + _LATENCY)
        finish = start + 1900 + size // _BANDWIDTH[route]
        self._free[COPY] = finish + 400
        at = 3 * self.segment
        times = (Time(at, 0, start), Time(at, 0, finish))
        self.template.copies.append(Copy(route, size, thread, launcher, self.marker(thread), *times))

    def allocate(self, thread: int, call: str, kind: tuple[str, str], size: int, slot: int) -> None:
        """Allocate or free by a call; `kind` is type and level, such as ("ALLOC", "REAL")."""
        args: tuple[Arg, ...]
        if kind[0] == "ALLOC":
            args = (Arg("void**", "ptr", "0x7ffec98be478"), Arg("unsigned long", "size", str(size)))
        else:
            args = (Arg("void*", "ptr", f"{address(slot):#x}"),)
        launcher = self.enter(thread, call, HIP, args)
        start = self.now(thread).later(2000)
        self._cursor[thread] = start.later(21000)
        self.leave(thread)
        moved = size if kind[0] == "ALLOC" else 0
        self.template.allocations.append(Allocation(*kind, moved, slot, thread, launcher, start, start.later(18000)))

    def scratch(self, thread: int, operation: str, size: int) -> None:
        """Allocate or free scratch, which the runtime does without any call."""
        start = self.now(thread)
        self._cursor[thread] = start.later(7000)
        sized = size if operation == "ALLOC" else 0
        self.template.allocations.append(
            Allocation(operation, "SCRATCH", sized, 0, thread, -1, start, start.later(6000))
        )

    def all_reduce(self, thread: int, size: int) -> None:
        """Start an all-reduce; it runs from this rank's arrival until the last rank has arrived and it is done."""
        args = (
            Arg("void const*", "sendbuff", "0x7f2a40000000"),
            Arg("void*", "recvbuff", "0x7f2a40000000"),
            Arg("unsigned long", "count", str(max(1, size // 2))),
            Arg("ncclDataType_t", "datatype", "ncclBfloat16" if size > 8 else "ncclFloat64"),
            Arg("ncclRedOp_t", "op", "ncclSum"),
            stream_arg(COMM),
        )
        self.enter(thread, "ncclAllReduce", RCCL, args)
        launcher = self.call(thread, "hipExtLaunchKernel", HIP, 5600, _launch_args(_BY_KEY["nccl"], COMM))
        self.leave(thread)
        start, end = (Time(3 * self.segment + n) for n in (1, 2))
        self.template.dispatches.append(Dispatch("nccl", COMM, thread, launcher, self.marker(thread), start, end, 0.0))

    def synchronize(self, thread: int) -> None:
        """Wait until all launched work of this segment but the all-reduce is done."""
        end = max([*self._free.values(), self.now(thread).fixed + 3000])
        self._wait(thread, COMPUTE, Time(3 * self.segment, 0, end))

    def wait_reduced(self, thread: int, segment: int) -> None:
        """Wait for the all-reduce of `segment`; those before it are then done too."""
        self._wait(thread, COMM, Time(3 * segment + 2))

    def _wait(self, thread: int, stream: int, until: Time) -> None:
        self.enter(thread, "hipStreamSynchronize", HIP, (stream_arg(stream),))
        self.enter(thread, "hsa_signal_wait_scacquire", HSA)
        self._cursor[thread] = until.later(300)
        self.leave(thread)
        self.leave(thread)


def address(slot: int) -> int:
    """Return the device address of allocation `slot`."""
    return 0x7F2A40000000 + (slot << 34)


def _launch_args(kernel: Kernel, stream: int) -> tuple[Arg, ...]:
    return (
        Arg("void const*", "function_address", f"{0x208AC0 + 64 * len(kernel.mangled):#x}"),
        Arg("rocprofiler_dim3_t", "numBlocks", _dim(_blocks(kernel))),
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


def _blocks(kernel: Kernel) -> tuple[int, int, int]:
    x, y, z = (max(1, grid // block) for grid, block in zip(kernel.grid, kernel.block, strict=True))
    return x, y, z
