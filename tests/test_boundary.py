"""A part that fails is named, the rest of the answer stands, and the exit code says that something failed."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from rocpd.advice.rules.kernels import KERNEL_FIRST_TOUCH
from rocpd.base import boundary
from rocpd.base.boundary import Policy, each_for_itself
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.report import sections
from tests.advice.made import found
from tests.build import TraceBuilder
from tests.conftest import Cli


def fail(*_: object, **__: object) -> None:
    raise ZeroDivisionError("division by zero")


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Policy, "is_raised", False)
    trace = TraceBuilder()
    for start in range(1000, 9000, 1000):
        trace.region("hipLaunchKernel", start, start + 10, stack=start).kernel(
            "gemm", start + 100, start + 600, stack=start
        )
    return trace.write(tmp_path / "a.db")


def test_a_rule_that_fails(job: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocpd.advice.judge.answers", _failing("gpu.starved"))
    said = cli("advise", job, "-f", "json")
    unable = {each["rule"]: each["reason"] for each in json.loads(said.out)["could_not_look"]}
    assert unable["gpu.starved"] == "could not be judged: ZeroDivisionError: division by zero"
    assert len(unable) > 1
    assert said.code == 1
    assert "rocpd: rule gpu.starved could not be judged: ZeroDivisionError: division by zero" in said.err
    assert "Traceback" not in said.err
    assert "Traceback" in cli("advise", job, "-v").err


def test_a_section_that_fails(job: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sections, "kernels", fail)
    said = cli("report", job, "-o", tmp_path / "r.md")
    assert said.code == 1
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "could not be judged: ZeroDivisionError" in text
    assert text.count("\n## ") > 3


def test_an_analysis_that_fails_on_a_rank(job: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocpd.summary.time.idle._idle_of_rank", fail)
    said = cli("summary", job)
    assert said.code == 1
    assert "analysis idle could not be judged: ZeroDivisionError" in said.err
    assert "compute" in said.out


@pytest.mark.parametrize("words", [("all",), ("idle", "kernels"), ("idle", "kernels", "-f", "json")])
def test_an_analysis_beside_others(
    words: tuple[str, ...], job: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocpd.summary.time.idle._idle_of_rank", fail)
    said = cli("summary", *words, job)
    assert said.code == 1
    assert "analysis idle could not be judged: ZeroDivisionError" in said.err
    assert "gemm" in said.out
    assert "Traceback" in cli("summary", *words, job, "-v").err


@pytest.mark.parametrize("ending", ["html", "xlsx", "pdf", "md", "ipynb"])
def test_a_chart_that_fails(ending: str, job: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its table stays."""
    monkeypatch.setattr("rocpd.summary.plots.kernels", fail)
    said = cli("report", job, "-o", tmp_path / f"r.{ending}", "--sections", "kernels")
    assert said.code == 1
    assert "chart kernels could not be judged: ZeroDivisionError" in said.err
    if ending in ("html", "md", "ipynb"):
        assert "gemm" in (tmp_path / f"r.{ending}").read_text(encoding="utf-8")


def test_an_importer_that_fails(job: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The other inputs are imported."""
    cli("convert", "-f", "json", job, "-o", tmp_path / "t.json")
    for number in range(2):
        (tmp_path / f"{number}.json").write_text((tmp_path / "t.json").read_text() + " " * number)
    from rocpd.importers.chrome import read

    def read_one(source: TraceSource, target: TraceTarget) -> None:
        read(source, target) if source.path.name == "0.json" else fail()

    monkeypatch.setattr("rocpd.importers.chrome.read", read_one)
    said = cli("import", tmp_path / "0.json", tmp_path / "1.json", "-d", tmp_path / "out")
    assert said.code == 3
    assert "1.json: cannot be imported: ZeroDivisionError" in said.err
    assert cli("import", tmp_path / "0.json", tmp_path / "1.json", "-d", tmp_path / "out", "--skip-bad").code == 0
    monkeypatch.setattr("rocpd.importers.Importer.knows", fail)
    assert "importer kineto could not be judged" in cli("info", tmp_path / "0.json").err


def test_under_tests_it_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        each_for_itself("part", fail, lambda _: None)
    assert not boundary.failures


def test_a_program_that_never_asks_keeps_few_and_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policy, "is_raised", False)

    class Large:
        def fail(self) -> str:
            raise ZeroDivisionError

    large = Large()
    held = weakref.ref(large)
    for _ in range(1000):
        assert each_for_itself("part", large.fail, str).startswith("could not be judged")
    del large
    assert held() is None
    assert 0 < len(boundary.failures) <= 100
    assert "in fail" in boundary.failures[-1].trace
    boundary.failures.clear()


def test_a_command_says_its_own_failures(job: Path, cli: Cli) -> None:
    each_for_itself("another part", lambda: str(1 // 0), str)
    said = cli("info", job)
    assert (said.code, "another part" in said.err) == (0, False)


def test_kernels_without_length_are_no_failure() -> None:
    row = {"rank": 0, "name": "gemm", "calls": 100, "first_ns": 0, "median_ns": 0, "total_ns": 0}
    assert not found(KERNEL_FIRST_TOUCH, {"kernel-shapes": [row]})


def _failing(rule: str) -> Callable[..., object]:
    from rocpd.advice.judge import answers

    def look(asked: object, *rest: object) -> object:
        if getattr(asked, "id", "") == rule:
            raise ZeroDivisionError("division by zero")
        return answers(asked, *rest)  # type: ignore[arg-type]

    return look
