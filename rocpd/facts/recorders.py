"""Hints on profiler options that record a kind of event, for traces that lack it.

The importer that read a trace identifies its profiler; a trace without importer is of rocprofv3, or of a profiler that
writes the same format. For events that a profiler can't record there is no hint: then they are only said to be missing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rocpd.base import frozen


class Recordable(enum.Enum):
    """Kinds of events that a profiler may record."""

    KERNELS = enum.auto()
    CALLS = enum.auto()
    COPIES = enum.auto()
    ALLOCATIONS = enum.auto()
    SCRATCH = enum.auto()
    COLLECTIVES = enum.auto()
    STEPS = enum.auto()
    CLOCKS = enum.auto()
    COUNTERS = enum.auto()
    PC_SAMPLES = enum.auto()
    LESS = enum.auto()


@frozen
class TraceProfiler:
    """A profiler.

    Args:
        name: its usual name.
        reference: page on its options.
        how: kind of event -> advice to record it, or to record less: `record with …`.
    """

    name: str
    reference: str
    how: Mapping[Recordable, str]

    def missing(self, what: str, recordable: Recordable) -> str:
        """Return a sentence with the missing data, and the way to record it if the profiler can.

        >>> RECORDERS["rpd"].missing("no clocks are sampled", Recordable.CLOCKS)
        'no clocks are sampled'
        """
        how = self.how.get(recordable)
        return f"{what}: {how}" if how else what


_WORK = (Recordable.KERNELS, Recordable.CALLS, Recordable.COPIES)


def _with(rocprofv3: str, ours: str) -> str:
    return f"record with `rocprofv3 {rocprofv3}` or `rocpd record --trace {ours}`"


ROCPROFV3 = TraceProfiler(
    "rocprofv3",
    "https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html",
    {
        Recordable.KERNELS: _with("--kernel-trace", "kernel"),
        Recordable.CALLS: _with("--hip-trace --kernel-trace", "hip,kernel"),
        Recordable.COPIES: _with("--memory-copy-trace", "memcpy,hip"),
        Recordable.ALLOCATIONS: _with("--memory-allocation-trace", "alloc,hip"),
        Recordable.SCRATCH: "record with `rocprofv3 --scratch-memory-trace`",
        Recordable.COLLECTIVES: _with("--rccl-trace", "rccl,kernel"),
        Recordable.STEPS: 'mark them with roctxRangePush("step 5") (Python: rocpd.record.range) and record with '
        "`rocprofv3 --marker-trace` or `rocpd record`",
        Recordable.CLOCKS: "record with `rocprof-sys-sample` and ROCPROFSYS_USE_AMD_SMI=ON (before ROCm 6.4 "
        "ROCPROFSYS_USE_ROCM_SMI)",
        Recordable.COUNTERS: "`rocpd counters` says which ones `rocprofv3 --pmc` has to collect",
        Recordable.PC_SAMPLES: "record with `rocprofv3 --pc-sampling-beta-enabled --pc-sampling-method stochastic "
        "--output-format json`",
        Recordable.LESS: "record fewer kinds of events at a time (`rocprofv3 --kernel-trace --hip-trace` instead of "
        "`--sys-trace`)",
    },
)
"""The profiler of ROCm."""

_TORCH = "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"

_KINETO = TraceProfiler(
    "torch.profiler",
    "https://docs.pytorch.org/docs/stable/profiler.html",
    {
        **dict.fromkeys(_WORK, f"record with `{_TORCH}`"),
        Recordable.ALLOCATIONS: "record with `torch.profiler.profile(profile_memory=True)`",
        Recordable.COLLECTIVES: "record with ProfilerActivity.CPU and a newer PyTorch: its collectives carry sizes and "
        "groups",
        Recordable.STEPS: "call `profiler.step()` after each step, with `torch.profiler.schedule(wait=1, warmup=1, "
        "active=10)`",
        Recordable.LESS: "record less at a time: without `with_stack`, `record_shapes` and `profile_memory`, and fewer "
        "steps (`torch.profiler.schedule`)",
    },
)

_NSYS = TraceProfiler(
    "nsys",
    "https://docs.nvidia.com/nsight-systems/UserGuide/index.html",
    {
        **dict.fromkeys(_WORK, "record with `nsys profile --trace=cuda`"),
        Recordable.ALLOCATIONS: "record with `nsys profile --trace=cuda --cuda-memory-usage=true`",
        Recordable.COLLECTIVES: "record with `nsys profile --trace=cuda,nvtx`: a newer NCCL marks its calls",
        Recordable.STEPS: 'mark them with nvtxRangePush("step 5") (PyTorch: torch.cuda.nvtx.range) and record with '
        "`nsys profile --trace=cuda,nvtx`",
        Recordable.LESS: "record fewer kinds of events at a time (`nsys profile --trace=cuda --sample=none "
        "--cpuctxsw=none`)",
    },
)

_RPD = TraceProfiler(
    "RPD",
    "https://github.com/ROCm/rocmProfileData",
    {Recordable.STEPS: 'mark them with roctxRangePush("step 5"), which `runTracer.sh` records'},
)

_NOTHING = TraceProfiler("", "https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/", {})
"""An unknown profiler, or several."""

RECORDERS: Mapping[str, TraceProfiler] = MappingProxyType(
    {
        "": ROCPROFV3,
        "rocprofv3-json": ROCPROFV3,
        "rocprofv3-csv": ROCPROFV3,
        "chrome": ROCPROFV3,
        "kineto": _KINETO,
        "nsys": _NSYS,
        "rpd": _RPD,
    }
)
"""Name of the importer, empty for files that none made -> the profiler whose traces it reads."""


def recorder_of(importers: Iterable[str]) -> TraceProfiler:
    """Return the profiler of traces that these importers read; one without name and hints if there are several.

    >>> recorder_of(["kineto", "kineto"]).name, recorder_of(["", "rocprofv3-csv"]).name, recorder_of(["rpd", ""]).how
    ('torch.profiler', 'rocprofv3', {})
    """
    recorders = {id(recorder): recorder for recorder in (RECORDERS.get(name, _NOTHING) for name in importers)}
    return next(iter(recorders.values())) if len(recorders) == 1 else _NOTHING
