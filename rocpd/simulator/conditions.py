"""Owns how fast everything is, round by round: GPUs, hosts, transfers. By chance and by what is planted.

A round is the setup, one step, or the teardown: round 0, 1 …, and the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rocpd.frozen import frozen
from rocpd.simulator.facts import PlantedFact
from rocpd.simulator.options import MOST_NOISE
from rocpd.simulator.plants import Plant
from rocpd.types import Flags, Floats, Ints

_SIGMAS = 3.0  # chance goes no further, so that no rank computes in no time

LEAST_STRETCH = 1.0 - _SIGMAS * MOST_NOISE / 100
"""No GPU is faster than that."""


@frozen
class Conditions:
    """What differs between rounds and ranks.

    Args:
        stretch: how much longer kernels take: `[round, rank]`.
        clock: share of its full speed at which a GPU's clock runs: `[round, rank]`.
        delay: how late the host comes to a round [ns]: `[round, rank]`.
        transfer: how much longer transfers between ranks take: `[round]`.
        work: how much more a rank has to do: `[rank]`.
    """

    stretch: Floats
    clock: Floats
    delay: Ints
    transfer: Floats
    work: Floats


def conditions(facts: Iterable[PlantedFact], places: Sequence[int], steps: int, noise: float, seed: int) -> Conditions:
    """Return the conditions of a job.

    Args:
        facts: what is planted.
        places: the node of each rank that computes.
        steps: number of steps.
        noise: standard deviation of what a rank takes to compute a step [%].
        seed: of the job.
    """
    shape = (steps + 2, len(places))
    chance = np.random.default_rng([seed, 3]).standard_normal((steps, len(places)))
    stretch, clock = np.ones(shape), np.ones(shape)
    stretch[1:-1] += noise / 100 * np.clip(chance, -_SIGMAS, _SIGMAS)
    made = Conditions(stretch, clock, np.zeros(shape, np.int64), np.ones(steps + 2), np.ones(len(places)))
    for fact in facts:
        _apply(fact, made, np.asarray(places) == fact.node, seed)
    np.divide(stretch, clock, out=stretch)
    return made


def _apply(fact: PlantedFact, made: Conditions, on_node: Flags, seed: int) -> None:
    """Let a planted fact change the conditions; `on_node` are the ranks of the node that it strikes."""
    rounds = np.array([step + 1 for step in fact.steps], np.int64)
    factor = 1.0 + fact.size / 100
    if fact.plant is Plant.SLOW_STEP:
        made.stretch[rounds] *= factor
    elif fact.plant is Plant.INTERMITTENT:
        made.stretch[rounds, fact.rank] *= factor
    elif fact.plant is Plant.SLOW_NODE:
        made.stretch[1:-1, on_node] *= factor
    elif fact.plant is Plant.SLOW_GPUS:
        made.stretch[1:-1] *= factor
    elif fact.plant is Plant.STRAGGLER:
        made.stretch[1:-1, fact.rank] *= factor
    elif fact.plant is Plant.IMBALANCE:
        made.stretch[1:-1, fact.rank] *= factor
        made.work[fact.rank] = factor
    elif fact.plant is Plant.LATE_LAUNCH:
        made.delay[1:-1, fact.rank] = int(fact.size * 1000)
    elif fact.plant is Plant.THROTTLED:
        # Never the same: a GPU that is too hot goes up and down.
        share = 0.5 + 0.5 * np.random.default_rng([seed, 6]).random(len(rounds))
        made.clock[rounds, fact.rank] = 1.0 - fact.size / 100 * share
    elif fact.plant is Plant.SLOW_COLLECTIVES:
        made.transfer[rounds] = fact.size
