"""Laws of a comparison, on simulated jobs: equal, exchanged, adding up, split, the same bytes twice."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

import rocpd
from rocpd.compare.baseline import Baseline, baseline_of
from rocpd.compare.comparison import Comparison, compare
from rocpd.compare.options import DiffOptions
from rocpd.compare.run_profile import RunProfile, measured_runs
from rocpd.schema.rules.steps import STEP_MARKER
from rocpd.simulator import JobOptions, plan, simulate
from rocpd.table.human import readable
from tests.conftest import Cli
from tests.summary.cells import cells

TIME = re.compile(r"\d[\d.]* (?:ns|us|ms|s)\b")


def profile_of(*files: Path, metric: str = "step") -> RunProfile:
    """Read one run."""
    with rocpd.connect(list(files)) as session:
        (run,) = measured_runs(session, files[0].parent.name, DiffOptions(metric=metric))
    return run.profile()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Four small jobs: twice the same but for chance, with a straggler, and with other communication."""
    folder = tmp_path_factory.mktemp("jobs")
    plants = {"base": "none", "again": "none", "straggler": "straggler=60", "exposed": "exposed-communication"}
    for seed, (name, plant) in enumerate(plants.items()):
        rocpd.simulate(folder / name, ranks=2, steps=6, seed=seed, plant=plant)
    return {name: folder / name for name in plants}


@pytest.fixture(scope="module")
def profiles(jobs: dict[str, Path]) -> dict[str, RunProfile]:
    return {name: profile_of(*sorted(folder.glob("*.db"))) for name, folder in jobs.items()}


def between(base: RunProfile, new: RunProfile) -> Comparison:
    return compare([base], [new], DiffOptions())


def test_a_job_is_the_same_as_itself(profiles: dict[str, RunProfile]) -> None:
    for profile in profiles.values():
        same = between(profile, profile)
        assert same.verdict == "same"
        every = [*same.attribution.parts.values(), *same.attribution.kernels, *same.attribution.paths.values()]
        assert {row.change for row in every} == {0}
        assert {(kernel.calls, kernel.work, kernel.speed) for kernel in same.attribution.kernels} == {(0, 0, 0)}


def test_everything_adds_up_to_the_nanosecond(profiles: dict[str, RunProfile]) -> None:
    for new in profiles.values():
        found = between(profiles["base"], new).attribution
        whole = found.unit.change
        assert sum(part.change for part in found.parts.values()) == whole
        idle = sum(part.change for name, part in found.parts.items() if name.startswith("idle"))
        assert sum(kernel.change for kernel in found.kernels) == whole - idle
        for rows in (found.categories, found.paths):
            assert sum(row.change for row in rows.values()) == whole - idle
        for kernel in found.kernels:
            assert kernel.calls + kernel.work + kernel.speed + kernel.overlap + kernel.waiting == kernel.change


def test_a_unit_is_its_parts(profiles: dict[str, RunProfile]) -> None:
    """Of all steps together, exactly; their times are those of markers."""
    for profile in profiles.values():
        parts = sum(sum(use.exposed.values()) for use in profile.uses) + sum(profile.idle.values())
        assert parts == sum(profile.samples["step"]) * profile.scale


def test_exchanged_sides_change_their_signs(profiles: dict[str, RunProfile]) -> None:
    there, back = (
        between(*pair)
        for pair in ((profiles["base"], profiles["straggler"]), (profiles["straggler"], profiles["base"]))
    )
    assert (there.verdict, back.verdict) == ("slower", "faster")
    assert there.decision.ratio
    assert back.decision.ratio
    assert math.log(there.decision.ratio.estimate) == pytest.approx(-math.log(back.decision.ratio.estimate))
    parts = {name: -row.change for name, row in back.attribution.parts.items()}
    assert {name: row.change for name, row in there.attribution.parts.items()} == parts
    assert sorted(kernel.change for kernel in there.attribution.kernels) == sorted(
        -kernel.change for kernel in back.attribution.kernels
    )


