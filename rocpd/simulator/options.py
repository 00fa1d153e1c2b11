"""Owns what a simulated job is asked to be, and the refusal of what makes no sense; each field declares its option.

Never touches the disk. Imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from rocpd.errors import UsageError
from rocpd.option import Heading, Option
from rocpd.schema.versions import LATEST, VERSIONS


class Workload(StrEnum):
    """Shapes of a job: bare matrix products, a transformer, a conjugate-gradient solver."""

    GEMM = "gemm"
    LLM = "llm"
    HPC = "hpc"


PROFILES: tuple[str, ...] = tuple(workload.value for workload in Workload)
"""Names of the shapes."""

DEFAULT_STEPS = 10


@dataclass(frozen=True)
class JobOptions:
    """What to simulate: the arguments of `rocpd.simulate`, which says what each means."""

    out: Annotated[
        Path,
        Option(
            "Folder for rank0.db …",
            "DIR",
            ("-o", "-d", "--output-path"),
            Heading.OUTPUT,
            is_required=True,
            hidden_flags=("--output", "--output-file"),
        ),
    ]
    ranks: Annotated[int, Option("Processes.", least=1)] = 4
    nodes: Annotated[int, Option("Machines they run on.", least=1)] = 1
    steps: Annotated[int, Option("Training steps.", least=1)] = DEFAULT_STEPS
    seed: Annotated[int, Option("Same seed, same rows.")] = 0
    profile: Annotated[str, Option("Shape of the work.", kind=Workload)] = Workload.LLM.value
    events_per_rank: Annotated[
        int | None, Option("Dispatches and regions of a rank, instead of --steps.", "N", least=1)
    ] = None
    faults: Annotated[bool, Option("Damage the files the way real ones are damaged.")] = False
    force: Annotated[bool, Option("Replace existing files.", heading=Heading.OUTPUT)] = False
    version: str = LATEST


def check(options: JobOptions) -> None:
    """Refuse impossible jobs.

    Raises:
        UsageError: naming the option and what it may be.
    """
    for name in ("ranks", "nodes", "steps", "events_per_rank"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"{name.replace('_', ' ')}: {value} is less than 1", "give 1 or more")
    if options.nodes > options.ranks:
        raise UsageError(
            f"{options.nodes} nodes for {options.ranks} ranks: a node would be empty", "give at most one node per rank"
        )
    if options.seed < 0:
        raise UsageError(f"seed {options.seed}: is negative", "give 0 or more")
    if options.profile not in PROFILES:
        raise UsageError(f"profile {options.profile}: unknown", f"one of {', '.join(PROFILES)}")
    if options.version not in VERSIONS:
        raise UsageError(
            f"schema version {options.version}: not one that can be written", f"one of {', '.join(VERSIONS)}"
        )
