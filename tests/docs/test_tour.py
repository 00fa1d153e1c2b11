"""The way of docs/tour.md on a trace that PyTorch's profiler wrote: each command answers, and names the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Cli, private


def test_the_way_of_the_tour_on_a_real_trace_of_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    (trace,) = private("kineto/mi250_minitoy.json.gz", 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for words in (("summary",), ("advise",), ("whatif",), ("summary", "operators")):
        said = cli(*words, trace)
        assert (said.code, bool(said.out)) == (0, True), said
    assert "1 rank on 1 node; AMD Radeon Graphics" in cli(trace).out
    assert cli("report", trace, "-o", "report.html").code == 0
    assert "AMD Radeon Graphics" in Path("report.html").read_text(encoding="utf-8")
    assert cli("diff", trace, trace).out.startswith("same: ")
    assert cli("index", trace).code == 0
    assert cli("summary", "kernels", trace, "--index", "require").code == 0
