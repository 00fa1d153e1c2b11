"""Owns the constants of a GPU that formulas need, from what a file says of the agent. Guesses none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rocpd.base.frozen import frozen
from rocpd.counters.definitions import Architecture, architecture

_L2_BANKS = {"gfx908": 32, "gfx90a": 32, "gfx942": 16, "gfx950": 16}  # of each XCC
_TRANSFERS = {"gfx90a": 2, "gfx942": 4, "gfx950": 4}  # of the memory in each cycle of its clock: HBM2e, HBM3
_BANKS, _PIPES = 32, 4  # of LDS; of the command processor
_CHANNEL_BYTES = 32  # that a channel of HBM moves in a cycle


@frozen
class Hardware:
    """A kind of GPU.

    Args:
        name: of its architecture, as the file has it.
        constants: what formulas call `cu`, `sclk` [MHz], `hbm` [GB/s] …, and every number of the file under its own
            name, which rocprofv3's derived counters use; what is not known is not there.
    """

    name: str
    constants: Mapping[str, float]

    @property
    def architecture(self) -> Architecture | None:
        """What can be calculated on it."""
        return architecture(self.name)

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted(self.constants.items()))))


def hardware(name: str, facts: Mapping[str, Any]) -> Hardware:
    """Return the constants of an agent.

    Args:
        name: of its architecture.
        facts: what the file says of it, by rocprofv3's names or those of rocprof-compute's `sysinfo.csv`.

    >>> mi300x = {"cu_count": 304, "num_xcc": 8, "array_count": 32, "simd_arrays_per_engine": 1}
    >>> memory = {"mem_banks": [{"width": 8192, "mem_clk_max": 1300}]}
    >>> known = hardware("gfx942", mi300x | memory).constants
    >>> known["sqc"], known["l2ch"], known["hbm"], "sclk" in known
    (160.0, 128.0, 5324.8, False)
    """
    base = name.partition(":")[0]
    given = {key: float(value) for key, value in facts.items() if isinstance(value, int | float) and value}
    known: dict[str, float | None] = {
        "cu": given.get("cu_count"),
        "xcc": given.get("num_xcc", 1.0 if base in ("gfx908", "gfx90a") else None),
        "se": _engines(given),
        "wave_size": given.get("wave_front_size"),
        "waves_per_cu": given.get("max_waves_per_cu") or _waves(given),
        "sclk": given.get("max_engine_clk_fcompute"),
        "banks": given.get("lds_banks_per_cu", float(_BANKS)),
        "pipes": given.get("pipes_per_gpu", float(_PIPES)),
    }
    simds = given.get("simd_per_cu")
    known["simd_count"] = given.get("simd_count") or (simds * known["cu"] if simds and known["cu"] else None)
    known["sqc"] = given.get("sqc_per_gpu") or _scalar_caches(base, known["cu"], known["se"])
    banks = _L2_BANKS.get(base)
    known["l2ch"] = given.get("total_l2_chan") or (banks * known["xcc"] if banks and known["xcc"] else None)
    known["hbm"] = _bandwidth(base, given, facts.get("mem_banks"))
    return Hardware(name, {**given, **{key: value for key, value in known.items() if value}})


def _engines(given: Mapping[str, float]) -> float | None:
    arrays, per_engine = given.get("array_count"), given.get("simd_arrays_per_engine")
    return arrays / per_engine if arrays and per_engine else None


def _waves(given: Mapping[str, float]) -> float | None:
    simds, waves = given.get("simd_per_cu"), given.get("max_waves_per_simd")
    return simds * waves if simds and waves else None


def _scalar_caches(name: str, units: float | None, engines: float | None) -> float | None:
    """Return the number of scalar caches: two compute units share one, three on MI100."""
    return math.ceil(units / engines / (3 if name == "gfx908" else 2)) * engines if units and engines else None


def _bandwidth(name: str, given: Mapping[str, float], memory: Any) -> float | None:
    """Return the highest rate of the memory [GB/s]: of its channels, or by width [bit] and clock [MHz] of a bank."""
    bank = memory[0] if isinstance(memory, list) and memory and isinstance(memory[0], dict) else {}
    clock, width = bank.get("mem_clk_max"), bank.get("width")
    channels = given.get("num_hbm_channels")
    if clock and channels:
        return float(clock) / 1000 * _CHANNEL_BYTES * channels
    if clock and width and name in _TRANSFERS:
        return float(width) / 8 * float(clock) / 1000 * _TRANSFERS[name]
    return None
