"""What ranks answered is kept: every table is the same with and without, and no answer outlives what it was made of."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.base.cache import file_entries
from rocpd.cli import diagnostics, run
from rocpd.federate.engine import Engine
from rocpd.federate.federation import Federation
from rocpd.federate.run.local import Local
from rocpd.index import kept
from rocpd.index.build import build
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.reading import Reading
from rocpd.summary.registry import SUMMARIES
from rocpd.summary.run import planned, run_planned
from tests.index.test_entries import _change, _rank


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ranks were asked, each time that ranks might have been."""
    counts: list[int] = []
    each = Local.each

    def counted(self: Local, tasks: Any) -> Any:
        counts.append(len(tasks))
        return each(self, tasks)

    monkeypatch.setattr(Local, "each", counted)
    return counts


@pytest.fixture(autouse=True)
def of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests keep nothing here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path]:
    """Two ranks of two nodes with everything that the simulator knows, and the folder of their index."""
    folder = tmp_path_factory.mktemp("kept")
    files = list(simulate(JobOptions(out=folder / "job", ranks=2, nodes=2, events_per_rank=300, seed=31)))
    with rocpd.connect(files) as session:
        build(session, folder / "index")
    return files, folder / "index"


def _tables(session: Federation) -> list[str]:
    """The tables of all analyses with every digit, notes too, and the errors of those that lack data."""
    lines = []
    for name, tables in run_planned(Reading(session), planned(SUMMARIES)):
        try:
            for table in tables:
                lines += [f"{name} {table.name} {table.columns} {table.findings}", *map(repr, table)]
        except RocpdError as error:
            lines.append(f"{name}: {error!r}")
    return [*lines, *session.notes]


SELECTIONS: dict[str, Callable[[rocpd.Session], Federation]] = {
    "all": lambda session: session,
    "clipped": lambda session: session.within(rocpd.Window("20%", "70%", clip=True)),
    "step": lambda session: session.within(rocpd.Window(step=0)),
    "filters": lambda session: session.where(rocpd.Filters(ranks="1", streams="0-1")),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_all_analyses_are_the_same(name: str, job: tuple[list[Path], Path], done: list[int]) -> None:
    files, folder = job
    answers, asked_ranks = [], []
    for how in ("off", "require", "require"):
        done.clear()
        with rocpd.connect(files, index=how, index_folder=folder) as session:
            answers.append(_tables(SELECTIONS[name](session)))
        asked_ranks.append(sum(done))
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) > 100
    assert asked_ranks[1] > 0
    assert asked_ranks[2] == 0


def _copies(files: list[Path], folder: Path, use: str = "auto") -> list[tuple[object, ...]]:
    with rocpd.connect(files, index=use, index_folder=folder) as session:
        table = session.summary("copies")
        return [tuple(row) for row in table]


def _few(folder: Path) -> tuple[list[Path], Path]:
    files = [_rank(folder / f"{number}.db", number) for number in range(2)]
    with rocpd.connect(files) as session:
        build(session, folder / "index")
    return files, folder / "index"


def _answers() -> list[Path]:
    return sorted(file_entries("answers").root.glob("*/*.pickle"))


