"""Which kernels are the same, level by level; and whether two runs compare."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rocpd.compare.attribution import attribute, pair_kernels, side_of
from rocpd.compare.comparison import comparability, compare
from rocpd.compare.measure import CodeFacts, KernelLaunch, Moved
from rocpd.compare.options import DiffOptions
from rocpd.compare.run_profile import COMPUTE, TRANSFER, LaunchUse, RankUse, RunFacts, RunProfile

GEMM = "Cijk_Ailk_Bljk_BBS_BH_MT{}x192x64_MI16x16x1"


def use(
    name: str, symbol: str = "", path: str = "step # / forward", category: str = "other", operator: str = ""
) -> LaunchUse:
    launch = KernelLaunch("compute", symbol or name, name, category, path, (64, 1, 1, 64, 1, 1), CodeFacts(), operator)
    return LaunchUse(launch, 10, 1000, {COMPUTE: 1000}, 100.0)


def levels(
    base: list[LaunchUse], new: list[LaunchUse], match: str | None = None
) -> list[tuple[str, list[str], list[str]]]:
    pairs = pair_kernels(base, new, re.compile(match) if match else None)
    return [(pair.level.name, [k.name for k in pair.base], [k.name for k in pair.new]) for pair in pairs]


def test_levels_in_their_order() -> None:
    base = [use("a"), use("void f(int) [clone .kd]", "_Z1f_1"), use(GEMM.format(256)), use("gone")]
    new = [use("a"), use("void f(int)", "_Z1f_2"), use(GEMM.format(128)), use("fresh", path="elsewhere")]
    assert levels(base, new) == [
        ("MANGLED", ["a"], ["a"]),
        ("NAME", ["void f(int) [clone .kd]"], ["void f(int)"]),
        ("FAMILY", [GEMM.format(256)], [GEMM.format(128)]),
        ("GONE", ["gone"], []),
        ("NEW", [], ["fresh"]),
    ]


def test_fewer_bytes_of_a_collective_are_work() -> None:
    """Pairs exchange a quarter in a quarter of the time; all-reduces of all eight ranks get faster."""

    def side(size: int, time: int, of_all: int) -> list[LaunchUse]:
        launch = use("nccl").launch._replace(kind="communication")
        pieces = ((Moved("ALLREDUCE", 2, size), time), (Moved("ALLREDUCE", 8, 1 << 20), of_all))
        return [
            LaunchUse(launch._replace(moved=moved), 1, each, {TRANSFER: each}, float(each)) for moved, each in pieces
        ]

    base, new = side(192 << 20, 400, 90), side(48 << 20, 100, 70)
    runs = [replace(RUN, uses=tuple(uses)) for uses in (base, new)]
    (kernel,) = attribute(side_of(runs[:1]), side_of(runs[1:]), pair_kernels(base, new)).kernels
    assert (kernel.change, kernel.work, kernel.speed, kernel.calls, kernel.is_other_work) == (-160, -150, -10, 0, True)
    assert kernel.launched == "all-reduce of 2 ranks moves 48.0 MiB instead of 192 MiB"


def test_a_collective_of_other_ranks_is_said_to_be() -> None:
    def of(ranks: int) -> LaunchUse:
        moved = Moved("ALLREDUCE", ranks, 48 << 20)
        launch = use("nccl").launch._replace(kind="communication", moved=moved)
        return LaunchUse(launch, 1, 400, {TRANSFER: 400}, 400.0)

    base, new = [of(8)], [of(4)]
    runs = [replace(RUN, uses=tuple(uses)) for uses in (base, new)]
    (kernel,) = attribute(side_of(runs[:1]), side_of(runs[1:]), pair_kernels(base, new)).kernels
    assert (kernel.is_other_work, kernel.launched) == (True, "all-reduce of 4 ranks instead of 8")


def test_calls_that_shift_to_another_grid_are_other_work() -> None:
    """Another rank is critical, with larger grids: it makes as many calls."""

    def grids(small: int, large: int) -> list[LaunchUse]:
        one = use("gemm")
        other = replace(one, launch=replace_grid(one.launch))
        return [
            replace(one, calls=small, time=100 * small, exposed={COMPUTE: 100 * small}),
            replace(other, calls=large, time=200 * large, exposed={COMPUTE: 200 * large}, median=200.0),
        ]

    def replace_grid(launch: KernelLaunch) -> KernelLaunch:
        return launch._replace(grid=(128, 1, 1, 64, 1, 1))

    base, new = grids(6, 4), grids(4, 6)
    runs = [replace(RUN, uses=tuple(uses)) for uses in (base, new)]
    (kernel,) = attribute(side_of(runs[:1]), side_of(runs[1:]), pair_kernels(base, new)).kernels
    assert (kernel.calls, kernel.work, kernel.speed) == (0, kernel.change, 0)
    assert kernel.change > 0


def test_what_stands_in_the_place_of_another_is_the_same() -> None:
    base = [use("first"), use("old"), use("last")]
    new = [use("first"), use("young"), use("last")]
    assert ("POSITION", ["old"], ["young"]) in levels(base, new)
    more = [use("first"), use("young"), use("other"), use("last")]
    assert not [level for level, *_ in levels(base, more) if level == "POSITION"]


def test_what_equal_operators_launch_is_the_same() -> None:
    """Two that share an operator with one of the other side are one with it; what no operator launches stays alone."""
    base = [use("sm90_gemm", operator="aten::mm"), use("flash_fwd", operator="aten::_flash"), use("alone", path="")]
    new = [use("Cijk_1", operator="aten::mm"), use("attn_fwd", operator="aten::_flash")]
    new += [use("Cijk_2", operator=operator) for operator in ("aten::mm", "aten::addmm")]
    assert levels(base, new) == [
        ("OPERATOR", ["sm90_gemm"], ["Cijk_1", "Cijk_2"]),
        ("OPERATOR", ["flash_fwd"], ["attn_fwd"]),
        ("GONE", ["alone"], []),
    ]


def test_the_last_resort_is_the_category() -> None:
    base, new = [use("old", path="a", category="GEMM")], [use("young", path="b", category="GEMM")]
    assert levels(base, new) == [("CATEGORY", ["old"], ["young"])]
    assert [level for level, *_ in levels([use("old", path="a")], [use("young", path="b")])] == ["GONE", "NEW"]


def test_what_is_not_clear_stays_together() -> None:
    base, new = [use(GEMM.format(tile)) for tile in (256, 512)], [use(GEMM.format(tile)) for tile in (64, 128)]
    assert levels(base, new) == [("FAMILY", [k.launch.name for k in base], [k.launch.name for k in new])]


def test_groups_of_an_expression_come_first() -> None:
    base, new = [use("kernel_v1_add"), use("kernel_v1_mul")], [use("kernel_v2_mul"), use("kernel_v2_add")]
    assert levels(base, new, r"kernel_v\d_(\w+)") == [
        ("REGEX", ["kernel_v1_add"], ["kernel_v2_add"]),
        ("REGEX", ["kernel_v1_mul"], ["kernel_v2_mul"]),
    ]


RUN = RunProfile(
    "run",
    "step",
    (0, 1),
    0,
    {"step": (1000.0, 1000.0)},
    1,
    (use("a"), use("b")),
    {},
    (RankUse(0, "host", 1000.0),),
    RunFacts(4, 1, ("MI300X",), ("3.0.1",), ("HIP", "kernels"), 2100.0, {"NCCL_ALGO": "Ring"}, ("python train.py",)),
)


@pytest.mark.parametrize(
    ("changed", "score", "sentence"),
    [
        ({}, 1.0, None),
        ({"ranks": 8}, 0.5, "ranks: 4 and 8"),
        ({"gpus": ("MI250",)}, 0.6, "GPUs: MI300X and MI250"),
        ({"gpus": ()}, 1.0, None),
        ({"recorded": ("kernels",)}, 0.9, "HIP: recorded on the base alone"),
        ({"clock_mhz": 1900.0}, 1.0, "clocks of GPUs: 2100 and 1900 MHz, -9.5 %"),
        ({"environment": {"NCCL_ALGO": "Tree"}}, 1.0, "NCCL_ALGO: Ring and Tree"),
        ({"commands": ("python other.py",)}, 1.0, "command: python train.py and python other.py"),
    ],
)
def test_what_differs_is_said(changed: dict[str, object], score: float, sentence: str | None) -> None:
    other = replace(RUN, facts=replace(RUN.facts, **changed))  # type: ignore[arg-type]
    attribution = attribute(side_of([RUN]), side_of([other]), pair_kernels(RUN.uses, other.uses))
    found = comparability([RUN], [other], attribution, 0.5)
    assert found.score == pytest.approx(score)
    assert found.sentences == (() if sentence is None else (sentence,))


def test_other_kernels_and_other_units_do_not_compare() -> None:
    for other in (replace(RUN, uses=(use("x", path="y"),)), replace(RUN, unit="window")):
        attribution = attribute(side_of([RUN]), side_of([other]), pair_kernels(RUN.uses, other.uses))
        found = comparability([RUN], [other], attribution, 0.5)
        assert (found.score, found.is_enough) == (0, False)


@pytest.mark.parametrize(
    ("idle", "said"),
    [
        ({"host work": 900}, "450 ns longer: idle: host work 450 ns"),
        ({"host work": 500, "launching": 300}, "400 ns longer: idle: host work 250 ns and idle: launching 150 ns"),
        (
            {"host work": 400, "launching": 300, "blocking copy": 200, "module load": 100},
            "500 ns longer: idle: host work 200 ns, idle: launching 150 ns and idle: blocking copy 100 ns",
        ),
    ],
)
def test_as_many_parts_are_named_as_make_most_of_the_change(idle: dict[str, int], said: str) -> None:
    times = (1000.0 + sum(idle.values()) / 2,) * 2
    new = replace(RUN, idle={f"idle: {part}": time for part, time in idle.items()}, samples={"step": times})
    comparison = compare([RUN] * 4, [new] * 4, DiffOptions())
    assert [each.text for each in comparison.findings if each.rule == "diff.explained"] == [f"on average {said}"]
