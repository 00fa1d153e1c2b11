"""The kind that a view states for a column is the kind of its values, in jobs of ours and in real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.schema.load import VIEWS, Kind, view
from rocpd.schema.quote import quote_name
from rocpd.simulator import JobOptions, simulate

ALLOWED = {
    Kind.INTEGER: {"integer"},
    Kind.REAL: {"real", "integer"},
    Kind.TEXT: {"text"},
    Kind.JSON: {"text"},
}
"""What SQLite calls the values of a kind; NULL is always allowed."""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("kinds") / "job"
    simulate(JobOptions(folder, ranks=2, events_per_rank=300))
    with rocpd.connect(folder) as session:
        yield session


def check(session: rocpd.Session, name: str) -> None:
    """Every value of a view is of its column's kind."""
    columns = view(name).columns
    types = ", ".join(f"group_concat(DISTINCT typeof({quote_name(column.name)}))" for column in columns)
    (kinds_met,) = session.sql(f"SELECT {types} FROM {name}").fetchall()
    for column, met in zip(columns, kinds_met, strict=True):
        assert set((met or "null").split(",")) - {"null"} <= ALLOWED[column.kind], f"{name}.{column.name}"


@pytest.mark.parametrize("name", VIEWS)
def test_of_a_simulated_job(name: str, simulated: rocpd.Session) -> None:
    check(simulated, name)


@pytest.mark.parametrize("name", VIEWS)
def test_of_real_files(name: str, real_files: tuple[Path, ...]) -> None:
    with rocpd.connect(real_files[:2]) as session:
        check(session, name)
