"""The time of agents over every layout, every way to store a job, and real recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.index.build import build
from rocpd.simulator import JobOptions, simulate
from tests.conftest import private
from tests.facts.sums import assert_heat, assert_partition, assert_same_sums, times_of
from tests.soak import paired, sample, sized

pytestmark = pytest.mark.soak(8)  # longer jobs, every real file

LAYOUTS: dict[str, dict[str, Any]] = {
    "data": {}, "tensor": {"tp": 2}, "pipeline": {"pp": 2}, "experts": {"ep": 2},
    "tensor and pipeline": {"tp": 2, "pp": 2}, "pipeline and experts": {"pp": 2, "ep": 2}, "damaged": {"faults": True},
}  # fmt: skip


def parts_of(session: rocpd.Session) -> Iterator[rocpd.Session]:
    yield session
    yield session.within(rocpd.Window("30%", "60%"))
    yield session.where(rocpd.Filters(kernel="Cijk"))


@pytest.mark.parametrize(("layout", "number"), paired(sample([*LAYOUTS], 3), range(3)))
def test_every_layout(layout: str, number: int, tmp_path: Path) -> None:
    """The job, or a part of it."""
    job = JobOptions(tmp_path, ranks=4, nodes=2, steps=sized(2, 6), seed=3101, **LAYOUTS[layout])
    with rocpd.connect(simulate(job)) as session:
        part = [*parts_of(session)][number]
        assert_partition(part)
        assert_same_sums(part, everything=False)
        assert_heat(part)


ROWS = "SELECT * FROM agent_time ORDER BY rank, agent, start"


def test_merged_and_indexed_jobs_have_the_same_time(tmp_path: Path) -> None:
    paths = simulate(JobOptions(tmp_path / "job", ranks=4, nodes=2, steps=sized(2, 6), seed=3102))
    with rocpd.connect(paths) as session:
        expected = [part.sql(ROWS).fetchall() for part in parts_of(session)]
        merged = session.merge(tmp_path / "merged.db")
    with rocpd.connect(merged) as session:
        assert [part.sql(ROWS).fetchall() for part in parts_of(session)] == expected
        assert_same_sums(session, everything=False)
    with rocpd.connect(paths, index="off") as session:
        build(session)
    with rocpd.connect(paths, index="require") as session:
        for _ in range(2):  # made, and kept
            assert [part.sql(ROWS).fetchall() for part in parts_of(session)] == expected
        assert_same_sums(session, everything=True)


REAL = ("rocprofv3/bmm_21*.db", "rocprofiler-systems/*484153.db", "rpd/matmul*", "kineto/mi250*", "nsys/*after*")
MORE = ("rocprofiler-systems/*490524.db", "rpd/mytrace*", "kineto/mi300_res*", "kineto/h100*", "nsys/*before*")


@pytest.mark.parametrize(("pattern", "everything"), paired(sized(REAL, (*REAL, *MORE)), [False, True]))
def test_real_recordings(pattern: str, everything: bool) -> None:
    with rocpd.connect(private(pattern, 1)) as session:
        assert_partition(session)
        assert_same_sums(session, everything=everything)
        assert times_of(session, "part", "1").total()
