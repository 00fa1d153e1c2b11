"""The type aliases and the stand-in for NULL that all packages share. Imports nothing at run time."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Value: TypeAlias = int | float | str | bytes | None
"""A value of SQLite."""

Row: TypeAlias = tuple[Any, ...]
"""A row of a statement or of a table."""

Parameters: TypeAlias = Sequence[Value] | Mapping[str, Value] | None
"""Values for the `?` or `:name` of a statement."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, of all)."""

Answer = TypeVar("Answer")
"""The value that work on one rank returns."""

Ints: TypeAlias = "npt.NDArray[np.int64]"
Codes: TypeAlias = "npt.NDArray[np.int8]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"


class AmdVersion(enum.StrEnum):
    """Whose names of files and columns an output has: those of AMD's tool of that year."""

    V2025 = "2025"
    V2026 = "2026"


NULL = -(1 << 62) - 1
"""Stands for NULL in `Ints`. No id, time, size or address has this value, and a time less NULL does not overflow."""
