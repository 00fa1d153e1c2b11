"""Files that rocprofiler-systems wrote: suffixes of 32 digits, `{{guid}}` for the GUID, or no metadata on it at all.

A second file of another rank is made from the first by renaming its suffix; its `guid` columns stay as they were.
"""

from __future__ import annotations

import csv
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.schema.load import TABLES, VIEWS, view
from tests.conftest import Cli, private
from tests.perfetto_engine import Engine
from tests.soak import sample, sized

GUIDS = {"rocpd-484153.db": "1cf7d1f031340596bfab7b59c8d5f015", "rocpd-490524.db": "303f3db46c6581b44aa407c5785c3544"}
BY_GUID = "SELECT guid, COUNT(*), SUM(duration) FROM kernels GROUP BY guid ORDER BY 1"


def renamed(source: Path, path: Path, suffix: str) -> Path:
    """Copy a file with another suffix, of the same length, in all names, texts of views and metadata."""
    path.write_bytes(source.read_bytes().replace(f"_{GUIDS[source.name]}".encode(), suffix.encode()))
    return path


@pytest.fixture
def four(tmp_path: Path) -> list[Path]:
    sources = private("rocprofiler-systems/*.db", len(GUIDS))
    copies = [renamed(s, tmp_path / s.name, "_" + GUIDS[s.name][::-1]) for s in sources]
    return [*sources, *copies]


def test_each_opens_alone_with_the_guid_of_its_suffix(four: list[Path]) -> None:
    for path, guid in zip(four, [*GUIDS.values(), *(guid[::-1] for guid in GUIDS.values())], strict=True):
        with rocpd.connect(path) as session:
            assert [rank.guid for rank in session.ranks] == [guid]
            assert session.notes == []
            assert session.execute(BY_GUID).fetchall()[0][:2] == (guid, 1004)


@pytest.mark.soak(3)
def test_together_they_are_four_ranks_in_every_table_and_view(four: list[Path]) -> None:
    alone: dict[str, int] = {}
    some = sample((*TABLES, *VIEWS), 3)
    for path in four:
        with rocpd.connect(path) as session:
            for name in {*some} & set(session.tables):
                count = session.execute(f"SELECT COUNT(*) FROM {name}").fetchall()[0][0]
                alone[name] = alone.get(name, 0) + count
                is_row_by_row = name in VIEWS and view(name).per_rank and not view(name).where
                if is_row_by_row and not view(name).group_by and view(name).tables[0].table in TABLES:
                    of_table = f"SELECT COUNT(*) FROM {view(name).tables[0].table}"
                    if all(each.join != "JOIN" for each in view(name).tables):
                        assert session.execute(of_table).fetchall() == [(count,)], name
    with rocpd.connect(four) as session:
        for name in (name for name in some if name in TABLES or view(name).is_rows):
            assert session.execute(f"SELECT COUNT(*) FROM {name}").fetchall() == [(alone[name],)], name
        ranks = session.execute("SELECT guid, MIN(rank), MAX(rank), COUNT(*) FROM kernels GROUP BY guid").fetchall()
        assert {(low, high, count) for _, low, high, count in ranks} == {(n, n, 1004) for n in range(4)}
        joined = (
            "SELECT COUNT(*) FROM rocpd_kernel_dispatch D JOIN rocpd_event E ON E.guid = D.guid AND E.id = event_id"
        )
        for strategy in ("attached", "aggregates"):
            assert session.execute(joined, strategy=strategy).fetchall() == [(4016,)]


