"""Owns what kernels and markers are called in strict files: names that say what analyses go by, and nothing else.

A kernel keeps its category, and kernels of one function stay together; a marker keeps its numbers, and that of a step,
whose words are few and known, stays. Kernels of collectives, whose names are those of public libraries, stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocpd.trace.kernel_categories import is_communication, load
from rocpd.trace.kernel_names import without_kd
from rocpd.trace.steps import STEP_MARKER

_LETTERS = 3
_DIGITS = re.compile(r"\d+")
_STEP = re.compile(STEP_MARKER)
_FUNCTION = re.compile(r"[^(<]*")


def kernel_names(symbols: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Return name -> name in its place.

    Args:
        symbols: of all ranks: the names of one kernel, the one for people first and the linker's second.

    >>> kernel_names([("void gemm<float>(float*)", "_Z4gemmIfE.kd"), ("void gemm<half>(half*)", "_Z4gemmIhE.kd")])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'void gemm<float>(float*)': 'GEMM_001<1>', '_Z4gemmIfE.kd': 'GEMM_001_1.kd', '_Z4gemmIfE': 'GEMM_001_1',
     'void gemm<half>(half*)': 'GEMM_001<2>', '_Z4gemmIhE.kd': 'GEMM_001_2.kd', '_Z4gemmIhE': 'GEMM_001_2'}
    """
    categories = load(None)
    functions: dict[str, str] = {}
    variants: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for display, mangled, *others in sorted(set(symbols)):
        category = categories.of(display)
        if is_communication(category):
            continue
        function = _function(display)
        short = functions.setdefault(function, f"{category}_{len(functions) + 1:03}")
        known = variants.setdefault(function, [])
        if display not in known:
            known.append(display)
        number = known.index(display) + 1
        names[display] = short if display == function else f"{short}<{number}>"
        linked = f"{short}_{number}"
        names.setdefault(mangled, linked + (".kd" if mangled.endswith(".kd") else ""))
        names.setdefault(without_kd(mangled), linked)
        for other in others:
            names.setdefault(other, short if without_kd(other) == function else names[display])
    return {name: new for name, new in names.items() if name}


def _function(display: str) -> str:
    """Return the bare name of a function.

    >>> _function("void at::native::add<float>(int)"), _function("gemm")
    ('at::native::add', 'gemm')
    """
    match = _FUNCTION.match(display)
    return (match[0] if match else display).split(" ")[-1] or display


def _letters(number: int) -> str:
    """Return a number as letters, at least three: paths of markers fold digits, so different markers would be one.

    >>> _letters(0), _letters(27), _letters(26**3)
    ('aaa', 'abb', 'baaa')
    """
    letters = ""
    while number or len(letters) < _LETTERS:
        number, letter = divmod(number, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def marker_names(texts: Iterable[str]) -> dict[str, str]:
    """Return text of a marker -> text in its place.

    >>> marker_names(["step 1", "step 2", "load shard 7 of 9", "forward"])
    {'forward': 'm_aaa', 'load shard 7 of 9': 'm_aab 7 9', 'step 1': 'step 1', 'step 2': 'step 2'}
    """
    forms: dict[str, str] = {}
    names = {}
    for text in sorted(set(texts)):
        if _STEP.search(text):
            names[text] = text
            continue
        form = forms.setdefault(_DIGITS.sub("#", text), f"m_{_letters(len(forms))}")
        names[text] = " ".join([form, *_DIGITS.findall(text)])
    return names
