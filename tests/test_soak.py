"""A soak goes on where it stopped, and says how long it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import soak


def report(test: str, outcome: str) -> pytest.TestReport:
    return pytest.TestReport(test, ("", None, ""), {}, outcome, None, "call")  # type: ignore[arg-type]


def test_what_passed_is_known_until_the_sources_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "PASSED", tmp_path / "state" / "passed")
    assert soak.passed("these") == set()
    for test, outcome in (("a.py::test[x y]", "passed"), ("a.py::test[z]", "failed")):
        soak.Progress().pytest_runtest_logreport(report(test, outcome))
    assert soak.passed("these") == {"a.py::test[x y]"}
    assert soak.passed("others") == soak.passed("these") == set()


def test_sources_change_with_any_file_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    seen = set()
    for name in ("rocpd/a.py", "rocpd/schema/a.sql", "sdk_tool/src/a.cpp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
        seen.add(soak.sources())
    (tmp_path / "rocpd/a.py").write_text("2")
    seen.add(soak.sources())
    assert len(seen) == 4
    (tmp_path / "sdk_tool/build").mkdir()
    (tmp_path / "sdk_tool/build/a.o").write_text("3")
    assert soak.sources() in seen
