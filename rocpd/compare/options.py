"""Owns what can be asked of a comparison, each thing once; each field declares its option. Imports no numpy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, ClassVar

from rocpd.errors import UsageError
from rocpd.frozen import frozen
from rocpd.option import Heading, Option
from rocpd.trace.steps import STEP_MARKER

STEP = "step"


@frozen
class DiffOptions:
    """What is compared, and from when on a difference counts.

    Args:
        margin: differences up to this many percent do not matter; more where runs of the base differ by more.
        run_noise: with one run a side, differences up to this many percent are unclear.
        metric: what decides: `step`, `kernel:REGEX`, `category:NAME`, `marker:REGEX` or `memory.peak`.
        match: kernels whose names this expression finds, with equal groups, are one kernel.
        least_score: below it two sides do not compare; 0 compares whatever differs.
        step_marker: regular expression for the text of markers that are steps.
        categories: JSON or TOML file of kernel categories; None: the built-in one.
        everything: warm-up counts too.
    """

    HEADING: ClassVar = Heading.WHAT

    metric: Annotated[
        str, Option("What decides: step, kernel:REGEX, category:NAME, marker:REGEX, memory.peak.", "METRIC")
    ] = STEP
    margin: Annotated[
        float, Option("Differences up to this do not matter; or up to that of base runs.", "PERCENT", least=0, most=1e3)
    ] = 3.0
    run_noise: Annotated[
        float, Option("One run a side: differences up to this are unclear.", "PERCENT", least=0, most=1e3)
    ] = 20.0
    least_score: Annotated[
        float, Option("Below this score two sides do not compare; 0 compares anything.", "X", least=0, most=1)
    ] = 0.5
    match: Annotated[
        str | None, Option("Kernels with equal groups of this in their names are one kernel.", "REGEX")
    ] = None
    step_marker: Annotated[str, Option("Markers that are steps; without it: step 5, iter 5, batch 5 …", "REGEX")] = (
        STEP_MARKER
    )
    categories: Annotated[Path | None, Option("Kernel categories, JSON or TOML: name -> regexes.", "FILE")] = None
    everything: Annotated[bool, Option("Count warm-up too.", flags=("--all",))] = False

    def pattern(self) -> re.Pattern[str] | None:
        """Return `match` as an expression.

        Raises:
            UsageError: it is none.
        """
        return None if self.match is None else compiled("--match", self.match)


def compiled(option: str, text: str) -> re.Pattern[str]:
    """Compile a regular expression that a user gave.

    Raises:
        UsageError: it is none; the message names the option.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text}: not a regular expression: {error}") from error
