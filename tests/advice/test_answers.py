"""How advice is asked for and shown: forms, thresholds, explanations, rules of other packages, causes."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import rocpd
from rocpd.advice.advice import FORMS, bounds, gain, looked
from rocpd.advice.case import Case
from rocpd.advice.judge import matters, report_once
from rocpd.advice.registry import RULES
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.base import InputError, RocpdError, UsageError, entries
from rocpd.report.build import ReportOptions, build
from rocpd.report.model import Findings, Text
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.findings import Finding
from tests.advice.jobs import rules_of, simulated
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("advice") / "job"
    simulated(folder, "straggler,slow-step,memory-peak")
    return folder


def test_the_forms_say_the_same(job: Path, cli: Cli) -> None:
    texts = {}
    for form in FORMS:
        first, second = (cli("advise", job, "--format", form) for _ in range(2))
        assert first == second
        assert first.code == 0
        texts[form] = first.out
    document = json.loads(texts["json"])
    assert document["version"] == 1
    assert [finding["rule"] for finding in document["findings"]] == ["comm.straggler", "step.outlier", "memory.peak"]
    assert [other["rule"] for other in document["findings"][0]["explains"]] == ["rank.imbalance"]
    reported = {*document["found_nothing"], *(each["rule"] for each in document["could_not_look"])}
    found = {each["rule"] for finding in document["findings"] for each in (finding, *finding["explains"])}
    assert sorted(reported | found) == sorted(rule.id for rule in RULES)
    assert not reported & found
    for finding in document["findings"]:
        for form in ("console", "md", "html"):
            assert finding["rule"] in texts[form]
        assert finding["text"] in texts["md"]


def test_what_gains_too_little_is_no_nothing(job: Path, cli: Cli, tmp_path: Path) -> None:
    """A slow step that costs less than the threshold is named with its gain, in each form."""
    limits = tmp_path / "limits.toml"
    limits.write_text("[all]\nleast_percent = 15\n")
    texts = {form: cli("advise", job, "--format", form, "--thresholds", limits).out for form in FORMS}
    document = json.loads(texts["json"])
    (slight,) = document["gains_little"]
    assert (slight["rule"], slight["rule"] in document["found_nothing"]) == ("step.outlier", False)
    assert slight["gain_percent"] < 15
    assert "JOB" not in slight["action"]
    gain = math.floor(slight["gain_percent"] * 10) / 10
    said = f"Found, but gains less than 15 % of the step: step.outlier ({gain} %)"
    assert all(said in " ".join(texts[form].split()) for form in ("console", "md", "html"))


def test_what_a_replay_finds_to_gain_too_little_is_slight(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays where it explains something else."""

    def replayed(finding: Finding, *_: object) -> Finding:
        return replace(finding, gain_percent=0.4, gain_bounds=(0.0, 0.8), regained_by="rocpd whatif JOB")

    monkeypatch.setattr("rocpd.advice.judge.replayed", replayed)
    advice = rocpd.advise(job)
    assert [finding.rule for finding in advice.findings] == ["comm.straggler"]
    assert {"step.outlier", "memory.peak"} <= {finding.rule for finding in advice.slight}


@pytest.mark.parametrize(
    ("least", "most", "said"), [(0.0, 28.2, "up to 28 %"), (14.4, 18.0, "14 to 18 %"), (9.9, 10.1, "10 %")]
)
def test_what_nobody_can_do_as_a_whole_gains_at_most_so_much(least: float, most: float, said: str) -> None:
    """`rocpd whatif` gives the bounds of doing it as a whole, of which nobody need reach any."""
    finding = Finding("", "gpu.starved", gain_percent=most, gain_bounds=(least, most))
    assert bounds(finding) == said


def test_a_gain_that_may_be_nothing_is_the_most_that_it_may_be() -> None:
    """The list and the line that shows the gain say the same."""
    finding = Finding("", "gpu.starved", gain_percent=20.2, gain_bounds=(0.0, 21.4))
    assert gain(finding) == bounds(finding) == "up to 21 %"
    assert gain(replace(finding, gain_bounds=(18.0, 21.4))) == "20 %"
    assert gain(replace(finding, gain_bounds=None)) == "up to 20 %"


def test_a_gain_that_may_be_far_more_is_given_by_its_bounds() -> None:
    """As that of a rank for which communication with unknown partners may wait; it is not little."""
    finding = Finding("", "comm.straggler", gain_percent=1.4, gain_bounds=(1.3, 17.0))
    assert (gain(finding), matters(finding, 2.0)) == ("1 to 17 %", True)
    assert finding.most_percent == 17.0
    assert finding.expected_percent == pytest.approx(9.15)
    known = replace(finding, gain_bounds=(1.3, 1.5))
    assert (gain(known), matters(known, 2.0)) == ("1 %", False)
    assert known.most_percent == known.expected_percent == 1.4


