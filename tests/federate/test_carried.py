"""Small facts of the first pass over ranks reach the second, whatever process reads a rank there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.federate.run import files as held
from rocpd.federate.run.shares import ShareDatabase
from rocpd.simulator import JobOptions, simulate
from tests.properties.tree import Tree


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    paths = list(simulate(JobOptions(out=tmp_path_factory.mktemp("job"), ranks=2, nodes=2, events_per_rank=600)))
    for path in paths:
        os.utime(path, (0, 0))  # of a file just written, more may come
    return paths


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that ranks are asked."""
    statements: list[str] = []
    rows = ShareDatabase.rows

    def noting(self: ShareDatabase, select: str, *arguments: Any, **named: Any) -> Any:
        statements.append(select)
        return rows(self, select, *arguments, **named)

    monkeypatch.setattr(ShareDatabase, "rows", noting)
    return statements


def _tables(files: list[Path]) -> list[str]:
    with contextlib.closing(Tree()) as tree, rocpd.connect(files, index="off", client=tree) as session:
        return [repr([*session.summary(name)]) for name in ("ranks", "markers")]


def test_what_is_carried_is_read_once_and_changes_nothing(
    files: list[Path], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    again = _tables(files)
    read_again = len(asked)
    asked.clear()
    monkeypatch.setattr(held, "_CARRIED_FROM_BYTES", 0)
    assert _tables(files) == again
    assert len(asked) < read_again


def test_no_more_is_carried_than_there_is_room_for(
    files: list[Path], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "_CARRIED_FROM_BYTES", 0)
    carried = _tables(files)
    read_once = len(asked)
    asked.clear()
    monkeypatch.setattr(held, "_MOST_CARRIED_BYTES", 0)
    assert _tables(files) == carried
    assert len(asked) > read_once
