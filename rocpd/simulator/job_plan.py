"""Owns everything about a job that is decided before a row is written: who runs where, whose clock says what,
who straggles, and when each rank starts each segment in true time.

This is the answer key: alignment and straggler analyses are judged against it. Never touches the disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rocpd.schema.versions import VERSIONS
from rocpd.simulator import layout
from rocpd.simulator.options import JobOptions, check
from rocpd.simulator.template import Template
from rocpd.types import Floats, Ints

STRAGGLER_FACTOR = 1.35
SLOW_FACTOR = 1.9
DISK_STATES: tuple[str, ...] = ("plain", "wal_header", "leftover_wal", "hot_journal")
"""How a file lies on disk; all but `plain` occur only with faults.

`wal_header`: in WAL mode, closed well. `leftover_wal`, `hot_journal`: what a killed writer leaves.
"""

_STEP_GAP = 5000  # between segments and steps [ns]
_SETUP_ROOM = 40_000_000  # from true time 0 to the first step [ns]
_NOISE = 0.04  # largest relative slowdown that any segment suffers by chance
_BYTES_PER_NS = 320.0  # of an all-reduce


@dataclass(frozen=True)
class NodeClock:
    """One machine and its clock.

    Args:
        offset_ns: what the clock shows at true time 0 [ns].
        drift_ppm: how much too fast it runs [parts per million].
    """

    hostname: str
    machine_id: str
    hash: int
    offset_ns: int
    drift_ppm: float

    def local(self, true: Ints) -> Ints:
        """Return what this node's clock shows at true times [ns]."""
        drifted: Ints = np.floor(true * (self.drift_ppm * 1e-6)).astype(np.int64)
        return true + drifted + self.offset_ns


@dataclass(frozen=True)
class RankPlan:
    """Where a rank runs and how its file is written."""

    number: int
    node: int
    local_rank: int
    local_size: int
    pid: int
    guid: str
    start_ns: int
    version: str
    disk_state: str
    empty: bool


@dataclass(frozen=True)
class Timing:
    """True times [ns]: `anchors[step, rank]` as `template.Time` numbers them, `stretch[step, rank, segment]`."""

    anchors: Ints
    stretch: Floats
    end: Ints


@dataclass(frozen=True)
class JobPlan:
    """The planted facts of a job.

    Args:
        steps: number of steps.
        straggler_rank: rank whose GPU is slow throughout; None for a job of one rank.
        straggler_factor: how much longer its kernels take.
        slow_step: step in which all ranks are slow; None for a job of one step.
        slow_factor: how much longer kernels take in it.
        nodes: clocks, by node number.
        ranks: their plans, by rank.
    """

    options: JobOptions
    steps: int
    straggler_rank: int | None
    straggler_factor: float
    slow_step: int | None
    slow_factor: float
    nodes: tuple[NodeClock, ...]
    ranks: tuple[RankPlan, ...]
    timing: Timing = field(repr=False, compare=False)

    def collective_ends(self) -> Ints:
        """Return the true end times [ns] of all all-reduces, in order; every rank ends them together."""
        reduced = [3 * k + 2 for k, size in enumerate(layout.step(self.options.profile, False).reduce) if size]
        ends: Ints = self.timing.anchors[:, 0, reduced].ravel()
        return ends


def plan(options: JobOptions) -> JobPlan:
    """Decide everything that is planted in a job; equal options give an equal plan.

    Raises:
        UsageError: the options make no sense.
    """
    check(options)
    random = np.random.default_rng([options.seed, 0])
    steps = _steps(options)
    nodes = tuple(_node(random, n) for n in range(options.nodes))
    straggler = int(random.random() * options.ranks)
    slow = 1 + int(random.random() * (steps - 1))
    straggler_rank = straggler if options.ranks > 1 else None
    slow_step = slow if steps > 1 else None
    base_pid = 4000 + int(random.random() * 20000)
    ranks = tuple(_rank_plan(options, nodes, rank, base_pid) for rank in range(options.ranks))
    stretch = 1.0 + _NOISE * random.random((steps, options.ranks, len(layout.step(options.profile, False).nominal)))
    if straggler_rank is not None:
        stretch[:, straggler_rank] *= STRAGGLER_FACTOR
    if slow_step is not None:
        stretch[slow_step] *= SLOW_FACTOR
    timing = _timing(options, ranks, stretch)
    facts = (straggler_rank, STRAGGLER_FACTOR, slow_step, SLOW_FACTOR)
    return JobPlan(options, steps, *facts, nodes, ranks, timing)


