"""What profilers above CUPTI and roctracer (PyTorch, Nsight Systems) say, in the words of rocpd files.

Owns categories of API calls, directions of copies, and how GPUs that a driver counts from 0 become agents.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from rocpd.schema.trace.infos import AgentInfo

HOST = AgentInfo(0, type="CPU", absolute_index=0, logical_index=0, type_index=0, name="CPU")
"""The agent at the other end of copies from and to a host."""

MEMORY_SET = "MEMORY_SET"
"""Category and name of operations that fill memory: they lie with the copies, without a source."""

_COPIES = {
    "H": ("HOST", True),
    "D": ("DEVICE", False),
    "A": ("DEVICE", False),  # CUDA arrays lie on the device
    "P": ("DEVICE", False),  # of a peer
}
_NOTHING: Mapping[str, object] = MappingProxyType({})
_API = (("hip", "HIP_RUNTIME_API"), ("hsa_", "HSA_CORE_API"), ("cuda", "CUDA_RUNTIME_API"), ("cu", "CUDA_DRIVER_API"))


def agent_id(device: int) -> int:
    """Return the id of the agent that is GPU number `device`; the host comes first."""
    return device + 1


def gpu(
    device: int,
    name: str | None = None,
    memory: int | None = None,
    facts: Mapping[str, object] = _NOTHING,
    vendor: str | None = None,
) -> AgentInfo:
    """Return the agent that is a GPU.

    Args:
        device: its number, from 0.
        name: product.
        memory: of its own [bytes].
        facts: what else is known, such as `cu_count`, by the names of rocprofv3 or else of the source; None: unknown.
        vendor: who made it; None: as its name says.
    """
    known = {key: value for key, value in facts.items() if value is not None}
    if memory is not None:
        known["mem_banks"] = [{"heap_type": 1, "size_in_bytes": memory}]
    vendor = vendor or next((word for word in ("AMD", "NVIDIA") if word.lower() in (name or "").lower()), None)
    number = agent_id(device)
    return AgentInfo(
        number,
        type="GPU",
        absolute_index=number,
        logical_index=number,
        type_index=device,
        name=name or f"GPU {device}",
        product_name=name,
        vendor_name=vendor,
        extdata=json.dumps(known),
    )


@functools.lru_cache(maxsize=4096)
def api_category(function: str) -> str:
    """Return the category of a call by the name of its function.

    >>> api_category("hipLaunchKernel"), api_category("cuLaunchKernelEx"), api_category("cudaFree")
    ('HIP_RUNTIME_API', 'CUDA_DRIVER_API', 'CUDA_RUNTIME_API')
    """
    return next((category for start, category in _API if function.startswith(start)), "RUNTIME_API")


@functools.lru_cache(maxsize=256)
def copy_direction(kind: str) -> tuple[str, bool | None, bool | None]:
    """Return the name of a copy and whether it comes from and goes to the host; None: unknown.

    Args:
        kind: what the source says, with `HtoD`, `Host-to-Device` or the like in it.

    >>> copy_direction("Memcpy HtoD (Pageable -> Device)"), copy_direction("Device-to-Host")
    (('MEMORY_COPY_HOST_TO_DEVICE', True, False), ('MEMORY_COPY_DEVICE_TO_HOST', False, True))
    >>> copy_direction("Memcpy")
    ('MEMORY_COPY', None, None)
    """
    match = re.search(r"\b([HDAP])(?:\w*-)?to-?([HDAP])", kind)
    if not match:
        return "MEMORY_COPY", None, None
    (source, from_host), (target, to_host) = (_COPIES[letter] for letter in match.groups())
    return f"MEMORY_COPY_{source}_TO_{target}", from_host, to_host
