"""Owns running a whole simulation: file names, what may be replaced, one rank after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from rocpd.base.errors import OutputError
from rocpd.base.identity import JOURNALS
from rocpd.base.output import as_output_error, check_free
from rocpd.simulator import faults
from rocpd.simulator.job_plan import plan
from rocpd.simulator.options import JobOptions
from rocpd.simulator.rank import write_rank

_RANK_FILE = re.compile(r"rank\d+\.db(-wal|-shm|-journal)?")


def simulate(options: JobOptions, progress: Callable[[int, int], None] | None = None) -> tuple[Path, ...]:
    """Write the files of a simulated job, `rank0.db` and on, with zeros in front when there are over ten.

    Args:
        options: what to simulate.
        progress: called with ranks done and ranks in all, after each rank.

    Returns:
        the files, by rank; a planted fact may have lost one.

    Raises:
        UsageError: the options make no sense.
        OutputError: a file exists (without `force`), belongs to another job, or cannot be written.
    """
    job = plan(options)
    width = len(str(len(job.ranks) - 1))
    files = {options.out / f"rank{rank.number:0{width}d}.db": rank for rank in job.ranks if not rank.lost}
    paths = tuple(files)
    _check_folder(options, paths)
    for done, (path, rank) in enumerate(files.items(), 1):
        with as_output_error(path):
            faults.clear_beside(path)
            write_rank(path, job, rank)
            faults.leave_as(path, rank)
        if progress is not None:
            progress(done, len(paths))
    return paths


def _check_folder(options: JobOptions, paths: tuple[Path, ...]) -> None:
    files = {Path(f"{path}{ending}") for path in paths for ending in ("", *JOURNALS)}
    for path in sorted(files):
        check_free(path, options.force)
    if options.out.is_dir():
        strangers = sorted(p.name for p in options.out.iterdir() if _RANK_FILE.fullmatch(p.name) and p not in files)
        if strangers:
            # Left there, they would be read as ranks of this job.
            raise OutputError(
                f"{options.out}: holds {strangers[0]} of another job", "remove it, or choose another folder with -o"
            )
