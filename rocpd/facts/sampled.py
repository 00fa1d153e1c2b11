"""The meaning of sampled values: which stand for no value, which add up all that was before, in which unit.

AMD-SMI writes the largest number of a type where it knows none: https://rocm.docs.amd.com/projects/amdsmi. Samplers of
rocprofiler-systems share a track between GPUs, and an event between several values of a GPU.
"""

from __future__ import annotations

import re

from rocpd.schema.rules.events import SENTINEL_OF_16_BITS, SENTINELS

_SMALL_UNITS = frozenset({"w", "mw", "°c", "c", "%", "mhz", "lanes", "mt/s"})  # no GPU has so many of these
_ADDS_UP = re.compile(
    r"device_xgmi_(read|write)_data|device_pcie_bandwidth_acc|device_storage_(read|write)_(bytes|ops|errors)"
    r"|process_(context_switch|page_fault|user_cpu_time|kernel_cpu_time)|nic_(rx|tx)_|energy",
    re.IGNORECASE,
)
_MEANT = {("device_memory_usage", "gb"): "MB", ("", "w"): "W", ("", "sec"): "s"}


def is_sentinel(value: float, unit: str | None) -> bool:
    """Whether a value stands for none.

    >>> is_sentinel(65535.0, "W"), is_sentinel(65535.0, "MB"), is_sentinel(4294967295.0, "MB"), is_sentinel(380.0, "W")
    (True, False, True, False)
    """
    return value in SENTINELS or (value == SENTINEL_OF_16_BITS and (unit or "").lower() in _SMALL_UNITS)


def adds_up(name: str | None) -> bool:
    """Whether the values of a name add up all that was before, so that a rate is what they say.

    >>> adds_up("device_xgmi_read_data [3]"), adds_up("device_power")
    (True, False)
    """
    return bool(name and _ADDS_UP.match(name))


def meant_unit(name: str | None, unit: str | None) -> str | None:
    """Return the unit that is meant: one version calls megabytes GB.

    >>> meant_unit("device_memory_usage", "GB"), meant_unit("device_power", "w"), meant_unit("x", None)
    ('MB', 'W', None)
    """
    written = (unit or "").lower()
    return _MEANT.get((name or "", written), _MEANT.get(("", written), unit))
