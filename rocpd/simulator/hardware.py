"""Owns what the simulated machines are made of: agents, node facts, environment. A table of facts in JSON."""

from __future__ import annotations

import functools
import json
from typing import Any

CPUS, GPUS = 2, 8
CPU_NAME, GPU_NAME, GPU_ARCH = "AMD EPYC 9575F 64-Core Processor", "AMD Instinct MI300X", "gfx942"
_GPU_MEMORY = 192 << 30
_CPU_MEMORY = 1152 << 30

_CAPABILITIES = (
    "HotPluggable",
    "HSAMMUPresent",
    "SharedWithGraphics",
    "QueueSizePowerOfTwo",
    "QueueSize32bit",
    "QueueIdleEvent",
    "VALimit",
    "WatchPointsSupported",
    "WatchPointsTotalBits",
    "DoorbellType",
    "AQLQueueDoubleMap",
    "DebugTrapSupported",
    "WaveLaunchTrapOverrideSupported",
    "WaveLaunchModeSupported",
    "PreciseMemoryOperationsSupported",
    "DEPRECATED_SRAM_EDCSupport",
    "Mem_EDCSupport",
    "RASEventNotify",
    "ASICRevision",
    "SRAM_EDCSupport",
    "SVMAPISupported",
    "CoherentHostAccess",
    "DebugSupportedFirmware",
)
_GPU_CAPABILITIES = {
    "WatchPointsSupported": 1,
    "WatchPointsTotalBits": 2,
    "DoorbellType": 2,
    "DebugTrapSupported": 1,
    "WaveLaunchTrapOverrideSupported": 1,
    "WaveLaunchModeSupported": 1,
    "PreciseMemoryOperationsSupported": 1,
    "Mem_EDCSupport": 1,
    "RASEventNotify": 1,
    "ASICRevision": 1,
    "SRAM_EDCSupport": 1,
    "SVMAPISupported": 1,
    "DebugSupportedFirmware": 1,
}
# (level, KiB, line bytes, data, instruction): one of each kind per agent; real files list every instance.
_CACHES = ((1, 32, 128, 1, 0), (1, 64, 64, 0, 1), (1, 16, 64, 1, 0), (2, 4096, 128, 1, 0), (3, 262144, 64, 1, 0))


def is_gpu(index: int) -> bool:
    """Whether the agent of an absolute index is a GPU."""
    return index >= CPUS


def agent_handle(index: int) -> int:
    """Return the runtime's handle of an agent."""
    return 9300 + index


def own_gpu(local_rank: int) -> int:
    """Return the absolute index of the GPU that a rank of a node uses."""
    return CPUS + local_rank % GPUS


def device_id(index: int) -> int:
    """Return the hardware id of an agent."""
    return 0 if index < CPUS else 29857


@functools.cache
def agent_json(index: int) -> str:
    """Return the full hardware description of an agent, with the keys that the profiler writes."""
    facts = _cpu(index) if index < CPUS else _gpu(index)
    facts["io_links"] = [_link(index, to) for to in range(CPUS + GPUS) if to != index]
    facts["io_links_count"] = len(facts["io_links"])
    return json.dumps(facts, separators=(",", ":"))


def _common(index: int) -> dict[str, Any]:
    return {**_units(index), **_abilities(index)}


def _units(index: int) -> dict[str, Any]:
    """What an agent consists of."""
    gpu = index >= CPUS
    return {
        "size": 312,
        "id": {"handle": agent_handle(index)},
        "type": 2 if gpu else 1,
        "cpu_cores_count": 0 if gpu else 128,
        "simd_count": 1216 if gpu else 0,
        "mem_banks_count": 1,
        "caches_count": len(_CACHES) if gpu else 0,
        "io_links_count": 0,
        "cpu_core_id_base": 0 if gpu else 128 * index,
        "simd_id_base": 2147487744 + 40 * (index - CPUS) if gpu else 0,
        "max_waves_per_simd": 8 if gpu else 0,
        "lds_size_in_kb": 64 if gpu else 0,
        "gds_size_in_kb": 0,
        "num_gws": 64 if gpu else 0,
        "wave_front_size": 64 if gpu else 0,
        "num_xcc": 8 if gpu else 1,
        "cu_count": 304 if gpu else 128,
        "array_count": 32 if gpu else 0,
        "num_shader_banks": 32 if gpu else 0,
        "simd_arrays_per_engine": 1 if gpu else 0,
        "cu_per_simd_array": 10 if gpu else 0,
        "simd_per_cu": 4 if gpu else 0,
        "max_slots_scratch_cu": 32 if gpu else 0,
    }


