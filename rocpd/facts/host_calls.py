"""Sorts the host's calls by their work while a GPU idles: waits, allocates, copies, loads code, launches.

By the names of the functions of HIP, HSA and RCCL; those of CUDA mean what HIP's of the same name do. Never looks at
events.
"""

from __future__ import annotations

import enum
import functools
import re

from rocpd.schema.rules.categories import domain_of


class HostCall(enum.StrEnum):
    """The kinds of calls."""

    LAUNCH = "launching"
    SYNCHRONISE = "synchronising call"
    ALLOCATE = "allocation or free"
    COPY = "blocking copy"
    MODULE = "module load"
    COMMUNICATION = "communication call"
    OTHER = "other call"


_HIP = (
    (HostCall.LAUNCH, r"hip\w*Launch\w*|hipMem(cpy|set)\w*Async|__hip(Push|Pop)CallConfiguration"),
    (HostCall.SYNCHRONISE, r"hip\w+Synchronize|hip(Event|Stream)Query|hipStreamWaitValue\w*"),
    (HostCall.COPY, r"hipMem(cpy|set)\w*"),
    (HostCall.ALLOCATE, r"hip(Ext|Host)?(Malloc|Free)\w*|hipHost(Alloc|Register|Unregister)|hipMem(Pool|Address)\w+"),
    (
        HostCall.ALLOCATE,
        r"hipMem(Create|Release|Map|Unmap|SetAccess|AllocPitch|AllocHost)|hipArray(3D)?(Create|Destroy)",
    ),
    (HostCall.MODULE, r"hipModule(Load|Unload)\w*|hiprtc\w+|hipLink\w+|hipLibrary\w+|__hip(Un)?Register\w+"),
)
_HSA = (
    (HostCall.SYNCHRONISE, r"hsa_(amd_)?signal_wait\w*"),
    (HostCall.COPY, r"hsa_(amd_)?memory_copy\w*|hsa_amd_memory_fill"),
    (HostCall.LAUNCH, r"hsa_amd_memory_async_copy\w*"),
    (HostCall.ALLOCATE, r"hsa_(amd_)?memory_(pool_)?(allocate|free)|hsa_amd_agents_allow_access|hsa_amd_vmem_\w+"),
    (HostCall.MODULE, r"hsa_(executable|code_object)\w+"),
)
_RULES = [(kind, re.compile(pattern)) for kind, pattern in (*_HIP, *_HSA)]


@functools.lru_cache(maxsize=4096)
def host_call(function: str | None, category: str | None) -> HostCall | None:
    """Return what a region does; None for other host work: markers, OpenMP and unknown categories.

    >>> host_call("hipMemcpyAsync", "HIP_RUNTIME_API"), host_call("hipMemcpy", "HIP_RUNTIME_API")
    (<HostCall.LAUNCH: 'launching'>, <HostCall.COPY: 'blocking copy'>)
    >>> host_call("hipMallocAsync", "HIP_RUNTIME_API_EXT").value, host_call("ncclAllReduce", "RCCL_API").value
    ('allocation or free', 'communication call')
    >>> host_call("step 3", "MARKER_CORE_RANGE_API") is None
    True
    """
    domain = domain_of(category)
    if domain == "RCCL":
        return HostCall.COMMUNICATION
    if domain not in ("HIP", "HSA", "CUDA"):
        return None
    name = in_hip(function)
    return next((kind for kind, pattern in _RULES if pattern.fullmatch(name)), HostCall.OTHER)


@functools.lru_cache(maxsize=4096)
def in_hip(function: str | None) -> str:
    """Return the function of HIP that a function of CUDA corresponds to; any other as it is.

    >>> in_hip("cudaMemcpyAsync"), in_hip("cuLaunchKernelEx"), in_hip("cudaLaunchKernelExC"), in_hip("hsa_init")
    ('hipMemcpyAsync', 'hipLaunchKernelEx', 'hipLaunchKernelExC', 'hsa_init')
    """
    return re.sub(r"^cu(da)?(?=[A-Z])", "hip", function or "")


_KERNEL = re.compile(r"hip(Ext|Module|ExtModule)?Launch(Cooperative)?Kernel(ExC?|_spt|_ptsz)?")
_GRAPH = re.compile(r"hipGraphLaunch(_spt)?")


def launches_kernel(function: str | None) -> bool:
    """Whether a call launches exactly one kernel.

    >>> launches_kernel("hipExtModuleLaunchKernel"), launches_kernel("hipGraphLaunch"), launches_kernel("hipMemcpy")
    (True, False, False)
    """
    return bool(_KERNEL.fullmatch(in_hip(function)))


def launches_graph(function: str | None) -> bool:
    """Whether a call launches all operations of a graph."""
    return bool(_GRAPH.fullmatch(in_hip(function)))
