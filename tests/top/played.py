"""A simulated job that is written step by step, without a clock: what a real one has written when a step is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import JobPlan, plan
from rocpd.simulator.live import Player

_SETUP = 1  # rounds before the first step
_LATER_NS = 200_000  # rows of a step come so long after it


class PlayedJob:
    """A job of which the files hold as much as was played.

    Args:
        job: its plan.
        players: of each rank.
    """

    def __init__(self, job: JobPlan, players: list[Player]) -> None:
        self.job, self._players = job, players
        self._begins = job.timing.anchors[:, :, 0].max(axis=1)

    def play(self, steps: int) -> None:
        """Write until so many steps are over."""
        for player in self._players:
            player.play(int(self._begins[_SETUP + steps]) + _LATER_NS)


@contextmanager
def played(folder: Path, **asked: object) -> Iterator[PlayedJob]:
    """Yield a job of these options in a folder, of which nothing is written yet."""
    options = JobOptions(folder / "job", live=1.0, **asked)  # type: ignore[arg-type]
    job = plan(options)
    finished = simulate(replace(options, out=folder / "finished", live=None))
    options.out.mkdir()
    with ExitStack() as stack:
        parts = zip(job.ranks, finished, strict=True)
        yield PlayedJob(
            job, [stack.enter_context(Player(job, rank, path, options.out / path.name)) for rank, path in parts]
        )
