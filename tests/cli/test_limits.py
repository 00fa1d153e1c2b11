"""What a machine refuses, memory, descriptors, rights, is said in one line, with the exit code that fits."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.build import TraceBuilder
from tests.cli.conftest import assert_one_error
from tests.cli.test_process import environment
from tests.conftest import Cli, Said
from tests.places import small_disk
from tests.soak import paired, sample


def limited(limit: str, *words: str | Path, wrap: tuple[str, ...] = ()) -> Said:
    """Run a command under a limit of the shell, such as `-n 32`."""
    command = [*wrap, sys.executable, "-m", "rocpd", *map(str, words)]
    done = subprocess.run(
        ["sh", "-c", f"ulimit {limit}; exec {shlex.join(command)}"],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def test_few_descriptors(tmp_path: Path) -> None:
    for number in range(40):
        TraceBuilder(number).kernel("gemm", 1000, 1010).write(tmp_path / f"{number:02}.db")
    said = limited("-n 32", "query", "select count(*) from kernels", "--jobs", "1", tmp_path)
    if said.code:
        assert_one_error(said, 3, "too many open files")
        assert "ulimit -n" in said.err
    else:
        assert said.out.split()[-1] == "40"


WRITING = (
    ("redact", "-d", "small/out"),
    ("merge", "-o", "small/out.db"),
    ("package", "--copy", "-d", "small/out.rpdb"),
    ("convert", "-f", "json", "-o", "small/out.json"),
    ("convert", "-f", "csv", "-d", "small/out"),
    ("report", "-o", "small/out.xlsx"),
)


@pytest.mark.soak
@pytest.mark.parametrize("words", sample(WRITING, 2), ids=lambda words: " ".join(words[:3]))
def test_a_limit_of_files(words: tuple[str, ...], large: Path, tmp_path: Path) -> None:
    """The output is named, and what it needs; never the input."""
    (tmp_path / "tmp").mkdir()
    # Of a module that is not compiled yet Python would write the first two kB, and refuse to read them from then on.
    wrap = ("env", f"TMPDIR={tmp_path / 'tmp'}", "PYTHONDONTWRITEBYTECODE=1")
    said = limited("-f 4", *words, "--force", large, wrap=wrap)
    assert_one_error(said, 1, "small/out", "cannot be written: File too large; it needs more than 2.0 kB")
    assert "ulimit -f" in said.err
    assert large.name not in said.err
    assert not list(Path("small").iterdir() if Path("small").exists() else ())
    assert not list((tmp_path / "tmp").iterdir())


def test_a_full_disk(large: Path, cli: Cli) -> None:
    with small_disk(Path("small")) as disk:
        (disk / "filler").write_bytes(bytes((1 << 20) - 40_000))
        for words in WRITING:
            said = cli(*words, "--force", large)
            assert_one_error(said, 1, "small/out", "cannot be written: No space left on device; it needs more than")
            assert large.name not in said.err
            assert [path.name for path in disk.iterdir()] == ["filler"]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a megabyte, in the working folder."""
    monkeypatch.chdir(tmp_path)
    trace = TraceBuilder()
    for number in range(500):
        trace.kernel(f"k{number}" + "x" * 2000, 1000 * number + 1, 1000 * number + 100)
    return trace.write(Path("large.db"))


@pytest.mark.soak(2)
@pytest.mark.parametrize(
    ("words", "kilobytes"),
    paired([("convert", "-f", "pftrace", "-d", "out"), ("summary",)], [60_000, 150_000, 300_000, 500_000]),
    ids=str,
)
def test_little_memory(words: tuple[str, ...], kilobytes: int, job: Path) -> None:
    said = limited(f"-v {kilobytes}", *words, "-i", ".")
    assert said.code in (0, 1), said
    assert "bug" not in said.err, said
    assert "Traceback" not in said.err
    if said.code:
        assert_one_error(said, 1, "out of memory")
        assert not list((job / "out").glob("*"))


def test_memory_errors_are_no_bugs(job: Path) -> None:
    for error in ("MemoryError()", "ImportError('libarrow.so: failed to map segment from shared object')"):
        program = (
            "import sys, rocpd.session as s\n"
            f"def connect(*a, **k): raise {error}\n"
            "s.connect = connect\n"
            "from rocpd.cli import run\n"
            "sys.exit(run(['info', '.']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment()
        )
        assert_one_error(Said(done.returncode, done.stdout, done.stderr), 1, "out of memory")


