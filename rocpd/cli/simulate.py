"""Owns `rocpd simulate`: a realistic job to try things on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import progress, tell


class Profile(StrEnum):
    """Shape of the simulated work."""

    GEMM = "gemm"
    LLM = "llm"
    HPC = "hpc"


def simulate(
    folder: Annotated[
        Path, typer.Option("--output-path", "--output", "-o", "-d", metavar="DIR", help="Folder for rank0.db …")
    ],
    ranks: Annotated[int, typer.Option("--ranks", min=1, help="Processes.")] = 4,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Machines they run on.")] = 1,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Training steps.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same bytes.")] = 0,
    profile: Annotated[Profile, typer.Option("--profile", help="Shape of the work.")] = Profile.LLM,
    events: Annotated[
        int | None,
        typer.Option(
            "--events-per-rank", min=1, help="Dispatches and regions per rank, instead of --steps.", show_default=False
        ),
    ] = None,
    faults: Annotated[bool, typer.Option("--faults", help="Damage the files the way real ones are damaged.")] = False,
    force: options.Force = False,
    verbose: options.Verbose = False,
) -> None:
    """Write the databases of a simulated data-parallel training job.

    \b
    rocpd simulate -o job --ranks 4
    rocpd simulate -o big --ranks 16 --nodes 2 --events-per-rank 300000
    """
    from rocpd.simulate import JobOptions
    from rocpd.simulate import simulate as write_job

    chosen = JobOptions(
        out=folder, ranks=ranks, nodes=nodes, steps=steps, seed=seed, profile=profile.value,
        events_per_rank=events, faults=faults, force=force,
    )  # fmt: skip
    with progress("simulate", "ranks") as report:
        written = write_job(chosen, report)
    tell(f"wrote {len(written)} files to {folder} ({sum(p.stat().st_size for p in written) / 1e6:.1f} MB)")