def test_a_merged_file_and_a_package_answer_as_the_files_do(four: list[Path], tmp_path: Path, cli: Cli) -> None:
    merged, package = tmp_path / "all.sqlite", tmp_path / "job.rpdb"
    assert cli("merge", *four, "-o", merged).code == 0
    assert cli("package", *four, "-d", package).code == 0
    wanted = (BY_GUID, "SELECT * FROM busy ORDER BY rank, 1", "SELECT guid, pid, start FROM processes ORDER BY 1")
    with rocpd.connect(four) as session:
        expected = [session.execute(sql).fetchall() for sql in wanted]
    for path in (merged, package):
        with rocpd.connect(path) as session:
            assert [session.execute(sql).fetchall() for sql in wanted] == expected
    connection = apsw.Connection(str(merged), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute(BY_GUID).fetchall() == expected[0]


@pytest.mark.soak(2)
def test_every_command_takes_them(four: list[Path], tmp_path: Path, cli: Cli) -> None:
    for number, inputs in enumerate(sized((four,), (four[:1], four[1:2], four))):
        for words in (
            ("info",),
            ("summary", "all"),
            ("convert", "-f", "pftrace", "csv", "json", "parquet", "arrow", "otf2", "-d", tmp_path / f"out{number}"),
        ):
            said = cli(*words, *inputs)
            assert said.code == 0, said.err
        kernels = (tmp_path / f"out{number}" / "out_kernel_trace.csv").read_text()
        assert kernels.count("\n") == 1 + 1004 * len(inputs)


def test_short_names_of_kernels_have_no_kd(four: list[Path], cli: Cli) -> None:
    full = ["transpose_a(int*, int*, int, int) [clone .kd]", "__amd_rocclr_fillBufferAligned.kd"]
    short = ["transpose_a", "__amd_rocclr_fillBufferAligned"]
    for path in four[:2]:
        for words, expected in (((), full), (("--truncate-kernels",), short)):
            lines = cli("summary", "kernels", path, "-f", "csv", *words).out.splitlines()[1:]
            assert sorted(next(csv.reader([line]))[0] for line in lines) == sorted(expected)
        for pattern, count in ((r"int\)$", 1000), ("Aligned$", 4), (r"\.kd", None), (r".*\.kd", 4), ("^trans", 1000)):
            said = cli("query", "SELECT COUNT(*) FROM kernels", path, "--kernel", pattern, "-f", "csv")
            assert said.out.split()[1:] == ([] if count is None else [str(count)]), pattern


def test_an_operation_that_is_also_a_region_counts_once(four: list[Path], cli: Cli) -> None:
    """One version writes every dispatch, copy and allocation as a region of the same event, too."""
    said = cli("summary", "domains", four[1], "-f", "csv")
    calls = {row[0]: int(row[1]) for row in csv.reader(said.out.splitlines()[1:])}
    assert calls == {"HIP": 2130, "KERNELS": 1004, "MEMORY_COPIES": 48, "MEMORY_ALLOCATIONS": 22, "SMI": 1236}
    with rocpd.connect(four[1]) as session:
        assert session.execute("SELECT COUNT(*) FROM regions").fetchall() == [(2130 + 1004 + 48 + 22,)]


def test_samples_are_of_their_agent_and_sentinels_are_counted(four: list[Path]) -> None:
    """A sample has an event for all values of a GPU and a track for each, which all GPUs share."""
    with rocpd.connect(four[0]) as session:
        rows = {(row[1], row[2]): row[3:] for row in session.summary("samples")}
    power = {agent: row for (agent, name), row in rows.items() if name == "device_power"}
    assert {row[:2] for row in power.values()} == {("W", 69)}
    assert len(power) == 8
    assert max(row[5] for row in power.values()) == 380
    assert {row[0] for (_, name), row in rows.items() if name == "device_memory_usage"} == {"MB"}
    assert rows[1, "process_page_fault"][:2] == ("1/s", 67)
    with rocpd.connect(four[1]) as session:
        rows = {(row[1], row[2]): row[3:] for row in session.summary("samples")}
    assert rows[23129, "device_power"][:8] == ("W", 0, None, None, None, None, None, 309)
    assert rows[23129, "device_temp"][:4] == ("°C", 309, pytest.approx(40.2, abs=0.1), 33.0)


def test_each_gpu_has_its_counters_in_perfetto(four: list[Path], tmp_path: Path, cli: Cli) -> None:
    values = "SELECT T.name, T.unit, COUNT(*), MAX(C.value) FROM counter C JOIN counter_track T ON T.id = C.track_id"
    for path in four[:2]:
        said = cli("convert", "-f", "pftrace", "-o", tmp_path / f"{path.stem}.pftrace", path)
        assert said.code == 0
        assert ("values: 309" in said.err) == (path == four[1])
    rows = Engine(tmp_path / f"{four[0].stem}.pftrace").rows(f"{values} GROUP BY T.id")
    assert {row[:3] for row in rows if "power" in row[0]} == {(f"GPU {n} · device_power", "W", 69) for n in range(8)}
    assert [row[3] for row in rows if row[0] == "GPU 0 · device_power"] == [380]
    rows = Engine(tmp_path / f"{four[1].stem}.pftrace").rows(f"{values} GROUP BY T.id")
    assert sorted(row[:3] for row in rows if row[0].startswith("device_")) == [
        ("device_busy_mm", "%", 309), ("device_memory_usage", "MB", 309), ("device_temp", "°C", 309),
    ]  # fmt: skip
