"""Steps that make the difference of means are named: no window, no warm-up, and no change that all steps have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rocpd.compare.comparison import changed_since, compare, outlying_steps
from rocpd.compare.decision import decide
from rocpd.compare.options import DiffOptions
from rocpd.compare.run_profile import STEPS, WINDOW, RunFacts, RunProfile
from rocpd.simulator import JobOptions, plan, simulate
from tests.compare.test_diff import profile_of

USUAL = [1000.0, 1010.0, 990.0, 1005.0, 1000.0, 995.0, 1002.0, 998.0]
MS = 1e3


def run(times: Sequence[float], unit: str = STEPS, name: str = "a") -> RunProfile:
    """A run with steps of so many us, from number 0 on."""
    samples = {"step": tuple(time * MS for time in times)}
    return RunProfile(name, unit, tuple(range(len(times))), 0, samples, 1, (), {}, (), RunFacts())


def with_steps(*numbers: int, longer: float = 2.0) -> list[float]:
    return [time * (longer if number in numbers else 1) for number, time in enumerate(USUAL)]


def said(base: RunProfile, new: RunProfile) -> str:
    return (outlying_steps([base], [new]) or ("",))[0]


def test_one_step_that_makes_the_difference_is_named() -> None:
    assert said(run(USUAL), run(with_steps(5))) == (
        "step 5 makes 99 % of the difference of the means, which medians hide: it takes 1.99 ms, the median is 1.00 ms"
    )
    assert said(run(with_steps(5)), run(USUAL)).startswith("step 5 of the base makes 99 % ")


def test_one_step_beside_a_change_of_all_is_told_apart() -> None:
    text = said(run(USUAL), run([time * 1.3 for time in with_steps(5, longer=2.0)]))
    assert text.startswith("step 5 makes 35 % of the difference of the means, and the verdict leaves that out: ")


def test_several_steps_are_named_together() -> None:
    text = said(run(USUAL), run(with_steps(2, 5)))
    assert text.startswith("steps 2, 5 make ")
    assert ": step 5 takes 1.99 ms, step 2 1.98 ms, the median is " in text


def test_a_step_that_is_as_long_on_the_other_side_is_none() -> None:
    """Step 2 takes twice as long on both sides."""
    slower = [time * 1.1 for time in with_steps(2, 5)]
    assert said(run(with_steps(2)), run(slower)).startswith("step 5 makes ")


@pytest.mark.parametrize(
    ("base", "new"),
    [
        (USUAL, with_steps(0)),  # warm-up
        (USUAL, with_steps(*range(8))),  # all of them
        (USUAL, with_steps(1, 3, 5, 7)),  # half of them are no exception
        (with_steps(3), with_steps(5)),  # each side has its own
        (USUAL, [time * 1.3 for time in with_steps(5, longer=1.1)]),  # the whole run is slower, and one step a little
        (USUAL, USUAL[::-1]),
        (USUAL[:3], [*USUAL[:2], 5000.0]),  # too few to tell
    ],
)
def test_nothing_is_said_where_no_step_makes_it(base: list[float], new: list[float]) -> None:
    assert said(run(base), run(new)) == ""


def test_windows_have_no_steps() -> None:
    assert said(run(USUAL, WINDOW), run(with_steps(5), WINDOW)) == ""


def test_runs_of_which_a_median_alone_is_known_have_no_steps() -> None:
    known = replace(run(USUAL), samples={"step": (1000.0 * MS,)})
    assert said(known, run(with_steps(5))) == ""


def test_of_several_runs_it_is_said_which_one_has_the_step() -> None:
    runs = [run(USUAL, name="b1"), run(with_steps(5, longer=5.0), name="b2")]
    text, _ = outlying_steps([run(USUAL)], runs) or ("", False)
    assert text.startswith("step 5 of b2 makes ")


@pytest.mark.parametrize("plant", ["slow-step", "slow-collectives"])
def test_planted_steps_are_named_with_the_part_that_grew(plant: str, tmp_path: Path) -> None:
    jobs = [JobOptions(tmp_path / name, ranks=2, steps=12, seed=4, plant=name) for name in ("none", plant)]
    base, new = ([profile_of(*simulate(job))] for job in jobs)
    findings = compare(base, new, DiffOptions()).findings
    (text,) = (finding.text for finding in findings if finding.rule == "diff.steps")
    slow, part = {
        "slow-step": (f"step {plan(jobs[1]).slow_step} makes ", "compute"),
        "slow-collectives": ("steps 1, 5, 9 make ", "exposed communication: transfer"),
    }[plant]
    assert text.startswith(slow)
    assert f"; mostly {part}, " in text


def since(base: RunProfile, new: RunProfile) -> str:
    return changed_since([base], [new])


def test_steps_that_are_longer_from_one_on_are_said_as_such() -> None:
    slower = run(with_steps(*range(3, 8), longer=1.5))
    said_of_it = "a step takes 1.50 ms, before 1.00 ms: +50.0 % since then"
    assert since(run(USUAL), slower) == f"from step 3 on {said_of_it}"
    assert since(slower, run(USUAL)) == f"from step 3 of the base on {said_of_it}"
    assert since(slower, slower) == ""
    assert since(run(USUAL), run(with_steps(5, 6))) == ""  # for a while
    assert since(run(USUAL), run([1000.0 + 50 * number for number in range(8)])) == ""  # grows


def test_a_change_in_the_middle_does_not_widen_the_interval() -> None:
    options = DiffOptions()
    change = decide([USUAL], [with_steps(*range(3, 8), longer=1.5)], options)
    assert change.verdict == "slower"
    assert change.ratio
    assert change.ratio.low
    assert change.ratio.low > 1.25
