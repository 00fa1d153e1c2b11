"""Jobs whose answers were wrong once, with the truth: one function a case, and `CASES` with the usual sizes by name.

`made` runs a case, writes its files, and says what each planted cause costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tests.blame.files import write
from tests.blame.generator import Job, Plant, Shape, Truth, played, truths

LAYOUTS = {
    "dp": Shape(),
    "tp": Shape(tp=8),
    "tp-dp": Shape(tp=4, nodes=2),
    "tp2-dp": Shape(tp=2, nodes=2),
    "tp-dp-on-8-nodes": Shape(ranks=32, nodes=8, tp=4, steps=12, layers=2),
    "pp": Shape(ranks=4, pp=4, layers=1),
    "pp-dp": Shape(pp=2, layers=1),
    "ep": Shape(ep=4),
}
"""Layouts by name."""


@dataclass(frozen=True)
class Case:
    """A job and who is to blame for the time that it loses.

    Args:
        plants: causes of lost time.
        slow_steps: steps that are slow, each with the rank that made it so; None: all ranks alike.
        lasting: ranks that are slower than their like in all steps: stragglers, or ranks of a late node.
        link: the group whose transfers take longer than those of its like.
        may_be_unknown: whether "not known" is right too: what is recorded does not say who exchanges with whom.
    """

    shape: Shape
    plants: tuple[Plant, ...]
    slow_steps: Mapping[int, int | None]
    lasting: frozenset[int] = frozenset()
    link: tuple[int, ...] = ()
    may_be_unknown: bool = False


def checkpoints_beside_a_mild_straggler(seed: int = 0) -> Case:
    """The host of rank 0 stalls 8 ms in steps 7 and 12; rank 1 computes 6 % longer."""
    plants = (Plant("stall", 8000, (0,), (7, 12)), Plant("compute", 6, (1,)))
    return Case(Shape(seed=seed), plants, {7: 0, 12: 0}, frozenset({1}))


def stall_beside_a_straggler(percent: float, seed: int = 0) -> Case:
    """The host of rank 5 stalls 4 ms in step 9; rank 1 computes some percent longer."""
    plants = (Plant("stall", 4000, (5,), (9,)), Plant("compute", percent, (1,)))
    return Case(Shape(seed=seed), plants, {9: 5}, frozenset({1}))


def host_that_pauses_in_each_step(micros: float, seed: int = 0) -> Case:
    """The host of rank 3 does nothing for a while in the middle of all steps."""
    return Case(Shape(seed=seed), (Plant("stall", micros, (3,)),), {}, frozenset({3}))


def step_that_is_long_on_all(step: int, times: float, seed: int = 0) -> Case:
    """All ranks compute several times as long in one step: none of them is to blame."""
    plant = Plant("compute", (times - 1) * 100, tuple(range(8)), (step,))
    return Case(Shape(seed=seed), (plant,), {step: None})


def node_that_starts_late(host_jitter: float = 0, seed: int = 0) -> Case:
    """The four ranks of the second node come 400 us late to each step, and compute as fast as the others."""
    shape = Shape(nodes=2, host_jitter=host_jitter, seed=seed)
    return Case(shape, (Plant("late", 400, shape.on_node(1)),), {}, frozenset(shape.on_node(1)))


def straggler_of_a_late_node(seed: int = 0) -> Case:
    """The ranks of the second node come 400 us late to each step; rank 5, one of them, computes 10 % longer, too."""
    late = node_that_starts_late(seed=seed)
    return replace(late, plants=(*late.plants, Plant("compute", 10, (5,))), lasting=late.lasting | {5})


def straggler_of_a_slow_node(seed: int = 0) -> Case:
    """The ranks of the second node compute 6 % longer; rank 5, one of them, another 10 %."""
    shape = Shape(nodes=2, seed=seed)
    plants = (Plant("compute", 6, shape.on_node(1)), Plant("compute", 10, (5,)))
    return Case(shape, plants, {}, frozenset(shape.on_node(1)))


def slow_link_in_a_node(seed: int = 0) -> Case:
    """All-reduces inside of the second node take four times as long; calls name the communicator of each."""
    shape = Shape(tp=4, nodes=2, rccl="calls", seed=seed)
    return Case(shape, (Plant("link", 4, (4, 5, 6, 7)),), {}, link=(4, 5, 6, 7))


def slow_link_where_both_readings_fit(seed: int = 0) -> Case:
    """One all-reduce in the node and one across nodes a step: neither sizes nor counts say which is which."""
    shape = Shape(tp=4, nodes=2, layers=1, rccl="calls", seed=seed)
    return Case(shape, (Plant("link", 5, (4, 5, 6, 7)),), {}, link=(4, 5, 6, 7), may_be_unknown=True)


def slow_node_of_tensor_and_data_parallelism(rccl: str = "none", seed: int = 0) -> Case:
    """The ranks of the second node compute 10 % longer; every data-parallel collective crosses nodes."""
    shape = Shape(tp=4, nodes=2, rccl=rccl, seed=seed)
    return Case(shape, (Plant("compute", 10, shape.on_node(1)),), {}, frozenset(shape.on_node(1)))


def straggler_among_experts(percent: float, rccl: str = "none", seed: int = 0) -> Case:
    """Rank 4 computes longer; its all-to-alls are sends and receives, and a dense all-reduce follows."""
    plants = (Plant("compute", percent, (4,)),)
    return Case(Shape(ep=8, layers=3, rccl=rccl, seed=seed), plants, {}, frozenset({4}), may_be_unknown=rccl == "none")


def straggler_in(layout: str, percent: float, rccl: str = "none", seed: int = 0) -> Case:
    """Rank 2 computes longer: others are late at later groups because they waited for it in earlier ones."""
    shape = replace(LAYOUTS[layout], rccl=rccl, seed=seed)
    may_be_unknown = rccl == "none" and (shape.ep > 1 or shape.pp > 1)
    return Case(shape, (Plant("compute", percent, (2,)),), {}, frozenset({2}), may_be_unknown=may_be_unknown)


def warm_up_beside_a_straggler(times: float = 20, seed: int = 0) -> Case:
    """All compute many times as long in the first step, which is warm-up; rank 3 computes 10 % longer in all."""
    plants = (Plant("compute", 10, (3,)), Plant("compute", (times - 1) * 100, tuple(range(8)), (0,)))
    return Case(Shape(seed=seed), plants, {}, frozenset({3}))


def equal_ranks(layout: str = "dp", rho: float = 0.0, heavy: bool = False, seed: int = 0) -> Case:
    """Nothing is planted: no rank is to be named as one that is slower for good."""
    return Case(replace(LAYOUTS[layout], noise=0.02, rho=rho, heavy=heavy, seed=seed), (), {})


CASES: Mapping[str, Case] = {
    "checkpoints": checkpoints_beside_a_mild_straggler(),
    **{f"stall-beside-{percent}": stall_beside_a_straggler(percent) for percent in (2, 3, 5, 10)},
    **{f"step-{n}-x{times}": step_that_is_long_on_all(n, times) for n, times in ((0, 4), (0, 20), (9, 2), (9, 5))},
    "pauses": host_that_pauses_in_each_step(2500),
    "late-node": node_that_starts_late(),
    "late-node-with-jitter": node_that_starts_late(100),
    "late-node-and-straggler": straggler_of_a_late_node(),
    "slow-node-and-straggler": straggler_of_a_slow_node(),
    "slow-link": slow_link_in_a_node(),
    "slow-link-both-fit": slow_link_where_both_readings_fit(),
    "slow-node": slow_node_of_tensor_and_data_parallelism(),
    "slow-node-rccl": slow_node_of_tensor_and_data_parallelism("sizes"),
    **{f"experts-{percent}": straggler_among_experts(percent) for percent in (10, 30)},
    "experts-rccl": straggler_among_experts(10, "sizes"),
    **{f"{layout}-10": straggler_in(layout, 10) for layout in ("dp", "tp", "tp-dp", "tp2-dp", "pp", "pp-dp")},
    **{f"{layout}-10-rccl": straggler_in(layout, 10, "sizes") for layout in ("tp-dp", "pp", "pp-dp")},
    "tp-dp-30": straggler_in("tp-dp", 30),
    "warm-up-x4": warm_up_beside_a_straggler(4),
    "warm-up-x250": warm_up_beside_a_straggler(250),
    "equal": equal_ranks(),
    "equal-with-memory": equal_ranks(rho=0.8),
    "equal-with-heavy-tails": equal_ranks(heavy=True),
}
"""Name -> case."""


@dataclass(frozen=True)
class Made:
    """A case that has run: its files by rank, and what happened."""

    case: Case
    files: tuple[Path, ...]
    job: Job

    @cached_property
    def truths(self) -> tuple[Truth, ...]:
        """What each planted cause costs: few tests ask, and each plant is another job."""
        return truths(self.job)


def made(case: Case, folder: Path) -> Made:
    """Run a case and write its files."""
    job = played(case.shape, case.plants)
    return Made(case, write(job, folder), job)
