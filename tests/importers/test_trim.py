"""An RPD file cut to a window is an RPD file: the same work in the window, and nothing that refers to what is gone."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import rocpd
from tests.conftest import Cli, private
from tests.importers.rpd import RpdBuilder, server

KERNELS = "SELECT pid, id, name, start, duration, stack_id, tid, grid_x FROM kernels ORDER BY 1, 2"
REFERENCES = (
    ("rocpd_api_ops", "api_id", "rocpd_api"),
    ("rocpd_api_ops", "op_id", "rocpd_op"),
    ("rocpd_kernelapi", "api_ptr_id", "rocpd_api"),
    ("rocpd_copyapi", "api_ptr_id", "rocpd_api"),
    ("rocpd_stackframe", "api_ptr_id", "rocpd_api"),
    ("ext_autogradapi", "api_ptr_id", "rocpd_api"),
    ("rocpd_kernelop", "op_ptr_id", "rocpd_op"),
    ("rocpd_counter", "op_id", "rocpd_op"),
    ("rocpd_api", "apiName_id", "rocpd_string"),
    ("rocpd_op", "description_id", "rocpd_string"),
    ("rocpd_kernelapi", "kernelName_id", "rocpd_string"),
)


def dangling(path: Path) -> list[tuple[str, str]]:
    """Return table and column of references that lead nowhere."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = [
        (table, column)
        for table, column, home in REFERENCES
        if table in tables
        and list(connection.execute(f"SELECT 1 FROM {table} WHERE {column} NOT IN (SELECT id FROM {home}) LIMIT 1"))
    ]
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    return found


@pytest.mark.parametrize(
    ("schema", "window"),
    [(1, ("2100", "2200")), (2, ("3150", "3300")), (2, ("+0ms", "100%")), (3, ("2100", "2200"))],
)
def test_the_part_is_the_window_of_the_whole(schema: int, window: tuple[str, str], cli: Cli, tmp_path: Path) -> None:
    trace, part = server(tmp_path / "whole", schema), tmp_path / "part.rpd"
    before = trace.read_bytes()
    words = ("--start", window[0], "--end", window[1])
    said = cli("trim", trace, "-o", part, *words)
    assert said.code == 0, said
    assert trace.read_bytes() == before
    assert dangling(part) == []
    with rocpd.connect(trace) as whole, rocpd.connect(part) as cut:
        selected = whole.within(rocpd.Window(*window))
        assert cut.sql(KERNELS).fetchall() == selected.sql(KERNELS).fetchall()
        markers = "SELECT pid, name, start FROM markers WHERE duration > 0 ORDER BY 1, 3, 2"
        assert set(selected.sql(markers).fetchall()) <= set(cut.sql(markers).fetchall())


def test_work_stays_whose_calls_lie_before_the_window(tmp_path: Path, cli: Cli) -> None:
    """Between 50 and 150 ms 294 operations start, one still runs, and no call starts."""
    (packed,) = private("rpd/mytrace.rpd.gz", 1)
    part = tmp_path / "part.rpd"
    assert cli("trim", packed, "-o", part, "--start", "+50ms", "--end", "+150ms").code == 0
    assert dangling(part) == []
    connection = apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READONLY)
    assert list(connection.execute("SELECT COUNT(*) FROM rocpd_op")) == [(295,)]
    calls = list(connection.execute("SELECT COUNT(*) FROM rocpd_api"))
    assert list(connection.execute("SELECT COUNT(*) FROM api")) == calls  # its views come along
    connection.close()


def test_operations_stay_whose_call_is_not_recorded(tmp_path: Path, cli: Cli) -> None:
    """Importing gives them to the only process, whether nothing links to them or a link to a call that is gone."""
    rpd = RpdBuilder(tmp_path / "whole.rpd")
    rpd.kernel("gemm", 1000, 2000)
    rpd.op(1100, 1150, "no link")
    rpd.op(1150, 1200, "broken link", api=99)
    part = tmp_path / "part.rpd"
    assert cli("trim", rpd.close(), "-o", part, "--start", "1100", "--end", "1300").code == 0
    assert dangling(part) == []
    with rocpd.connect(part) as session:
        names = session.sql("SELECT name FROM kernels ORDER BY start").fetchall()
    assert names == [("gemm",), ("no link",), ("broken link",)]


def test_monitors_overlap_the_window_as_all_else_does(tmp_path: Path, cli: Cli) -> None:
    """A value that was seen once, at the start of the window, is in it; one at its end is not."""
    rpd = RpdBuilder(tmp_path / "whole.rpd")
    rpd.kernel("gemm", 1000, 2000)
    for start, end in ((900, 1100), (1100, 1100), (1100, 1200), (1200, 1200), (1200, 1300)):
        rpd.monitor(0, start, end, "800")
    part = tmp_path / "part.rpd"
    assert cli("trim", rpd.close(), "-o", part, "--start", "1100", "--end", "1200").code == 0
    connection = apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READONLY)
    assert list(connection.execute('SELECT start, "end" FROM rocpd_monitor')) == [(1100, 1100), (1100, 1200)]
    connection.close()


def test_a_part_of_anything_else_is_a_database(tmp_path: Path, cli: Cli) -> None:
    trace = server(tmp_path / "whole")
    assert cli("trim", trace, "-o", tmp_path / "part.db", "--start", "2100", "--end", "2200").code == 0
    with rocpd.connect(tmp_path / "part.db") as session:
        assert session.sql("SELECT pid, name FROM kernels ORDER BY 1").fetchall() == [(7, "relu"), (9, "relu")]


@pytest.mark.parametrize(
    ("words", "message"),
    [((), "trim needs a window"), (("--start", "40%", "--kernel", "x"), "--kernel does not cut an RPD file")],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], message: str, tmp_path: Path, cli: Cli) -> None:
    trace = server(tmp_path / "whole")
    said = cli("trim", trace, "-o", tmp_path / "part.rpd", *words)
    assert said.code in (1, 2)
    assert message in said.err or "no event" in said.err
