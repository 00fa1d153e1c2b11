"""Several values after one option, as AMD's documents write command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocpd.cli.argv import NO_EFFECT, drop_no_effect, rewrite


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["info", "-i", "a.db", "b.db"], ["info", "-i", "a.db", "-i", "b.db"]),
        (["info", "--input", "a", "b", "--skip-bad", "c"], ["info", "--input", "a", "--input", "b", "--skip-bad", "c"]),
        (["info", "-i"], ["info", "-i"]),
        (["info", "-i", "-v"], ["info", "-i", "-v"]),
        (["info", "-i", "a", "--", "-i", "b"], ["info", "-i", "a", "--", "-i", "b"]),
        (
            ["convert", "-i", "a", "b", "--output-format", "csv", "otf2", "pftrace", "-d", "x"],
            [
                "convert", "-i", "a", "-i", "b",
                "--output-format", "csv", "--output-format", "otf2", "--output-format", "pftrace", "-d", "x",
            ],
        ),
        (["convert", "-f", "pftrace", "a.db", "b.db"], ["convert", "-f", "pftrace", "a.db", "b.db"]),
        (["convert", "-f", "nonsense", "csv"], ["convert", "-f", "nonsense", "-f", "csv"]),
        (
            ["convert", "-f", "parquet", "arrow", "chrome", "a.db"],
            ["convert", "-f", "parquet", "-f", "arrow", "-f", "chrome", "a.db"],
        ),
        (["convert", "-f", "csv", "job/", "csv"], ["convert", "-f", "csv", "job/", "csv"]),
        (["convert", "-f", "CSV", "PFTRACE", "x.db"], ["convert", "-f", "CSV", "-f", "PFTRACE", "x.db"]),
        (["convert", "a.db", "-f"], ["convert", "a.db", "-f"]),
        (["query", "-f", "csv", "json"], ["query", "-f", "csv", "json"]),
        (
            ["summary", "--region-categories", "hip", "MARKERS", "a.db"],
            ["summary", "--region-categories", "hip", "--region-categories", "MARKERS", "a.db"],
        ),
        (
            ["summary", "--region-categories", "HIP", "KERNEL", "ROCR", "job/"],
            [
                "summary", "--region-categories", "HIP", "--region-categories", "KERNEL",
                "--region-categories", "ROCR", "job/",
            ],
        ),
        (["summary", "--region-categories", "NONE", "-i", "a"], ["summary", "--region-categories", "NONE", "-i", "a"]),
        (["query", "-i", "a.db", "select 1", "-f", "csv"], ["query", "-i", "a.db", "-i", "select 1", "-f", "csv"]),
        (["query", "-i", "a", "b", "--query", "select 1"], ["query", "-i", "a", "-i", "b", "--query", "select 1"]),
        (["query", "-i", "a", "b", "--query=select 1"], ["query", "-i", "a", "-i", "b", "--query=select 1"]),
        (["query", "-i", "a", "b", "--script", "x.sql"], ["query", "-i", "a", "-i", "b", "--script", "x.sql"]),
        (["query", "select 1", "-i", "a.db", "*.db"], ["query", "select 1", "-i", "a.db", "-i", "*.db"]),
        ([], []),
        (["--version"], ["--version"]),
    ],
)  # fmt: skip
def test_rewrite(line: list[str], expected: list[str]) -> None:
    assert rewrite(line) == expected


def test_a_file_with_the_name_of_a_format_is_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("csv").touch()
    Path("HIP").mkdir()
    line = ["summary", "--region-categories", "HSA", "HIP"]
    assert rewrite(line) == line
    assert rewrite(["convert", "-f", "pftrace", "csv"]) == ["convert", "-f", "pftrace", "csv"]


@pytest.mark.parametrize("name", NO_EFFECT)
def test_options_without_effect(name: str) -> None:
    values = ["7"] * NO_EFFECT[name]
    assert drop_no_effect(["convert", name, *values, "a.db"]) == (["convert", "a.db"], [name])
    assert drop_no_effect(["convert", f"{name}=7", "a.db"]) == (["convert", "a.db"], [name])
    assert drop_no_effect(["record", "--", "app", name]) == (["record", "--", "app", name], [])
