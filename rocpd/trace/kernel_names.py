"""Owns the forms of a kernel's name, and where each stands in the files."""

from __future__ import annotations

import enum


class KernelNames(enum.StrEnum):
    """Which name of a kernel counts: the one for people, the linker's, or the bare function name."""

    DISPLAY = "display"
    MANGLED = "mangled"
    TRUNCATED = "truncated"


_SELECTS = {
    KernelNames.DISPLAY: "SELECT id, display_name AS name FROM rocpd_info_kernel_symbol",
    KernelNames.MANGLED: "SELECT id, COALESCE(kernel_name, display_name) AS name FROM rocpd_info_kernel_symbol",
    KernelNames.TRUNCATED: (
        "SELECT id, COALESCE(replace(truncated_kernel_name, '.kd', ''), display_name) AS name FROM kernel_symbols"
    ),
}


def names_of_kernels(form: KernelNames = KernelNames.DISPLAY) -> str:
    """Return the SELECT of `id` and `name` of the kernels of a rank; a form that a file lacks is the display name."""
    return _SELECTS[form]


def shown_name(kernel: int, display: str | None, mangled: str | None) -> str:
    """Return the name of a kernel for a track of a viewer, which shows nothing without a name.

    >>> shown_name(7, None, "_Z4gemmPf.kd"), shown_name(7, "", None)
    ('_Z4gemmPf.kd', 'kernel 7')
    """
    return display or mangled or f"kernel {kernel}"
