"""Owns the names of summaries and domains that the command line offers; imports nothing, so that help is quick.

`SUMMARIES` is the table of contents: adding an analysis touches its file, its row here and its test.
"""

from __future__ import annotations

from dataclasses import dataclass

REGION_DOMAINS = ("HIP", "HSA", "RCCL", "MARKERS", "ROCDECODE", "ROCJPEG", "OMPT", "KFD")
"""Domains of regions that `--region-categories` knows, besides whatever a file holds."""

GPU_DOMAINS = {
    "KERNELS": "kernels_summary",
    "MEMORY_COPIES": "memory_copies_summary",
    "MEMORY_ALLOCATIONS": "memory_allocations_summary",
    "SCRATCH_MEMORY": "scratch_memory_summary",
}
"""Domains that are always summarised, with the name of their table; region domains are `<domain>_summary`."""


@dataclass(frozen=True)
class Analysis:
    """One row of the table of contents.

    Args:
        place: module and function, as `rocpd.summary.totals:kernels`; it takes a `Reading` and gives Summaries.
        tables: names of the tables that it gives; the first is the analysis' own name.
        help: one line.
    """

    place: str
    tables: tuple[str, ...]
    help: str


SUMMARIES: dict[str, Analysis] = {
    analysis.tables[0]: analysis
    for analysis in (
        Analysis("rocpd.summary.totals:kernels", ("kernels",), "time by kernel, with median, p95 and p99"),
        Analysis("rocpd.summary.totals:copies", ("copies",), "copies by direction: time, bytes, bandwidth"),
        Analysis("rocpd.summary.totals:allocations", ("allocations",), "allocations and frees by operation and level"),
        Analysis(
            "rocpd.summary.memory:memory",
            ("memory", "memory-curve"),
            "memory held: peak per agent, and its course over time",
        ),
        Analysis("rocpd.summary.totals:scratch", ("scratch",), "scratch memory by operation"),
        Analysis("rocpd.summary.totals:api", ("api",), "API calls by domain and function"),
        Analysis("rocpd.summary.totals:markers", ("markers",), "marker ranges by message"),
        Analysis("rocpd.summary.totals:domains", ("domains",), "time by domain: kernels, copies, HIP, HSA, RCCL …"),
        Analysis(
            "rocpd.summary.categories:categories",
            ("categories", "unmatched"),
            "kernels by what they do: GEMM, communication, attention …; names that no pattern knows",
        ),
        Analysis(
            "rocpd.summary.gpu_time:gpu_time",
            ("gpu-time", "gaps", "largest-gaps", "overlap"),
            "busy and idle time of agents, gaps, overlap of compute, communication and copies",
        ),
        Analysis(
            "rocpd.summary.ranks:ranks",
            ("ranks", "imbalance", "collectives", "stragglers", "waits", "steps", "phases", "heat"),
            "balance of ranks, who waits for whom in collectives, spread of steps, rank × time",
        ),
        Analysis(
            "rocpd.summary.launch:launch",
            ("launch", "bottleneck"),
            "delay from launch to start; how long GPUs wait for the CPU",
        ),
        Analysis(
            "rocpd.summary.calls:calls",
            ("calls",),
            "tree of regions per thread with CPU time and the GPU time that they launched",
        ),
        Analysis(
            "rocpd.summary.counters:counters",
            ("counters", "counters-wide"),
            "hardware counters per kernel",
        ),
        Analysis("rocpd.summary.op_trace:op_trace", ("op-trace",), "every GPU operation in order, with gaps"),
        Analysis(
            "rocpd.summary.variability:variability",
            ("variability", "variability-total"),
            "spread of each kernel, in the context of those before it; time above the fastest instance",
        ),
    )
}
"""All analyses that are built in, in the order in which `rocpd summary all` gives them."""

TABLES: dict[str, str] = {table: name for name, analysis in SUMMARIES.items() for table in analysis.tables}
"""Table -> the analysis that gives it."""

TOTALS = ("kernels", "copies", "allocations", "scratch", "api", "markers", "domains")
"""What `rocpd summary --by …` gives when nothing is named."""