def test_a_rank_whose_cost_is_open_is_advice(tmp_path: Path) -> None:
    """Without calls of RCCL no partners of all-to-alls are known: the first screen says what the rank may cost."""
    simulate(JobOptions(tmp_path, 8, 2, 8, ep=4, seed=70020, plant="straggler=15", rccl="none"))
    with rocpd.connect(tmp_path) as session:
        (verdict, *_) = session.summary("ranks").findings
        finding = next(each for each in session.advise().findings if each.rule == "comm.straggler")
    assert verdict.text.startswith(f"rank {finding.rank} costs at least ")
    assert "; it may cost up to 1" in verdict.text
    assert re.fullmatch(r"1 to 1\d %", gain(finding))
    assert finding.gain_bounds
    assert finding.gain_bounds[0] < 8 < finding.gain_bounds[1]  # the truth: 8 % of a step


def test_the_first_lines_are_the_answer(job: Path, cli: Cli) -> None:
    lines = cli("advise", job).out.splitlines()
    first = lines[: lines.index("")]
    assert len(first) <= 10
    assert [line.split()[-0] for line in first[1:4]] == ["1", "2", "3"]
    with rocpd.connect(job) as session:
        looking = len(RULES) - len(session.advise().unable)
    assert first[-1].startswith(f"{looking} rules looked")


def test_output_goes_to_a_file_of_the_form_that_its_name_says(job: Path, cli: Cli, tmp_path: Path) -> None:
    assert cli("advise", job, "-o", tmp_path / "advice.json").code == 0
    with rocpd.connect(job) as session:
        assert json.loads((tmp_path / "advice.json").read_text()) == session.advise().document()
    assert cli("advise", job, "-o", tmp_path / "advice.json").code != 0
    assert "xml" in cli("advise", job, "--format", "xml").err


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


def test_names_in_files_do_nothing(open_job: OpenJob) -> None:
    """Steps are called so that they would be markup, or end a line."""
    builder = TraceBuilder()
    name = "step {} <script>alert(1)</script>\n| x |\x1b[31m"
    for number in range(6):
        start = 1 + number * 100
        builder.region("roctxRangePushA", start, start + (90 if number == 4 else 20), message=name.format(number))
    advice = open_job(builder).advise(step_marker="script")
    assert rules_of(advice) == {"step.outlier"}
    parser = _Tags()
    parser.feed(FORMS["html"].text(advice, None))
    assert "script" not in parser.tags
    assert "\x1b" not in str(advice)
    assert "<script" not in FORMS["md"].text(advice, None)
    rows = [line for line in FORMS["md"].text(advice, None).splitlines() if line.startswith("|")]
    assert len(rows) == 3


def test_a_report_advises(job: Path) -> None:
    with rocpd.connect(job) as session:
        advice = session.advise()
        (section,) = build(session, ReportOptions(sections=("verdict",))).sections
    found, *texts = section.blocks
    assert isinstance(found, Findings)
    problems = [conclusion for conclusion in found.conclusions if conclusion.finding.rule in rules_of(advice)]
    assert [conclusion.finding.text for conclusion in problems] == [finding.text for finding in advice.findings]
    assert [dict(conclusion.notes)["do"] for conclusion in problems] == [finding.action for finding in advice.findings]
    assert Text(f"{looked(advice)}.") in texts


def test_a_window_is_judged_by_itself(job: Path) -> None:
    """In one step nothing is an outlier, and a straggler can't be reported from chance."""
    with rocpd.connect(job, window=rocpd.Window(step="3")) as session:
        assert not rules_of(session.advise()) & {"step.outlier", "comm.straggler"}


