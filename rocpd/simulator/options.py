"""The options of a simulated job, each declared by its field; the facts that can be planted in it; and the check of
the options.

Does not touch the disk. Imports nothing heavy, since help needs it.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path

from rocpd.base import UsageError, frozen
from rocpd.base.option import REQUIRED, Heading, Option, declare, options_of, plain
from rocpd.schema.versions import LATEST, VERSIONS

INTERMITTENT_EVERY = 5
"""The intermittent rank is slow in one of this many steps."""

SLOW_COLLECTIVES_EVERY = 4
"""One of this many steps has slow transfers."""


class Plant(StrEnum):
    """Facts that can be planted.

    Attributes:
        meaning: its effect; `{}` stands for its size.
        usual: default size; 0: it has no size.
        most: the largest size.
    """

    meaning: str
    usual: float
    most: float

    def __new__(cls, name: str, meaning: str = "", usual: float = 0.0, most: float = 1e6) -> Plant:
        """Make a fact from its name and properties."""
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
    """The facts to plant: (plant, size), in the order of `Plant`; and whether many counters are recorded."""

    sizes: tuple[tuple[Plant, float], ...] = ()
    counts_much: bool = False

    def __contains__(self, plant: Plant) -> bool:
        return any(plant is other for other, _ in self.sizes)

    def size(self, plant: Plant, otherwise: float) -> float:
        """Return the size of a plant, `otherwise` if it is not planted."""
        return next((size for other, size in self.sizes if other is plant), otherwise)


def parse(text: str) -> Planting:
    """Return the facts in a text such as `straggler=10,slow-step`; `none` stands for no facts.

    >>> parse("slow-step, straggler=10").sizes
    ((<Plant.STRAGGLER: 'straggler'>, 10.0), (<Plant.SLOW_STEP: 'slow-step'>, 90.0))

    Raises:
        UsageError: a name is unknown or repeated, or a size makes no sense.
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
    """Return the plants and their default sizes for help."""
    return ", ".join(f"{plant}={plant.usual:g}" if plant.usual else plant.value for plant in Plant)


class Workload(StrEnum):
    """Shapes of a job: bare matrix products, a transformer, a conjugate-gradient solver."""

    GEMM = "gemm"
    LLM = "llm"
    HPC = "hpc"


class Rccl(StrEnum):
    """The recorded part of RCCL's calls: none, all but the sizes of communicators, everything."""

    NONE = "none"
    CALLS = "calls"
    SIZES = "sizes"


PROFILES: tuple[str, ...] = tuple(workload.value for workload in Workload)
"""Names of the shapes."""


class CounterSet(StrEnum):
    """Sets of hardware counters: for operations and bytes, or for all panels and advice."""

    FEW = "few"
    MANY = "many"


class Journal(StrEnum):
    """Journals of SQLite: the recorder's, or the write-ahead log."""

    DELETE = "delete"
    WAL = "wal"


DEFAULT_STEPS = 10
DEFAULT_PLANT = "straggler,slow-step"
MOST_NOISE = 20.0
"""Largest standard deviation of the compute time of a rank in a step [%]."""
MOST_MEMORY = 0.99
"""Largest correlation of this deviation from one step to the next."""


_of_layout, _of_timing = partial(declare, heading=Heading.LAYOUT), partial(declare, heading=Heading.TIMING)


