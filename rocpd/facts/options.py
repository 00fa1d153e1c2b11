"""Owns what can be asked of an analysis, each thing once; each field declares its option. Imports no numpy."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated

from rocpd.base.frozen import frozen
from rocpd.base.option import Option
from rocpd.counters.panels import Per
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.schema.rules.steps import STEP_MARKER


class By(enum.StrEnum):
    """What a job is divided into: a table then has rows of its own for each."""

    RANK = "rank"
    HOST = "host"
    AGENT = "agent"
    STREAM = "stream"
    STEP = "step"
    MARKER = "marker"
    RUN = "run"
    COMMAND = "command"
    DISPATCH = "dispatch"
    API = "api"


GROUPS = (By.HOST, By.RUN, By.COMMAND)
"""Divisions that take ranks together."""

LANES = (By.AGENT, By.STREAM)
"""Divisions of a rank by where its operations run."""

LAUNCHES = (By.STEP, By.MARKER)
"""Divisions of a rank by where its operations were launched."""

DIVISIONS_OF_TIME = tuple(by for by in By if by not in (By.DISPATCH, By.API))
"""Divisions of all that has a time: not by what counters or launches alone know."""

WHERE_IT_RAN = tuple(by for by in DIVISIONS_OF_TIME if by not in LAUNCHES)
"""Those of them that do not go by the launch."""


MARKS_STEPS = Option("Markers that are steps; without it: step 5, iter 5, batch 5 …", "REGEX")
"""An option of analyses, and of `--step`."""


@frozen
class Options:
    """What is asked of an analysis; each one takes what concerns it, as its row of `SUMMARIES` says.

    Args:
        by: divide the job; None: one row for the whole job.
        kernel_names: display names, short or in full to people, mangled ones, or bare function names.
        categories: JSON or TOML file of kernel categories; None: the built-in one.
        step_marker: regular expression for the text of markers that are steps.
        sequence: how many preceding operations make the context of a kernel.
        bins: points of curves and columns of the heat map.
        top: how many of the largest gaps are listed.
        everything: warm-up counts too, all of the active part of the job.
        per: what amounts of panels are counted per.
        amd_compatible: panels have the numbers of rocprof-compute, over all kernels.
        roofs: `roofline.csv` of measured rates; None: those that follow from the clock.
        further: values of options that an analysis of another package declares, by name.
    """

    by: By | None = None
    kernel_names: KernelNames = KernelNames.DISPLAY
    categories: Annotated[Path | None, Option("Kernel categories, JSON or TOML: name -> regexes.", "FILE")] = None
    step_marker: Annotated[str, MARKS_STEPS] = STEP_MARKER
    sequence: Annotated[int, Option("Kernels after the same N operations make a row.", "N", least=0, most=100)] = 0
    bins: Annotated[int, Option("Points of a curve, columns of the heat map.", "N", least=1, most=100_000)] = 50
    top: Annotated[int, Option("How many of the largest gaps, or slowest copies, to list.", "N", least=0)] = 20
    everything: Annotated[bool, Option("Count warm-up too: from the first dispatch to the last.", flags=("--all",))] = (
        False
    )
    per: Annotated[Per, Option("What amounts of panels are counted per.")] = Per.KERNEL
    amd_compatible: Annotated[bool, Option("Panels with rocprof-compute's numbers, over all kernels.")] = False
    roofs: Annotated[Path | None, Option("Measured rates for the roofline, a roofline.csv.", "FILE")] = None
    further: Mapping[str, object] = field(default_factory=dict)
