"""Owns what is said where data is missing: what is not recorded, and the options that record it."""

from __future__ import annotations


def _with(what: str, rocprofv3: str, ours: str) -> str:
    return f"{what}: record with `rocprofv3 {rocprofv3}` or `rocpd record --trace {ours}`"


KERNELS = _with("no kernels are recorded", "--kernel-trace", "kernel")
HIP = _with("calls of HIP that launch kernels are not recorded", "--hip-trace", "hip,kernel")
COPIES = _with("no copies are recorded", "--memory-copy-trace", "memcpy,hip")
ALLOCATIONS = _with("no allocations are recorded", "--memory-allocation-trace", "alloc,hip")
COMMUNICATION = (
    "no communication between ranks is recorded: open the files of all ranks, recorded with "
    "`rocprofv3 --kernel-trace` or `rocpd record --trace kernel`"
)
SIZES = _with("the sizes of collectives are not recorded", "--rccl-trace", "rccl,kernel")
STEPS = (
    'no steps are marked: mark them with roctxRangePush("step 5") (Python: rocpd.record.range) and record with '
    "`rocprofv3 --marker-trace` or `rocpd record`, or name their markers with --step-marker"
)
CLOCKS = (
    "no clocks of GPUs are sampled: record with `rocprof-sys-sample` and ROCPROFSYS_USE_AMD_SMI=ON (before ROCm 6.4 "
    "ROCPROFSYS_USE_ROCM_SMI)"
)
