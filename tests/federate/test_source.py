"""Finding inputs: those that the user names, else those of the working directory, and the note on the choice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocpd.base import InputError
from rocpd.federate.open.source import SourceFiles, find_sources


def lay(folder: Path, *names: str) -> Path:
    """Make empty files below `folder`; `find_sources` never opens them."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def index(path: Path, *names: str, base: str = ".") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    files = "".join(f"      - '{name}'\n" for name in names)
    path.write_text(
        f"rocprofiler-sdk:\n  rocpd:\n    path: {base}\n    files:\n{files}" if names else "rocprofiler-sdk: {}"
    )
    return path


def names(sources: SourceFiles, folder: Path) -> list[str]:
    return [os.path.relpath(path, folder) for path in sources.paths]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["b.db", "a.db"], ["b.db", "a.db"]),
        (["a.db", "./a.db", "x/../a.db"], ["a.db"]),
        (["?.db"], ["a.db", "b.db"]),
        (["x/**/*.db"], ["x/1_results.db", "x/deep/2.db"]),
        (["[ab].db", "b.db"], ["a.db", "b.db"]),
        (["x"], ["x/1_results.db", "x/deep/2.db"]),
        (["x/", "a.db"], ["x/1_results.db", "x/deep/2.db", "a.db"]),
        (["job.rpdb"], ["job.rpdb/r1.db", "job.rpdb/r0.db"]),
        (["job.rpdb/index.yaml"], ["job.rpdb/r1.db", "job.rpdb/r0.db"]),
        (["odd[1].db"], ["odd[1].db"]),
        (["a.db.txt"], ["a.db.txt"]),
    ],
)
def test_inputs_are_found_in_the_order_given(given: list[str], expected: list[str], tmp_path: Path) -> None:
    lay(tmp_path, "a.db", "b.db", "odd[1].db", "a.db.txt", "x/1_results.db", "x/deep/2.db", "x/notes.txt")
    lay(tmp_path, "job.rpdb/r0.db", "job.rpdb/r1.db", "job.rpdb/unlisted.db", "x/deep/deeper/3.txt")
    index(tmp_path / "job.rpdb" / "index.yaml", "r1.db", "r0.db")
    sources = find_sources([f"{tmp_path}/{item}" for item in given])
    assert names(sources, tmp_path) == expected
    assert sources.notes == ()


def test_one_str_or_path_is_enough(tmp_path: Path) -> None:
    path = lay(tmp_path, "a.db") / "a.db"
    assert find_sources(str(path)) == find_sources(path) == find_sources([tmp_path]) == SourceFiles((path,))


def test_a_folder_is_searched_one_level_deep(tmp_path: Path) -> None:
    lay(tmp_path, "top.db", "host/1_results.db", "host/sub/2_results.db", "folder.db/x.txt")
    assert names(find_sources(tmp_path), tmp_path) == ["top.db", "host/1_results.db"]


def test_passes_have_folders_of_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, "pass_2/host/2_results.db", "pass_1/host/1_results.db", "pass_1/host/deeper/3_results.db")
    expected = ["pass_1/host/1_results.db", "pass_2/host/2_results.db"]
    assert names(find_sources(tmp_path), tmp_path) == expected
    monkeypatch.chdir(tmp_path)
    assert names(find_sources(), tmp_path) == expected


def test_an_index_may_point_elsewhere(tmp_path: Path) -> None:
    lay(tmp_path, "data/r0.db")
    assert names(find_sources(index(tmp_path / "index.yaml", "r0.db", base="data")), tmp_path) == ["data/r0.db"]


@pytest.mark.parametrize(
    ("files", "note", "expected"),
    [
        (
            ["job.rpdb/r0.db", "job.rpdb/r1.db", "a.db"],
            "input: package job.rpdb (2 files)",
            ["job.rpdb/r0.db", "job.rpdb/r1.db"],
        ),
        (["merged.db", "a.db", "b.db"], "input: merged.db", ["merged.db"]),
        (["b.db", "a.db", "host/1_results.db"], "input: a.db, b.db", ["a.db", "b.db"]),
        (["host/2_results.db", "host/other.db"], "input: host/2_results.db", ["host/2_results.db"]),
        (["1.db", "2.db", "3.db", "4.db"], "input: 4 files, 1.db … 4.db", ["1.db", "2.db", "3.db", "4.db"]),
        (["a.rpdb/x.db", "b.rpdb/y.db", "c.db"], "input: c.db", ["c.db"]),
    ],
)
def test_with_nothing_given_the_working_directory_counts(
    files: list[str], note: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lay(tmp_path, *files))
    sources = find_sources()
    assert (names(sources, tmp_path), sources.notes) == (expected, (note,))


def test_an_index_in_the_working_directory_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index(lay(tmp_path, "a.db", "r0.db") / "index.yaml", "r0.db")
    monkeypatch.chdir(tmp_path)
    assert find_sources([]) == SourceFiles((Path("r0.db"),), ("input: index.yaml (1 file)",))


def test_rocpd_input_comes_before_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lay(tmp_path, "here.db", "x/a.db", "y.db"))
    monkeypatch.setenv("ROCPD_INPUT", f"{tmp_path}/x:{tmp_path}/y.db")
    sources = find_sources()
    assert (names(sources, tmp_path), sources.notes) == (["x/a.db", "y.db"], ("input: 2 files from $ROCPD_INPUT",))
    monkeypatch.setenv("ROCPD_INPUT", str(tmp_path / "y.db"))
    assert names(find_sources(), tmp_path) == ["y.db"]
    assert names(find_sources("here.db"), tmp_path) == ["here.db"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere.db", "nowhere.db: no such file"),
        ("*.rpd", "*.rpd: matches no file"),
        ("empty", "empty: a folder without *.db files"),
        ("lost/index.yaml", "lost/gone.db: listed in"),
        ("bad/index.yaml", "bad/index.yaml: not a package index (KeyError)"),
        ("text/index.yaml", "text/index.yaml: not a package index (TypeError)"),
        ("broken/index.yaml", "broken/index.yaml: not a package index ("),
        ("binary/index.yaml", "binary/index.yaml: not a package index (UnicodeDecodeError)"),
        ("none/index.yaml", "none/index.yaml: lists no files"),
    ],
)
def test_errors_name_what_was_given(given: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lay(tmp_path, "empty/notes.txt", "text/index.yaml", "broken/index.yaml", "binary/index.yaml", "none/index.yaml")
    index(tmp_path / "lost/index.yaml", "gone.db")
    index(tmp_path / "bad/index.yaml")
    (tmp_path / "text/index.yaml").write_text("only text")
    (tmp_path / "broken/index.yaml").write_text("a: [1, ]]")
    (tmp_path / "binary/index.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "none/index.yaml").write_text("rocprofiler-sdk: {rocpd: {files: []}}")
    with pytest.raises(InputError) as error:
        find_sources(given)
    assert message in error.value.message


def test_nothing_given_and_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no input") as error:
        find_sources()
    assert "ROCPD_INPUT" in (error.value.hint or "")
