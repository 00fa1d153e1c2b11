"""Laws that hold on simulated jobs, sound and damaged: windows, splits, merges, row counts, summaries, raw files."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rocpd
from rocpd.cli import run
from rocpd.federate.merge import merge
from rocpd.schema.load import VIEWS, view
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.summarize import SummaryOptions, summarize
from tests.conftest import state_of
from tests.real.rows import multiset
from tests.soak import sample, sized

pytestmark = pytest.mark.soak(600)
EXAMPLES, STEPS = sized((2, 1), (200, 2))
LAWS = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
ONE_TO_ONE = {
    "kernels": "rocpd_kernel_dispatch",
    "regions": "rocpd_region",
    "samples": "rocpd_sample",
    "memory_copies": "rocpd_memory_copy",
    "memory_allocations": "rocpd_memory_allocate",
    "threads": "rocpd_info_thread",
    "processes": "rocpd_info_process",
    "code_objects": "rocpd_info_code_object",
    "kernel_symbols": "rocpd_info_kernel_symbol",
    "pmc_info": "rocpd_info_pmc",
    "events_args": "rocpd_arg",
    "graph_launches": "rocpd_graph_launch",
}
TIMED = ("kernels", "regions", "samples", "memory_copies", "memory_allocations", "graph_launches")


@functools.cache
def _folder() -> Path:
    holder = tempfile.TemporaryDirectory(prefix="rocpd-laws-")
    _KEEP.append(holder)
    return Path(holder.name)


_KEEP: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def job(ranks: int, profile: str, seed: int, faults: bool) -> tuple[Path, ...]:
    """Make a small job once; its files stay until the tests end."""
    out = _folder() / f"{ranks}-{profile}-{seed}-{faults}"
    return simulate(
        JobOptions(out=out, ranks=ranks, nodes=1 + (ranks > 2), steps=STEPS, seed=seed, profile=profile, faults=faults)
    )


JOBS = st.builds(job, st.integers(1, 4), st.sampled_from(["gemm", "llm", "hpc"]), st.integers(0, 3), st.booleans())


def rows(session: rocpd.Session, relation: str) -> Counter[Any]:
    """All rows of a view or table as a multiset."""
    return multiset(session.sql(f"SELECT * FROM {relation}"))


def summaries(session: rocpd.Session) -> list[tuple[Any, ...]]:
    """All summary tables, by rank and domain too."""
    tables = summarize(session, SummaryOptions(by_rank=True, domains=True))
    return [(table.name, table.columns, table.fetchall()) for table in tables]


@LAWS
@given(JOBS)
def test_a_view_has_as_many_rows_as_its_table(files: tuple[Path, ...]) -> None:
    with rocpd.connect(files) as session:
        for name, base in ONE_TO_ONE.items():
            counts = session.sql(f"SELECT (SELECT count(*) FROM {name}), (SELECT count(*) FROM {base})").fetchall()
            assert counts[0][0] == counts[0][1], name
        args = "SELECT count(*) FROM rocpd_arg a JOIN rocpd_region r ON r.guid = a.guid AND r.event_id = a.event_id"
        assert session.sql("SELECT count(*) FROM region_args").fetchall() == session.sql(args).fetchall()


@LAWS
@given(JOBS, st.randoms(use_true_random=False))
def test_order_and_grouping_of_files_change_nothing(files: tuple[Path, ...], random: Any) -> None:
    shuffled = random.sample(files, len(files))
    with tempfile.TemporaryDirectory() as scratch, rocpd.connect(files) as session:
        cut = random.randint(1, len(files))
        merged = Path(scratch) / "merged.db"
        with rocpd.connect(shuffled[:cut]) as some:
            merge(some, merged)
        with rocpd.connect([*shuffled[cut:], merged]) as other:
            assert [rank.guid for rank in other.ranks] == [rank.guid for rank in session.ranks]
            for name in sample(VIEWS, 3):
                assert rows(other, name) == rows(session, name), name
            assert summaries(other) == summaries(session)


@LAWS
@given(JOBS)
def test_merging_keeps_every_row_of_every_table_and_merging_again_too(files: tuple[Path, ...]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        once, twice = Path(scratch) / "once.db", Path(scratch) / "twice.db"
        with rocpd.connect(files) as session:
            merge(session, once)
        with rocpd.connect(once) as session:
            merge(session, twice)
        with rocpd.connect(files) as parts, rocpd.connect(twice) as complete:
            for name in sample(list(parts.tables), 3):
                assert rows(complete, name) == rows(parts, name), name


@LAWS
@given(JOBS)
def test_a_window_of_the_whole_is_no_window(files: tuple[Path, ...]) -> None:
    with rocpd.connect(files) as session:
        complete = session.time_range
        assert complete
        expected = {name: rows(session, name) for name in sample(list(session.tables), 3, 1)}
    for window in (rocpd.Window("0%", "100%"), rocpd.Window(complete[0], complete[1]), rocpd.Window("+0ns", "-0ns")):
        with rocpd.connect(files, window=window) as session:
            assert session.window is None
            assert {name: rows(session, name) for name in expected} == expected


@LAWS
@given(JOBS, st.integers(1, 99))
def test_adjoining_windows_add_up(files: tuple[Path, ...], percent: int) -> None:
    """Inclusive: together all rows, and both only what crosses the border. Exclusive: all rows but those that do."""
    cut = f"{percent}%"
    with rocpd.connect(files) as whole:
        edge = _edge(whole, percent)
        complete = {name: rows(whole, name) for name in TIMED}
        crossing = {name: _crossing(whole, name, complete[name], edge) for name in TIMED}
    for inclusive in (True, False):
        with (
            rocpd.connect(files, window=rocpd.Window(end=cut, inclusive=inclusive)) as first,
            rocpd.connect(files, window=rocpd.Window(start=cut, inclusive=inclusive)) as second,
        ):
            for name in TIMED:
                before, after = rows(first, name), rows(second, name)
                if inclusive:
                    assert before | after == complete[name], name
                    assert before & after == crossing[name], name
                else:
                    assert before + after == complete[name] - crossing[name], name


def _crossing(session: rocpd.Session, name: str, complete: Counter[Any], edge: dict[int, int]) -> Counter[Any]:
    """The rows that cross the border."""
    columns = session.sql(f"SELECT * FROM {name} LIMIT 0").columns
    return Counter({row: n for row, n in complete.items() if _crosses(dict(zip(columns, row, strict=True)), edge)})


def _edge(session: rocpd.Session, percent: int) -> dict[int, int]:
    """The border in each rank's own clock [ns]."""
    complete = session.time_range
    assert complete
    at = complete[0] + round((complete[1] - complete[0]) * percent / 100)
    offsets = session.alignment.offsets
    return {rank.number: at - offsets.get(rank.number, 0) for rank in session.ranks}


