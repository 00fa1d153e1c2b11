"""Packages: an index that every command takes as input, and files that are listed, copied or moved with care."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
import yaml

import rocpd
from rocpd.base import InputError, OutputError
from rocpd.federate import package as package_module
from rocpd.federate.package import FilePlacement, package
from tests.build import TraceBuilder
from tests.conftest import Cli, state_of
from tests.federate.writers import HALF_DONE, LIVE_WAL, killed_writer, writer

COUNT = "SELECT count(*) FROM kernels"


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    """Two nodes whose processes have the same pid, and so equal base names."""
    for n in range(2):
        (tmp_path / f"node{n}").mkdir()
        TraceBuilder(n, host=f"node{n}").kernel("gemm", 1, 5 + n).region("f", 1, 2).write(
            tmp_path / f"node{n}" / "16_results.db", views=True
        )
    return sorted(tmp_path.glob("node*/*.db"))


def listed(folder: Path) -> list[str]:
    content = yaml.safe_load((folder / "index.yaml").read_text(encoding="utf-8"))
    assert list(content) == ["rocprofiler-sdk"]
    assert list(content["rocprofiler-sdk"]) == ["rocpd"]
    inner = content["rocprofiler-sdk"]["rocpd"]
    assert (inner["rocpd_package_version"], inner["path"]) == ("1.0", ".")
    return list(inner["files"])


def test_files_stay_and_are_listed_from_the_package(nodes: list[Path], tmp_path: Path) -> None:
    before = state_of(tmp_path)
    with rocpd.connect(nodes) as session:
        package(session, tmp_path / "job.rpdb")
    assert listed(tmp_path / "job.rpdb") == ["../node0/16_results.db", "../node1/16_results.db"]
    assert {name: hashed for name, hashed in state_of(tmp_path).items() if not name.startswith("job.rpdb")} == before
    (tmp_path / "moved").mkdir()
    for name in ("node0", "node1", "job.rpdb"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    with rocpd.connect(tmp_path / "moved" / "job.rpdb") as session:
        assert session.execute(COUNT).fetchall() == [(2,)]


def test_files_elsewhere_are_listed_by_their_whole_path(nodes: list[Path], tmp_path: Path) -> None:
    with rocpd.connect(nodes[0]) as session:
        package(session, tmp_path / "results" / "job.rpdb")
    assert listed(tmp_path / "results" / "job.rpdb") == [str(nodes[0])]


@pytest.mark.parametrize("placement", [FilePlacement.COPY, FilePlacement.MOVE])
def test_equal_names_of_two_nodes_stay_apart(placement: FilePlacement, nodes: list[Path], tmp_path: Path) -> None:
    contents = [node.read_bytes() for node in nodes]
    for node in nodes:
        os.utime(node, (1e9, 1e9))  # nobody writes it: copied byte by byte
    with rocpd.connect(nodes) as session:
        targets = package(session, tmp_path / "job.rpdb", placement)
    names = ["node0_16_results.db", "node1_16_results.db"]
    assert listed(tmp_path / "job.rpdb") == names
    assert [targets[node].name for node in nodes] == names
    assert [(tmp_path / "job.rpdb" / name).read_bytes() for name in names] == contents
    assert [node.exists() for node in nodes] == [placement is FilePlacement.COPY] * 2
    with rocpd.connect(tmp_path / "job.rpdb") as session:
        assert session.execute(COUNT).fetchall() == [(2,)]


def test_names_that_are_still_equal_get_a_number(tmp_path: Path) -> None:
    for n in range(3):
        folder = tmp_path / str(n) / "node0"
        folder.mkdir(parents=True)
        TraceBuilder(n).write(folder / "16_results.db")
    with rocpd.connect(sorted(tmp_path.glob("*/*/*.db"))) as session:
        package(session, tmp_path / "job.rpdb", FilePlacement.COPY)
    assert listed(tmp_path / "job.rpdb") == [f"node0_16_results{n}.db" for n in ("", "-2", "-3")]


def test_no_file_takes_the_name_of_the_index(tmp_path: Path) -> None:
    with rocpd.connect(TraceBuilder().write(tmp_path / "Index")) as session:
        package(session, tmp_path / "job.rpdb", FilePlacement.COPY)
    assert listed(tmp_path / "job.rpdb") == ["Index-2"]


def test_a_move_that_fails_is_taken_back(nodes: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state_of(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(package_module, "_write_index", fail)
    with rocpd.connect(nodes) as session, pytest.raises(OutputError, match="No space left"):
        package(session, tmp_path / "job.rpdb", FilePlacement.MOVE)
    assert state_of(tmp_path) == before
    assert not (tmp_path / "job.rpdb").exists()


def test_a_move_between_file_systems(nodes: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_device(self: Path, target: Path) -> Path:
        raise OSError(18, "Invalid cross-device link")

    with rocpd.connect(nodes) as session:
        monkeypatch.setattr(Path, "rename", other_device)
        package(session, tmp_path / "job.rpdb", FilePlacement.MOVE)
    assert sorted(path.name for path in (tmp_path / "job.rpdb").iterdir()) == [
        "index.yaml", "node0_16_results.db", "node1_16_results.db",
    ]  # fmt: skip
    assert not any(node.exists() for node in nodes)


def test_the_only_copy_of_raw_files_is_never_replaced(nodes: list[Path], tmp_path: Path) -> None:
    with rocpd.connect(nodes) as session:
        package(session, tmp_path / "job.rpdb", FilePlacement.MOVE)
    other = TraceBuilder(7).write(tmp_path / "other.db")
    with rocpd.connect(other) as session:
        for force in (False, True):
            with pytest.raises(OutputError, match=r"exists|not replaced"):
                package(session, tmp_path / "job.rpdb", force=force)
    with rocpd.connect(tmp_path / "job.rpdb") as session:
        assert session.execute(COUNT).fetchall() == [(2,)]


def test_an_index_alone(nodes: list[Path], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    outside = TraceBuilder(7).kernel("gemm", 1, 3).write(tmp_path / "outside.db")
    inside = TraceBuilder(8).kernel("gemm", 1, 3).write(tmp_path / "work" / "inside.db")
    assert cli("package", "-i", outside, inside).code == 0
    assert listed(Path()) == [str(outside), "inside.db"]
    again = cli("package", *nodes)
    assert (again.code, "index.yaml: exists" in again.err) == (1, True)
    assert cli("package", "-i", "index.yaml", "--force").code == 1  # an input is never replaced
    assert cli("package", *nodes, "--force").code == 0
    assert listed(Path()) == [str(node) for node in nodes]
    assert cli("query", "-i", "index.yaml", "--query", COUNT, "-f", "csv").out.splitlines()[1] == "2"


def test_copies_are_consolidated(nodes: list[Path], tmp_path: Path, cli: Cli) -> None:
    before = [node.read_bytes() for node in nodes]
    assert cli("package", "-i", *nodes, "-d", tmp_path / "x", "--consolidate", "--copy").code == 0
    assert len(list((tmp_path / "x.rpdb").glob("*.db"))) == 2
    assert [node.read_bytes() for node in nodes] == before


def test_an_index_is_replaced_with_force(nodes: list[Path], tmp_path: Path) -> None:
    with rocpd.connect(nodes) as session:
        package(session, tmp_path / "job.rpdb")
        with pytest.raises(OutputError, match="exists"):
            package(session, tmp_path / "job.rpdb")
    with rocpd.connect(nodes[0]) as session:
        package(session, tmp_path / "job.rpdb", force=True)
    assert listed(tmp_path / "job.rpdb") == ["../node0/16_results.db"]


def test_what_a_killed_writer_left_is_copied_entirely(nodes: list[Path], tmp_path: Path) -> None:
    strings = "rocpd_string_00000000_92cb_72cb_9169_c7e541b1fcdf"
    killed_writer(nodes[0], HALF_DONE, strings)
    before = state_of(tmp_path)
    with rocpd.connect(nodes) as session:
        package(session, tmp_path / "copied.rpdb", FilePlacement.COPY)
        expected = session.execute("SELECT string FROM rocpd_string").fetchall()
    shutil.rmtree(tmp_path / "kept", ignore_errors=True)
    with rocpd.connect(tmp_path / "copied.rpdb") as session:
        assert session.execute("SELECT string FROM rocpd_string").fetchall() == expected
    shutil.rmtree(tmp_path / "copied.rpdb")
    assert state_of(tmp_path) == before
    with rocpd.connect(nodes) as session:
        package(session, tmp_path / "moved.rpdb", FilePlacement.MOVE)
    with rocpd.connect(tmp_path / "moved.rpdb") as session:
        assert session.execute("SELECT string FROM rocpd_string").fetchall() == expected


def test_a_file_in_use_is_copied_but_not_moved(nodes: list[Path], tmp_path: Path) -> None:
    strings = "rocpd_string_00000000_92cb_72cb_9169_c7e541b1fcdf"
    with writer(nodes[0], LIVE_WAL, strings), rocpd.connect(nodes) as session:
        package(session, tmp_path / "copied.rpdb", FilePlacement.COPY)
        with pytest.raises(InputError, match=r"16_results.db: another process has it open"):
            package(session, tmp_path / "moved.rpdb", FilePlacement.MOVE)
    with rocpd.connect(tmp_path / "copied.rpdb") as session:
        texts = session.execute("SELECT string FROM rocpd_string WHERE string IN ('committed', 'too')").fetchall()
    assert texts == [("committed",), ("too",)]
    assert not (tmp_path / "moved.rpdb").exists()


def test_the_command(cli: Cli, nodes: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli("package", "node0", "node1", "-d", "job")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("rocpd: wrote job.rpdb (2 files, ")
    refused = cli("package", "node0", "-d", "x.rpdb", "--consolidate")
    assert (refused.code, refused.err) == (
        2,
        "rocpd: error: --consolidate moves the raw files into the package\n"
        "  hint: add --yes to do it, or take --copy\n",
    )
    (tmp_path / "bad.db").write_bytes(b"no database" * 100)
    assert cli("package", "node0", "bad.db", "-d", "x.rpdb").code == 3
    assert cli("package", "node0", "bad.db", "-d", "x.rpdb", "--skip-bad").code == 0
    assert listed(tmp_path / "x.rpdb") == ["../node0/16_results.db"]
    assert cli("package", "-i", "node0", "node1", "-d", "all.rpdb", "--consolidate", "--yes").code == 0
    assert [path.name for path in (tmp_path / "node0").iterdir()] == []
    for words in (["query", COUNT], ["info"], ["summary"], ["merge"], ["convert", "-f", "csv"], ["package", "--copy"]):
        said = cli(*words, "all.rpdb", *(["-d", "again.rpdb"] if words[0] == "package" else []))
        assert said.code == 0, said.err


def test_sqlite_reads_what_was_copied(nodes: list[Path], tmp_path: Path) -> None:
    with rocpd.connect(nodes) as session:
        package(session, tmp_path / "job.rpdb", FilePlacement.COPY)
    with sqlite3.connect(tmp_path / "job.rpdb" / "node1_16_results.db") as database:
        assert database.execute("SELECT count(*) FROM kernels").fetchone() == (1,)
    database.close()


@pytest.mark.parametrize("words", [[], ["--copy"], ["--consolidate", "--yes"]])
def test_an_index_in_the_package_answers_until_a_file_changes(
    words: list[str], nodes: list[Path], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = tmp_path / "job.rpdb"
    written = cli("package", *nodes, "-d", package, "--with-index", *words)
    assert (written.code, "indexed 2 ranks" in written.err) == (0, True)
    assert not (tmp_path / "cache" / "rocpd" / "index").exists()

    def count(where: Path, *further: str) -> str:
        return cli("query", COUNT, where, "--format", "csv", "--index", *further).out

    assert count(package, "require") == count(package, "off") == "count(*)\n2\n"
    shutil.copytree(package, tmp_path / "elsewhere.rpdb")
    (copied,) = sorted((tmp_path / "elsewhere.rpdb").glob("*1_16_results.db")) or [nodes[1]]
    with contextlib.closing(sqlite3.connect(copied)) as connection, connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_kernel_dispatch_*' AND type = 'table'"
        ).fetchone()
        connection.execute(f'DELETE FROM "{table}"')
    changed = tmp_path / "elsewhere.rpdb" if words else package
    assert count(changed, "require") == ""
    assert count(changed, "auto") == "count(*)\n1\n"


def test_an_index_without_a_package_is_refused(
    nodes: list[Path], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("package", *nodes, "--with-index").code == 2
    assert not (tmp_path / "index.yaml").exists()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "a: &a [x, x]\nb: &b [*a, *a]\nrocprofiler-sdk: {rocpd: {path: ., files: *b}}\n",
    ],
    ids=["deep", "aliases"],
)
def test_an_index_that_stands_for_more_than_it_holds(text: str, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "index.yaml").write_text(text, encoding="utf-8")
    said = cli("info", tmp_path / "index.yaml")
    assert (said.code, said.err.count("not a package index")) == (3, 1)