@pytest.mark.parametrize("folder", [[], ["-d", "elsewhere"]], ids=["cache", "elsewhere"])
def test_the_first_summary_reads_no_file(
    folder: list[str],
    job: tuple[list[Path], Path],
    done: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Building an index asks what the summary will; `--no-summary` does not."""
    monkeypatch.chdir(tmp_path)
    files = [*map(str, job[0])]
    use = ["--index-folder", "elsewhere"] if folder else []
    assert run(["summary", *files, "--index", "off"]) == 0
    without = capsys.readouterr().out
    for words in (["--no-summary"], []):
        done.clear()
        assert run(["index", *files, *folder, *words]) == 0
        asked_by_index = sum(done)
        assert run(["summary", *files, *use]) == 0
        assert capsys.readouterr().out == without
        assert (sum(done) > asked_by_index) == bool(words)
        shutil.rmtree(tmp_path / "cache")
        shutil.rmtree(tmp_path / "elsewhere", ignore_errors=True)


ATTACHED = "select count(*) from kernels a join kernels b using (id)"


@pytest.mark.parametrize(
    "words",
    [
        ["query", "select count(*) from kernels"],
        ["query", ATTACHED],
        ["summary"],
        ["summary", "gaps"],
        ["summary", "--amd"],
        ["advise"],
        ["report", "--force"],
    ],
)
def test_what_took_long_mentions_the_index(
    words: list[str],
    job: tuple[list[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Once, where there is none and one may be used."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(diagnostics, "LONG_S", -1.0)
    monkeypatch.setattr(Engine, "_size", 1 << 30)
    files, folder = [*map(str, job[0])], str(job[1])
    without = 0 if ATTACHED in words else 1
    off = [(["--index", "off"], 0)] if words[0] == "query" else []
    for more, times in ([], without), (["--index-folder", folder], 0), *off:
        assert run([*words, *files, *more]) == 0
        assert capsys.readouterr().err.count("after `rocpd index` of these files") == times


def test_a_changed_file_is_asked_again(tmp_path: Path, done: list[int]) -> None:
    files, folder = _few(tmp_path)
    before = _copies(files, folder)
    _change(files[0], 'DELETE FROM "rocpd_memory_copy{uuid}" WHERE id = 1')
    after = _copies(files, folder)
    assert before != after == _copies(files, folder, "off")
    with rocpd.connect(files) as session:
        build(session, folder)
    done.clear()
    assert _copies(files, folder) == after
    assert max(done) == 1  # the other rank is as it was


def test_a_file_that_changes_meanwhile_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, folder = _few(tmp_path)
    each = Local.each

    def changing(self: Local, tasks: Any) -> Iterator[Any]:
        answers = list(each(self, tasks))
        _change(files[0], 'DELETE FROM "rocpd_memory_copy{uuid}" WHERE id = 1')
        yield from answers

    with monkeypatch.context() as busy:
        busy.setattr(Local, "each", changing)
        _copies(files, folder)
    assert len(_answers()) == 1  # of the other rank
    assert _copies(files, folder) == _copies(files, folder, "off")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [_flip, lambda path: os.truncate(path, 20), lambda path: path.write_bytes(b""), lambda path: path.chmod(0)],
    ids=["one bit", "cut", "empty", "no rights"],
)
def test_a_damaged_answer_is_no_answer(damage: Callable[[Path], object], tmp_path: Path) -> None:
    files, folder = _few(tmp_path)
    expected = _copies(files, folder)
    assert len(_answers()) == 2  # copies of two ranks
    for path in _answers():
        damage(path)
    assert _copies(files, folder) == expected


class _Harm:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("harm",)


def test_what_others_may_have_written_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle could do anything, and does where only the user could have written it."""
    files, folder = _few(tmp_path)
    expected, harm = _copies(files, folder), pickle.dumps(_Harm())
    for path in _answers():
        path.write_bytes(hashlib.blake2b(harm, digest_size=16).digest() + harm)
    monkeypatch.chdir(tmp_path)
    root = file_entries("answers").root
    for shared in ([root], list(root.iterdir())):
        for each in shared:
            each.chmod(0o720)
        assert _copies(files, folder) == expected
        assert not Path("harm").exists()
        for each in shared:
            each.chmod(0o700)
    with pytest.raises(TypeError):
        _copies(files, folder)
    assert Path("harm").exists()


def test_other_code_asks_again(tmp_path: Path, done: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    files, folder = _few(tmp_path)
    expected = _copies(files, folder)
    monkeypatch.setattr(kept, "_code", lambda: "another version")
    done.clear()
    assert _copies(files, folder) == expected
    assert set(done) == {2}


def test_nothing_is_kept_without_an_index(tmp_path: Path) -> None:
    files, folder = _few(tmp_path)
    _copies(files, folder, "off")
    shutil.rmtree(folder)
    _copies(files, folder)
    assert not file_entries("answers").root.exists()


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, folder = _few(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert _copies(files, folder) == _copies(files, folder, "off")


def test_no_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, folder = _few(tmp_path)
    monkeypatch.setattr("rocpd.index.columnar.has_cache_folder", lambda: False)
    assert _copies(files, folder) == _copies(files, folder, "off")
    assert not file_entries("answers").root.exists()
