"""The gate: baselines, accepted changes, other metrics, steps and ranks of one job, formats."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import rocpd
from rocpd.compare.run_profile import without_repeated
from rocpd.compare.tables import TABLES, document_of
from rocpd.simulator import JobOptions, conditions, plan
from tests.blame.cases import Case, made
from tests.blame.generator import Plant, Shape
from tests.compare.test_pairs import RUN
from tests.conftest import Cli
from tests.soak import sized


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with a straggler and a slow step."""
    folder = tmp_path_factory.mktemp("job") / "job"
    rocpd.simulate(folder, ranks=2, steps=8, seed=7)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that takes more memory, and whose hottest kernel is slower."""
    folder = tmp_path_factory.mktemp("job") / "other"
    rocpd.simulate(folder, ranks=2, steps=8, seed=7, plant="straggler,slow-step,slow-kernel=60,memory-peak")
    return folder


def verdict(cli: Cli, *words: str | Path) -> dict[str, object]:
    """Return the document of a comparison."""
    content: dict[str, object] = json.loads(cli("diff", *words, "--json").out)
    return content


def test_a_baseline_stands_for_its_runs(job: Path, other: Path, tmp_path: Path, cli: Cli) -> None:
    kept = tmp_path / "main.json"
    assert cli("diff", "--save-baseline", kept, "--base", job).code == 0
    assert cli("diff", "--save-baseline", kept, "--base", job).code == 3  # exists
    assert kept.stat().st_size < 30_000
    assert verdict(cli, "--base", kept, "--new", other) == verdict(cli, job, other)
    assert cli("diff", kept, other, "--metric", "memory.peak").code == 2  # was not saved


def test_an_accepted_change_is_the_base_from_then_on(job: Path, other: Path, tmp_path: Path, cli: Cli) -> None:
    kept = tmp_path / "main.json"
    cli("diff", "--save-baseline", kept, "--base", job)
    assert cli("diff", kept, other, "--accept").code == 2
    assert cli("diff", job, other, "--accept", "--reason", "x").code == 2
    assert cli("diff", kept, other, "--accept", "--reason", "larger model").code == 0
    assert cli("diff", kept, other).code == 0
    (record,) = json.loads(kept.read_text())["accepted"]
    assert (record["reason"], record["runs"]) == ("larger model", [str(other)])


@pytest.mark.parametrize(
    ("metric", "found", "change"),
    [
        ("kernel:Cijk_Alik_Bljk", "slower", 60),
        ("kernel:Cijk_Ailk_Bljk", "unclear", 0),
        ("category:GEMM", "slower", 22),
        ("marker:^forward$", "slower", 35),
        ("memory.peak", "slower", 3000),
    ],
)
def test_other_metrics(metric: str, found: str, change: float, job: Path, other: Path, cli: Cli) -> None:
    document = verdict(cli, job, other, "--metric", metric, "--run-noise", "2")
    assert (document["metric"], document["verdict"]) == (metric, found)
    assert document["change_percent"] == pytest.approx(change, abs=max(3, change / 3))


def test_what_is_different_on_a_slow_rank(job: Path, cli: Cli) -> None:
    truth = plan(JobOptions(job, ranks=2, steps=8, seed=7))
    document = verdict(cli, job, "--rank", str(truth.straggler_rank))
    assert document["verdict"] == "slower"
    changes = {row["part"]: row["change_ns"] for row in document["parts"]}  # type: ignore[attr-defined]
    assert changes["compute"] > 500_000
    assert changes["exposed communication: waiting"] < -500_000


def test_ranks_compare_by_what_they_do_themselves(tmp_path: Path, cli: Cli) -> None:
    """Ranks 1 and 3 compute 9 % longer; how much of the exchanges that hides, or shows on others, is no work."""
    made(Case(Shape(nodes=2, steps=12), (Plant("compute", 9, (1, 3)),), {}), tmp_path / "job")
    document = verdict(cli, tmp_path / "job", "--rank", "1,3")
    assert document["verdict"] == "slower"
    assert document["change_percent"] == pytest.approx(9, abs=1)


@pytest.mark.soak
@pytest.mark.parametrize("every", sized([2, 5], [2, 3, 5]))
def test_a_rank_that_is_slow_in_some_of_the_steps(
    every: int, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "INTERMITTENT_EVERY", every)
    options = JobOptions(tmp_path / "job", ranks=4, steps=20, plant="intermittent")
    rocpd.simulate(options.out, ranks=4, steps=20, plant="intermittent")
    (fact,) = plan(options).facts
    document = verdict(cli, options.out, "--rank", str(fact.rank))
    texts = {finding["rule"]: finding["text"] for finding in document["findings"]}  # type: ignore[attr-defined]
    slow = range(1, 20, every)
    said = re.fullmatch(
        r"(.*) ms longer in (\d+) of 20 steps: ([^…]*).*; in the others [+-]0\.\d %", texts["diff.steps"]
    )
    assert said
    assert 1.8 < float(said[1]) < 2.1
    assert (int(said[2]), said[3].strip()) == (len(slow), ", ".join(map(str, slow[:8])))
    assert (document["verdict"], document["reason"]) == ("slower", None)
    assert re.search(r"longer: compute", texts["diff.explained"])
    assert "diff.cancels" not in texts
    others = (verdict(cli, options.out, "--rank", str(rank)) for rank in range(4) if rank != fact.rank)
    assert all(other["verdict"] != "faster" or other["change_percent"] < -3 for other in others)  # type: ignore[operator]


def test_what_is_different_in_a_slow_step(job: Path, cli: Cli) -> None:
    truth = plan(JobOptions(job, ranks=2, steps=8, seed=7))
    slow = truth.slow_step
    assert slow is not None
    document = verdict(cli, job, "--step", str(slow))
    assert (document["verdict"], document["confidence"]) == ("slower", "likely")
    assert document["change_percent"] == pytest.approx(80, abs=12)
    usual = [str(number) for number in range(1, 8) if number != slow]
    words = "--step", usual[0], "--against", ",".join(usual[1:]), "--margin", "6"
    assert verdict(cli, job, *words)["verdict"] == "same"


@pytest.mark.parametrize(
    "words",
    [
        ("--step", "99"),
        ("--step", "x"),
        ("--rank", "9"),
        ("--rank", "1", "--against", "9"),
        ("--step", "1", "--rank", "1"),
        ("--match", "("),
        ("--metric", "kernel:("),
        ("--format", "xml"),
    ],
)
def test_senseless_questions_are_refused(words: tuple[str, ...], job: Path, cli: Cli) -> None:
    assert cli("diff", job, *words).code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rank", "0,1"), "no such rank with GPU work, or no other; ranks with GPU work: 0, 1"),
        (("--step", "0-7"), "no such step in all ranks, or no other; steps are 0 to 7"),
        (("--step", "1", "--metric", "memory.peak"), "a run has one peak"),
        (("--rank", "1", "--metric", "kernel:Cijk"), "ranks are compared by their time without communication"),
        (("--step", "1", "--accept", "--reason", "x"), "steps and ranks of one job have none"),
        ((), "1 input: not a base and another side"),
    ],
)
def test_mistakes_within_a_job_are_said(words: tuple[str, ...], said: str, job: Path, cli: Cli) -> None:
    answer = cli("diff", job, *words)
    assert answer.code == 2
    assert said in answer.err.replace("\n  hint: ", "; ")


def test_mistakes_with_baselines_are_said(job: Path, tmp_path: Path, cli: Cli) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"rocpd_baseline":1,"accepted":[],"runs":[]}')
    for words, code, said in (
        (("--save-baseline", tmp_path / "new.json"), 2, "no runs are named"),
        ((empty, job), 3, "no runs in it"),
        ((empty, "--step", "1"), 2, "has no single steps and ranks"),
        ((job, job, "--reason", "x"), 2, "it needs --accept"),
    ):
        answer = cli("diff", *words)
        assert (answer.code, said in answer.err) == (code, True), answer.err
    assert "neither side has any of it" in cli("diff", job, job, "--metric", "kernel:nothing").out


def test_formats_have_the_same_numbers(job: Path, other: Path, tmp_path: Path, cli: Cli) -> None:
    document = verdict(cli, job, other)
    cli("diff", job, other, "--format", "csv", "-o", tmp_path / "x.csv")
    for name in TABLES:
        table = csv.DictReader(io.StringIO((tmp_path / f"x_{name}.csv").read_text()))
        rows = list(table)
        assert table.fieldnames == [field.name for field in TABLES[name].fields]
        if name != "diff":
            known = document[name.removeprefix("diff-")]
            assert [row["change_ns"] for row in rows] == [str(row["change_ns"]) for row in known]  # type: ignore[attr-defined]
    for ending in ("md", "html"):
        assert cli("diff", job, other, "--run-noise", "1", "-o", tmp_path / f"x.{ending}").code == 1
        text = (tmp_path / f"x.{ending}").read_text()
        assert "slower: median step " in text
        assert "Kernels that explain 90 %" in text


def test_python_has_the_same(job: Path, other: Path, cli: Cli) -> None:
    with rocpd.connect(job) as before, rocpd.connect(other) as after:
        found = document_of(after.diff(before))
    said = verdict(cli, job, other)
    assert {**found, "base": None, "new": None} == {**said, "base": None, "new": None}  # but for their names


def test_the_document_is_described(job: Path, cli: Cli) -> None:
    """Each key of the JSON stands on the page, and the other way round."""
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    rows = page[page.index("| key | what it is |") :].partition("\n\n")[0].splitlines()[2:]
    named = [word for row in rows if row.startswith("| ") for word in row.split("|")[1].replace("`", "").split(",")]
    assert [word.strip() for word in named] == list(verdict(cli, job, job))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two small runs, of which the second is a little slower."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed, plant in (("e1", 73040, "none"), ("e2", 73041, "slow-gpus=6")):
        rocpd.simulate(folder / name, ranks=1, steps=6, seed=seed, plant=plant)
    return folder / "e1", folder / "e2"


def test_a_run_counts_once_however_often_it_is_named(
    runs: tuple[Path, Path], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another path, as a copy, a merged file or a window of it, and in a baseline."""
    e1, e2 = runs
    monkeypatch.chdir(e1.parent)
    shutil.copytree(e1, tmp_path / "copy")
    cli("merge", e1, "-o", tmp_path / "merged.db")
    cli("merge", e1, "--start-marker", "step 2", "--end-marker", "step 4", "-o", tmp_path / "window.db")
    again: list[str | Path] = ["e1/", "./e1", e1, tmp_path / "copy", tmp_path / "merged.db", tmp_path / "window.db"]
    for path in ("e1", *again):
        said = cli("diff", "--base", "e1", path, "--new", e2, e2)
        assert said.code == 4
        assert "one run a side, runs taken to deviate by 5 %; " in said.out
    assert verdict(cli, "--base", *again, "e1", "--new", e2)["base"]["runs"] == ["e1/"]  # type: ignore[index]
    kept = tmp_path / "main.json"
    said = cli("diff", "--save-baseline", kept, "--base", "e1", *again[3:4])
    assert f"rocpd: {tmp_path / 'copy'}: the run counts once, it is also in e1\n" in said.err
    assert len(json.loads(kept.read_text())["runs"]) == 1
    said = cli("diff", "--base", kept, "e1", "--new", e2)
    assert (said.code, said.err) == (4, "rocpd: e1: the run counts once, it is there more than once\n")


