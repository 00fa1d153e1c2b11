"""The examples in docstrings run and show what they give."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from tests.build import TraceBuilder

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): count
    for path in sorted((ROOT / "rocpd").rglob("*.py"))
    if (count := path.read_text(encoding="utf-8").count(">>> "))
}
"""Module -> number of examples in its text."""

RECORDS = "rocpd.record"
"""Its example records the process that runs it: see tests/record/test_python.py."""


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {RECORDS}))
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example of the text is found, so that none is skipped in silence, and gives what it shows."""
    for rank in range(2):
        TraceBuilder(rank).kernel("gemm", 100, 110 + 10 * rank).write(tmp_path / f"rank{rank}.db")
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)) == (0, EXAMPLES[name])


def test_none_is_skipped() -> None:
    sources = (ROOT / "rocpd").rglob("*.py")
    assert [path for path in sources if "doctest: +SKIP" in path.read_text(encoding="utf-8")] == []