def _steps(options: JobOptions) -> int:
    if options.events_per_rank is None:
        return options.steps
    special, plain = (layout.step(options.profile, kind).events for kind in (True, False))
    around = layout.setup(options.profile).events + layout.teardown(options.profile).events
    mean = plain + (special - plain) / layout.SPECIAL_EVERY
    return max(1, round((options.events_per_rank - around) / mean))


def _node(random: np.random.Generator, node: int) -> NodeClock:
    words = [int(w * 2**32) for w in random.random(4)]
    # Unrelated clocks: up to three days of uptime apart, 20 ppm is what an undisciplined quartz does.
    offset = 1_000_000_000_000_000 + int(random.random() * 2.6e14)
    drift = round((random.random() - 0.5) * 40, 3)
    machine = "".join(f"{w:08x}" for w in words)
    return NodeClock(f"gpu-node-{node:02d}", machine, words[0] << 31 ^ words[1], offset, drift)


def _rank_plan(options: JobOptions, nodes: tuple[NodeClock, ...], rank: int, base_pid: int) -> RankPlan:
    on_node = [r * options.nodes // options.ranks for r in range(options.ranks)]
    node = on_node[rank]
    local_rank = rank - on_node.index(node)
    random = np.random.default_rng([options.seed, 1, rank])
    start = int(random.random() * 3_000_000)
    clock = nodes[node]
    turn = rank + options.seed
    return RankPlan(
        number=rank,
        node=node,
        local_rank=local_rank,
        local_size=on_node.count(node),
        # The same on every node, as in containers: a pid is no identity.
        pid=base_pid + 7 * local_rank,
        guid=_guid(random, int(clock.local(np.array([start]))[0])),
        start_ns=start,
        version=VERSIONS[turn % len(VERSIONS)] if options.faults else options.version,
        disk_state=DISK_STATES[turn % len(DISK_STATES)] if options.faults else "plain",
        empty=options.faults and rank % 8 == 6,
    )


def _guid(random: np.random.Generator, init_ns: int) -> str:
    """Return a GUID as rocprofv3 forms it: milliseconds of its clock, then version, variant and chance."""
    millis = f"{init_ns // 1_000_000:012x}"
    low, mid, high = (int(x * 2**16) for x in random.random(3))
    variant = 0x8000 | int(random.random() * 2**14)
    return f"{millis[:8]}-{millis[8:]}-7{millis[9:]}-{variant:04x}-{low:04x}{mid:04x}{high:04x}"


def _timing(options: JobOptions, ranks: tuple[RankPlan, ...], stretch: Floats) -> Timing:
    steps, count, segments = stretch.shape
    anchors = np.zeros((steps, count, 3 * segments), dtype=np.int64)
    now: Ints = np.array([rank.start_ns + _SETUP_ROOM for rank in ranks], dtype=np.int64)
    for step in range(steps):
        template = layout.step(options.profile, step % layout.SPECIAL_EVERY == 0)
        now = _run_step(template, anchors[step], stretch[step], now)
    return Timing(anchors, stretch, now)


def _run_step(template: Template, anchors: Ints, stretch: Floats, now: Ints) -> Ints:
    """Fill the anchors of one step of all ranks; return the start of the next step."""
    reduced = np.zeros_like(now)
    for k, nominal in enumerate(template.nominal):
        anchors[:, 3 * k] = now
        arrived = now + np.ceil(nominal * stretch[:, k]).astype(np.int64)
        if template.reduce[k]:
            # The communication stream is one queue: an all-reduce starts after the previous one.
            start = np.maximum(arrived, reduced + 1000)
            reduced = np.full_like(now, int(start.max()) + 18_000 + int(template.reduce[k] / _BYTES_PER_NS))
            anchors[:, 3 * k + 1] = start
            anchors[:, 3 * k + 2] = reduced
        if template.waits[k]:
            arrived = np.maximum(arrived, reduced)
        now = arrived + _STEP_GAP
    return now
