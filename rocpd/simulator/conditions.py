"""The ranks, nodes and steps that planted facts strike; the speed of everything; and the clocks.

A round is the setup, one step, or the teardown: round 0, 1 …, and the last. GPUs, hosts and transfers are faster or
slower in each, by chance and by planted facts. The clocks of machines are apart and drift, and one may step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rocpd.base import Flags, Floats, Ints, frozen
from rocpd.simulator.layout import GroupKind, RankGroup, layout_of, places_of
from rocpd.simulator.options import INTERMITTENT_EVERY, SLOW_COLLECTIVES_EVERY, JobOptions, Plant, Planting

_STRUCK_SHARE = 3  # share of the steps before a GPU becomes throttled or slower, or a clock steps: one in this many

_OF_ONE_RANK = (
    Plant.STRAGGLER,
    Plant.INTERMITTENT,
    Plant.IMBALANCE,
    Plant.LATE_LAUNCH,
    Plant.THROTTLED,
    Plant.LOST_RANK,
    Plant.HOST_STALL,
    Plant.SLOWDOWN,
)
_OF_ONE_NODE = (Plant.SLOW_NODE, Plant.LATE_NODE, Plant.CLOCK_STEP)
_OF_SEVERAL_NODES = (Plant.SLOW_NODE, Plant.LATE_NODE)


@frozen
class PlantedFact:
    """A planted fact with its target.

    Args:
        size: in the unit of its meaning; 0 for facts without a size.
        rank: the rank that it strikes; None: all.
        node: the node whose ranks or clock it strikes; None: none in particular.
        steps: the steps that it strikes; empty: all steps, or none in particular.
        group: the group of ranks whose exchanges it strikes; None: none in particular.
    """

    plant: Plant
    size: float
    rank: int | None = None
    node: int | None = None
    steps: tuple[int, ...] = ()
    group: RankGroup | None = None

    @property
    def factor(self) -> float:
        """Factor on a duration, for sizes in %."""
        return 1.0 + self.size / 100

    @property
    def meaning(self) -> str:
        """The meaning of the fact, in words."""
        return self.plant.meaning.format(f"{self.size:g}")


def planted(
    planting: Planting, options: JobOptions, steps: int, straggler: int, slow_step: int
) -> tuple[PlantedFact, ...]:
    """Choose the targets of the facts; the choice for one fact does not depend on the others.

    Facts about one of several ranks, nodes or steps are left out if there is only one.

    Args:
        planting: the facts.
        options: the job.
        steps: number of steps.
        straggler, slow_step: first choices of a rank and a step.
    """
    others = [rank for rank in range(options.ranks) if rank != straggler]
    random = np.random.default_rng([options.seed, 5])
    order = random.permutation(len(others)).tolist() or [0]
    chance = random.random()
    facts = []
    for plant, size in planting.sizes:
        rank = None
        if plant in _OF_ONE_RANK:
            if options.ranks == 1:
                continue
            turn = _OF_ONE_RANK.index(plant)
            rank = straggler if turn == 0 else others[order[(turn - 1) % len(order)]]
        struck = _steps(plant, steps, slow_step)
        group = _struck_group(options, chance) if plant is Plant.SLOW_LINK else None
        if (plant is Plant.SLOW_STEP and not struck) or (plant is Plant.SLOW_LINK and group is None):
            continue
        if plant in _OF_SEVERAL_NODES and options.nodes == 1:
            continue
        node = int(chance * options.nodes) if plant in _OF_ONE_NODE else None
        facts.append(PlantedFact(plant, size, rank, node, struck, group))
    return tuple(facts)


def _struck_group(options: JobOptions, chance: float) -> RankGroup | None:
    """Return a group that divides the ranks, if there is one; a group that spans nodes, if there is one."""
    groups, places = layout_of(options).groups(), places_of(options)
    groups = tuple(group for group in groups if group.kind is not GroupKind.WORLD) or groups
    groups = tuple(group for group in groups if len({places[rank] for rank in group.members}) > 1) or groups
    return groups[int(chance * len(groups))] if groups else None


def _steps(plant: Plant, steps: int, slow_step: int) -> tuple[int, ...]:
    """Return the steps that a fact strikes."""
    late = steps // _STRUCK_SHARE
    struck: dict[Plant, Sequence[int]] = {
        Plant.SLOW_STEP: (slow_step,) if steps > 1 else (),
        Plant.INTERMITTENT: range(1, steps, INTERMITTENT_EVERY),
        Plant.SLOW_COLLECTIVES: range(1, steps, SLOW_COLLECTIVES_EVERY),
        Plant.HOST_STALL: sorted({late, 2 * late}) if steps > 1 else (),
        Plant.THROTTLED: range(late, steps),
        Plant.SLOWDOWN: range(late, steps),
        Plant.CLOCK_STEP: (late,),
    }
    return tuple(struck.get(plant, ()))


_SIGMAS = 3.0  # bound of chance, so that no rank computes in no time


@frozen
class Conditions:
    """The conditions that differ between rounds and ranks.

    Args:
        stretch: factor on the duration of kernels: `[round, rank]`.
        clock: clock of a GPU as a share of its full speed: `[round, rank]`.
        delay: delay of the host at the start of a round [ns]: `[round, rank]`.
        stall: pause of the host after the start of a step [ns]: `[round, rank]`.
        transfer: factor on the duration of transfers between ranks: `[round]`.
        work: factor on the work of a rank: `[rank]`.
        slow_link: a group of ranks, and the factor on its transfers in all rounds.
    """

    stretch: Floats
    clock: Floats
    delay: Ints
    stall: Ints
    transfer: Floats
    work: Floats
    slow_link: tuple[RankGroup, float] | None = None

    def transfers(self, number: int, kind: GroupKind, members: Ints) -> Floats:
        """Return the factors on transfers of groups of a kind in a round: a row for each row of `members`."""
        longer: Floats = np.full((len(members), 1), self.transfer[number])
        if self.slow_link is not None and self.slow_link[0].kind is kind:
            longer[np.isin(members, self.slow_link[0].members).all(1)] *= self.slow_link[1]
        return longer


def conditions(facts: Iterable[PlantedFact], options: JobOptions, steps: int) -> Conditions:
    """Return the conditions of a job.

    Args:
        facts: the planted facts.
        options: the job.
        steps: number of steps.
    """
    places = np.array(places_of(options)[: options.ranks], dtype=np.int64)
    shape = (steps + 2, options.ranks)
    stretch, clock = np.ones(shape), np.ones(shape)
    stretch[1:-1] += options.noise / 100 * np.clip(_chance(options, steps), -_SIGMAS, _SIGMAS)
    links = [(fact.group, fact.size) for fact in facts if fact.group is not None]
    delay, stall = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    made = Conditions(
        stretch, clock, delay, stall, np.ones(steps + 2), np.ones(options.ranks), links[0] if links else None
    )
    for fact in facts:
        _apply(fact, made, places == fact.node, options.seed)
    np.divide(stretch, clock, out=stretch)
    return made


def _chance(options: JobOptions, steps: int) -> Floats:
    """Return the random deviation of each rank in each step [standard deviations]."""
    chance = np.random.default_rng([options.seed, 3]).standard_normal((steps, options.ranks))
    rho = options.noise_memory
    for step in range(1, steps if rho else 0):
        chance[step] = rho * chance[step - 1] + math.sqrt(1 - rho * rho) * chance[step]
    return chance


def _apply(fact: PlantedFact, made: Conditions, on_node: Flags, seed: int) -> None:
    """Change the conditions by a planted fact; `on_node` flags the ranks of the node that it strikes."""
    rounds, steps = np.array([step + 1 for step in fact.steps], np.int64), slice(1, -1)
    stretched: dict[Plant, Any] = {
        Plant.SLOW_STEP: (rounds,),
        **dict.fromkeys((Plant.INTERMITTENT, Plant.SLOWDOWN), (rounds, fact.rank)),
        Plant.SLOW_NODE: (steps, on_node),
        Plant.SLOW_GPUS: (steps,),
        **dict.fromkeys((Plant.STRAGGLER, Plant.IMBALANCE), (steps, fact.rank)),
    }
    if fact.plant in stretched:
        made.stretch[stretched[fact.plant]] *= fact.factor
    if fact.plant is Plant.IMBALANCE:
        made.work[fact.rank] = fact.factor
    elif fact.plant is Plant.LATE_LAUNCH:
        made.delay[1:-1, fact.rank] += int(fact.size * 1000)
    elif fact.plant is Plant.LATE_NODE:
        made.delay[1:-1, on_node] += int(fact.size * 1000)
    elif fact.plant is Plant.HOST_STALL:
        made.stall[rounds, fact.rank] = int(fact.size * 1000)
    elif fact.plant is Plant.THROTTLED:
        # Never constant: the clock of a GPU that is too hot goes up and down.
        share = 0.5 + 0.5 * np.random.default_rng([seed, 6]).random(len(rounds))
        made.clock[rounds, fact.rank] = 1.0 - fact.size / 100 * share
    elif fact.plant is Plant.SLOW_COLLECTIVES:
        made.transfer[rounds] = fact.size


_LEAST_DRIFT = 1.0  # of an undisciplined quartz [parts per million]
_LONGEST_UPTIME = 2.6e14  # three days [ns]: largest distance of unrelated clocks


@frozen
class NodeClock:
    """One machine and its clock.

    Args:
        offset_ns: its reading at true time 0 [ns].
        drift_ppm: its excess of speed [parts per million].
        step_ns: size of its jump ahead, 0: none [ns].
        step_at: true time of the jump [ns].
    """

    hostname: str
    machine_id: str
    hash: int
    offset_ns: int
    drift_ppm: float
    step_ns: int = 0
    step_at: int = 0

    def local(self, true: Ints) -> Ints:
        """Return the readings of this node's clock at true times [ns]."""
        drifted: Ints = np.floor(true * (self.drift_ppm * 1e-6)).astype(np.int64)
        shown: Ints = true + drifted + self.offset_ns
        return shown + self.step_ns * (true >= self.step_at) if self.step_ns else shown


def make_clock(random: np.random.Generator, node: int, most_ppm: float) -> NodeClock:
    """Return a clock that is unrelated to others: hours apart, and 1 to `most_ppm` too fast or too slow."""
    words = [int(w * 2**32) for w in random.random(4)]
    offset = 1_000_000_000_000_000 + int(random.random() * _LONGEST_UPTIME)
    share = 2.0 * random.random() - 1.0
    least = min(_LEAST_DRIFT, most_ppm)
    drift = round(float(np.copysign(least + (most_ppm - least) * abs(share), share)), 3)
    machine = "".join(f"{w:08x}" for w in words)
    return NodeClock(f"gpu-node-{node:02d}", machine, words[0] << 31 ^ words[1], offset, drift)
