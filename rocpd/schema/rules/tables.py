"""Owns which tables hold events, and what kind: with start and end or a single time, work of GPUs, parts of others."""

from __future__ import annotations

from rocpd.schema.rules.memory import IS_SCRATCH, NOT_SCRATCH

OPERATIONS = ("rocpd_kernel_dispatch", "rocpd_memory_copy")
"""GPU operations: kernels and copies."""

SPANS = (*OPERATIONS, "rocpd_region", "rocpd_memory_allocate", "rocpd_graph_launch")
"""Events with `start` and `end`."""

POINTS = ("rocpd_sample",)
"""Events with a single `timestamp`."""

LAUNCHED = (*OPERATIONS, "rocpd_graph_launch")
"""GPU work that a call launches to run later."""

EVENTS = (*SPANS, *POINTS)
"""All events; each row may lead to one of `rocpd_event`."""

BELONGING = ("rocpd_arg", "rocpd_pmc_event")
"""Arguments and counter values: rows that belong to an event and count when it counts."""

PC_SAMPLES = ("rocpd_gpu_pc_sample", "rocpd_pc_sampling")
"""Samples of program counters: rows with a `timestamp` that belong to a dispatch by its `dispatch_id`."""

MEASURED = frozenset(("rocpd_memory_access", "rocpd_basic_block", "rocpd_memory_page", "rocpd_memory_message"))
"""What runs with instrumentation measured inside of kernels: rows without times, in files without events."""

ON_STREAMS = (*OPERATIONS, "rocpd_memory_allocate")
"""Events of a HIP stream, with `stream_id`."""

ON_AGENTS = ("rocpd_kernel_dispatch", "rocpd_memory_allocate", "rocpd_graph_launch")
"""Events of the agent in `agent_id`; for copies see `rocpd.schema.rules.agents`."""

DOMAIN_TABLES = {
    "KERNELS": ("rocpd_kernel_dispatch", "1"),
    "MEMORY_COPIES": ("rocpd_memory_copy", "1"),
    "MEMORY_ALLOCATIONS": ("rocpd_memory_allocate", NOT_SCRATCH),
    "SCRATCH_MEMORY": ("rocpd_memory_allocate", IS_SCRATCH),
}
"""Domains that a table says by itself, whatever the category of the event: table and SQL condition on its rows."""

CATEGORY_TABLES = ("rocpd_region", "rocpd_graph_launch", *POINTS)
"""Events whose domain is that of the event's category."""
