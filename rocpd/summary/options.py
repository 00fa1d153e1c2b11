"""Owns what can be asked of an analysis, each thing once. Imports no numpy: the command line reads this."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from rocpd.errors import UsageError
from rocpd.trace.kernel_names import KernelNames

STEP_MARKER = r"(?i)(?<![a-z])(step|iteration|iter|batch|epoch)(?![a-z])"
"""Markers that name a step of the job, unless told otherwise."""


class By(enum.StrEnum):
    """What a job is divided into: a table then has rows of its own for each."""

    RANK = "rank"
    HOST = "host"
    AGENT = "agent"
    STREAM = "stream"


LANES = (By.AGENT, By.STREAM)
"""Divisions of a rank by where its operations run."""


def division(by: str | By | None) -> By | None:
    """Return what a job is divided into, by its name.

    Raises:
        UsageError: an unknown name.
    """
    try:
        return None if by is None else By(by)
    except ValueError as error:
        raise UsageError(f"by {by}: unknown", f"one of {', '.join(By)}") from error


def kernel_names_of(name: str | KernelNames) -> KernelNames:
    """Return which name of a kernel counts, by its name.

    Raises:
        UsageError: an unknown name.
    """
    try:
        return KernelNames(name)
    except ValueError as error:
        raise UsageError(f"kernel_names {name}: unknown", f"one of {', '.join(KernelNames)}") from error


@dataclass(frozen=True)
class Options:
    """What is asked of an analysis; each one takes what concerns it.

    Args:
        by: divide the job; None: one row for the whole job.
        kernel_names: display names, mangled ones, or bare function names.
        categories: JSON or TOML file of kernel categories; None: the one that comes along.
        step_marker: regular expression for the text of markers that are steps.
        sequence: how many preceding operations make the context of a kernel (variability).
        bins: points of curves and columns of the heat map.
        top: how many of the largest gaps are listed.
    """

    by: By | None = None
    kernel_names: KernelNames = KernelNames.DISPLAY
    categories: Path | None = None
    step_marker: str = STEP_MARKER
    sequence: int = 0
    bins: int = 50
    top: int = 20

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense.

        Raises:
            UsageError: one of them.
        """
        for name, least in (("sequence", 0), ("bins", 1), ("top", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise UsageError(f"{name} {value}: not a whole number from {least} on")
