"""The summaries of the real files against pandas, which adds up the same rows in its own way."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

import rocpd
from rocpd.summary.result import Summary
from rocpd.summary.summarize import FIELDS, SummaryOptions, summarize
from rocpd.table.palette import Screen

SHORT = [f"batched_matmul_128x128x16{end}" for end in ("", "_IGLP", "_transe")]


@pytest.fixture(scope="module")
def summaries(real_files: tuple[Path, ...]) -> dict[str, Summary]:
    with rocpd.connect(real_files) as session:
        return {table.name: table for table in summarize(session, SummaryOptions(by_rank=True, domains=True))}


@pytest.fixture(scope="module")
def events(real_files: tuple[Path, ...]) -> dict[str, pd.DataFrame]:
    with rocpd.connect(real_files) as session:
        return {
            "kernels_summary": session.sql("SELECT rank, name, duration FROM kernels").df(),
            "hip_summary": session.sql("SELECT rank, name, duration FROM regions WHERE category GLOB 'HIP_*'").df(),
        }


def expected(durations: pd.DataFrame) -> pd.DataFrame:
    grouped = durations.groupby("name")["duration"].agg(["count", "sum", "mean", "min", "max", "std"])
    grouped.insert(3, "percent", grouped["sum"] * 100 / grouped["sum"].sum())
    return grouped.sort_values(["sum", "name"], ascending=[False, True]).reset_index()


def assert_equal(rows: list[tuple[object, ...]], reference: pd.DataFrame) -> None:
    ours = pd.DataFrame(rows, columns=[field.name for field in FIELDS])
    exact = ["Name", "Calls", "DURATION (nsec)", "MIN (nsec)", "MAX (nsec)"]
    assert ours[exact].to_numpy().tolist() == reference[["name", "count", "sum", "min", "max"]].to_numpy().tolist()
    for column, theirs in (("AVERAGE (nsec)", "mean"), ("PERCENT (INC)", "percent"), ("STD_DEV", "std")):
        values = ours[column].astype(float)
        assert values.tolist() == pytest.approx(reference[theirs].tolist(), rel=1e-9, nan_ok=True), column


@pytest.mark.parametrize("name", ["kernels_summary", "hip_summary"])
def test_against_pandas(name: str, summaries: dict[str, Summary], events: dict[str, pd.DataFrame]) -> None:
    assert len(events[name]) == {"kernels_summary": 3612, "hip_summary": 7488}[name]
    assert_equal(summaries[name].fetchall(), expected(events[name]))


@pytest.mark.parametrize("name", ["kernels_summary", "hip_summary"])
def test_by_rank_against_pandas(name: str, summaries: dict[str, Summary], events: dict[str, pd.DataFrame]) -> None:
    table = summaries[f"{name}_by_rank"]
    keys = [str(row[-1]) if "Rank" in table.columns else f"{row[0]}@{row[1]}" for row in table]
    blocks = list(dict.fromkeys(keys))
    assert len(blocks) == 12
    for rank, block in enumerate(blocks):
        rows = [row[2:10] for row, key in zip(table, keys, strict=True) if key == block]
        assert_equal(rows, expected(events[name][events[name]["rank"] == rank]))


def test_domains_against_pandas(summaries: dict[str, Summary], events: dict[str, pd.DataFrame]) -> None:
    every = pd.concat(
        [events["kernels_summary"].assign(name="KERNELS"), events["hip_summary"].assign(name="HIP")], ignore_index=True
    )
    assert_equal(list(summaries["domain_summary"]), expected(every))


def test_the_view_says_the_same(real_files: tuple[Path, ...], summaries: dict[str, Summary]) -> None:
    with rocpd.connect(real_files) as session:
        rows = session.sql("SELECT * FROM kernel_summary").fetchall()
    assert [row[:3] for row in rows] == [row[:3] for row in summaries["kernels_summary"]]
    for (*_, std, percent), theirs in zip(rows, summaries["kernels_summary"], strict=True):
        assert std == (None if theirs[7] is None else pytest.approx(theirs[7], rel=1e-9))
        assert percent == pytest.approx(theirs[4], rel=1e-12)


def test_kernels_that_differ_in_the_middle_are_told_apart_on_80_columns(real_files: tuple[Path, ...]) -> None:
    with rocpd.connect(real_files) as session:
        out = io.StringIO()
        session.summary("kernels").write_readable(out, 20, Screen(80))
        kernels = session.summary("kernels")
        assert all(name in kernels._repr_html_() for name in SHORT)
        assert not set(SHORT) & {row[0] for row in kernels}
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sorted(line.split()[0] for line in lines[2:] if "matmul" in line) == SHORT
    assert {"calls", "total", "percent"} <= set(lines[0].split())
