"""Which word is SQL, which an analysis and which an input: decided once."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.cli.argv import check_sql, split_names, split_sql


@pytest.mark.parametrize(
    ("words", "sql", "inputs"),
    [
        (["select 1", "a.db", "b.db"], "select 1", ["a.db", "b.db"]),
        (["a.db", "b.db", "select 1"], "select 1", ["a.db", "b.db"]),
        (["nowhere", "select 1"], "select 1", ["nowhere"]),
        (["select 1", "nowhere"], "select 1", ["nowhere"]),
        (["*.db", "select *\nfrom t"], "select *\nfrom t", ["*.db"]),
        (["rank[0-3].db", "job.rpdb", "index.yaml"], None, ["rank[0-3].db", "job.rpdb", "index.yaml"]),
        (["kernels", "a.db"], "kernels", ["a.db"]),
        (["vacuum;"], "vacuum;", []),
        ([], None, []),
    ],
)
def test_sql(words: list[str], sql: str | None, inputs: list[str]) -> None:
    assert split_sql(words) == (sql, inputs)


def test_what_lies_on_the_disk_is_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("select 1").mkdir()
    Path("kernels").mkdir()
    assert split_sql(["select 1", "select 2"]) == ("select 2", ["select 1"])
    assert split_sql(["kernels"]) == (None, ["kernels"])
    assert split_names(["kernels", "./kernels"], ["kernels"]) == (["kernels"], ["./kernels"])


@pytest.mark.parametrize(
    ("word", "view"), [("kernels", "kernels"), ("kernel", "kernel"), ("Regions;", "regions"), ("xyz", "kernels")]
)
def test_a_word_alone_is_no_sql(word: str, view: str) -> None:
    with pytest.raises(rocpd.UsageError, match="neither SQL nor a file") as caught:
        check_sql(word)
    assert caught.value.hint == f'rocpd query "select * from {view}"'


def test_sql_passes() -> None:
    for sql in ("select 1", "values(1)", "pragma user_version", "", "-- nothing"):
        check_sql(sql)
