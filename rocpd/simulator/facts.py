"""Owns whom planted facts strike: which rank, node and steps."""

from __future__ import annotations

import numpy as np

from rocpd.frozen import frozen
from rocpd.simulator.plants import INTERMITTENT_EVERY, PLANTS, SLOW_COLLECTIVES_EVERY, Plant, Planting

_STRUCK_SHARE = 3  # of the steps, one in so many is over when a GPU is throttled or a clock steps

_OF_ONE_RANK = (
    Plant.STRAGGLER,
    Plant.INTERMITTENT,
    Plant.IMBALANCE,
    Plant.LATE_LAUNCH,
    Plant.THROTTLED,
    Plant.LOST_RANK,
)
_OF_ONE_NODE = (Plant.SLOW_NODE, Plant.CLOCK_STEP)


@frozen
class PlantedFact:
    """One planted fact, as it came out.

    Args:
        size: in the unit that its meaning has; 0 where it has no size.
        rank: the rank that it strikes; None: all.
        node: the node that it strikes, all of its ranks or its clock; None: none in particular.
        steps: in which steps; none: in all, or not in steps.
    """

    plant: Plant
    size: float
    rank: int | None = None
    node: int | None = None
    steps: tuple[int, ...] = ()

    @property
    def meaning(self) -> str:
        """What it does, in words."""
        return PLANTS[self.plant].meaning.format(f"{self.size:g}")


@frozen
class Setting:
    """The job that facts are planted in: how many ranks compute, nodes and steps it has, and two first choices."""

    ranks: int
    nodes: int
    steps: int
    straggler: int
    slow_step: int


def planted(planting: Planting, setting: Setting, seed: int) -> tuple[PlantedFact, ...]:
    """Choose whom the facts strike; what is chosen for one does not depend on which others are planted.

    Facts about one of several ranks or steps are left out where there is only one.
    """
    others = [rank for rank in range(setting.ranks) if rank != setting.straggler]
    random = np.random.default_rng([seed, 5])
    order = random.permutation(len(others)).tolist() or [0]
    chance = random.random()
    facts = []
    for plant, size in planting.sizes:
        rank = None
        if plant in _OF_ONE_RANK:
            if setting.ranks == 1:
                continue
            turn = _OF_ONE_RANK.index(plant)
            rank = setting.straggler if turn == 0 else others[order[(turn - 1) % len(order)]]
        steps = _steps(plant, setting)
        if (plant is Plant.SLOW_STEP and not steps) or (plant is Plant.SLOW_NODE and setting.nodes == 1):
            continue
        node = int(chance * setting.nodes) if plant in _OF_ONE_NODE else None
        facts.append(PlantedFact(plant, size, rank, node, steps))
    return tuple(facts)


def _steps(plant: Plant, setting: Setting) -> tuple[int, ...]:
    if plant is Plant.SLOW_STEP:
        return (setting.slow_step,) if setting.steps > 1 else ()
    if plant is Plant.INTERMITTENT:
        return tuple(range(1, setting.steps, INTERMITTENT_EVERY))
    if plant is Plant.SLOW_COLLECTIVES:
        return tuple(range(1, setting.steps, SLOW_COLLECTIVES_EVERY))
    if plant is Plant.THROTTLED:
        return tuple(range(setting.steps // _STRUCK_SHARE, setting.steps))
    if plant is Plant.CLOCK_STEP:
        return (setting.steps // _STRUCK_SHARE,)
    return ()
