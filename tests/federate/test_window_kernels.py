"""Windows set by kernels, and windows that cut events at their edges."""

from __future__ import annotations

from typing import Any

import pytest

import rocpd
from rocpd.base import RocpdError, UsageError
from tests.build import TraceBuilder
from tests.conftest import OpenJob


def job() -> list[TraceBuilder]:
    """Ranks on first machine; gemm has the largest total time, from 200 on first rank to 700 on the other."""
    first = TraceBuilder(0).kernel("init", 100, 150).kernel("gemm", 200, 400).kernel("relu", 450, 460)
    return [first, TraceBuilder(1, pid=17).kernel("gemm", 500, 700).kernel("relu", 800, 810).region("f", 90, 900)]


def names(session: rocpd.Session, window: rocpd.Window) -> list[tuple[Any, ...]]:
    return session.within(window).sql('SELECT name, start, "end" FROM kernels ORDER BY start').fetchall()


def test_from_the_first_to_the_last_of_some_kernels(open_job: OpenJob) -> None:
    kernels = names(open_job(*job()), rocpd.Window(kernel="^re"))
    assert kernels == [("relu", 450, 460), ("gemm", 500, 700), ("relu", 800, 810)]


def test_the_hottest_region(open_job: OpenJob) -> None:
    session = open_job(*job())
    kernels = names(session, rocpd.Window(auto_roi=True))
    assert kernels == [("gemm", 200, 400), ("relu", 450, 460), ("gemm", 500, 700)]
    assert session.notes == ["hottest region: first to last gemm"]


def test_cut_at_the_edges(open_job: OpenJob) -> None:
    """An event across the entire window counts too, cut on both sides; invalid times stay."""
    session = open_job(*job(), TraceBuilder(2, pid=18).kernel("odd", 0, 640).kernel("mark", 300, 300))
    assert names(session, rocpd.Window(300, 600, clip=True)) == [
        ("odd", 0, 640),
        ("gemm", 300, 400),
        ("mark", 300, 300),
        ("relu", 450, 460),
        ("gemm", 500, 600),
    ]
    session = session.within(rocpd.Window(300, 600, clip=True))
    assert session.sql('SELECT start, "end", duration FROM regions').fetchall() == [(300, 600, 300)]
    assert session.sql('SELECT start, "end" FROM rocpd_region').fetchall() == [(300, 600)]
    attached = session.execute("SELECT SUM(duration) FROM kernels WHERE start > 0", strategy="attached")
    assert attached.fetchall() == [(210,)]


def test_filters_hold_for_the_hottest_region(open_job: OpenJob) -> None:
    session = open_job(*job()).where(rocpd.Filters(exclude_kernel="gemm"))
    assert [row[0] for row in names(session, rocpd.Window(auto_roi=True))] == ["init"]


@pytest.mark.parametrize(
    ("window", "error", "message"),
    [
        (rocpd.Window(kernel="nothing"), RocpdError, "no kernel that ran matches nothing"),
        (rocpd.Window(kernel="("), UsageError, "--window-kernel \\(: not a regular expression"),
        (rocpd.Window(kernel="gemm", start="10%"), UsageError, "set both sides of the window"),
        (rocpd.Window(kernel="gemm", auto_roi=True), UsageError, "set both sides of the window"),
        (rocpd.Window(720, 790, inclusive=False), RocpdError, "no event lies in the window"),
    ],
)
def test_what_cannot_be(window: rocpd.Window, error: type[Exception], message: str, open_job: OpenJob) -> None:
    with pytest.raises(error, match=message):
        open_job(*job()).within(window)


def test_no_kernel_no_hottest_region(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no kernel ran"):
        open_job(TraceBuilder().region("f", 1, 5)).within(rocpd.Window(auto_roi=True))
