"""Owns the facts that can be planted in a job: their names, their sizes, and how they are asked for.

Whom they strike is chosen in `facts`. What they do to a job stands where jobs are made: `conditions` has speeds and
delays, `workload` calls and work, `kernels` the shape of kernels, `recording` what is not recorded, `clocks` a clock
that steps.
"""

from __future__ import annotations

from enum import StrEnum

from rocpd.errors import UsageError
from rocpd.frozen import frozen

INTERMITTENT_EVERY = 5
"""Of so many steps the intermittent rank is slow in one."""

SLOW_COLLECTIVES_EVERY = 4
"""Of so many steps one has slow transfers."""


class Plant(StrEnum):
    """Facts that can be planted."""

    STRAGGLER = "straggler"
    INTERMITTENT = "intermittent"
    SLOW_NODE = "slow-node"
    SLOW_STEP = "slow-step"
    IMBALANCE = "imbalance"
    LATE_LAUNCH = "late-launch"
    THROTTLED = "throttled"
    SLOW_COLLECTIVES = "slow-collectives"
    EXPOSED_COMMUNICATION = "exposed-communication"
    LOST_OVERLAP = "lost-overlap"
    SAME_STREAM = "same-stream"
    LAUNCH_BOUND = "launch-bound"
    SMALL_KERNELS = "small-kernels"
    SYNCHRONOUS_CALLS = "synchronous-calls"
    PROFILER_COST = "profiler-cost"
    SLOW_INPUT = "slow-input"
    PAGEABLE_COPIES = "pageable-copies"
    SMALL_COPIES = "small-copies"
    STEADY_ALLOCATION = "steady-allocation"
    LEAK = "leak"
    MEMORY_PEAK = "memory-peak"
    MODULE_LOADS = "module-loads"
    SMALL_GRIDS = "small-grids"
    LOW_OCCUPANCY = "low-occupancy"
    CLOCK_STEP = "clock-step"
    LOST_DISPATCHES = "lost-dispatches"
    LOST_LAUNCHES = "lost-launches"
    LOST_GRAPH_KERNELS = "lost-graph-kernels"
    LOST_RANK = "lost-rank"
    LOST_EVENTS = "lost-events"
    NO_HIP_TRACE = "no-hip-trace"
    SLOW_GPUS = "slow-gpus"
    SLOW_KERNEL = "slow-kernel"
    LARGER_GRIDS = "larger-grids"
    MORE_CALLS = "more-calls"
    OTHER_TILE = "other-tile"
    NEW_KERNEL = "new-kernel"


@frozen
class PlantKind:
    """What a plant is.

    Args:
        meaning: what it does; `{}` stands for its size.
        size: how large it is unless the options say otherwise; 0: it has no size.
        most: the largest size.
    """

    meaning: str
    size: float = 0.0
    most: float = 1e6


