"""The host's calls: how often, and how long, on both sides; and which rank is the critical one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rocpd.compare.baseline import Baseline, baseline_of
from rocpd.compare.calls import CallDifference, CallUse, compare_calls
from rocpd.compare.comparison import Comparison, compare
from rocpd.compare.options import DiffOptions
from rocpd.compare.run_profile import RankUse, RunProfile
from rocpd.facts.agent_time import HOST
from rocpd.simulator import JobOptions, simulate
from tests.build import GPU, GPU2, TraceBuilder
from tests.compare.test_diff import profile_of
from tests.compare.test_pairs import RUN
from tests.conftest import Cli

HIP, RCCL = "HIP_RUNTIME_API", "RCCL_API"
COPY = CallUse("hipMemcpyAsync", HIP, 4.0, 20_000.0)
WAIT = CallUse("hipStreamSynchronize", HIP, 4.0, 900_000.0)
UNIT = 1e6  # [ns]


def compared(base: list[CallUse], new: list[CallUse], *, is_counted: bool = True) -> list[CallDifference]:
    return compare_calls([base], [new], UNIT, is_counted=is_counted)


def said(base: list[CallUse], new: list[CallUse], *, is_counted: bool = True) -> list[str]:
    return [call.said("a step") for call in compared(base, new, is_counted=is_counted) if call.is_changed]


def of_rule(rule: str, comparison: Comparison) -> list[str]:
    return [finding.text for finding in comparison.findings if finding.rule == rule]


def test_calls_are_counted_where_they_start(tmp_path: Path) -> None:
    """Of two ranks with two steps, per step and rank: HSA's calls lie in those of HIP, and the last is in no step."""
    files = []
    for number in (0, 1):
        trace = TraceBuilder(number + 1, pid=10 + number, command="train")
        for start in (1000, 2000):
            trace.region("x", start, start + 900, message=f"step {start // 1000}").kernel("k", start + 50, start + 500)
            trace.region("hipLaunchKernel", start + 10, start + 20, category=HIP)
            trace.region("hsa_signal_wait", start + 30, start + 40, category="HSA_CORE_API")
        trace.region("ncclAllReduce", 2890, 2950 + 20 * number, category=RCCL)
        trace.region("hipFree", 2900, 2910, category=HIP)
        files.append(trace.write(tmp_path / f"{number}.db"))
    assert profile_of(*files).calls == (
        CallUse("hipLaunchKernel", HIP, 1.0, 10.0),
        CallUse("ncclAllReduce", RCCL, 0.5, 35.0),
    )


@pytest.mark.parametrize("agents", [(GPU,), (GPU, GPU2)], ids=["one", "two"])
def test_host_work_that_gpus_wait_for_is_said_by_its_marker(agents: tuple[int, ...], tmp_path: Path) -> None:
    """GPUs run 500 us of each of six steps, and before that wait for a batch to be loaded: for 20 or 400 us."""
    sides = []
    for load in (20_000, 400_000):
        trace = TraceBuilder(load, pid=10, command="train")
        for step in range(6):
            at = 1_000_000 + (load + 510_000) * step
            trace.region("roctxRangePushA", at, at + load + 508_000, message=f"step {step}")
            trace.region("roctxRangePushA", at + 10, at + load, message=f"load batch {step}")
            ready = at + load + 100
            for agent in agents:
                stack = 10 * step + agent
                trace.region("hipLaunchKernel", ready, ready + 5000 - agent, category=HIP, stack=stack)
                trace.kernel("k", ready + 5000, ready + 505_000, agent=agent, stack=stack)
        sides.append([*profile_of(trace.write(tmp_path / f"{load}.db")).calls])
    (work,) = [call for call in compared(*sides) if call.is_changed]
    assert (work.name, work.is_host_work) == ("host work in load batch #", True)
    assert work.change == pytest.approx(380_000 * 5 / 6, rel=0.01)  # before the first kernel no GPU waits
    assert work.lengths[1] == pytest.approx(400_000 * 5 / 6, rel=0.01)
    assert work.said("a step").startswith("host work in load batch #: GPUs wait ")