def test_how_a_job_is_split_into_files_plays_no_part(jobs: dict[str, Path], tmp_path: Path) -> None:
    files = sorted(jobs["straggler"].glob("*.db"))
    with rocpd.connect(files) as session:
        merged = session.merge(tmp_path / "merged.db")
    assert profile_of(merged).samples == profile_of(*files).samples
    base = profile_of(*sorted(jobs["base"].glob("*.db")))
    split, whole = (between(base, profile_of(*some)) for some in ((merged,), files))
    assert split.attribution == whole.attribution


@pytest.mark.parametrize(("step_marker", "unit"), [(STEP_MARKER, "step"), ("none", "window")])
def test_parts_of_a_rank_are_those_of_its_budget(step_marker: str, unit: str, jobs: dict[str, Path]) -> None:
    """To the nanosecond; of one rank without steps the time in which GPUs work, without copies before kernels."""
    files = sorted(jobs["exposed"].glob("*.db"))[: 2 if unit == "step" else 1]
    with rocpd.connect(files) as session:
        (run,) = measured_runs(session, "job", DiffOptions(step_marker=step_marker))
        budget = cells(session, "budget", "rank part time_ns", "rank", step_marker=step_marker)
    for number in range(len(files)):
        profile, times = run.of_ranks([number]), Counter[str]()
        for use in profile.uses:
            for part, time in use.exposed.items():
                times[part.partition(":")[0]] += time
        times["idle"] = sum(profile.idle.values())
        known = {part: time for rank, part, time in budget if rank == number and (part != "idle" or unit == "step")}
        assert (profile.unit, +times) == (unit, +Counter(known))


def test_what_ranks_wait_for_one_that_is_left_out_is_no_transfer(tmp_path: Path) -> None:
    """All but the straggler: how long they wait for it is not known."""
    slow, usual = (
        simulate(JobOptions(tmp_path / plant, ranks=4, steps=6, seed=5, plant=plant)) for plant in ("straggler", "none")
    )
    late = plan(JobOptions(tmp_path, ranks=4, steps=6, seed=5, plant="straggler")).straggler_rank
    base, new = (profile_of(*(file for at, file in enumerate(files) if at != late)) for files in (usual, slow))
    changes = {part: each.change for part, each in between(base, new).attribution.parts.items()}
    assert changes["exposed communication: not matched"] > 100_000
    assert "exposed communication: transfer" not in changes


def test_the_same_bytes_twice(jobs: dict[str, Path], cli: Cli) -> None:
    words = ("diff", jobs["base"], jobs["exposed"], "--json")
    first, second = cli(*words), cli(*words)
    assert first == second
    assert json.loads(first.out)["rocpd_diff"] == 1


def test_one_run_a_side_is_unclear_within_what_runs_differ_by(profiles: dict[str, RunProfile]) -> None:
    comparison = between(profiles["base"], profiles["again"])
    assert " in these recordings. Unclear whether other runs differ as much [" in comparison.findings[0].text
    alike = "comparable (score 1.00): ranks, GPUs, what is recorded and settings are alike"
    assert alike in [finding.text for finding in comparison.findings]
    found = comparison.decision
    assert (found.verdict, found.p) == ("unclear", None)
    assert (found.reason, found.noise, found.is_assumed) == ("too noisy to tell 3 %", 0.05, True)
    slower = compare([profiles["base"]], [profiles["straggler"]], DiffOptions(run_noise=2)).decision
    assert (slower.confidence, slower.noise, slower.is_assumed) == ("likely", 0.02, False)


@pytest.mark.parametrize(
    ("new", "flags", "code", "verdict"),
    [
        ("base", (), 0, "same"),
        ("straggler", (), 1, "slower"),
        ("again", (), 4, "unclear"),
        ("again", ("--allow-unclear",), 0, "unclear"),
        ("again", ("--run-noise", "1", "--margin", "20"), 0, "same"),
        ("straggler", ("--margin", "200"), 0, "same"),
    ],
)
def test_exit_codes(new: str, flags: tuple[str, ...], code: int, verdict: str, jobs: dict[str, Path], cli: Cli) -> None:
    said = cli("diff", jobs["base"], jobs[new], "--json", *flags)
    assert (said.code, json.loads(said.out)["verdict"]) == (code, verdict)


