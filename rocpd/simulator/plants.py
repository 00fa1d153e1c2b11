"""Plants of a job, by name and size. Imports nothing heavy: help lists it."""

from __future__ import annotations

from enum import StrEnum

from rocpd.base import UsageError, frozen

INTERMITTENT_EVERY = 5
"""Of so many steps the intermittent rank is slow in one."""

SLOW_COLLECTIVES_EVERY = 4
"""Of so many steps one has slow transfers."""


class Plant(StrEnum):
    """Facts that can be planted.

    Attributes:
        meaning: what it does; `{}` stands for its size.
        usual: how large it is unless the options say otherwise; 0: it has no size.
        most: the largest size.
    """

    meaning: str
    usual: float
    most: float

    def __new__(cls, name: str, meaning: str = "", usual: float = 0.0, most: float = 1e6) -> Plant:
        """Make a fact of its name and what it is."""
        plant = str.__new__(cls, name)
        plant._value_, plant.meaning, plant.usual, plant.most = name, meaning, usual, most
        return plant

    STRAGGLER = "straggler", "the kernels of one rank take {} % longer", 35
    INTERMITTENT = "intermittent", f"the kernels of one rank take {{}} % longer in 1 of {INTERMITTENT_EVERY} steps", 60
    SLOW_NODE = "slow-node", "the kernels of all ranks of one node take {} % longer", 10
    SLOW_STEP = "slow-step", "in one step all kernels take {} % longer", 90
    IMBALANCE = "imbalance", "one rank has {} % more work: larger grids that take longer", 20
    LATE_LAUNCH = "late-launch", "one rank starts each step {} us late", 400
    LATE_NODE = "late-node", "all ranks of one node start each step {} us late", 400
    HOST_STALL = "host-stall", "the host of one rank stalls for {} us at the start of 2 steps", 8000
    THROTTLED = "throttled", "the clock of one GPU goes down by up to {} %; its samples show it", 25, 80
    SLOWDOWN = "slowdown", "from a third of the steps on, the kernels of one rank take {} % longer", 35
    SLOW_COLLECTIVES = (
        "slow-collectives",
        f"in 1 of {SLOW_COLLECTIVES_EVERY} steps transfers between ranks take {{}} times as long",
        4,
    )
    SLOW_LINK = "slow-link", "transfers of one group of ranks, one that spans nodes if any, take {} times as long", 4
    EXPOSED_COMMUNICATION = (
        "exposed-communication",
        "gradients have {} times as many bytes: their transfer can't be hidden",
        4,
    )
    LOST_OVERLAP = "lost-overlap", "the host waits for each exchange of gradients before it goes on"
    SAME_STREAM = "same-stream", "communication runs on the stream of the computation"
    LAUNCH_BOUND = "launch-bound", "the host takes {} us between two launches", 80, 10_000
    SMALL_KERNELS = "small-kernels", "work is cut into kernels of 3 us, faster than they are launched"
    SYNCHRONOUS_CALLS = "synchronous-calls", "the host waits for the device after every second kernel"
    PROFILER_COST = "profiler-cost", "calls take {} times as long", 4, 100
    SLOW_INPUT = "slow-input", "each step first waits {} us for its input", 1500
    PAGEABLE_COPIES = "pageable-copies", "copies to the device are from pageable memory: slow, and the calls wait"
    SMALL_COPIES = "small-copies", "{} copies of 16 KiB in each step", 120, 10_000
    STEADY_ALLOCATION = "steady-allocation", "each step allocates and frees"
    LEAK = "leak", "each step allocates {} MiB that nobody frees", 2, 1024
    MEMORY_PEAK = "memory-peak", "{} % of the GPU's memory is held", 95, 99
    MODULE_LOADS = "module-loads", "each step loads a module"
    SMALL_GRIDS = "small-grids", "the hottest kernel has a quarter of the work-groups that fill the GPU"
    LOW_OCCUPANCY = "low-occupancy", "the hottest kernel takes all registers and spills"
    CLOCK_STEP = "clock-step", "the clock of one node jumps ahead by {} us", 2000
    LOST_DISPATCHES = "lost-dispatches", "1 kernel in {} is not recorded", 40
    LOST_LAUNCHES = "lost-launches", "1 launching call in {} is not recorded", 20
    LOST_GRAPH_KERNELS = "lost-graph-kernels", "graphs are launched, and their kernels not recorded"
    LOST_RANK = "lost-rank", "the file of one rank is missing"
    LOST_EVENTS = "lost-events", "the recorder says that it lost {} events of each rank", 500
    NO_HIP_TRACE = "no-hip-trace", "calls of HIP are not recorded"
    SLOW_GPUS = "slow-gpus", "the kernels of all ranks take {} % longer", 3
    SLOW_KERNEL = "slow-kernel", "the hottest kernel takes {} % longer", 7
    LARGER_GRIDS = "larger-grids", "the hottest kernel has {} % more work: a larger grid that takes longer", 50
    MORE_CALLS = "more-calls", "the hottest kernel runs {} times instead of once", 2, 20
    OTHER_TILE = "other-tile", "the hottest kernel is another one of its family"
    NEW_KERNEL = "new-kernel", "a kernel more runs after each run of the hottest one"


@frozen
class Planting:
    """The facts to be planted: (plant, size), in the order of `Plant`; and whether many counters are recorded."""

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
    if not text:
        return float(plant.usual)
    if not plant.usual:
        raise UsageError(f"plant {plant}={text}: {plant} has no size", f"give {plant} alone")
    try:
        size = float(text)
    except ValueError:
        size = -1.0
    if not 0 < size <= plant.most:
        raise UsageError(f"plant {plant}={text}: not a size", f"a number above 0, at most {plant.most:g}")
    return size


def listing() -> str:
    """Return the plants and their usual sizes as help has them."""
    return ", ".join(f"{plant}={plant.usual:g}" if plant.usual else plant.value for plant in Plant)
