"""Owns what a comparison knows of one run: its units of time, what they consist of, kernels, ranks and facts.

Small, whatever the size of the trace: it can be kept as a baseline. Made of the measures of the ranks by `profiling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from rocpd.compare.launches import KernelLaunch
from rocpd.frozen import frozen
from rocpd.summary.idle_causes import CAUSES

COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES = (
    "compute",
    "exposed communication: transfer",
    "exposed communication: waiting",
    "exposed communication: not matched",
    "exposed copies",
)

IDLE = "idle: "
"""In front of the causes of idle time."""

PARTS = (COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES, *(f"{IDLE}{cause}" for cause in CAUSES))
"""What the time of a unit consists of, in the order in which it is shown."""

STEPS, COLLECTIVES, WINDOW = "step", "interval between collectives", "window"
"""What a unit is: of the window, from the first to the last operation, only the time in which GPUs work counts."""

PLURALS = {STEPS: "steps", COLLECTIVES: "intervals between collectives", WINDOW: "windows"}
"""What several of them are called."""


@frozen
class LaunchUse:
    """What a kind of launch took on the critical rank, in all units; numbers are scaled, see `RunProfile.scale`.

    Args:
        launch: what was launched.
        calls: how often.
        time: sum of durations [ns].
        exposed: time by part [ns].
        median: of a call, as the median of the medians of the units; the mean of the ranks by their calls [ns]; None:
            none starts in the units.
    """

    launch: KernelLaunch
    calls: int
    time: int
    exposed: Mapping[str, int]
    median: float | None


@frozen
class RankUse:
    """What a rank did in all units, on average [ns per unit].

    Args:
        rank: its number in the run.
        host: its host.
        own: its time without waiting for others, and without communication that may be waiting.
        parts: its time by part.
        counted: in how many units it was the critical rank, or counted.
    """

    rank: int
    host: str | None
    own: float
    parts: Mapping[str, float]
    counted: int


@frozen
class RunFacts:
    """What a run was, as far as it matters for whether two compare.

    Args:
        ranks, hosts: how many.
        gpus: product, and compute units, of the GPUs; those that are unknown are left out.
        versions: of the schema.
        recorded: kinds of events.
        clock_mhz: mean of the samples of the clocks of GPUs; None without any.
        environment: settings of libraries that all ranks share.
        commands: of the processes, without numbers of ranks.
    """

    ranks: int = 0
    hosts: int = 0
    gpus: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    clock_mhz: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()


@frozen
class RunProfile:
    """What is known of a run.

    Args:
        name: where it was read from.
        unit: what a unit is.
        numbers: of the units.
        warm_up: how many units before them are warm-up.
        samples: metric -> its value in each unit: `step` has the time of the critical rank [ns].
        scale: calls, times of launches and idle time are so many times as large, so that shares of agents are whole.
        uses: launches, in the order of their first one.
        idle: idle time of the critical rank by part, in all units [ns].
        ranks: its ranks.
        facts: what it was.
        selection: what of it counts, in words; empty: all of it.
        guids: of its ranks with GPU work, in alphabetical order; empty: a baseline of older versions does not know.
    """

    name: str
    unit: str
    numbers: tuple[int, ...]
    warm_up: int
    samples: Mapping[str, tuple[float, ...]]
    scale: int
    uses: tuple[LaunchUse, ...]
    idle: Mapping[str, int]
    ranks: tuple[RankUse, ...]
    facts: RunFacts
    selection: str = ""
    guids: tuple[str, ...] = ()

    @property
    def units(self) -> int:
        """How many units it has."""
        return len(self.numbers)
