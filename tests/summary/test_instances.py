"""The n-th run of a kernel on each GPU, worked out by hand and against pandas."""

from __future__ import annotations

from random import Random

import pandas as pd
import pytest

from rocpd.base import RocpdError
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

COLUMNS = "name agents instances range_ns over_mean_ns max_range_ns instance percent"


def test_by_hand(open_job: OpenJob) -> None:
    """a: 10, 30 here and 20, 70, 5 there, so 10 + 40 apart and 5 + 20 over the mean; b ran on one GPU alone."""
    trace = TraceBuilder().kernel("a", 100, 110).kernel("a", 200, 230).kernel("b", 300, 310)
    trace.kernel("a", 100, 120, agent=GPU2).kernel("a", 300, 370, agent=GPU2).kernel("a", 400, 405, agent=GPU2)
    assert cells(open_job(trace), "instances", COLUMNS) == [("a", 2, 2, 50, 25, 40, 2, 25 * 100 / 90)]


def test_one_gpu(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no kernel ran on two GPUs"):
        open_job(TraceBuilder().kernel("a", 1, 2).kernel("a", 3, 4)).summary("instances")


def test_against_pandas(open_job: OpenJob) -> None:
    chance, traces, rows = Random(8), [], []
    for rank in range(3):
        traces.append(TraceBuilder(rank, host=f"node{rank}"))
        for at in range(100, 6000, 100):
            name, length = chance.choice("abc"), chance.randrange(1, 90)
            traces[-1].kernel(name, at, at + length)
            rows.append((rank, name, length))
    table = pd.DataFrame(rows, columns=["rank", "name", "length"])
    table["n"] = table.groupby(["rank", "name"]).cumcount()
    runs = table.groupby(["name", "n"])["length"].agg(["count", "min", "max", "mean"])
    runs = runs[runs["count"] > 1]
    runs["range"], runs["late"] = runs["max"] - runs["min"], runs["max"] - runs["mean"]
    sums = runs.groupby("name")[["range", "late"]].sum()
    ours = {name: rest for name, *rest in cells(open_job(*traces), "instances", "name range_ns over_mean_ns")}
    assert ours == {name: [int(row["range"]), round(row["late"])] for name, row in sums.iterrows()}