def _abilities(index: int) -> dict[str, Any]:
    """What an agent can do, and where it sits on the bus."""
    gpu = index >= CPUS
    return {
        "gfx_target_version": 90402 if gpu else 0,
        "vendor_id": 4098 if gpu else 0,
        "device_id": device_id(index),
        "location_id": 4096 * (index + 3) if gpu else 0,
        "domain": 0,
        "drm_render_minor": 128 + 8 * (index - CPUS) if gpu else 0,
        "num_sdma_engines": 2 if gpu else 0,
        "num_sdma_xgmi_engines": 14 if gpu else 0,
        "num_sdma_queues_per_engine": 8 if gpu else 0,
        "num_cp_queues": 24 if gpu else 0,
        "max_engine_clk_ccompute": 5008,
        "max_engine_clk_fcompute": 2100 if gpu else 0,
        "sdma_fw_version": {"uCodeSDMA": 24 if gpu else 0, "uCodeRes": 0},
        "fw_version": {"uCode": 185 if gpu else 0, "Major": 0, "Minor": 0, "Stepping": 0},
        "capability": {name: _GPU_CAPABILITIES.get(name, 0) if gpu else 0 for name in _CAPABILITIES},
        "cu_per_engine": 9 if gpu else 0,
        "max_waves_per_cu": 32 if gpu else 0,
        "family_id": 141 if gpu else 26,
        "workgroup_max_size": 1024 if gpu else 0,
        "grid_max_size": 4294967295 if gpu else 0,
        "local_mem_size": 0,
        "hive_id": 7466213804132741121 if gpu else 0,
        "gpu_id": 9000 + 1733 * index if gpu else 0,
        "workgroup_max_dim": dict.fromkeys("xyz", 1024 if gpu else 0),
        "grid_max_dim": {"x": 2147483647, "y": 65535, "z": 65535} if gpu else dict.fromkeys("xyz", 0),
    }


def _identity(index: int, name: str, vendor: str, product: str, model: str) -> dict[str, Any]:
    gpu = index >= CPUS
    return {
        "name": name,
        "vendor_name": vendor,
        "product_name": product,
        "model_name": model,
        "node_id": index,
        "logical_node_id": index,
        "logical_node_type_id": index - CPUS if gpu else index,
        "runtime_visibility": {"hsa": 1, "hip": 1, "rccl": 1, "rocdecode": 1},
        "uuid": {"bytes": {f"value{i}": (37 * index + 11 * i) % 256 if gpu and i < 8 else 0 for i in range(16)}},
    }


def _cpu(index: int) -> dict[str, Any]:
    bank = {"heap_type": 0, "flags": {"HotPluggable": 0, "NonVolatile": 0}, "width": 64, "mem_clk_max": 6000}
    rest = {"mem_banks": [{**bank, "size_in_bytes": _CPU_MEMORY}], "caches": [], "io_links": [], "gpu_index": -1}
    return {**_common(index), **_identity(index, CPU_NAME, "CPU", CPU_NAME, ""), **rest}


def _gpu(index: int) -> dict[str, Any]:
    bank = {"heap_type": 1, "flags": {"HotPluggable": 0, "NonVolatile": 0}, "width": 8192, "mem_clk_max": 1300}
    caches = [
        {
            "processor_id_low": 2147487744 + 40 * (index - CPUS),
            "size": kib,
            "level": level,
            "cache_line_size": line,
            "cache_lines_per_tag": 0,
            "association": 0,
            "latency": 0,
            "type": {"Data": data, "Instruction": instruction, "CPU": 0, "HSACU": 1},
        }
        for level, kib, line, data, instruction in _CACHES
    ]
    rest = {
        "mem_banks": [{**bank, "size_in_bytes": _GPU_MEMORY}],
        "caches": caches,
        "io_links": [],
        "gpu_index": index - CPUS,
    }
    return {**_common(index), **_identity(index, GPU_ARCH, "AMD", GPU_NAME, "ip discovery"), **rest}


def _link(index: int, to: int) -> dict[str, Any]:
    between_gpus = index >= CPUS and to >= CPUS
    return {
        "type": 11 if between_gpus else 2,
        "version_major": 0,
        "version_minor": 0,
        "node_from": index,
        "node_to": to,
        "weight": 15 if between_gpus else 20,
        "min_latency": 0,
        "max_latency": 0,
        "min_bandwidth": 0,
        "max_bandwidth": 64000,
        "recommended_transfer_size": 0,
        "flags": dict.fromkeys(("Override", "NonCoherent", "NoAtomics32bit", "NoAtomics64bit", "NoPeerToPeerDMA"), 0),
    }


def environment_json(hostname: str, rank: int, ranks: int, local_rank: int, local_size: int) -> str:
    """Return the environment that Open MPI and the profiler leave in a process."""
    variables = {
        "HOSTNAME": hostname,
        "ROCPROF": "rocprofv3",
        "PWD": "/workspace/job",
        "HOME": "/root",
        "PATH": "/opt/rocm/bin:/usr/local/bin:/usr/bin:/bin",
        "LD_LIBRARY_PATH": "/opt/rocm/lib",
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": ranks,
        "OMPI_COMM_WORLD_LOCAL_RANK": local_rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": local_size,
        "OMPI_COMM_WORLD_NODE_RANK": local_rank,
        "PMIX_RANK": rank,
        "RANK": rank,
        "LOCAL_RANK": local_rank,
        "WORLD_SIZE": ranks,
        "ROCPROF_OUTPUT_FORMAT": "rocpd",
        "ROCPROF_HIP_RUNTIME_API_TRACE": 1,
        "ROCPROF_KERNEL_TRACE": 1,
    }
    return json.dumps({name: str(value) for name, value in variables.items()}, separators=(",", ":"))


def configuration_json(hostname: str, pid: int) -> str:
    """Return the configuration that the profiler stores with the process."""
    facts = {
        "output_path": "/workspace/job/profile",
        "output_file": f"{hostname}/{pid}",
        "tmp_directory": "/workspace/job",
        "raw_output_file": "%hostname%/%pid%",
        "summary": False,
        "csv_output": False,
        "json_output": False,
        "pftrace_output": False,
        "otf2_output": False,
        "rocpd_output": True,
        "kernel_rename": False,
        "group_by_queue": False,
    }
    return json.dumps(facts, separators=(",", ":"))
