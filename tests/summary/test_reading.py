"""Keys of divisions: what stands in the columns that `--by` puts in front. What is read of a rank, and how often."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import NULL
from rocpd.facts.rank import By, Options, RankReading
from rocpd.federate.run.shares import ShareDatabase
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob


@pytest.mark.parametrize(
    ("by", "lane", "key"),
    [
        (None, None, ()),
        (By.RANK, None, (0,)),
        (By.HOST, None, ("host0",)),
        (By.HOST, 4, ("host0",)),
        (By.AGENT, 4, (0, 4)),
        (By.STREAM, NULL, (0, None)),
    ],
)
def test_key(open_job: OpenJob, by: By | None, lane: int | None, key: tuple[object, ...]) -> None:
    reader = open_job(TraceBuilder(host="host0").kernel("k", 1, 2)).reader(0)
    assert RankReading(reader, Options(by=by)).key(lane) == key


@pytest.mark.parametrize("by", [By.AGENT, By.STREAM])
def test_a_key_without_the_lane_that_divides_is_refused(open_job: OpenJob, by: By) -> None:
    reader = open_job(TraceBuilder().kernel("k", 1, 2)).reader(0)
    with pytest.raises(ValueError, match=f"needs the id of the {by.value}"):
        RankReading(reader, Options(by=by)).key()


def test_what_was_read_before_all_else_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=9, steps=3))
    read, rows = Counter[tuple[str, str, str]](), ShareDatabase.rows
    for file in files:  # nobody writes to it any more
        os.utime(file, (0, 0))

    def noting(database: ShareDatabase, sql: str, bindings: Any, tables: Any) -> Any:
        read[database.share.opening.path.name, sql, repr(bindings)] += 1
        return rows(database, sql, bindings, tables)

    monkeypatch.setattr(ShareDatabase, "rows", noting)
    with rocpd.connect(files) as session:
        assert list(session.summary("overview"))
    assert {sql for (_, sql, _), count in read.items() if count > 1} == set()
