"""`rocpd simulate`: a realistic job to try things on."""

from __future__ import annotations

from rocpd.base import amount
from rocpd.cli.diagnostics import note, progress
from rocpd.simulator.options import JobOptions


def simulate(job: JobOptions) -> None:
    """Write the files of a simulated training job.

    Examples:
        rocpd simulate -o job --ranks 4
        rocpd simulate -o big --ranks 16 --nodes 2 --events-per-rank 300000
        rocpd simulate -o tp --ranks 8 --nodes 2 --tp 4 --plant straggler=10
    """
    from rocpd.simulator import simulate as write_job

    with progress("simulate", "ranks") as report:
        written = write_job(job, report)
    size = sum(path.stat().st_size for path in written)
    note(f"wrote {amount(len(written), 'file')} to {job.out} ({size / 1e6:.1f} MB)")