def test_libraries_that_do_not_say_that_memory_is_lacking(job: Path) -> None:
    program = (
        "import resource, sys, rocpd.session as s\n"
        "def connect(*a, **k): raise SystemError('error return without exception set')\n"
        "s.connect = connect\n"
        "if sys.argv[1] == 'limited': resource.setrlimit(resource.RLIMIT_AS, (1 << 40, resource.RLIM_INFINITY))\n"
        "from rocpd.cli import run\n"
        "sys.exit(run(['info', '.']))"
    )
    for state, said in (("limited", "out of memory"), ("free", "SystemError: error return without exception set")):
        done = subprocess.run(
            [sys.executable, "-c", program, state], capture_output=True, text=True, check=False, env=environment()
        )
        assert_one_error(Said(done.returncode, done.stdout, done.stderr), 1, said)


def test_a_name_that_is_too_long(cli: Cli, job: Path) -> None:
    for name in ("x" * 300 + ".db", "x/" * 3000 + "y.db", "x" * 5000):
        assert cli("info", "-i", name).code == 3
        assert len(cli("info", "-i", name).err.splitlines()) <= 2


def test_folders_without_rights(job: Path, tmp_path: Path) -> None:
    """As another user: root may read everything."""
    if os.geteuid() or not Path("/usr/bin/setpriv").exists():
        pytest.skip("needs root, to become somebody else")
    closed, index = tmp_path / "closed", tmp_path / "index"
    for folder, mode in ((closed, 0o000), (index, 0o600)):
        folder.mkdir()
        TraceBuilder(7).kernel("gemm", 1, 2).write(folder / "a.db")
        folder.chmod(mode)
    for parent in (*reversed(tmp_path.parents), tmp_path):
        if str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    become = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    for path in (closed, closed / "a.db", index, index / "a.db"):
        said = limited("-n 1024", "info", "-i", path, wrap=become)
        cannot_run = ("setpriv", "No module named", "Permission denied: '/", "loading shared libraries")
        if any(words in said.err for words in cannot_run):
            pytest.skip("another user cannot run this Python")
        assert_one_error(said, 3, path.parent.name if path.suffix else path.name)


def test_values_have_a_longest_size(cli: Cli, job: Path) -> None:
    said = cli("query", "select hex(randomblob(400000000))", ".")
    assert_one_error(said, 1, "string or blob too big")
    assert "100,000,000 bytes" in said.err


def test_long_texts_are_read(cli: Cli, tmp_path: Path) -> None:
    """Together they exceed the longest value; alone none does."""
    trace = TraceBuilder()
    for number in range(60):
        trace.region("call", number * 10 + 1, number * 10 + 5).arg("text", str(number) + "x" * 2_000_000)
    path = trace.write(tmp_path / "long.db")
    said = cli("convert", "-f", "pftrace", "--annotate-args", "-d", tmp_path / "out", path)
    assert said.code == 0, said
    (written,) = (tmp_path / "out").iterdir()
    assert written.stat().st_size > 120_000_000


def test_temp_by_name(cli: Cli, job: Path) -> None:
    script = (
        "create table temp.t(a); insert into temp.t values (3); create view temp.v as select a + 1 as b from t;"
        "create index temp.i on t(a); select b from v; drop view temp.v; drop table temp.t"
    )
    said = cli("query", script, ".", "-f", "csv")
    assert (said.code, said.out) == (0, "b\n4\n"), said


def test_main_cannot_be_written_by_name(cli: Cli, job: Path) -> None:
    for words in ("create table t(a)", "create table main.t(a)", "create view main.v as select 1", "drop table f0.x"):
        assert cli("query", words, ".").code == 1


def test_strict_c_locale(job: Path) -> None:
    strict = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (job / "db0.db").rename(job / "é.db")
    words = ["query", "select 'é' as x, count(*) from kernels", "é.db", "-f", "csv", "-o", "ü.csv"]
    done = subprocess.run(
        [sys.executable, "-m", "rocpd", *words], capture_output=True, check=False, env=environment(**strict)
    )
    assert (done.returncode, done.stderr.decode().partition(" (")[0]) == (0, "rocpd: wrote ü.csv")
    assert (job / "ü.csv").read_text(encoding="utf-8") == "x,count(*)\né,1\n"
