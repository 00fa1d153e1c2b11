"""Keys of divisions: what stands in the columns that `--by` puts in front."""

from __future__ import annotations

import pytest

from rocpd.base import NULL
from rocpd.facts.rank import By, Options, RankReading
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
