"""The numbers in a sample of a program counter: kinds of instructions, reasons to wait, lanes.

Numbers and names are those of rocprofiler-sdk (`rocprofiler_pc_sampling_instruction_type_t`,
`rocprofiler_pc_sampling_instruction_not_issued_reason_t`); the views `pc_samples…` have the same names.
"""

from __future__ import annotations

INSTRUCTION_TYPES = (
    "NONE",
    "VALU",
    "MATRIX",
    "SCALAR",
    "TEX",
    "LDS",
    "LDS_DIRECT",
    "FLAT",
    "EXPORT",
    "MESSAGE",
    "BARRIER",
    "BRANCH_NOT_TAKEN",
    "BRANCH_TAKEN",
    "JUMP",
    "OTHER",
    "NO_INST",
    "DUAL_VALU",
)
"""Names of kinds of instructions, by their numbers."""

STALL_REASONS = (
    "NONE",
    "NO_INSTRUCTION_AVAILABLE",
    "ALU_DEPENDENCY",
    "WAITCNT",
    "INTERNAL_INSTRUCTION",
    "BARRIER_WAIT",
    "ARBITER_NOT_WIN",
    "ARBITER_WIN_EX_STALL",
    "OTHER_WAIT",
    "SLEEP_WAIT",
)
"""Names of reasons why a wave waits, by their numbers."""

_PREFIX = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_"
_TYPE, _REASON = "TYPE_", "NOT_ISSUED_REASON_"


def instruction_type(value: object) -> int | None:
    """Return the number of a kind of instruction, from its number or name; None if it is unknown.

    >>> instruction_type("ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LDS"), instruction_type(1), instruction_type("?")
    (5, 1, None)
    """
    return _number(value, _TYPE, INSTRUCTION_TYPES)


def stall_reason(value: object) -> int | None:
    """Return the number of a reason to wait, from its number or name; None if it is unknown.

    >>> stall_reason("WAITCNT"), stall_reason(True)
    (3, None)
    """
    return _number(value, _REASON, STALL_REASONS)


def _number(value: object, kind: str, names: tuple[str, ...]) -> int | None:
    if isinstance(value, str):
        name = value.removeprefix(_PREFIX).removeprefix(kind)
        return names.index(name) if name in names else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names) else None


def active_lanes(mask: int) -> int:
    """Return the number of active lanes in a mask of 64 bits, which SQLite holds with a sign.

    >>> active_lanes(-1), active_lanes(7)
    (64, 3)
    """
    return (mask & (1 << 64) - 1).bit_count()


def signed(number: int) -> int | None:
    """Return a number of 64 bits as SQLite holds it; None for a number with more bits.

    >>> signed((1 << 64) - 1), signed(5), signed(1 << 64)
    (-1, 5, None)
    """
    if not -(1 << 63) <= number < 1 << 64:
        return None
    return number - (1 << 64) if number >= 1 << 63 else number
