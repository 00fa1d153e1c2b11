"""What is followed is what is written, whatever the journal; and nothing is written beside it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from rocpd.live.tail import Tail, TailedFile
from rocpd.schema.live_state import StateWriter, state_file
from tests.live.writer import GrowingFile


def _rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: list(connection.execute(f'SELECT * FROM "{name}" ORDER BY 1'))
            for name in names
            if name.startswith("rocpd")
        }
    finally:
        connection.close()


def _suffix(path: Path) -> str:
    return next(name for name in _rows(path) if name.startswith("rocpd_region")).removeprefix("rocpd_region")


@pytest.mark.parametrize("journal", ["delete", "truncate", "persist", "memory", "wal"])
def test_a_copy_has_the_rows_that_were_written_and_each_is_read_once(
    whole: list[Path], tmp_path: Path, journal: str
) -> None:
    growing = GrowingFile(whole[0], tmp_path / "job" / "rank0.db", journal)
    file = TailedFile(growing.path, tmp_path / "copy" / "rank0.db")
    middle, read = growing.rows[len(growing.rows) // 2][0], 0
    for until in (middle, middle, float("inf")):
        growing.write_until(until)
        beside = sorted(growing.path.parent.iterdir())
        before = growing.path.read_bytes()
        read += file.poll()
        assert file.problem == ""
        assert (sorted(growing.path.parent.iterdir()), growing.path.read_bytes()) == (beside, before)
    assert file.poll() == 0
    file.fresh.free_until(_suffix(growing.path), None)
    written = _rows(growing.path)
    assert _rows(file.copy) == written
    assert read == sum(map(len, written.values()))
    file.close()
    growing.close()


def test_of_what_is_cut_and_freed_gpu_work_goes_with_the_call_that_launched_it(
    whole: list[Path], tmp_path: Path
) -> None:
    growing = GrowingFile(whole[0], tmp_path / "rank0.db")
    growing.write_until(float("inf"))
    file = TailedFile(growing.path, tmp_path / "copy.db")
    file.poll()
    suffix = _suffix(growing.path)
    region, event, dispatch = (f'"rocpd_{base}{suffix}"' for base in ("region", "event", "kernel_dispatch"))
    calls = (
        f"SELECT E.stack_id FROM {region} R JOIN {event} E ON E.id = R.event_id WHERE R.start < ? AND E.stack_id > 0"
    )
    sql = f"SELECT K.id FROM {dispatch} K JOIN {event} E ON E.id = K.event_id WHERE E.stack_id"
    starts = sorted(row["start"] for _, base, row in growing.rows if base == "region")
    first, last = starts[len(starts) // 3], starts[len(starts) * 2 // 3]
    expected = set(growing.connection.execute(f"{sql} IN ({calls}) AND E.stack_id NOT IN ({calls})", (last, first)))
    file.fresh.free_until(suffix, last)
    file.fresh.forget_before(suffix, first)
    copied = _rows(file.copy)
    assert expected
    assert {(row[0],) for row in copied[f"rocpd_kernel_dispatch{suffix}"]} == expected
    used = {row[0] for row in copied[f"rocpd_event{suffix}"]}
    assert {row[2] for row in copied[f"rocpd_arg{suffix}"]} <= used
    file.close()
    growing.close()


def test_a_file_that_is_replaced_is_read_anew(whole: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "rank.db"
    file = TailedFile(path, tmp_path / "copy.db")
    for number, source in enumerate(whole):
        other = tmp_path / "new.db"
        other.write_bytes(source.read_bytes())
        other.replace(path)
        file.poll()
        file.fresh.free_until(_suffix(path), None)
        assert (file.begun_again, _rows(file.copy)) == (number, _rows(path))
    file.close()


def test_what_is_no_whole_file_is_said_and_read_once_it_is_one(whole: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "rank.db"
    file = TailedFile(path, tmp_path / "copy.db")
    content = whole[0].read_bytes()
    for part, problem in ((b"", "empty"), (content[:300], "not a SQLite"), (content[:5000], "within a page")):
        path.write_bytes(part)
        assert file.poll() == 0
        assert problem in file.problem
    path.write_bytes(content)
    assert file.poll() > 0
    assert file.problem == ""
    path.unlink()
    file.poll()
    assert file.problem == "it is gone"
    file.close()


def test_a_file_of_the_older_schema_is_said_to_be_read_when_the_job_is_over(tmp_path: Path) -> None:
    path = tmp_path / "rank0.db"
    connection = apsw.Connection(str(path))
    connection.execute('CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INT, start INT, "end" INT)')
    connection.execute("INSERT INTO rocpd_api VALUES (1, 1, 1, 2)")
    file = TailedFile(path, tmp_path / "copy.db")
    assert (file.poll(), file.has_rows) == (0, False)
    kind = "an RPD trace (rocmProfileData schema 1)"
    assert file.problem == f"{path}: {kind}: it is read once the job is over, not while it runs"
    connection.execute("INSERT INTO rocpd_api VALUES (2, 1, 3, 4)")
    assert (file.poll(), file.has_rows, file.begun_again) == (0, False, 0)
    connection.close()
    file.close()


def test_files_appear_in_a_folder_that_is_empty_at_first(whole: list[Path], tmp_path: Path) -> None:
    tail = Tail([str(tmp_path)])
    tail.find()
    assert "without *.db files" in tail.waits_for
    for source in whole:
        (tmp_path / source.name).write_bytes(source.read_bytes())
        tail.find()
        assert tail.poll() > 0
    assert (tail.waits_for, len(tail.readable())) == ("", 2)
    copies = list(tail.readable())
    tail.close()
    assert not any(copy.exists() for copy in copies)


def test_a_process_has_ended_when_its_file_says_so(whole: list[Path], tmp_path: Path) -> None:
    growing = GrowingFile(whole[0], tmp_path / "rank0.db")
    file = TailedFile(growing.path, tmp_path / "copy.db")
    growing.write_until(growing.rows[9][0])
    file.poll()
    grows = [file.may_grow]
    growing.finish()
    file.poll()
    assert [*grows, file.may_grow] == [True, False]
    file.close()
    growing.close()


def test_a_process_has_ended_when_it_has_removed_its_state_file_whether_or_not_rows_were_read(
    whole: list[Path], tmp_path: Path
) -> None:
    growing = GrowingFile(whole[0], tmp_path / "rank0.db")
    file = TailedFile(growing.path, tmp_path / "copy.db")
    state = StateWriter(state_file(growing.path), clock=1, wall=1)
    growing.write_until(growing.rows[9][0])
    file.poll()
    grows = [file.may_grow]
    state.close(remove=True)
    file.notice()
    assert [*grows, file.may_grow] == [True, False]
    file.close()
    growing.close()


def test_of_rows_that_come_too_fast_the_newest_are_copied_with_their_events(whole: list[Path], tmp_path: Path) -> None:
    growing = GrowingFile(whole[0], tmp_path / "rank0.db")
    file = TailedFile(growing.path, tmp_path / "copy.db", newest=40)
    suffix = _suffix(growing.path)
    growing.write_until(growing.rows[30][0])
    file.poll()
    growing.write_until(float("inf"))
    file.catch_up()
    file.poll()
    file.fresh.free_until(suffix, None)
    copied, written = _rows(file.copy), _rows(growing.path)
    for base in ("region", "kernel_dispatch"):
        assert copied[f"rocpd_{base}{suffix}"][-40:] == written[f"rocpd_{base}{suffix}"][-40:]
    events = {row[0] for row in copied[f"rocpd_event{suffix}"]}
    assert {row[8] for row in copied[f"rocpd_region{suffix}"][-40:]} <= events
    file.close()
    growing.close()


def test_rows_that_were_forgotten_are_not_in_the_way_of_new_ones(whole: list[Path], tmp_path: Path) -> None:
    """Row ids of two tables are the same numbers."""
    growing = GrowingFile(whole[0], tmp_path / "rank0.db")
    file = TailedFile(growing.path, tmp_path / "copy.db")
    suffix = _suffix(growing.path)
    regions = [(row["end"] - row["start"], time) for time, base, row in growing.rows if base == "region"]
    steps = sorted(time for length, time in regions if 3 * length > max(regions)[0])
    growing.write_until(steps[-2] - 1)  # so that the first new row is a marker's
    file.poll()
    file.fresh.free_until(suffix, None)
    file.fresh.forget_before(suffix, growing.rows[-1][0])
    growing.write_until(float("inf"))
    file.poll()
    assert file.problem == ""
    file.close()
    growing.close()


def test_arguments_are_left_out_until_they_are_asked_for(whole: list[Path], tmp_path: Path) -> None:
    growing = GrowingFile(whole[0], tmp_path / "rank0.db")
    growing.write_until(float("inf"))
    file = TailedFile(growing.path, tmp_path / "copy.db", arguments=("comm", "count"))
    suffix = _suffix(growing.path)
    table = f"rocpd_arg{suffix}"
    name = [column for (column,) in growing.connection.execute(f"SELECT name FROM pragma_table_info('{table}')")].index(
        "name"
    )
    file.poll()
    file.fresh.free_until(suffix, None)
    written = _rows(growing.path)
    some = [row for row in written[table] if row[name] in ("comm", "count")]
    assert 0 < len(some) < len(written[table])
    assert _rows(file.copy) == written | {table: some}
    file.complete()
    assert _rows(file.copy) == written
    file.close()
    growing.close()


def test_of_memory_what_was_freed_before_is_forgotten(whole: list[Path], tmp_path: Path) -> None:
    growing = GrowingFile(whole[0], tmp_path / "rank0.db")
    growing.write_until(float("inf"))
    file = TailedFile(growing.path, tmp_path / "copy.db")
    file.poll()
    suffix = _suffix(growing.path)
    file.fresh.free_until(suffix, None)
    columns = "type, level, coalesce(address, agent_id || '.' || queue_id), start"
    rows = list(growing.connection.execute(f'SELECT {columns} FROM "rocpd_memory_allocate{suffix}" ORDER BY start'))
    cut = len(rows) * 3 // 4
    file.fresh.forget_before(suffix, int(str(rows[cut][-1])))
    held: dict[tuple[object, object], object] = {}
    for kind, level, place, start in rows[:cut]:
        held = {key: value for key, value in held.items() if key != (level, place)}
        held |= {(level, place): start} if kind == "ALLOC" else {}
    copied = apsw.Connection(str(file.copy), flags=apsw.SQLITE_OPEN_READONLY)
    kept = {start for (start,) in copied.execute(f'SELECT start FROM "rocpd_memory_allocate{suffix}"')}
    assert len(rows) > len(kept)
    assert held
    assert kept == {*held.values(), *(row[-1] for row in rows[cut:])}
    copied.close()
    file.close()
    growing.close()