def _crosses(row: dict[str, Any], edge: dict[int, int]) -> bool:
    at = edge[row["rank"]]
    return "end" in row and row["start"] < at < row["end"]


@LAWS
@given(JOBS, st.integers(5, 95))
def test_summaries_of_a_window_count_the_rows_of_the_window(files: tuple[Path, ...], percent: int) -> None:
    with rocpd.connect(files, window=rocpd.Window(start=f"{percent}%")) as session:
        counts = session.sql("SELECT count(*) FROM kernels").fetchall()[0][0]
        tables = {table.name: table for table in summarize(session)}
        summed = sum(row[1] for row in tables["kernels_summary"]) if "kernels_summary" in tables else 0
        assert summed == counts


@pytest.mark.parametrize("faults", [False, True])
def test_no_command_changes_an_input(faults: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = job(4, "llm", 1, faults)
    folder = files[0].parent
    before = state_of(folder)
    out = str(tmp_path)
    for words in (
        ["query", "select count(*) from kernels"],
        ["query", "create temp table t(a); insert into t values (1); select * from t"],
        ["summary", "--summary-by-rank", "--domain-summary"],
        ["merge", "-d", out],
        ["convert", "-f", "pftrace", "csv", "-d", out],
        ["info"],
    ):
        assert run([*words, str(folder)]) == 0, (words, capfd.readouterr().err)
    assert run(["query", "delete from rocpd_region", str(folder)]) != 0
    assert state_of(folder) == before


_SEEN = sized(("kernels", "busy", "top_kernels", "region_args", "rocpd_string"), VIEWS)
"""A name changes where rows come from, and not which."""


@pytest.mark.parametrize("name", ["a b", "it's", 'quo"te', "50%", "a#b?c=d&e", "ünïcødé 龍", "-dash", "x" * 200])
def test_any_file_and_folder_name(name: str, tmp_path: Path) -> None:
    source = job(1, "gemm", 0, False)[0]
    folder = tmp_path / name
    folder.mkdir()
    file = folder / f"{name[:190]}.db"
    file.write_bytes(source.read_bytes())
    with rocpd.connect(source) as plain:
        expected = {relation: rows(plain, relation) for relation in _SEEN}
    for inputs in (file, folder):
        with rocpd.connect(inputs) as session:
            assert {relation: rows(session, relation) for relation in _SEEN} == expected
            merge(session, folder / f"merged {name[:100]}.sqlite", force=True)


def test_rows_arrow_and_pandas_agree() -> None:
    """Over every view of a damaged job: the same values, whatever form they are asked for in."""
    with rocpd.connect(job(4, "llm", 2, True)) as session:
        for name in sample(VIEWS, 3):
            result = session.sql(f"SELECT * FROM {name}")
            expected = result.fetchall()
            table = result.arrow()
            assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected or not expected
            frame = result.df()
            assert frame.shape == (len(expected), len(result.columns))
            assert (
                list(frame.columns)
                == [c.name for c in view(name).columns] + list(result.columns)[len(view(name).columns) :]
            )
            for index, column in enumerate(zip(*expected, strict=True)):
                got = [
                    None if value is pd.NA or pd.isna(value) else value for value in frame.iloc[:, index].astype(object)
                ]
                assert got == list(column), (name, result.columns[index])