def test_thresholds(job: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[memory.peak]\nmost_percent = 99\n["step.outlier"]\ntimes_median = 3\n[all]\nleast_percent = 1\n')
    assert rules_of(rocpd.advise(job, thresholds=path)) == {"comm.straggler"}
    path.write_text("[all]\nleast_percent = 15.5\n")
    assert rules_of(rocpd.advise(job, thresholds=path)) == {"comm.straggler", "memory.peak"}


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("[memory.peek]\nmost_percent = 9", UsageError, "no rule is called memory.peek"),
        ("[memory.peak]\nmost = 9", UsageError, "memory.peak has no threshold most"),
        ("[memory.peak]\nmost_percent = 'x'", UsageError, "not a number"),
        ("[memory.peak]\nmost_percent = true", UsageError, "not a number"),
        ("nonsense", InputError, "not TOML"),
    ],
)
def test_thresholds_that_make_no_sense(
    text: str, kind: type[RocpdError], words: str, job: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(kind, match=words):
        rocpd.advise(job, thresholds=tmp_path / "mine.toml")


def test_rules_are_listed_and_explained(cli: Cli) -> None:
    assert [line.split()[0] for line in cli("advise", "--list").out.splitlines()] == [rule.id for rule in RULES]
    for rule in RULES:
        said = cli("advise", "--explain", rule.id)
        assert said.code == 0
        assert all(f"{each.name} = {each.value:g}" in said.out for each in rule.thresholds)
    assert "did you mean gpu.starved?" in cli("advise", "--explain", "gpu.starve").err


def _many(case: Case) -> Iterator[Finding]:
    calls = sum(int(row["calls"]) for row in case.rows("kernels"))
    if calls > case.limits["most_kernels"]:
        yield Finding(f"{calls} kernels", MINE.id, gain_percent=50.0, shown_by="rocpd summary kernels JOB")


MINE = Rule(
    "mine.kernels",
    "are there many kernels?",
    "there are more than {most_kernels}",
    _many,
    (Need("kernels", "no kernels"),),
    (Threshold("most_kernels", 10.0, "kernels"),),
    lambda cause, other: other.rule == "comm.straggler",
)


def test_rules_of_other_packages(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("mine", f"{__name__}:MINE", "rocpd.rules")]
    monkeypatch.setattr(entries, "points", lambda group: points if group == "rocpd.rules" else ())
    advice = rocpd.advise(job)
    assert rules_of(advice) == {"mine.kernels", "step.outlier", "memory.peak"}
    assert {each.finding.rule for each in advice.explained} == {"comm.straggler", "rank.imbalance"}
    points[:] = [EntryPoint("mine", f"{__name__}:_many", "rocpd.rules")]
    with pytest.raises(RocpdError, match=r"is no rocpd\.advice\.rule\.Rule"):
        rocpd.advise(job)


def _rule(name: str, explains: str) -> Rule:
    return Rule(name, "", "", lambda case: (), explains=lambda cause, other: other.rule in explains.split())


def test_causes_are_told_once() -> None:
    """a explains b, which explains c; d and e explain each other: a circle explains nothing."""
    rules = {
        rule.id: rule for rule in (_rule("a", "b"), _rule("b", "c"), _rule("c", ""), _rule("d", "e"), _rule("e", "d"))
    }
    findings = [Finding(name, name) for name in "cbade"]
    reported, explained = report_once(findings, rules)
    assert [finding.rule for finding in reported] == ["a", "d", "e"]
    assert [(each.finding.rule, each.cause.rule) for each in explained] == [("c", "a"), ("b", "a")]


def test_what_costs_far_more_than_its_cause_stands_for_itself(tmp_path: Path) -> None:
    """All hosts are slow to launch, one of them is late besides: to mend that one leaves GPUs idle."""
    simulate(JobOptions(tmp_path, ranks=8, nodes=2, tp=4, steps=6, seed=71833, plant="late-node,launch-bound"))
    advice = rocpd.advise(tmp_path)
    gains = {finding.rule: finding.gain_percent or 0.0 for finding in advice.findings}
    assert gains["gpu.starved"] > 2 * gains["comm.straggler"] > 0
    assert "gpu.starved" not in {each.finding.rule for each in advice.explained}


def test_a_gain_is_what_its_command_replays(job: Path, cli: Cli) -> None:
    with rocpd.connect(job) as session:
        findings = [finding for finding in session.advise().findings if finding.regained_by]
    assert [finding.rule for finding in findings] == ["comm.straggler", "step.outlier"]
    for finding in findings:
        _, *words = shlex.split(finding.regained_by or "")
        answer = json.loads(cli(*words, "--format", "json").out)
        gains = [1 - answer[name] / answer["step_ns"] for name in ("high_ns", "predicted_step_ns", "low_ns")]
        assert finding.gain_bounds
        said = finding.gain_bounds[0], finding.gain_percent, finding.gain_bounds[1]
        assert [gain * 100 for gain in gains] == pytest.approx(said)


def test_a_part_of_the_trace_is_not_replayed(job: Path) -> None:
    with rocpd.connect(job, window=rocpd.Window(start="10ms")) as session:
        assert not any(finding.regained_by for finding in session.advise().findings)
