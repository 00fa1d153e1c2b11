"""The forms of a kernel's name, and the place of each in the files."""

from __future__ import annotations

import enum
import re


class KernelNames(enum.StrEnum):
    """The forms of a kernel's name: for people, of the linker, or the bare function name.

    The name for people is shortened where people read it, and only there; `FULL` is the same name in full.
    """

    DISPLAY = "display"
    FULL = "full"
    MANGLED = "mangled"
    TRUNCATED = "truncated"


UNCUT = frozenset((KernelNames.DISPLAY, KernelNames.FULL))
"""The forms that are stored as the full name for people."""

_ENDINGS = (" [clone .kd]", ".kd")
_INSTRUMENTED = "__amd_crk_"


def without_kd(name: str) -> str:
    """Return the name of a kernel without the mark of kernel descriptors at its end.

    >>> without_kd("gemm(float*) [clone .kd]"), without_kd("__amd_rocclr_copyBuffer.kd"), without_kd("a.kd_b")
    ('gemm(float*)', '__amd_rocclr_copyBuffer', 'a.kd_b')
    """
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


def without_instrumentation(name: str) -> str:
    """Return the name of a kernel without Omniprobe's mark and added argument.

    >>> [without_instrumentation(f"__amd_crk_{name}") for name in ("gemm(float*, void*) [clone .kd]", "copyPv.kd")]
    ['gemm(float*)', 'copy']
    >>> without_instrumentation("gemm(float*, void*)")
    'gemm(float*, void*)'
    """
    plain = without_kd(name)
    if _INSTRUMENTED not in plain:
        return plain
    plain = plain.replace(_INSTRUMENTED, "", 1)
    if plain.endswith(")"):
        return re.sub(r"(?:, void\*|\(void\*)\)$", lambda last: "()" if last[0].startswith("(") else ")", plain)
    return plain.removesuffix("Pv")


def matches(pattern: re.Pattern[str], name: object) -> bool:
    """Whether a regular expression is found in the name of a kernel without `.kd`, or is all of the full name.

    >>> [matches(re.compile(text), "gemm.kd") for text in ("gemm$", "kd", "g.*kd")]
    [True, False, True]
    """
    return isinstance(name, str) and bool(pattern.search(without_kd(name)) or pattern.fullmatch(name))


_SELECTS = {
    KernelNames.DISPLAY: "SELECT id, display_name AS name FROM rocpd_info_kernel_symbol",
    KernelNames.FULL: "SELECT id, display_name AS name FROM rocpd_info_kernel_symbol",
    KernelNames.MANGLED: "SELECT id, COALESCE(kernel_name, display_name) AS name FROM rocpd_info_kernel_symbol",
    KernelNames.TRUNCATED: "SELECT id, COALESCE(truncated_kernel_name, display_name) AS name FROM kernel_symbols",
}


def names_of_kernels(form: KernelNames = KernelNames.DISPLAY) -> str:
    """Return the SELECT of `id` and `name` of the kernels of a rank; a missing form is replaced by the display name."""
    return _SELECTS[form]


def shown_name(kernel: int, display: str | None, mangled: str | None) -> str:
    """Return a name of a kernel for a track of a viewer, which would show nothing without a name.

    >>> shown_name(7, None, "_Z4gemmPf.kd"), shown_name(7, "", None)
    ('_Z4gemmPf.kd', 'kernel 7')
    """
    return display or mangled or f"kernel {kernel}"
