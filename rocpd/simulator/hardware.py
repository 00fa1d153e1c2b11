"""The parts of simulated machines: agents, links between them, environment of processes.

Facts that are the same for all agents or processes are in `data/machine.json`, under the profiler's keys.
"""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import Any

CPUS, GPUS = 2, 8

MEMORY_BYTES = 206_158_430_208
"""Memory of a GPU, as in `data/machine.json` [bytes]."""

CLOCK_GHZ = 2.1
DIES = 8
"""Cycles per ns at full speed, and the number of dies that each count them."""


def agent_handle(index: int) -> int:
    """Return the runtime's handle of an agent."""
    return 9300 + index


def own_gpu(local_rank: int) -> int:
    """Return the absolute index of the GPU of a rank on a node."""
    return CPUS + local_rank % GPUS


@functools.cache
def agent(index: int) -> dict[str, Any]:
    """Return the hardware description of the agent with an absolute index: CPUs come before GPUs."""
    links = [_link(index, to) for to in range(CPUS + GPUS) if to != index]
    facts = {"id": {"handle": agent_handle(index)}, "node_id": index, "logical_node_id": index}
    facts |= {"logical_node_type_id": index, "io_links": links, "io_links_count": len(links)}
    of_cpu = _machine()["cpu"] | {"cpu_core_id_base": 128 * index}
    return of_cpu | facts if index < CPUS else _gpu(index) | facts | {"logical_node_type_id": index - CPUS}


def _gpu(index: int) -> dict[str, Any]:
    number = index - CPUS
    facts = _machine()["gpu"]
    first_simd = 2147487744 + 40 * number
    return facts | {
        "simd_id_base": first_simd,
        "location_id": 4096 * (index + 3),
        "drm_render_minor": 128 + 8 * number,
        "gpu_id": 9000 + 1733 * index,
        "gpu_index": number,
        "uuid": {"bytes": {f"value{i}": (37 * index + 11 * i) % 256 if i < 8 else 0 for i in range(16)}},
        "caches": [cache | {"processor_id_low": first_simd} for cache in facts["caches"]],
    }


def _link(index: int, to: int) -> dict[str, Any]:
    between_gpus = index >= CPUS and to >= CPUS
    kind, weight = (11, 15) if between_gpus else (2, 20)
    return _machine()["link"] | {"type": kind, "node_from": index, "node_to": to, "weight": weight}


@functools.cache
def _machine() -> dict[str, dict[str, Any]]:
    machine: dict[str, dict[str, Any]] = json.loads((files(__package__) / "data" / "machine.json").read_text("utf-8"))
    return machine


def filled_in(part: str, facts: dict[str, object]) -> str:
    """Return the `environment` or `configuration` of a process as JSON, its fields in braces filled in."""
    values = {name: v.format_map(facts) if isinstance(v, str) else v for name, v in _machine()[part].items()}
    return compact(values)


def compact(facts: dict[str, Any]) -> str:
    """Return JSON in the profiler's form."""
    return json.dumps(facts, separators=(",", ":"))
