"""The small job that golden files and comparisons of formats are about: two ranks with every kind of event."""

from __future__ import annotations

from tests.build import TraceBuilder
from tests.convert.conftest import BASE


def small_job() -> tuple[TraceBuilder, TraceBuilder]:
    """Return two ranks with equal pids on two hosts, clocks apart."""
    return _rank(0, "node0", BASE), _rank(1, "node1", BASE + 7_000_000_000)


def _rank(number: int, host: str, base: int) -> TraceBuilder:
    return (
        TraceBuilder(number, host=host)
        .region("roctxRangePushA", base, base + 900, message='step "1", über')
        .region("hipLaunchKernel", base + 10, base + 60, stack=7)
        .arg("stream", "0x0")
        .kernel("gemm<float>", base + 100, base + 300, stack=7, region='step "1", über', grid=(4096, 2, 1))
        .counter("SQ_WAVES", 64.0)
        .counter("GRBM_COUNT", 0.1, units="cycles")
        .region("hipMemcpyAsync", base + 70, base + 90, stack=8)
        .copy(base + 150, base + 400, stack=8, size=1 << 20)
        .kernel("reduce", base + 250, base + 350, stack=9)
        .kernel("unnamed", base + 500, base + 500, stack=0, tid=None)
        .region("hipMalloc", base + 420, base + 440)
        .alloc(base + 421, base + 439, size=4096, address=0xABC0)
        .alloc(base + 450, base + 455, kind="FREE", size=0, address=0xABC0)
        .alloc(base + 460, base + 470, level="SCRATCH", size=512)
        .region("hsa_init", base + 5, base + 8, category="HSA_CORE_API", tid=77)
        .region("ncclAllReduce", base + 600, base + 700, category="RCCL_API")
        .sample("roctxMarkA", base + 800, message="here")
        .sample("GPU power", base + 810, category="rocm_smi")
        .counter("watt", 300.5, units="W")
        .graph_launch(base + 820, base + 830, graph=3, kernels=2)
    )