def test_a_baseline_of_an_older_version_knows_no_guids(runs: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    """Its runs are all different."""
    kept = tmp_path / "main.json"
    cli("diff", "--save-baseline", kept, "--base", runs[0])
    content = json.loads(kept.read_text())
    assert content["runs"][0].pop("guids")
    content["runs"].append(content["runs"][0])
    kept.write_text(json.dumps(content, separators=(",", ":")))
    said = cli("diff", "--base", kept, runs[0], "--new", runs[1])
    assert "; 3 and 1 runs, " in said.out
    assert said.err == ""


def test_of_runs_that_share_ranks_the_one_with_most_counts() -> None:
    notes: list[str] = []
    ranks = {"ab": "ab", "abc": "abc", "cd": "cd", "ef": "ef", "old": "", "old too": ""}
    counted = without_repeated([replace(RUN, name=name, guids=tuple(ranks[name])) for name in ranks], notes.append)
    assert [run.name for run in counted] == ["abc", "ef", "old", "old too"]
    assert notes == [
        "ab: the run counts once, it is also in abc",
        "cd: left out, abc has 1 of its 2 ranks, and a run counts once",
    ]


def test_what_is_on_both_sides_is_said(runs: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    """It makes no verdict certain; other steps of a run on both sides are another matter."""
    e1, e2 = runs
    kept = tmp_path / "main.json"
    cli("diff", "--save-baseline", kept, "--base", e1)
    for base, new, common in (
        ([e1], [e1], str(e1)),
        ([kept], [e1], str(e1)),
        ([e1, e2], [e2, e1], f"{e1}, {e2}"),
    ):
        document = verdict(cli, "--base", *base, "--new", *new)
        found = {finding["rule"]: finding["text"] for finding in document["findings"]}  # type: ignore[attr-defined]
        assert found["diff.both-sides"] == f"on both sides: {common}; nothing differs from itself"
        assert document["confidence"] != "certain"
    assert "on both sides" not in cli("diff", e1, e2).out


@pytest.mark.parametrize(
    ("words", "asked", "noted"),
    [
        (("--step", "3,9"), "step 3 against others ", "--step: no step of all ranks is numbered 9"),
        (("--step", "2", "--against", "4-9"), "step 2 against 4-7 ", "--against: no step of all ranks is numbered 8-9"),
        (("--rank", "0,7"), "rank 0 against others,", "--rank: no rank with GPU work is numbered 7"),
        (("--rank", "0", "--against", "1,8"), "rank 0 against 1,", "--against: no rank with GPU work is numbered 8"),
    ],
)
def test_steps_and_ranks_that_are_not_there_are_said(
    words: tuple[str, ...], asked: str, noted: str, job: Path, cli: Cli
) -> None:
    said = cli("diff", job, *words)
    assert asked in said.out.splitlines()[0]
    assert said.err == f"rocpd: {job}: {noted}\n"


def test_steps_that_a_side_lacks_are_said(runs: tuple[Path, Path], cli: Cli) -> None:
    said = cli("diff", *runs, "--step", "3,9")
    assert sorted(said.err.splitlines()) == [
        f"rocpd: {run}: --step: no step of all ranks is numbered 9" for run in runs
    ]


@pytest.mark.parametrize(
    ("words", "common"),
    [
        (("--step", "1-3", "--against", "2-4"), "step 2-3"),
        (("--step", "3", "--against", "3"), "step 3"),
        (("--rank", "0", "--against", "0,1"), "rank 0"),
        (("--step", "1-3", "--against", "4-5"), None),
    ],
)
def test_steps_and_ranks_on_both_sides_are_said(
    words: tuple[str, ...], common: str | None, job: Path, cli: Cli
) -> None:
    document = verdict(cli, job, *words)
    found = {finding["rule"]: finding["text"] for finding in document["findings"]}  # type: ignore[attr-defined]
    assert found.get("diff.both-sides") == (common and f"on both sides: {common}; nothing differs from itself")
    assert document["confidence"] != "certain"
