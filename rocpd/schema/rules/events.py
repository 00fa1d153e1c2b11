"""The tables that hold events, and their kinds: with start and end or one time, GPU work, parts of other events.

Valid times are a start of at least 1, and an end that is not before it, both 64-bit whole numbers: profilers leave 0
or NULL where a time is unknown; damaged files hold texts, blobs and fractions. The runtime allocates scratch memory
itself, without an address: it is counted separately from allocations of programs. The view `scratch_memory` and the
trace writer repeat this rule, which a test compares.

The agent of a kernel is the agent that ran it. A copy belongs to the GPU that it reaches, else to the GPU that it
leaves, else to its destination: there it takes time from other work, and there people look for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocpd.base import Flags, Ints

INVALID = "invalid timestamps (start 0, or end before start)"
"""The words for invalid times in messages."""

LAST = (1 << 63) - 1
"""The latest time [ns]."""

# SQLite sorts texts and blobs above all numbers: BETWEEN refuses them and needs no typeof.
VALID_START = f"start BETWEEN 1 AND {LAST}"
"""SQL condition on events with a valid start; their end may be invalid."""

VALID_TIMES = f'{VALID_START} AND "end" BETWEEN start AND {LAST}'
"""SQL condition on events with a valid start and end."""


def valid_times_of(alias: str = "") -> str:
    """Return `VALID_TIMES` in the form of readable views, for the columns of an alias, such as `M`."""
    of = f"{alias}." if alias else ""
    return f'{of}start > 0 AND {of}"end" BETWEEN {of}start AND {LAST}'


VALID_POINT = f'"timestamp" BETWEEN 1 AND {LAST}'
"""SQL condition on samples with a valid time."""


def valid_start(start: Ints) -> Flags:
    """Return whether each start [ns] is valid; the placeholder for NULL is negative, hence invalid."""
    return start > 0


def valid_times(start: Ints, end: Ints) -> Flags:
    """Return whether each event has valid times, as `VALID_TIMES` does in SQL.

    >>> import numpy as np
    >>> valid_times(np.array([5, 5, 5, 0, -7]), np.array([9, 5, 4, 9, 9])).tolist()
    [True, True, False, False, False]
    """
    return valid_start(start) & (end >= start)


SCRATCH = "SCRATCH"
"""The `level` of scratch memory."""

IS_SCRATCH = f"level = '{SCRATCH}'"
"""SQL condition on rows of scratch memory."""

NOT_SCRATCH = f"level IS NOT '{SCRATCH}'"
"""SQL condition on all other rows, including those without a level."""

ALLOCATING = frozenset({"ALLOC", "REALLOC"})
"""Operations (`type`) after which memory is held; the other operations free it."""


OPERATIONS = ("rocpd_kernel_dispatch", "rocpd_memory_copy")
"""GPU operations: kernels and copies."""

SPANS = (*OPERATIONS, "rocpd_region", "rocpd_memory_allocate", "rocpd_graph_launch")
"""Events with `start` and `end`."""

POINTS = ("rocpd_sample",)
"""Events with a single `timestamp`."""

LAUNCHED = (*OPERATIONS, "rocpd_graph_launch")
"""GPU work that a call launches to run later."""

EVENTS = (*SPANS, *POINTS)
"""All tables of events; each row may refer to a row of `rocpd_event`."""

BELONGING = ("rocpd_arg", "rocpd_pmc_event")
"""Arguments and counter values: rows that belong to an event and count when it counts."""

PC_SAMPLES = ("rocpd_gpu_pc_sample", "rocpd_pc_sampling")
"""Samples of program counters: rows with a `timestamp` that belong to a dispatch by its `dispatch_id`."""

SENTINELS, SENTINEL_OF_16_BITS = frozenset({4294967295.0, 18446744073709551615.0}), 65535.0
"""Sampled values that stand for no value: the largest numbers of a type."""

OWN_SAMPLE = "(N.string = P.name OR N.string NOT IN (SELECT name FROM rocpd_info_pmc))"
"""SQL: a value P of a sample's event belongs to its track N; a track named like a value holds only that value."""

NO_SENTINEL = f"V.value NOT IN ({SENTINEL_OF_16_BITS}, {', '.join(map(str, sorted(SENTINELS)))})"
"""SQL: the value V of a clock is valid."""

MEASURED = frozenset(("rocpd_memory_access", "rocpd_basic_block", "rocpd_memory_page", "rocpd_memory_message"))
"""Tables of values measured inside of instrumented kernels: rows without times, in files without events."""

ON_STREAMS = (*OPERATIONS, "rocpd_memory_allocate")
"""Events of a HIP stream, with `stream_id`."""

ON_AGENTS = ("rocpd_kernel_dispatch", "rocpd_memory_allocate", "rocpd_graph_launch")
"""Events of the agent in `agent_id`; for copies see `rocpd.schema.rules.events`."""

DOMAIN_TABLES = {
    "KERNELS": ("rocpd_kernel_dispatch", "1"),
    "MEMORY_COPIES": ("rocpd_memory_copy", "1"),
    "MEMORY_ALLOCATIONS": ("rocpd_memory_allocate", NOT_SCRATCH),
    "SCRATCH_MEMORY": ("rocpd_memory_allocate", IS_SCRATCH),
}
"""Domains that follow from the table, regardless of the event's category: table and SQL condition on its rows."""

CATEGORY_TABLES = ("rocpd_region", "rocpd_graph_launch", *POINTS)
"""Events whose domain follows from the event's category."""


GPUS = "SELECT id FROM rocpd_info_agent WHERE type = 'GPU' AND id IS NOT NULL"
"""SQL: the GPUs among the agents of a rank, with table names without suffix."""


def copy_agent_sql(gpus: str = GPUS) -> str:
    """Return the SQL expression for the agent of a copy.

    Args:
        gpus: ids of GPUs, as the text between the parentheses of IN.
    """
    to, source = "dst_agent_id", "src_agent_id"
    return " ".join(map(str.strip, _chosen(f"{to} IN ({gpus})", to, f"{source} IN ({gpus})", source)))


def _chosen(reaches_gpu: str, to: str, leaves_gpu: str, source: str) -> tuple[str, ...]:
    """Return the lines of the expression for the agent of a copy."""
    return "CASE", f"    WHEN {reaches_gpu} THEN {to}", f"    WHEN {leaves_gpu} THEN {source}", f"    ELSE {to}", "END"


COPY_AGENT = "\n".join(_chosen("D.type = 'GPU'", "M.dst_agent_id", "S.type = 'GPU'", "M.src_agent_id"))
"""SQL: the agent of a copy `M`, with its destination joined as `D` and its source as `S`."""


def copy_agents(to: Ints, source: Ints, gpus: Iterable[int]) -> Ints:
    """Return the agents of copies, as `copy_agent_sql` does in SQL.

    >>> import numpy as np
    >>> host, gpu, other = 0, 1, 2
    >>> copy_agents(np.array([gpu, host, other, host]), np.array([host, gpu, gpu, host]), [gpu, other]).tolist()
    [1, 1, 2, 0]
    """
    import numpy as np

    ids = np.fromiter(gpus, np.int64)
    return np.where(np.isin(source, ids) & ~np.isin(to, ids), source, to)
