"""Owns rules of memory: which rows are scratch memory, and which operations allocate.

The runtime takes scratch memory by itself, without an address: it is counted apart from what programs allocate. The
view `scratch_memory` and the trace writer say the same by themselves, which a test compares.
"""

from __future__ import annotations

SCRATCH = "SCRATCH"
"""The `level` of scratch memory."""

IS_SCRATCH = f"level = '{SCRATCH}'"
"""SQL condition on rows of scratch memory."""

NOT_SCRATCH = f"level IS NOT '{SCRATCH}'"
"""SQL condition on all other rows, those without a level included."""

ALLOCATING = frozenset({"ALLOC", "REALLOC"})
"""Operations (`type`) after which memory is held; the others free it."""
