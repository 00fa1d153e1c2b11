"""The options of a simulated job, and the refusal of those that make no sense; each field declares its own.

Never touches the disk. Imports nothing heavy.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path

from rocpd.base import UsageError, frozen
from rocpd.base.option import REQUIRED, Heading, Option, declare, options_of, plain
from rocpd.schema.versions import LATEST, VERSIONS
from rocpd.simulator.plants import listing


class Workload(StrEnum):
    """Shapes of a job: bare matrix products, a transformer, a conjugate-gradient solver."""

    GEMM = "gemm"
    LLM = "llm"
    HPC = "hpc"


class Rccl(StrEnum):
    """How much of RCCL's calls is recorded: none, all but the sizes of communicators, everything."""

    NONE = "none"
    CALLS = "calls"
    SIZES = "sizes"


PROFILES: tuple[str, ...] = tuple(workload.value for workload in Workload)
"""Names of the shapes."""


class CounterSet(StrEnum):
    """How many hardware counters are recorded: those of operations and bytes, or what panels and advice ask for."""

    FEW = "few"
    MANY = "many"


class Journal(StrEnum):
    """Journals of SQLite: the recorder's, or the write-ahead log."""

    DELETE = "delete"
    WAL = "wal"


DEFAULT_STEPS = 10
DEFAULT_PLANT = "straggler,slow-step"
MOST_NOISE = 20.0
"""Largest standard deviation of what a rank computes in a step [%]."""
MOST_MEMORY = 0.99
"""Largest correlation of that from one step to the next."""


_of_layout, _of_timing = partial(declare, heading=Heading.LAYOUT), partial(declare, heading=Heading.TIMING)


@frozen
class JobOptions:
    """The job to simulate: the arguments of `rocpd.simulate`, which says what each means."""

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
        UsageError: naming the option and what it may be.
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
