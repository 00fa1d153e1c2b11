"""What a file says of its process: name, rank, command line, environment, identity."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

import rocpd
from rocpd.redact.texts import Pseudonyms, Redactor
from tests.record.build import Build
from tests.record.runs import CODE, databases, environment, metadata, probe, probe_until, rows
from tests.redact.corpus import SETTINGS, TOKENS, secret
from tests.soak import sized

_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "PALS_RANKID", "FLUX_TASK_RANK")


@pytest.mark.parametrize("variable", _RANKS)
def test_name_holds_rank_host_and_pid(built: Build, tmp_path: Path, variable: str) -> None:
    probe(built, tmp_path, "threads", "1", "2", env={variable: "3"})
    (file,) = databases(tmp_path)
    pid = rows(file, "SELECT pid FROM rocpd_info_process")[0][0]
    assert file.name == f"rank3-{os.uname().nodename}-{pid}.db"
    extdata = json.loads(rows(file, "SELECT extdata FROM rocpd_info_process")[0][0])
    assert extdata["mpi_rank"] == 3


def test_equal_names_do_not_share_a_file(built: Build, tmp_path: Path) -> None:
    """Containers give the same pid twice, and a folder may be used again."""
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no pid namespaces here")
    for _ in range(3):
        done = probe(built, tmp_path / "out", "threads", "1", "10", wrap=unshare)
        assert done.returncode == CODE
    files = databases(tmp_path / "out")
    host = os.uname().nodename
    assert [file.name for file in files] == [f"{host}-1-2.db", f"{host}-1-3.db", f"{host}-1.db"]
    assert [rows(file, "SELECT COUNT(*) FROM rocpd_region") for file in files] == [[(10,)]] * 3


_CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--uts", "sh", "-c"]
_NO_MACHINE_ID = 'mount --bind /dev/null /etc/machine-id; hostname "$0"; exec "$@"'


def test_containers_of_one_host_are_one_machine_and_many_processes(built: Build, tmp_path: Path) -> None:
    """Images have no machine id, names of hosts are made up, and the pids are the same."""
    if subprocess.run([*_CONTAINER, _NO_MACHINE_ID, "box", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces here")
    for name in ("box1", "box2", "box2"):
        probe(built, tmp_path / "out", "threads", "1", "10", wrap=[*_CONTAINER, _NO_MACHINE_ID, name])
    assert [file.name for file in databases(tmp_path / "out")] == ["box1-1.db", "box2-1-2.db", "box2-1.db"]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    with rocpd.connect(tmp_path / "out") as session:
        assert [(rank.pid, rank.machine_id, rank.boot) for rank in session.ranks] == [(1, boot, boot)] * 3
        assert {None, Path("/proc/self/ns/pid").stat().st_ino}.isdisjoint(rank.pid_namespace for rank in session.ranks)


def test_guids_are_unique_and_in_order_of_time(built: Build, tmp_path: Path) -> None:
    guids = []
    for run in map(str, range(5)):
        probe(built, tmp_path / run, "threads", "1", "2")
        (file,) = databases(tmp_path / run)
        facts = metadata(file)
        assert facts["uuid"] == "_" + facts["guid"].replace("-", "_")
        assert rows(file, "SELECT DISTINCT guid FROM rocpd_region") == [(facts["guid"],)]
        guids.append(facts["guid"])
    assert all(_GUID.fullmatch(guid) for guid in guids)
    assert guids == sorted(guids)
    assert len(set(guids)) == 5


def _process(file: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    connection = apsw.Connection(str(file))
    try:
        sql = "SELECT command, environment, extdata FROM rocpd_info_process"
        command, environ, extdata = next(iter(connection.execute(sql)))
    finally:
        connection.close()
    return command, json.loads(environ), json.loads(extdata)


def test_any_bytes_in_command_line_and_environment(built: Build, tmp_path: Path) -> None:
    odd = b'it\'s "q" \\ \n\t $HOME \xff\xfe \xc3\xbc'
    command = [os.fsencode(built.program("probe")), b"threads", b"1", b"2", odd, b""]
    env = {os.fsencode(k): os.fsencode(v) for k, v in environment(tmp_path / "out").items()}
    env |= {b"ODD": odd, b"NAME'\"\xff": b"v", b"EMPTY": b""}
    assert subprocess.run(command, env=env, check=False).returncode == CODE
    (file,) = databases(tmp_path / "out")
    line, environ, extdata = _process(file)
    assert [os.fsencode(word) for word in extdata["argv"]] == command
    shown = [word.decode("utf-8", "backslashreplace") for word in command]
    assert shlex.split(line) == shown
    stored = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    for name in (b"ODD", b"NAME'\"\xff", b"EMPTY"):
        assert stored[name] == env[name]


def _two_clocks() -> tuple[int, int, int]:
    """CLOCK_BOOTTIME, by how much CLOCK_REALTIME is ahead of it, and how wrong that may be [ns]."""
    before, real, after = map(time.clock_gettime_ns, (time.CLOCK_BOOTTIME, time.CLOCK_REALTIME, time.CLOCK_BOOTTIME))
    return before, real - before, after - before


def test_clocks_are_read_at_the_start_at_flushes_and_at_the_end(built: Build, tmp_path: Path) -> None:
    """What clocks of nodes can be aligned from: three clocks at one time, and how far the kernel trusts them."""
    sql = "SELECT value FROM rocpd_metadata WHERE tag GLOB 'recorder_clocks_*' ORDER BY id"
    before = _two_clocks()
    env = {"ROCPD_SAMPLE_HZ": "20", "ROCPD_CONTROL_DIR": str(tmp_path / "control")}
    file = probe_until(built, tmp_path / "out", lambda file: len(rows(file, sql)) > 2, "toggles", "1", "60", env=env)
    after = _two_clocks()
    readings = [json.loads(value) for (value,) in rows(file, sql)]
    times = [reading["boottime"] for reading in readings]
    assert times == sorted(times)
    ((start, end),) = rows(file, "SELECT init, fini FROM rocpd_info_process")
    flushed = rows(file, "SELECT timestamp FROM rocpd_sample ORDER BY 1")[-1][0]
    assert start <= times[0] < flushed < times[-1]
    assert start <= end
    for reading in readings:
        assert before[0] <= reading["boottime"] <= after[0]
        offset = reading["realtime"] - reading["boottime"]
        for _, ahead, wrong in (before, after):
            assert abs(offset - ahead) < 1e6 + reading["within_ns"] + wrong
        assert reading["monotonic"] <= reading["boottime"] + reading["within_ns"]
        assert {"state", "status", "maxerror_us", "esterror_us"} <= reading.keys()


def test_secrets_are_masked(built: Build, tmp_path: Path) -> None:
    secret = {
        "API_TOKEN": "t0p", "DB_PASSWORD": "t0p", "MY_SECRET": "t0p", "aws_access_key_id": "t0p",
        "GIT_CREDENTIALS": "t0p", "HTTPS_PROXY": "http://me:t0p@proxy:3128", "BACKUP_PASSPHRASE": "t0p",
        "MYSQL_PWD": "t0p", "GITHUB_PAT": "t0p", "PAT": "t0p",
        "PASS": "t0p", "SSHPASS": "t0p", "JWT": "t0p", "BEARER": "t0p",
        "SESSION_ID": "t0p", "SENTRY_DSN": "t0p", "CONN": "Server=db;User=me;Password=t0p", "HEADER": "Bearer t0p",
        "ORIGIN": "https://t0p@host/repository", "MIRRORS": "https://host/a https://t0p@host/b",
        "STORAGE": "Protocol=https;AccountName=a;AccountKey=t0p", "BUS": "Endpoint=sb://b/;SharedAccessKey=t0p",
        "JSON": '{"password": "t0p", "a": 1}', "DENSE": '{"api_key":"t0p"}', "YAML": "password: t0p",
        "HEAD": "Authorization: Basic t0p",
        "GO": "me:t0p(x)/t0p@tcp(db:3306)/jobs", "LOCAL": "me:t0p@/jobs", "SOCKET": "me:t0p@unix(/run/db)/jobs",
        "ODBC": "Server=db;UID=me;Pw=t0p", "BLOB": "https://host/a?sv=1&sig=t0p",
        "PEM": "-----BEGIN RSA PRIVATE KEY-----\nt0p", "SPACED": '{"password" : "t0p"}', "SPACES": "Cookie : t0p",
    }  # fmt: skip
    plain = {
        "OMP_NUM_THREADS": "4",
        "PATH_TO_DATA": "https://host/data",
        "OLDPWD": "/home",
        "PATTERN": "a*",
        "ROCM_PATH": "/opt/rocm",
        "PINNED": "https://host/a@v2",
        "IMAGE": "registry/private:latest",
        "ROWS": '{"key": "a"}',
        "PATHS": "/a:/b@/c:d@e",
        "SIZE": "npw=4",
        "SCHEMES": "://" * 30000,
    }
    probe(built, tmp_path / "masked", "threads", "1", "2", env=secret | plain)
    (file,) = databases(tmp_path / "masked")
    environ = _process(file)[1]
    assert {name: environ[name] for name in secret} == dict.fromkeys(secret, "***")
    assert {name: environ[name] for name in plain} == plain
    assert b"t0p" not in file.read_bytes()
    probe(built, tmp_path / "kept", "threads", "1", "2", env=secret | {"ROCPD_KEEP_ENV": "1"})
    (file,) = databases(tmp_path / "kept")
    assert {name: _process(file)[1][name] for name in secret} == secret


_TOKEN = "ghp_" + "t0p" * 8
_LINES = {
    ("--password", "t0p"): ("--password", "***"),
    ("--password=t0p",): ("--password=***",),
    ("--db-password", "t0p", "--steps", "3"): ("--db-password", "***", "--steps", "3"),
    ("model.api_key=t0p", "lr=0.1"): ("model.api_key=***", "lr=0.1"),
    ("-pt0p", "-p8080", "-x"): ("-p***", "-p8080", "-x"),
    ("--token", "--verbose"): ("--token", "--verbose"),
    ("--max-tokens", "512", "--tokenizer=gpt2"): ("--max-tokens", "512", "--tokenizer=gpt2"),
    ("--url", "https://me:t0p@host/x?y=1&token=t0p&z=2"): ("--url", "https://***@host/x?y=1&token=***&z=2"),
    ("dsn", "me:t0p@tcp(db:3306)/jobs?x=1"): ("dsn", "me:***@tcp(db:3306)/jobs?x=1"),
    ("Server=db;Password=t0p;Port=1",): ("Server=db;Password=***;Port=1",),
    (f"clone={_TOKEN}", f"x:{_TOKEN}"): ("clone=***", "x:***"),
    ("-H", "Authorization: Basic t0p"): ("-H", "Authorization: *** ***"),
    ("sh", "-c", "mysql -u me -pt0p --x 'a b' --password='t0p t0p'"): (
        "sh", "-c", "mysql -u me -p*** --x 'a b' --password=*** ***",
    ),
    ("--dbPassword", "t0p", "--clientSecret=t0p"): ("--dbPassword", "***", "--clientSecret=***"),
    ("--config", '{"api_key": "t0p"}', '{"token":"t0p"}'): ("--config", '{"api_key": ***', '{"token":***"}'),
    ("-u", "me:t0p", "--user=me:t0p", "-u", "1000:1000"): ("-u", "me:***", "--user=me:***", "-u", "1000:1000"),
    ("pypi-AgE" + "t0p" * 8, "sk_live_" + "t0p" * 8, "nvapi-" + "t0p" * 8, "hvs." + "t0p" * 8): ("***",) * 4,
    ("design=5", "monkey=5", "/x/pass/y", "--bypass", "1"): ("design=5", "monkey=5", "/x/pass/y", "--bypass", "1"),
    ("sh", "-c", "password : t0p", "sh", "-c", "Cookie : a=t0p t0p"): (
        "sh", "-c", "password : ***", "sh", "-c", "Cookie : *** ***",
    ),
    ('{"password" : "t0p"}', "key", ":", "5", "token", ":", "t0p"): (
        '{"password" : ***', "key", ":", "5", "token", ":", "***",
    ),
    ("--jwt", "eyJhbGciOiJIUzI1NiJ9.t0pt0pt0pt0p.t0p"): ("--jwt", "***"),
}  # fmt: skip


def test_secrets_in_the_command_line_are_masked(built: Build, tmp_path: Path) -> None:
    given = [word for words in _LINES for word in words]
    probe(built, tmp_path / "masked", "threads", "1", "2", *given)
    (file,) = databases(tmp_path / "masked")
    command, _, extdata = _process(file)
    assert extdata["argv"][4:] == [word for words in _LINES.values() for word in words]
    assert shlex.split(command) == extdata["argv"]
    assert b"t0p" not in file.read_bytes()
    probe(built, tmp_path / "kept", "threads", "1", "2", *given, env={"ROCPD_KEEP_ENV": "all"})
    (file,) = databases(tmp_path / "kept")
    assert _process(file)[2]["argv"][4:] == given


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(1, 17)))
def test_secrets_that_redact_knows_are_masked(seed: int, built: Build, tmp_path: Path) -> None:
    """One corpus runs through both matchers: keys of services and secrets with a name, as variables and as words."""
    secrets = [secret(kind, seed) for kind in (*TOKENS, *SETTINGS)]
    given = {f"NOTE_{number}": each.text for number, each in enumerate(secrets)}
    redactor = Redactor(Pseudonyms(), {})
    assert not [each for each in secrets if each.secret in redactor.text(each.text)]
    probe(built, tmp_path, "threads", "1", "2", *(each.text for each in secrets), env=given)
    (file,) = databases(tmp_path)
    assert not [each for each in secrets if each.secret.encode() in file.read_bytes()]


def test_variables_that_are_named_are_kept(built: Build, tmp_path: Path) -> None:
    given = {"A_TOKEN": "one", "B_TOKEN": "two", "C_TOKEN": "three"}
    probe(built, tmp_path, "threads", "1", "2", env=given | {"ROCPD_KEEP_ENV": "A_TOKEN,C_TOKEN"})
    (file,) = databases(tmp_path)
    stored = _process(file)[1]
    assert {name: stored[name] for name in given} == given | {"B_TOKEN": "***"}


@pytest.mark.parametrize(("group", "mode"), [("0", 0o600), ("1", 0o640)])
def test_files_are_private_whatever_the_umask(built: Build, tmp_path: Path, group: str, mode: int) -> None:
    for umask in ("0000", "0077"):
        wrap = ["sh", "-c", f'umask {umask}; exec "$@"', "sh"]
        probe(built, tmp_path / umask, "threads", "1", "2", env={"ROCPD_GROUP": group}, wrap=wrap)
        (file,) = databases(tmp_path / umask)
        assert stat.S_IMODE(file.stat().st_mode) == mode


def test_ranks_of_torchrun(built: Build, tmp_path: Path) -> None:
    """Its workers are the ranks, also where srun started it. RANK alone may mean anything."""
    torch = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    probe(built, tmp_path / "torch", "threads", "1", "2", env=torch | {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"})
    (file,) = databases(tmp_path / "torch")
    assert file.name.startswith("rank5-")
    facts = _process(file)[2]
    assert [facts[key] for key in ("mpi_rank", "mpi_size", "local_rank", "local_size")] == [5, 8, 1, 4]
    probe(built, tmp_path / "other", "threads", "1", "2", env={"RANK": "captain", "WORLD_SIZE": "8"})
    probe(built, tmp_path / "other", "threads", "1", "2", env={"RANK": "3"})
    assert not [file.name for file in databases(tmp_path / "other") if file.name.startswith("rank")]


def test_process_that_records_nothing_leaves_nothing(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "threads", "1", "0")
    assert (done.returncode, done.stderr) == (CODE, "")
    assert not (tmp_path / "out").exists()
