"""Laws of the store: entries are whole, immutable, of every writer; what is none is named and left out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rocpd
from rocpd.history import store
from rocpd.history.store import ENDING, date_of, redacted
from tests.docs.console import ROOT
from tests.history.runs import DAY, FIRST, run_of, stored, with_facts
from tests.soak import sized


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_was_added_reads_back_and_adding_again_changes_nothing(tmp_path: Path) -> None:
    run = run_of(1)
    assert store.add(tmp_path, [run], {"commit": "abc"}, FIRST, FIRST) == [True]
    before = files(tmp_path)
    assert store.add(tmp_path, [run], {"commit": "abc"}, FIRST, FIRST + DAY) == [False]
    assert files(tmp_path) == before
    (entry,) = store.read(tmp_path).entries
    assert entry.profile() == run
    assert (entry.labels, entry.date, entry.metrics["step"]) == ({"commit": "abc"}, FIRST, 1e6)
    assert sum(value for name, value in entry.metrics.items() if name.startswith("part:")) == 1e6


def test_a_newer_summary_and_a_newer_label_supersede(tmp_path: Path) -> None:
    store.add(tmp_path, [run_of(1)], {"commit": "abc"}, FIRST, FIRST)
    store.add(tmp_path, [run_of(1, step=2e6)], {"commit": "def"}, FIRST, FIRST + 1)
    found = store.read(tmp_path)
    assert [(entry.metrics["step"], entry.labels["commit"]) for entry in found.entries] == [(2e6, "def")]
    assert any(problem.endswith("left out: a newer summary of the run counts") for problem in found.problems)
    assert "run1: commit=abc and commit=def: the newer label counts" in found.problems


def test_a_label_that_is_added_later_moves_no_run(tmp_path: Path) -> None:
    run = with_facts(run_of(1), started=FIRST + DAY)
    store.add(tmp_path, [run], {}, FIRST, FIRST)
    before = files(tmp_path).keys()
    assert store.add(tmp_path, [run], {"commit": "abc"}, None, FIRST + DAY) == [True]
    (entry,) = store.read(tmp_path).entries
    assert (entry.date, entry.labels, len(files(tmp_path).keys() - before)) == (FIRST, {"commit": "abc"}, 1)


def test_a_copy_is_said_and_labels_of_nobody_are_nothing(tmp_path: Path) -> None:
    stored(tmp_path, [run_of(1), run_of(2)])
    (path,) = (entry.path for entry in store.read(tmp_path).entries if entry.name == "run1")
    (tmp_path / f"copy{ENDING}").write_bytes(path.read_bytes())
    next(path for path in tmp_path.glob(f"*{ENDING}") if b"run2" in path.read_bytes()).unlink()
    found = store.read(tmp_path)
    assert [entry.path for entry in found.entries] == [path]
    assert found.problems == (f"copy{ENDING}: left out: a copy of another file",)


def test_a_label_of_several_runs_is_said_where_nearly_each_run_has_its_own(tmp_path: Path) -> None:
    for number in range(5):
        labels = {"commit": f"c{max(1, number)}", "branch": "main"}
        store.add(tmp_path, [run_of(number)], labels, FIRST + number, FIRST + DAY)
    assert store.read(tmp_path).problems == ("commit=c1: said of several runs",)


def test_a_folder_of_other_files_becomes_no_store(tmp_path: Path) -> None:
    (tmp_path / ".gitkeep").write_text("")
    store.add(tmp_path, [run_of(1)], {})
    job = tmp_path / "job"
    job.mkdir()
    (job / "rank0.db").write_bytes(b"SQLite format 3\0")
    with pytest.raises(rocpd.UsageError, match=r"no store, it holds rank0\.db"):
        store.add(job, [run_of(1)], {})
    assert list(files(job)) == ["rank0.db"]


def test_order_is_by_date_then_by_what_was_recorded(tmp_path: Path) -> None:
    store.add(tmp_path, [run_of(1)], {}, FIRST + 2 * DAY, FIRST + 9 * DAY)
    store.add(tmp_path, [with_facts(run_of(2), started=FIRST + DAY)], {}, None, FIRST + 9 * DAY)
    store.add(tmp_path, [run_of(3)], {}, None, FIRST + 3 * DAY)
    store.add(tmp_path, [run_of(4)], {}, FIRST + 99 * DAY, FIRST + 9 * DAY)
    found = store.read(tmp_path)
    assert [entry.name for entry in found.entries] == ["run2", "run1", "run3", "run4"]
    assert any(
        problem.startswith("run3: nothing says when, so the order is that of `add`") for problem in found.problems
    )
    assert any("run4: dated after it was added" in problem for problem in found.problems)


def test_runs_of_one_date_stand_as_they_were_added_and_wrong_clocks_are_said(tmp_path: Path) -> None:
    for place, number in enumerate((3, 1, 2)):
        store.add(tmp_path, [run_of(number)], {}, 0, FIRST + place)
    found = store.read(tmp_path)
    assert [entry.name for entry in found.entries] == ["run3", "run1", "run2"]
    assert found.problems[0].startswith("run3, run1, run2: dated before ROCm was there (1970-01-01 00:00")


_Spoil = Callable[[bytes], bytes]
_WRONG: tuple[tuple[str, _Spoil], ...] = (
    ("half written", lambda whole: whole[:-100]),
    ("half written", lambda whole: whole[:50]),
    ("written by a newer rocpd, which reads it", lambda whole: whole.replace(b'history":1', b'history":9')),
    ("not of a history", lambda whole: b'{"a": 1}\n'),
    ("half written", lambda whole: b""),
    ("not of a history", lambda whole: b"\xff\xfe\n"),
    ("not of a history", lambda whole: whole.replace(b'"ranks":1', b'"ranks":"1"')),
    ("not of a history", lambda whole: whole.replace(b'"hosts":[', b'"hosts":[7,')),
    ("not of a history", lambda whole: whole.replace(b'"date":1', b'"date":999999999991')),
    ("not of a history", lambda whole: whole.replace(b'"config":{', b'"config":[],"":{')),
)


@pytest.mark.parametrize("number", range(len(_WRONG)))
def test_what_is_no_entry_is_named_and_left_out(tmp_path: Path, number: int) -> None:
    why, spoil = _WRONG[number]
    stored(tmp_path, [run_of(1), run_of(2)])
    whole = next(content for name, content in files(tmp_path).items() if name.endswith(ENDING))
    (tmp_path / f"bad{ENDING}").write_bytes(spoil(whole))
    found = store.read(tmp_path)
    assert len(found.entries) == 2
    assert f"bad{ENDING}: left out: {why}" in found.problems


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(rocpd.InputError, match="no"):
            store.read(folder)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rocpd.InputError, match="no run") as error:
        store.read(tmp_path)
    assert "notes.txt" in (error.value.hint or "")


def test_a_damaged_body_is_said_where_it_is_read(tmp_path: Path) -> None:
    stored(tmp_path, [run_of(1)])
    (path,) = tmp_path.glob(f"*{ENDING}")
    path.write_bytes(path.read_bytes().replace(b'"uses":[', b'"uses":{'))
    (entry,) = store.read(tmp_path).entries
    with pytest.raises(rocpd.InputError, match="damaged"):
        entry.profile()


def test_redacted_says_nothing_of_where_and_tells_machines_apart(tmp_path: Path) -> None:
    runs = [with_facts(run_of(n, host=f"secret-node{n % 2}"), commands=("/home/me/train.py",)) for n in range(4)]
    stored(tmp_path, map(redacted, runs))
    text = b"".join(files(tmp_path).values())
    assert all(word not in text for word in (b"secret", b"/home", b"guid1"))
    hosts = [entry.hosts for entry in store.read(tmp_path).entries]
    assert hosts[0] == hosts[2] != hosts[1] == hosts[3]
    assert store.add(tmp_path, [redacted(runs[0])], {}, FIRST) == [False]


def test_dates() -> None:
    assert date_of("2026-11-12T03:00:00+03:00") == date_of("2026-11-12")
    for text in ("yesterday", "2999-01-01"):
        with pytest.raises(rocpd.UsageError, match=text):
            date_of(text)


@pytest.mark.soak(times=12)
def test_of_many_writers_that_are_killed_no_entry_is_lost_or_half_read(tmp_path: Path) -> None:
    """What a writer said to be added is there, and nothing that was read on the way was half of an entry."""
    writers = str(sized(8, 100))
    command = [sys.executable, "-m", "tests.history.writers", str(tmp_path / "store"), writers]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["killed"] > 0
    assert said["added"] > int(writers)
    assert (said["lost"], said["problems"]) == ([], [])
