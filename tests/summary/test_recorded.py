"""Errors of analyses that lack their data say how it is recorded."""

from __future__ import annotations

import pytest

import rocpd
from rocpd.base import RocpdError
from tests.build import TraceBuilder
from tests.conftest import OpenJob


@pytest.mark.parametrize(
    ("name", "option"),
    [("copies", "--memory-copy-trace"), ("api", "--hip-trace"), ("scratch", "--scratch-memory-trace")],
)
def test_the_hint_is_the_option_of_the_profiler(name: str, option: str, open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="in the selection") as caught:
        open_job(TraceBuilder().kernel("a", 10, 20)).summary(name)
    assert option in (caught.value.hint or "")


def test_what_a_window_leaves_out_was_recorded(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("a", 10, 20).copy(100, 120)).within(rocpd.Window(10, 50))
    with pytest.raises(RocpdError, match="no memory copies") as caught:
        session.summary("copies")
    assert caught.value.hint is None
