"""The domain of each event category (HIP, HSA, RCCL, MARKERS …), and which events are markers.

Categories are rocprofiler-sdk's (`HIP_RUNTIME_API`) and rocprofiler-systems' (`rocm_hip_api`). A marker is an event of
the user (roctx), a range or a mark: `MARKER_CORE_RANGE_API` or `rocm_marker_api`. The view `markers` holds the same
patterns, which a test compares: stored views can't ask Python. Never looks at events.
"""

from __future__ import annotations

MARKER_PREFIXES = ("MARKER_", "rocm_marker")
"""Prefixes of categories of markers, case-sensitive."""


def is_marker(category: str | None) -> bool:
    """Whether events of this category are markers.

    >>> is_marker("MARKER_CORE_RANGE_API"), is_marker("rocm_marker_api"), is_marker("HIP_RUNTIME_API"), is_marker(None)
    (True, True, False, False)
    """
    return category is not None and category.startswith(MARKER_PREFIXES)


def marker_categories(strings: str = "rocpd_string") -> str:
    """Return the SELECT of the `category_id`s of markers.

    Args:
        strings: the rank's table of strings, quoted if necessary.

    >>> marker_categories()
    "SELECT id FROM rocpd_string WHERE string GLOB 'MARKER_*' OR string GLOB 'rocm_marker*'"
    """
    patterns = " OR ".join(f"string GLOB '{prefix}*'" for prefix in MARKER_PREFIXES)
    return f"SELECT id FROM {strings} WHERE {patterns}"


_RENAMED = {"MARKER": "MARKERS", "AMD": "SMI"}  # amd_smi, as rocm_smi
_FIXED = {"KERNELS", "MEMORY_COPIES", "MEMORY_ALLOCATIONS", "SCRATCH_MEMORY", "MARKERS"}
_SINGULAR = {"KERNEL_DISPATCH": "KERNELS", "MEMORY_COPY": "MEMORY_COPIES", "MEMORY_ALLOCATION": "MEMORY_ALLOCATIONS"}


_REPEATED = {
    "rocm_kernel_dispatch": "rocpd_kernel_dispatch",
    "rocm_memory_copy": "rocpd_memory_copy",
    "rocm_memory_allocate": "rocpd_memory_allocate",
}

OF_PROGRAMS = frozenset({"TORCH", "PYTHON"})
"""Domains of the program itself: operators and functions that call APIs."""

TORCH_OPERATOR = "TORCH_OPERATOR"
"""Category of operators of PyTorch: regions whose arguments are named as in PyTorch's own traces."""

PYTHON_FUNCTION = "PYTHON_FUNCTION"
"""Category of regions that are calls of Python functions, whose names are frames."""

TRACER, GPU_WAIT, GPU_ANNOTATION = "TRACER_OVERHEAD", "GPU_WAIT", "GPU_ANNOTATION"
"""Categories of regions that are no calls: overhead of the profiler, waits of a queue, ranges drawn on a GPU."""

_REPEATS = " OR ".join(
    f"string = '{category}' AND EXISTS (SELECT 1 FROM {base})" for category, base in _REPEATED.items()
)
"""Condition on a category: its regions repeat the rows of a table of operations.

Some versions of rocprofiler-systems also write each dispatch, copy and allocation as a region, with the same event and
times. This region is no call: it counts once, as the operation, and launches nothing.
"""

_AS_FRAMES = """(SELECT call_stack FROM rocpd_event WHERE category_id = S.id LIMIT 1) NOT LIKE '["%'"""
"""Condition on a category: each row is a frame. rocpd's own samples of the same category have their whole stack."""

SAMPLERS = "('timer_sampling', 'overflow_sampling')"
"""The possible categories of regions that are frames of sampled call stacks, for IN."""

SAMPLED_CATEGORIES = f"""
    SELECT S.id FROM rocpd_string S WHERE S.string IN {SAMPLERS} AND {_AS_FRAMES}
    ORDER BY S.string DESC LIMIT 1"""
"""SELECT of the category, in a rank, of regions that are frames of sampled call stacks.

rocprofiler-systems writes a sample as a region for each frame, the outermost first, each from the time of the previous
sample to its own time. Samples by overflow of a counter repeat the samples by time, and newer versions repeat the CPU
time of each sample as `cputime_sampling`, from 0 on: neither is added.
"""

_SAMPLED = f"S.string IN ('timer_sampling', 'overflow_sampling', 'cputime_sampling') AND {_AS_FRAMES}"
NOT_DRAWN = f"SELECT S.id FROM rocpd_string S WHERE {_SAMPLED} OR {_REPEATS}"
"""SELECT of the categories, in a rank, of regions that traces show in another form: as operations, or samples."""

_OTHERS = ", ".join(f"'{category}'" for category in (TRACER, GPU_WAIT, GPU_ANNOTATION))

NO_CALLS = f"{NOT_DRAWN} OR string IN ({_OTHERS})"
"""SELECT of the categories, in a rank, of regions that are no calls: they repeat rows, or only traces show them."""

IS_CALL = f"(NOT EXISTS ({NO_CALLS}) OR (E.category_id IN ({NO_CALLS})) IS NOT 1)"
"""Condition on `rocpd_event E` of a region: it is a call or a marker.

Few files hold other regions; in the rest, rows need no look-up.
"""


def domain_of(category: str | None) -> str:
    """Return the domain of an event category.

    >>> domain_of("HIP_RUNTIME_API_EXT"), domain_of("rocm_marker_api"), domain_of("MEMORY_COPY"), domain_of(None)
    ('HIP', 'MARKERS', 'MEMORY_COPIES', 'OTHER')
    """
    if not category:
        return "OTHER"
    if is_marker(category):
        return "MARKERS"
    upper = category.upper()
    upper = _SINGULAR.get(upper, upper)
    if upper in _FIXED:
        return upper
    first = upper.removeprefix("ROCM_").split("_")[0]
    return _RENAMED.get(first, first)


_TRACE_CATEGORIES = {
    **{name: f"{name.lower()}_api" for name in ("HIP", "HSA", "RCCL", "ROCDECODE", "ROCJPEG", "ROCSHMEM", "HIPFILE")},
    "MARKERS": "marker_api",
    "OMPT": "openmp",
    **{plural: singular.lower() for singular, plural in _SINGULAR.items()},
    "SCRATCH_MEMORY": "scratch_memory",
}
"""Domain -> the category that AMD's traces give its events."""


def trace_category(category: str) -> str:
    """Return the name of an event's category in AMD's Perfetto and OTF2 traces, or the category where they have none.

    >>> trace_category("HIP_RUNTIME_API_EXT"), trace_category("KERNEL_DISPATCH"), trace_category("rocm_smi")
    ('hip_api', 'kernel_dispatch', 'rocm_smi')
    """
    return _TRACE_CATEGORIES.get(domain_of(category), category)


def normalized(word: str) -> str:
    """Return a domain or category in the form for comparisons: in capitals, domains in their usual form.

    >>> normalized("marker"), normalized("HIP_RUNTIME_API"), normalized("memory_copy")
    ('MARKERS', 'HIP_RUNTIME_API', 'MEMORY_COPIES')
    """
    upper = word.upper()
    aliases = {"KERNEL": "KERNELS", "COPIES": "MEMORY_COPIES", "ALLOCATIONS": "MEMORY_ALLOCATIONS"}
    return (aliases | _RENAMED | _SINGULAR | {"SCRATCH": "SCRATCH_MEMORY"}).get(upper, upper)