def test_more_calls_and_longer_calls_are_said() -> None:
    more = [COPY._replace(time=2_832_000.0), WAIT._replace(calls=6.0, time=988_000.0)]
    assert said([COPY, WAIT], more) == [
        "hipMemcpyAsync: 5.00 us -> 708 us a call, 2.81 ms more of the host's time a step",
        "hipStreamSynchronize: 4 -> 6 calls a step, 88.0 us more of the host's time a step",
    ]
    assert said(more, [COPY, WAIT])[1] == (
        "hipStreamSynchronize: 6 -> 4 calls a step, 88.0 us less of the host's time a step"
    )
    both = COPY._replace(calls=8.0, time=400_000.0)
    assert said([COPY], [both]) == [
        "hipMemcpyAsync: 4 -> 8 calls a step, 5.00 us -> 50.0 us a call, 380 us more of the host's time a step"
    ]


@pytest.mark.parametrize(
    ("base", "new"),
    [
        (WAIT, WAIT._replace(time=2_000_000.0)),  # it waits for a slower GPU
        (COPY, COPY._replace(calls=4.4)),  # not half a call a step
        (COPY._replace(calls=100.0), COPY._replace(calls=104.0)),
        (COPY, COPY._replace(time=29_900.0)),  # not half as long again
        (COPY, COPY._replace(time=29_999.0, calls=4.0)),  # less than a hundredth of a step
        (WAIT._replace(name="hipEventQuery"), WAIT._replace(name="hipEventQuery", calls=99.0)),  # it polls
        (CallUse("host work in x", HOST, 1.0, 30_000.0), CallUse("host work in x", HOST, 0.5, 25_000.0)),  # of one rank
    ],
)
def test_what_says_little_is_not_said(base: CallUse, new: CallUse) -> None:
    assert said([base], [new]) == []


def test_of_calls_that_wait_is_said_where_there_are_more_or_fewer() -> None:
    """What a function does at other places is the same; a baseline of older versions does not say where it is."""
    usual, more = WAIT._replace(place="in optimizer"), WAIT._replace(calls=6.0, place="in backward, after hipMalloc")
    few = more._replace(calls=2.0, place="outside of markers")
    ending = "calls a step, 900 us more of the host's time a step; in backward, after hipMalloc"
    assert said([usual], [usual, more]) == [f"hipStreamSynchronize: 4 -> 10 {ending}"]
    assert said([usual, more], [usual]) == [f"hipStreamSynchronize: 10 -> 4 {ending.replace('more', 'less')}"]
    (found,) = said([usual], [usual, more, few])
    assert found.endswith("; most in backward, after hipMalloc")
    (found,) = said([WAIT], [usual, more])
    assert found.endswith("time a step")


def test_windows_are_no_equal_units() -> None:
    twice = COPY._replace(calls=8.0, time=40_000.0)
    assert said([COPY], [twice], is_counted=False) == []
    assert len(said([COPY], [COPY._replace(time=90_000.0)], is_counted=False)) == 1


def test_calls_that_nobody_recorded_are_not_gone() -> None:
    """A function is new where others of its category are recorded on both sides; HIP and CUDA are not compared."""
    new = [COPY, CallUse("hipMalloc", HIP, 2.0, 100_000.0), CallUse("ncclAllReduce", RCCL, 3.0, 5000.0)]
    assert said([COPY], new) == ["hipMalloc: 0 -> 2 calls a step, 100 us more of the host's time a step"]
    assert [call.name for call in compared([COPY], new)] == ["hipMalloc", "hipMemcpyAsync"]
    assert compared([COPY], []) == compared([], [COPY]) == []
    assert compared([COPY], [CallUse("cudaMemcpyAsync", "CUDA_RUNTIME_API", 4.0, 20_000.0)]) == []


def test_runs_without_calls_say_nothing_of_their_side() -> None:
    assert compare_calls([[COPY], []], [[COPY], [COPY._replace(calls=6.0)]], UNIT, is_counted=True)[0].calls == (4, 5)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("jobs")
    plants = {"base": "none", "calls": "pageable-copies,synchronous-calls", "silent": "no-hip-trace"}
    for seed, (name, plant) in enumerate(plants.items()):
        simulate(JobOptions(folder / name, ranks=2, steps=6, seed=seed, plant=plant))
    return {name: folder / name for name in plants}


