"""Simulated jobs from Python: `rocpd.simulate("job", ranks=8)`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rocpd.base import Progress
from rocpd.schema.versions import LATEST
from rocpd.simulator.job import simulate as write_job
from rocpd.simulator.options import DEFAULT_PLANT, DEFAULT_STEPS, JobOptions


def simulate(  # noqa: PLR0913 (keywords, each an everyday choice)
    out: str | Path,
    *,
    ranks: int = 4,
    nodes: int = 1,
    tp: int = 1,
    pp: int = 1,
    steps: int = DEFAULT_STEPS,
    seed: int = 0,
    profile: str = "llm",
    events_per_rank: int | None = None,
    plant: str = DEFAULT_PLANT,
    noise: float = 1.0,
    faults: bool = False,
    force: bool = False,
    version: str = LATEST,
    on_progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write the files of a simulated job, `rank0.db` and on; return them by rank.

    `rocpd.simulator.simulate` takes `JobOptions`, which have all options of `rocpd simulate --help`.

    Args:
        out: folder for the files; created if missing.
        ranks: processes, one file and one GPU each.
        nodes: machines, each with its own clock; ranks are dealt to them in blocks.
        tp: ranks that share each layer.
        pp: stages of layers; `ranks / (tp * pp)` ranks share the data.
        steps: training steps (solver iterations); `events_per_rank` takes precedence.
        seed: 0 or more; equal arguments give equal rows in every table.
        profile: `llm`, `gemm` or `hpc`.
        events_per_rank: approximate number of kernel dispatches and regions of a rank; None: as `steps` gives.
        plant: facts to plant, such as `straggler=10,slow-step`, or `none`.
        noise: standard deviation of the compute time of a rank in a step [%].
        faults: damage the files as real ones are damaged.
        force: replace existing files.
        version: schema version to write; with `faults` the ranks differ and this is ignored.
        on_progress: called with (ranks done, ranks in all).

    Raises:
        UsageError: the arguments make no sense.
        OutputError: a file exists (without `force`), belongs to another job, or cannot be written.
    """
    job = JobOptions(Path(out), ranks, nodes, steps, seed, profile, events_per_rank, faults, force, version)
    return write_job(replace(job, tp=tp, pp=pp, plant=plant, noise=noise), on_progress)
