"""Raw files are evidence: no command, whatever its format and with --force, replaces one or puts anything beside it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apsw.shell import Shell

import rocpd
from rocpd.base import OutputError
from rocpd.base.evidence import Evidence, check_folder, check_output
from rocpd.base.identity import JOURNALS
from rocpd.cli.query import shell_class
from rocpd.convert import FORMATS
from rocpd.table import TABLE_FORMATS
from tests.cli.conftest import assert_one_error
from tests.conftest import Cli, state_of

TRACES = [name for name in FORMATS if name not in ("csv", "parquet", "otf2")]
COMMANDS = {
    "merge": (".db", ["merge"]),
    **{f"query {name}": (form.ending, ["query", "select * from kernels"]) for name, form in TABLE_FORMATS.items()
       if not form.is_columnar},
    **{f"summary {name}": (form.ending, ["summary", "kernels"]) for name, form in TABLE_FORMATS.items()},
    "info": (".csv", ["info"]),
    **{f"convert {name}": (FORMATS[name].endings[0], ["convert", "-f", name]) for name in TRACES},
    "gzip": (".pftrace.gz", ["convert", "-f", "pftrace"]),
}  # fmt: skip
FOLDERS = {"parquet": "out_parquet", "otf2": "out_results"}
NAMES: dict[str, Callable[[Path, Path], object]] = {
    "itself": lambda raw, name: None,
    "symbolic link": lambda raw, name: name.symlink_to(raw),
    "hard link": lambda raw, name: name.hardlink_to(raw),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_an_input_is_refused(command: str, name: str, cli: Cli, job: Path) -> None:
    ending, words = COMMANDS[command]
    raw = job / f"raw{ending}"
    (job / "db0.db").rename(raw)
    NAMES[name](raw, job / f"link{ending}")
    target = raw if name == "itself" else job / f"link{ending}"
    before = state_of(job)
    said = cli(*words, raw, job / "db1.db", "-o", target, "--force")
    assert_one_error(said, 1, str(target), "is an input")
    assert state_of(job) == before


@pytest.mark.parametrize("kind", ["kernel_trace", "agent_info"])
def test_a_file_of_several_that_is_an_input(kind: str, cli: Cli, job: Path) -> None:
    raw = job / f"out_{kind}.csv"
    (job / "db0.db").rename(raw)
    before = state_of(job)
    assert_one_error(cli("convert", "-f", "csv", "-d", ".", raw, "--force"), 1, "is an input")
    assert state_of(job) == before


def test_a_summary_of_several_tables(cli: Cli, job: Path) -> None:
    raw = job / "out_kernels_summary.csv"
    (job / "db0.db").rename(raw)
    before = state_of(job)
    assert_one_error(cli("summary", raw, "-f", "csv", "-d", ".", "--force"), 1, "is an input")
    assert state_of(job) == before


@pytest.mark.parametrize("form", ["parquet", "otf2"])
def test_a_folder_that_holds_an_input(form: str, cli: Cli, job: Path) -> None:
    folder = job / FOLDERS[form]
    assert cli("convert", "-f", form, "-d", ".", "db1.db").code == 0
    (job / "db0.db").rename(folder / "raw.db")
    before = state_of(job)
    assert_one_error(cli("convert", "-f", form, "-d", ".", folder / "raw.db", "--force"), 1, "lies in it")
    assert_one_error(cli("convert", "-f", form, "-d", ".", "db1.db", "--force"), 1, "raw.db, which rocpd did not write")
    assert state_of(job) == before
    (folder / "raw.db").unlink()
    assert cli("convert", "-f", form, "-d", ".", "db1.db", "--force").code == 0


@pytest.mark.parametrize("form", ["parquet", "otf2"])
def test_a_folder_without_manifest_stays(form: str, cli: Cli, job: Path) -> None:
    (job / FOLDERS[form]).mkdir()
    shutil.copy("db0.db", job / FOLDERS[form])
    before = state_of(job)
    assert_one_error(cli("convert", "-f", form, "-d", ".", "db1.db", "--force"), 1, "did not write")
    assert state_of(job) == before


def test_a_changed_file_of_a_folder_stays(cli: Cli, job: Path) -> None:
    assert cli("convert", "-f", "parquet", "-d", ".", "db1.db").code == 0
    changed = next((job / "out_parquet" / "kernels").rglob("*.parquet"))
    changed.write_bytes(b"mine")
    assert_one_error(cli("convert", "-f", "parquet", "-d", ".", "db1.db", "--force"), 1, changed.name)
    assert changed.read_bytes() == b"mine"


def test_a_file_that_was_left_out_is_evidence_too(cli: Cli, job: Path) -> None:
    bad = job / "bad.db"
    bad.write_bytes(b"not a database")
    said = cli("merge", "db0.db", "bad.db", "--skip-bad", "-o", bad, "--force")
    assert (said.code, bad.read_bytes()) == (1, b"not a database")
    twin = job / "twin.db"
    shutil.copy("db0.db", twin)  # dropped as a duplicate
    assert cli("merge", "db0.db", "db1.db", twin, "-o", twin, "--force").code == 1


def test_the_index_of_a_package_is_evidence(cli: Cli, job: Path) -> None:
    assert cli("package", "db0.db", "-d", "job.rpdb").code == 0
    index = job / "job.rpdb" / "index.yaml"
    with rocpd.connect(job / "job.rpdb"), pytest.raises(OutputError, match="is an input"):
        check_output(index)


@pytest.mark.parametrize("ending", JOURNALS)
def test_where_sqlite_would_read_it_with_an_input(ending: str, job: Path) -> None:
    (job / "link.db").symlink_to(job / "db0.db")
    with rocpd.connect(job / "link.db") as session:
        with pytest.raises(OutputError, match=r"read it together with db0\.db"):
            check_output(job / f"db0.db{ending}")
        with pytest.raises(OutputError, match="read it together"):
            session.merge(f"{job}/./db0.db{ending}", force=True)


def test_only_open_sessions_hold_their_inputs(job: Path) -> None:
    with rocpd.connect("db0.db") as session:
        merged = session.merge("merged.db")
    with rocpd.connect("db0.db") as session, rocpd.connect(merged) as other:
        with pytest.raises(OutputError, match="is an input"):
            session.merge("merged.db", force=True)
        other.close()
        session.merge("merged.db", force=True)


def test_missing_files_and_folders_are_held_as_well(tmp_path: Path) -> None:
    evidence = Evidence([tmp_path / "later.db"])
    with pytest.raises(OutputError):
        check_output(tmp_path / "later.db")
    with pytest.raises(OutputError):
        check_folder(tmp_path)
    evidence.release()
    evidence.release()
    check_folder(tmp_path)


def test_an_input_by_another_name_is_held_whenever_it_came(tmp_path: Path) -> None:
    evidence, link = Evidence([tmp_path / "later.db"]), tmp_path / "link.txt"
    check_output(link)
    (tmp_path / "later.db").write_text("rows")
    link.hardlink_to(tmp_path / "later.db")
    with pytest.raises(OutputError, match="is an input"):
        check_output(link)
    link.unlink()
    link.write_text("text")
    check_output(link)
    evidence.release()


REFUSED = (
    ".backup copy.db", ".backup db1.db", ".restore db1.db", ".save copy.db", ".load ./x.so", ".shell touch made",
    ".system touch made", ".py db.close()", ".read made.py", ".cd /", ".dbconfig writable_schema 1",
    ".open db1.db", ".connection 0", ".import db1.db t", ".autoimport db1.db", ".pages-svg db0.db",
    ".pages-svg made.svg", ".output db0.db", ".output db1.db", ".output db0.db-wal", ".once db0.db", ".close",
    ".nosuch", "select nosuch;", "insert into rocpd_string values (1, 2, 3);",
)  # fmt: skip


def test_the_shell_refuses_what_writes_or_runs(job: Path, process: Cli) -> None:
    before = state_of(job)
    said = process("shell", "db0.db", stdin="".join(f"{line}\nselect 'after {line}';\n" for line in REFUSED))
    assert said.code == 1
    assert [line for line in REFUSED if f"after {line}" not in said.out] == []
    assert said.err.count("not available here, raw files are never changed") == 15, said.err
    assert state_of(job) == before


@pytest.mark.parametrize("line", REFUSED)
def test_a_failing_line_makes_the_exit_code_1(line: str, job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with rocpd.connect("db0.db") as session:
        shell: Any = shell_class()(db=session.open_views(), stdin=io.StringIO(line + "\n"))
        shell.cmdloop()
        assert shell.failed


def test_every_command_of_apsw_is_allowed_or_refused() -> None:
    allowed = {name for name in dir(Shell) if name.startswith("command_")} - {
        name for name in dir(Shell) if getattr(shell_class(), name) is not getattr(Shell, name)
    }
    assert {"command_backup", "command_shell", "command_output", "command_read"} & allowed == set()
    assert {"command_databases", "command_mode", "command_schema"} <= allowed


def test_the_shell_writes_to_new_files(job: Path, warm_process: Cli) -> None:
    said = warm_process("shell", "db0.db", stdin=".output new.txt\nselect 42;\n.output stdout\nselect 43;\n")
    assert (said.code, said.out.strip()) == (0, "43"), said
    assert (job / "new.txt").read_text().strip() == "42"
    assert warm_process("shell", "db0.db", stdin=".output new.txt\n").code == 1


def test_the_shell_reads_sql_from_files(job: Path, warm_process: Cli, tmp_path: Path) -> None:
    (tmp_path / "ask.sql").write_text("select count(*) from kernels;\n")
    said = warm_process("shell", "db0.db", stdin=f".read {tmp_path / 'ask.sql'}\n")
    assert (said.code, said.out.strip()) == (0, "1")


def test_the_shell_lists_calculated_tables(job: Path, warm_process: Cli) -> None:
    listed = warm_process("shell", "db0.db", stdin=".tables summary.b%\nselect count(*) from budget;\n").out.split()
    assert {"kernels", "summary.budget", "summary.bottleneck"} <= set(listed)
    assert "summary.idle" not in listed
    assert listed[-1] == "4"


def test_the_shell_ends_where_its_input_cannot_be_read(job: Path) -> None:
    command = f"{sys.executable} -m rocpd shell db0.db"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    for redirection, code in (("<&-", 0), ("</dev/null", 0)):
        done = subprocess.run(
            f"{command} {redirection}", shell=True, env=environment, capture_output=True, text=True
        )  # fmt: skip
        assert done.returncode == code, (redirection, done)
        assert done.stderr.count("\n") <= 2


def test_the_shell_takes_bytes_that_are_no_text(job: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rocpd", "shell", "db0.db"], input=b"select '\xff';\nselect 7;\n", capture_output=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()[-1]) == (0, b"7"), done