def test_planted_calls_are_named_in_sentences_and_a_table(jobs: dict[str, Path], cli: Cli) -> None:
    answer = cli("diff", jobs["base"], jobs["calls"]).out
    sentences, table = (answer.split(text, 1)[at] for text, at in (("WHERE", 0), ("CALLS OF THE HOST", 1)))
    for name in ("hipDeviceSynchronize", "hipMemcpyAsync"):
        assert f"\n{name}: " in sentences
        assert f"\n{name} " in table
    assert re.search(
        r"\nhipDeviceSynchronize: .* a step; (most )?in step # / .*, after hip\w+, before \w+\n", sentences
    )
    document = json.loads(cli("diff", jobs["base"], jobs["calls"], "--json").out)
    (copies,) = (row for row in document["calls"] if row["name"] == "hipMemcpyAsync")
    assert copies["new_each_ns"] > 10 * copies["base_each_ns"]
    change = copies["new_calls"] * copies["new_each_ns"] - copies["base_calls"] * copies["base_each_ns"]
    assert copies["change_ns"] == pytest.approx(change)


def test_nothing_is_said_without_calls_and_within_one_job(jobs: dict[str, Path], cli: Cli) -> None:
    silent = json.loads(cli("diff", jobs["base"], jobs["silent"], "--json").out)
    assert "diff.calls" not in {finding["rule"] for finding in silent["findings"]}
    for words in ((jobs["calls"], jobs["calls"]), (jobs["calls"], "--rank", "1"), (jobs["base"], jobs["silent"])):
        assert "CALLS OF THE HOST" not in cli("diff", *words).out


def test_baselines_keep_calls_and_older_ones_have_none(jobs: dict[str, Path]) -> None:
    base, new = (profile_of(*sorted(jobs[name].glob("*.db"))) for name in ("base", "calls"))
    text = Baseline((base,)).text()
    (kept,) = baseline_of(text).runs
    assert kept == base
    assert of_rule("diff.calls", compare([kept], [new], DiffOptions()))
    older = json.loads(text)
    del older["runs"][0]["calls"]
    for rank in older["runs"][0]["ranks"]:
        del rank["critical"]
    comparison = compare(baseline_of(json.dumps(older)).runs, [new], DiffOptions())
    assert comparison.calls == ()
    assert of_rule("diff.calls", comparison) == of_rule("diff.critical", comparison) == []


def with_critical(*units: int) -> RunProfile:
    """A run whose ranks are critical in so many steps."""
    return replace(RUN, ranks=tuple(RankUse(rank, "host", 1000.0, count) for rank, count in enumerate(units)))


def test_another_critical_rank_is_said() -> None:
    def said_of(base: list[RunProfile], new: list[RunProfile]) -> list[str]:
        return of_rule("diff.critical", compare(base, new, DiffOptions()))

    of_rank_1, of_rank_2, mixed = with_critical(0, 20, 4), with_critical(3, 3, 18), with_critical(8, 9, 7)
    text = "the critical rank is rank 1 in 20 of 24 steps of the base, rank 2 in 18 of 24 now"
    assert said_of([of_rank_1], [of_rank_2]) == [text]
    assert said_of([of_rank_1, of_rank_1], [of_rank_2]) == [text.replace("20 of 24", "40 of 48")]
    assert said_of([mixed], [of_rank_2]) == [text.replace("20 of", "9 of")]
    assert said_of([of_rank_1], [of_rank_1]) == said_of([mixed], [with_critical(9, 8, 7)]) == []
    by_chance = with_critical(6, 2, 2), with_critical(2, 2, 6)  # as in pairs of jobs that differ in nothing
    assert said_of([by_chance[0]], [by_chance[1]]) == []
    assert said_of([by_chance[0]], [with_critical(2, 0, 8)]) == said_of([by_chance[1]], [with_critical(8, 0, 2)]) == []
    assert said_of([by_chance[0]], [with_critical(0, 0, 10)])