@frozen
class JobOptions:
    """The job to simulate: the arguments of `rocpd.simulate`, whose docstring explains them."""

    out: Path = plain(
        REQUIRED,
        "Folder for rank0.db …",
        "DIR",
        ("-o", "-d", "--output-path"),
        Heading.OUTPUT,
        is_required=True,
        hidden_flags=("--output", "--output-file"),
    )
    ranks: int = plain(4, "Processes that compute.", least=1)
    nodes: int = plain(1, "Machines they run on.", least=1)
    steps: int = plain(DEFAULT_STEPS, "Training steps.", least=1)
    seed: int = plain(0, "Same seed, same rows.")
    profile: str = plain(Workload.LLM.value, "Shape of the work.", kind=Workload)
    events_per_rank: int | None = plain(None, "Dispatches and regions of a rank, instead of --steps.", "N", least=1)
    faults: bool = plain(False, "Damage the files the way real ones are damaged.")
    force: bool = declare(False, "Replace existing files.", heading=Heading.OUTPUT)
    version: str = LATEST
    live: float | None = declare(
        None,
        "Write in real time, so many times as fast: rows come as their time does.",
        "SPEED",
        heading=Heading.LIVE,
        least=0.01,
        most=1000,
    )
    incident: str = declare(
        "none",
        "What happens to one rank: none, stall, kill, mismatch or disk-full; by NAME=STEP in a step, else halfway.",
        "NAME",
        heading=Heading.LIVE,
    )
    hold: float = declare(
        60.0, "Go on for so long once the job hangs.", "SECONDS", heading=Heading.LIVE, least=0, most=86_400
    )
    live_journal: str = declare(
        Journal.DELETE.value, "Journal of SQLite while it is written.", kind=Journal, heading=Heading.LIVE
    )
    kineto: Path | None = declare(
        None, "Also write each rank as PyTorch's profiler sees it, into this folder.", "DIR", heading=Heading.OUTPUT
    )
    tp: int = _of_layout(1, "Ranks that share each layer (tensor parallelism).", least=1)
    pp: int = _of_layout(1, "Stages of layers (pipeline parallelism); the rest shares the data.", least=1)
    ep: int = _of_layout(1, "Ranks that share the experts of each layer, of those that share the data.", least=1)
    idle_ranks: int = _of_layout(0, "Further processes without GPU work.", least=0)
    rccl: str = _of_layout(
        Rccl.SIZES.value, "Record no calls of RCCL, all but the sizes of communicators, or all.", kind=Rccl
    )
    counters: str = _of_layout(
        CounterSet.FEW.value, "Counters of operations and bytes, or those that panels and advice need.", kind=CounterSet
    )
    start_spread: float = _of_timing(0.003, "Ranks start within so many seconds.", "S", least=0, most=3600)
    drift: float = _of_timing(50.0, "Clocks of nodes drift by 1 to so many ppm.", "PPM", least=0, most=1000)
    jitter: float = _of_timing(30.0, "Members of a collective end 5 to so many us apart.", "US", least=0, most=10_000)
    noise: float = _of_timing(
        1.0, "Standard deviation of a rank's compute per step.", "PERCENT", least=0, most=MOST_NOISE
    )
    noise_memory: float = _of_timing(
        0.0, "Correlation of that from one step to the next; 0: none.", "RHO", least=0, most=MOST_MEMORY
    )
    plant: str = plain(
        DEFAULT_PLANT,
        f"Facts to plant, by NAME or NAME=SIZE, or none; {DEFAULT_PLANT} unless said. Names and usual sizes:",
        "NAMES",
        heading=Heading.PLANTED,
        listing=listing,
    )


def check(options: JobOptions) -> None:
    """Refuse impossible jobs.

    Raises:
        UsageError: it names the option and its possible values.
    """
    for option in options_of(JobOptions):
        _check_value(option, getattr(options, option.name))
    if options.nodes > options.ranks:
        raise UsageError(
            f"{options.nodes} nodes for {options.ranks} ranks: a node would be empty", "give at most one node per rank"
        )
    if options.seed < 0:
        raise UsageError(f"seed {options.seed}: is negative", "give 0 or more")
    if options.version not in VERSIONS:
        raise UsageError(
            f"schema version {options.version}: not one that can be written", f"one of {', '.join(VERSIONS)}"
        )
    if options.kineto and options.faults:
        raise UsageError("kineto: it would be read from damaged files", "leave --faults or --kineto out")
    _check_layout(options)


def _check_value(option: Option, value: object) -> None:
    if issubclass(option.kind, StrEnum) and value not in tuple(option.kind):
        raise UsageError(f"{option.name} {value}: unknown", f"one of {', '.join(option.kind)}")
    if not isinstance(value, (int, float)) or option.least is None:
        return
    name = option.name.replace("_", " ")
    if not value >= option.least:
        raise UsageError(f"{name}: {value} is less than {option.least:g}", f"give {option.least:g} or more")
    if option.most is not None and value > option.most:
        raise UsageError(f"{name}: {value} is more than {option.most:g}", f"give at most {option.most:g}")


def _check_layout(options: JobOptions) -> None:
    shared = options.tp * options.pp * options.ep
    experts = f" x ep {options.ep}" if options.ep > 1 else ""
    if shared > 1 and options.profile != Workload.LLM:
        raise UsageError(
            f"tp {options.tp} x pp {options.pp}{experts}: {options.profile} is data-parallel only",
            f"use --profile {Workload.LLM}",
        )
    if options.ranks % shared:
        raise UsageError(
            f"{options.ranks} ranks: not divisible into tp {options.tp} x pp {options.pp}{experts}",
            f"give a multiple of {shared} ranks",
        )