PLANTS: dict[Plant, PlantKind] = {
    Plant.STRAGGLER: PlantKind("the kernels of one rank take {} % longer", 35),
    Plant.INTERMITTENT: PlantKind(f"the kernels of one rank take {{}} % longer in 1 of {INTERMITTENT_EVERY} steps", 60),
    Plant.SLOW_NODE: PlantKind("the kernels of all ranks of one node take {} % longer", 10),
    Plant.SLOW_STEP: PlantKind("in one step all kernels take {} % longer", 90),
    Plant.IMBALANCE: PlantKind("one rank has {} % more work: larger grids that take longer", 20),
    Plant.LATE_LAUNCH: PlantKind("one rank starts each step {} us late", 400),
    Plant.THROTTLED: PlantKind("the clock of one GPU goes down by up to {} %; its samples show it", 25, 80),
    Plant.SLOW_COLLECTIVES: PlantKind(
        f"in 1 of {SLOW_COLLECTIVES_EVERY} steps transfers between ranks take {{}} times as long", 4
    ),
    Plant.EXPOSED_COMMUNICATION: PlantKind("gradients have {} times as many bytes: their transfer can't be hidden", 4),
    Plant.LOST_OVERLAP: PlantKind("the host waits for each exchange of gradients before it goes on"),
    Plant.SAME_STREAM: PlantKind("communication runs on the stream of the computation"),
    Plant.LAUNCH_BOUND: PlantKind("the host takes {} us between two launches", 80, 10_000),
    Plant.SMALL_KERNELS: PlantKind("work is cut into kernels of 3 us, faster than they are launched"),
    Plant.SYNCHRONOUS_CALLS: PlantKind("the host waits for the device after every second kernel"),
    Plant.PROFILER_COST: PlantKind("calls take {} times as long", 4, 100),
    Plant.SLOW_INPUT: PlantKind("each step first waits {} us for its input", 1500),
    Plant.PAGEABLE_COPIES: PlantKind("copies to the device are from pageable memory: slow, and the calls wait"),
    Plant.SMALL_COPIES: PlantKind("{} copies of 16 KiB in each step", 120, 10_000),
    Plant.STEADY_ALLOCATION: PlantKind("each step allocates and frees"),
    Plant.LEAK: PlantKind("each step allocates {} MiB that nobody frees", 2, 1024),
    Plant.MEMORY_PEAK: PlantKind("{} % of the GPU's memory is held", 95, 99),
    Plant.MODULE_LOADS: PlantKind("each step loads a module"),
    Plant.SMALL_GRIDS: PlantKind("the hottest kernel has a quarter of the work-groups that fill the GPU"),
    Plant.LOW_OCCUPANCY: PlantKind("the hottest kernel takes all registers and spills"),
    Plant.CLOCK_STEP: PlantKind("the clock of one node jumps ahead by {} us", 2000),
    Plant.LOST_DISPATCHES: PlantKind("1 kernel in {} is not recorded", 40),
    Plant.LOST_LAUNCHES: PlantKind("1 launching call in {} is not recorded", 20),
    Plant.LOST_GRAPH_KERNELS: PlantKind("graphs are launched, and their kernels not recorded"),
    Plant.LOST_RANK: PlantKind("the file of one rank is missing"),
    Plant.LOST_EVENTS: PlantKind("the recorder says that it lost {} events of each rank", 500),
    Plant.NO_HIP_TRACE: PlantKind("calls of HIP are not recorded"),
    Plant.SLOW_GPUS: PlantKind("the kernels of all ranks take {} % longer", 3),
    Plant.SLOW_KERNEL: PlantKind("the hottest kernel takes {} % longer", 7),
    Plant.LARGER_GRIDS: PlantKind("the hottest kernel has {} % more work: a larger grid that takes longer", 50),
    Plant.MORE_CALLS: PlantKind("the hottest kernel runs {} times instead of once", 2, 20),
    Plant.OTHER_TILE: PlantKind("the hottest kernel is another one of its family"),
    Plant.NEW_KERNEL: PlantKind("a kernel more runs after each run of the hottest one"),
}
"""Every plant."""


@frozen
class Planting:
    """What is to be planted: (plant, size), in the order of `Plant`; and whether many counters are recorded."""

    sizes: tuple[tuple[Plant, float], ...] = ()
    counts_much: bool = False

    def __contains__(self, plant: Plant) -> bool:
        return any(plant is other for other, _ in self.sizes)

    def size(self, plant: Plant, otherwise: float) -> float:
        """Return how large a plant is, `otherwise` when it is not planted."""
        return next((size for other, size in self.sizes if other is plant), otherwise)


def parse(text: str) -> Planting:
    """Return what `straggler=10,slow-step` asks for; `none` is nothing.

    >>> parse("slow-step, straggler=10").sizes
    ((<Plant.STRAGGLER: 'straggler'>, 10.0), (<Plant.SLOW_STEP: 'slow-step'>, 90.0))

    Raises:
        UsageError: an unknown name, a name given again, or a size that makes no sense.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"]:
        return Planting()
    sizes: dict[Plant, float] = {}
    for word in words:
        name, _, size = word.partition("=")
        if name == "none":
            raise UsageError("plant: none, and others", "give names, or none")
        if name not in tuple(Plant):
            raise UsageError(f"plant {name}: unknown", f"none, or of {', '.join(Plant)}")
        plant = Plant(name)
        if plant in sizes:
            raise UsageError(f"plant {name}: given twice", "give it once")
        sizes[plant] = _size(plant, size)
    if not sizes:
        raise UsageError("plant: nothing is named", "give names, or none")
    return Planting(tuple((plant, sizes[plant]) for plant in Plant if plant in sizes))


def _size(plant: Plant, text: str) -> float:
    kind = PLANTS[plant]
    if not text:
        return float(kind.size)
    if not kind.size:
        raise UsageError(f"plant {plant}={text}: {plant} has no size", f"give {plant} alone")
    try:
        size = float(text)
    except ValueError:
        size = -1.0
    if not 0 < size <= kind.most:
        raise UsageError(f"plant {plant}={text}: not a size", f"a number above 0, at most {kind.most:g}")
    return size


def listing() -> str:
    """Return the plants and their usual sizes as help has them."""
    return ", ".join(f"{plant}={kind.size:g}" if kind.size else plant.value for plant, kind in PLANTS.items())