def test_failures_are_no_verdicts(jobs: dict[str, Path], tmp_path: Path, cli: Cli) -> None:
    """1 means slower, and nothing else."""
    existing = tmp_path / "x.json"
    existing.write_text("{}")
    assert cli("diff", jobs["base"]).code == 2
    assert cli("diff", jobs["base"], tmp_path / "missing").code == 3
    assert cli("diff", jobs["base"], existing).code == 3
    assert cli("diff", jobs["base"], jobs["straggler"], "-o", existing).code == 3
    assert cli("diff", jobs["base"], jobs["again"], "--metric", "gemm").code == 2


def test_a_window_has_the_steps_that_lie_in_it(jobs: dict[str, Path], cli: Cli) -> None:
    """They are the same as if they were named; steps that are cut do not count."""
    inside = ("--start-marker", "step 2", "--end-marker", "step 3")
    documents = [
        json.loads(cli("diff", jobs["base"], jobs["straggler"], "--json", *words).out)
        for words in (inside, ("--step", "2,3"), ("--step", "2-3", "--rank", "0"))
    ]
    windowed, named, of_rank = documents
    assert windowed["comparable"]["differences"] == []
    assert (windowed["unit"], windowed["parts"], windowed["kernels"]) == ("step", named["parts"], named["kernels"])
    assert {row["rank"] for row in of_rank["ranks"]} == {0}
    assert of_rank["parts"] != named["parts"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--step", "77"), 2, "no such step in all ranks"),
        (("--rank", "9"), 3, "no rank is numbered 9"),
        (("--against", "3"), 2, "--against needs one job"),
        (("--start", "99.99%"), 3, "no kernels or copies to compare in the window"),
        (("--agent", "99"), 3, "no event passes the filters"),
    ],
)
def test_parts_that_are_not_there(
    words: tuple[str, ...], code: int, said: str, jobs: dict[str, Path], cli: Cli
) -> None:
    answer = cli("diff", jobs["base"], jobs["again"], *words)
    assert answer.code == code
    assert said in answer.err


def test_a_part_keeps_its_problems_or_says_that_none_are_looked_for(jobs: dict[str, Path], cli: Cli) -> None:
    sides = jobs["base"], jobs["straggler"]
    some = cli("diff", *sides, "--step", "2-5").out.splitlines()
    assert any(line.startswith("new: rank 0 costs ") and line.endswith("; looked for in all steps") for line in some)
    assert "partners are left out by --rank or --host: " not in "".join(some)
    alone = cli("diff", *sides, "--rank", "0").out
    assert "\npartners are left out by --rank or --host: " in alone
    assert "; stragglers are not looked for\n" in alone


def test_kernels_that_are_slower_on_every_rank_are_named(jobs: dict[str, Path], tmp_path: Path) -> None:
    """Beside a rank that is slow for itself; without, or in a baseline of older versions, nothing is said of them."""

    def said(new: RunProfile) -> list[str]:
        return [each.text for each in between(base, new).findings if each.rule == "diff.speed"]

    base, straggler = (profile_of(*sorted(jobs[name].glob("*.db"))) for name in ("base", "straggler"))
    rocpd.simulate(tmp_path, ranks=2, steps=6, seed=11, plant="straggler=60,slow-kernel=9")
    both = profile_of(*sorted(tmp_path.glob("*.db")))
    (text,) = said(both)
    said_so = r"(GEMM .*) takes ([\d.]+) % longer on all 2 ranks, at equal work: .* us more a step on each rank"
    found = re.fullmatch(said_so, text)
    assert found
    assert float(found[2]) == pytest.approx(9, abs=2.5)  # GPUs differ by 1 % from run to run
    assert said(straggler) == said(base) == []
    text = Baseline((both,)).text()
    assert said(baseline_of(text).runs[0]) == said(both)
    older = json.loads(text)
    for use in older["runs"][0]["uses"]:
        del use["lengths"]
    assert said(baseline_of(json.dumps(older)).runs[0]) == []


def test_kernels_that_are_called_more_often_are_named(jobs: dict[str, Path], tmp_path: Path, cli: Cli) -> None:
    rocpd.simulate(tmp_path, ranks=2, steps=6, seed=12, plant="more-calls=2")
    lines = cli("diff", jobs["base"], tmp_path).out.splitlines()
    assert any(re.fullmatch(r"GEMM .*: 10 -> 20 calls a step and rank, [\d.]+ us more", line) for line in lines)
    assert " calls a step and rank" not in cli("diff", jobs["base"], jobs["straggler"]).out


