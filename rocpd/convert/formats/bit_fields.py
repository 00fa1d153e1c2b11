"""Packs the bit fields of an agent's description into the numbers that AMD's agent_info.csv has for them.

Fields stand from bit 0 up, with their widths; checked against the numbers of a real MI300X.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from types import MappingProxyType

_CAPABILITY = {
    "HotPluggable": 1, "HSAMMUPresent": 1, "SharedWithGraphics": 1, "QueueSizePowerOfTwo": 1, "QueueSize32bit": 1,
    "QueueIdleEvent": 1, "VALimit": 1, "WatchPointsSupported": 1, "WatchPointsTotalBits": 4, "DoorbellType": 2,
    "AQLQueueDoubleMap": 1, "DebugTrapSupported": 1, "WaveLaunchTrapOverrideSupported": 1,
    "WaveLaunchModeSupported": 1, "PreciseMemoryOperationsSupported": 1, "DEPRECATED_SRAM_EDCSupport": 1,
    "Mem_EDCSupport": 1, "RASEventNotify": 1, "ASICRevision": 4, "SRAM_EDCSupport": 1, "SVMAPISupported": 1,
    "CoherentHostAccess": 1, "DebugSupportedFirmware": 1, "PreciseALUOperationsSupported": 1,
    "PerQueueResetSupported": 1,
}  # fmt: skip

FIELDS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "capability": _CAPABILITY,
        "fw_version": {"uCode": 10, "Major": 6, "Minor": 6, "Stepping": 10},
        "sdma_fw_version": {"uCodeSDMA": 10, "uCodeRes": 10},
    }
)
"""Value of the description -> its fields and their widths [bits]."""


def packed_number(name: str, value: object) -> int | None:
    """Return the number of a value that is made of bit fields; None where it is none of `FIELDS`, or has others.

    >>> packed_number("fw_version", {"uCode": 185, "Major": 0}), packed_number("fw_version", "185")
    (185, None)
    """
    widths = FIELDS.get(name)
    if widths is None or not isinstance(value, dict) or not value.keys() <= widths.keys():
        return None
    number = 0
    for (field, width), end in zip(widths.items(), accumulate(widths.values()), strict=True):
        bits = value.get(field, 0)
        if not isinstance(bits, int) or not 0 <= bits < 1 << width:
            return None
        number |= bits << (end - width)
    return number
