"""The meaning of sampled values: sentinels for no value, values that accumulate, and units.

AMD-SMI writes the largest number of a type for an unknown value: https://rocm.docs.amd.com/projects/amdsmi. Samplers
of rocprofiler-systems share a track between GPUs, and an event between several values of a GPU.
"""

from __future__ import annotations

import re

import numpy as np

from rocpd.base import Flags, Floats
from rocpd.schema.rules.events import SENTINEL_OF_16_BITS, SENTINELS

_SMALL_UNITS = frozenset({"w", "mw", "°c", "c", "%", "mhz", "lanes", "mt/s"})  # no GPU has so many of these
_ADDS_UP = (
    r"(?i)device_xgmi_(read|write)_data|device_pcie_bandwidth_acc|device_storage_(read|write)_(bytes|ops|errors)"
    r"|process_(context_switch|page_fault|user_cpu_time|kernel_cpu_time)|nic_(rx|tx)_|energy"
)
_MEANT = {("device_memory_usage", "gb"): "MB", ("", "w"): "W", ("", "sec"): "s"}


def are_sentinels(values: Floats, unit: str | None) -> Flags:
    """Return whether each value stands for no value.

    >>> are_sentinels(np.array([65535.0, 4294967295.0, 380.0]), "W").tolist()
    [True, True, False]
    >>> are_sentinels(np.array([65535.0, 4294967295.0]), "MB").tolist()
    [False, True]
    """
    is_small = (unit or "").lower() in _SMALL_UNITS
    none = [*SENTINELS, SENTINEL_OF_16_BITS] if is_small else [*SENTINELS]
    return np.isin(values, none)


def adds_up(name: str | None) -> bool:
    """Whether the values of a name accumulate, so that only their rate is meaningful.

    >>> adds_up("device_xgmi_read_data [3]"), adds_up("device_power")
    (True, False)
    """
    return bool(name and re.match(_ADDS_UP, name))


def meant_unit(name: str | None, unit: str | None) -> str | None:
    """Return the true unit of a value: one version calls megabytes GB.

    >>> meant_unit("device_memory_usage", "GB"), meant_unit("device_power", "w"), meant_unit("x", None)
    ('MB', 'W', None)
    """
    written = (unit or "").lower()
    return _MEANT.get((name or "", written), _MEANT.get(("", written), unit))