def test_kernels_that_are_new_or_gone_are_named(jobs: dict[str, Path], tmp_path: Path, cli: Cli) -> None:
    rocpd.simulate(tmp_path, ranks=2, steps=6, seed=12, plant="new-kernel")
    new, gone = cli("diff", jobs["base"], tmp_path).out, cli("diff", tmp_path, jobs["base"]).out
    assert re.search(r"^SpMV.*: 0 -> 10 calls a step and rank, [\d.]+ us more$", new, re.MULTILINE)
    assert re.search(r"^SpMV.*: 10 -> 0 calls a step and rank, [\d.]+ us less$", gone, re.MULTILINE)


def test_overlap_that_is_lost_is_named(jobs: dict[str, Path], tmp_path: Path, cli: Cli) -> None:
    rocpd.simulate(tmp_path, ranks=2, steps=6, seed=13, plant="lost-overlap")
    lost, found = cli("diff", jobs["base"], tmp_path).out, cli("diff", tmp_path, jobs["base"]).out
    assert re.search(
        r"^compute hides [\d.]+ us less of communication a step, on average of the ranks$", lost, re.MULTILINE
    )
    assert re.search(
        r"^compute hides [\d.]+ us more of communication a step, on average of the ranks$", found, re.MULTILINE
    )
    assert " of communication a step" not in cli("diff", jobs["base"], jobs["again"]).out


def test_a_long_step_is_none_of_the_others(tmp_path: Path, cli: Cli) -> None:
    """Means then say what the headline, of medians, says."""
    job = JobOptions(tmp_path / "job", ranks=2, steps=12, seed=4, plant="slow-step")
    simulate(job)
    slow = plan(job).slow_step or 0
    answer = cli("diff", tmp_path / "job", "--step", str(slow - 1), "--format", "json")
    found = json.loads(answer.out)
    assert f", step {slow} left out as far longer than the others; " in found["findings"][0]["text"]
    assert found["unit_ns"]["base"] == pytest.approx(found["base"]["median"], rel=0.02)


def test_rows_that_are_left_out_are_counted(jobs: dict[str, Path], cli: Cli) -> None:
    def ranks(*words: str) -> list[str]:
        lines = cli("diff", jobs["base"], jobs["straggler"], *words).out.splitlines()
        return lines[lines.index("RANKS, WITHOUT COMMUNICATION") + 3 :]

    assert [row.split()[0] for row in ranks("--limit", "1")] == ["0", "1"]
    assert ranks("--limit", "1")[1].startswith("1 other ")
    assert len(ranks("--limit", "0")) == len(ranks()) == 2


def test_a_damaged_file_is_left_out_where_that_is_asked_for(jobs: dict[str, Path], tmp_path: Path, cli: Cli) -> None:
    for file in jobs["base"].glob("*.db"):
        shutil.copyfile(file, tmp_path / file.name)
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\0" + bytes(4000))
    assert cli("diff", jobs["base"], tmp_path).code == 3
    answer = cli("diff", jobs["base"], tmp_path, "--skip-bad")
    assert (answer.code, answer.out.splitlines()[0][:5]) == (0, "same:")
    assert "bad.db" in answer.err


def test_numbers_of_sentences_stand_in_the_tables(profiles: dict[str, RunProfile]) -> None:
    """How much longer, in which part, on which rank, and on which rank less."""
    comparison = between(profiles["base"], profiles["straggler"])
    verdict, news, *_ = comparison.findings
    (explained,) = (finding for finding in comparison.findings if finding.rule == "diff.explained")
    assert news.text.startswith("new: rank 0 costs ")
    times = [comparison.attribution.unit, *comparison.attribution.parts.values()]
    changes = [each.change for each in times] + [(r.new or 0) - (r.base or 0) for r in comparison.ranks]
    medians = [readable(value, "ns") for value in comparison.decision.medians]
    assert set(TIME.findall(verdict.text)) == set(medians)
    assert set(TIME.findall(explained.text)) <= {readable(abs(change), "ns") for change in changes}
    assert explained.rule == "diff.explained"
    assert "compute" in explained.text
    assert "; rank 0 changed" in explained.text or "; rank 1 changed" in explained.text
