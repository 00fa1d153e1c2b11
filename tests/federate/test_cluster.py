"""Ranks read by the workers of a real Dask cluster: two processes, one of which may be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rocpd
from rocpd.base import ClosedError, InputError, RocpdError, UsageError
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from rocpd.federate import limits
from rocpd.federate.limits import Limits
from rocpd.federate.run import cluster as cluster_module
from rocpd.federate.run.cluster import Cluster
from rocpd.index.build import build
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.summarize import SummaryOptions, summarize
from tests.build import TraceBuilder
from tests.conftest import Cli
from tests.soak import sample
from tests.waiting import until

if TYPE_CHECKING:
    import distributed

SOURCE = Path(__file__).parents[2]
STATEMENTS = [
    "SELECT * FROM top_kernels",
    "SELECT name, count(*), sum(duration), avg(duration), min(name), max(start) FROM kernels GROUP BY name",
    "SELECT rank, name, avg(duration / 3.0), sum(duration * 0.1), total(start) FROM kernels GROUP BY 1, 2 ORDER BY 2",
    'SELECT count(*), count(DISTINCT name), sum(duration), min(start), max("end") FROM regions',
    "SELECT rank, id, name, start FROM kernels WHERE duration > 1000",
    "SELECT name, start FROM kernels ORDER BY start DESC LIMIT 7",
    "SELECT median(duration) FROM kernels",
]
ENDLESS = (
    "SELECT count(*) FROM kernels a JOIN kernels b ON a.guid = b.guid JOIN kernels c ON a.guid = c.guid"
    " WHERE a.id + b.id + c.id < 0"
)


def connect_to(cluster: distributed.LocalCluster | str, asynchronous: bool = False) -> Any:
    """Return a client of a cluster, for those alone who name it."""
    import distributed

    start: Any = distributed.Client
    return start(cluster, set_as_default=False, asynchronous=asynchronous)


@pytest.fixture(scope="module")
def local() -> Iterator[distributed.LocalCluster]:
    import distributed  # half a second, of each worker that reads this file

    start: Any = distributed.LocalCluster
    with start(n_workers=2, threads_per_worker=1, dashboard_address=":0") as started:
        yield started


@pytest.fixture(scope="module")
def client(local: distributed.LocalCluster) -> Iterator[distributed.Client]:
    with connect_to(local) as connected:
        connected.wait_for_workers(2)
        yield connected


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("cluster")
    return list(simulate(JobOptions(out=out, ranks=9, nodes=3, events_per_rank=400, faults=True)))


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small jobs are cut into as many tasks, and as deep a tree, as large ones."""
    monkeypatch.setattr(limits, "DEFAULT", Limits(task_bytes=1, fan_in=2))


@pytest.mark.usefixtures("many_tasks")
def test_a_cluster_changes_no_answer(files: list[Path], client: distributed.Client) -> None:
    with rocpd.connect(files) as here, rocpd.connect(files, client=client) as there:
        for sql in STATEMENTS:
            wanted = here.execute(sql, strategy=there.explain(sql).fetchall()[0][1])
            actual = there.execute(sql)
            assert actual.columns == wanted.columns, sql
            assert list(map(repr, actual)) == list(map(repr, wanted)), sql


@pytest.mark.usefixtures("many_tasks")
def test_workers_answer_from_an_index_that_they_see(
    files: list[Path], client: distributed.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies in a folder of the workers, which the client does not know."""
    with rocpd.connect(files, index="off") as session:
        built = build(session, tmp_path)
    files = [rank.opening.path for rank, each in zip(session.ranks, built, strict=True) if not each.why_not]
    client.run(_look_for_index_in, str(tmp_path))
    try:
        with rocpd.connect(files, index="off") as here, rocpd.connect(files, client=client) as there:
            assert there.job.files.index
            assert there.job.files.index.why_not
            for sql in (STATEMENTS[1], *STATEMENTS[3:6]):
                asked: Any = client.run(_answers_of_index)
                wanted = here.execute(sql, strategy=there.explain(sql).fetchall()[0][1])
                assert list(map(repr, there.execute(sql))) == list(map(repr, wanted)), sql
                assert sum(client.run(_answers_of_index).values()) > sum(asked.values()), sql
    finally:
        client.run(_look_for_index_in, "")


def _look_for_index_in(folder: str) -> None:
    """On a worker: `folder` holds the index from now on, and answers from it are counted; empty: the user's cache."""
    from rocpd.index.answers import StoredAnswers

    os.environ["ROCPD_INDEX_FOLDER"] = folder
    answer = StoredAnswers.answer
    if not hasattr(StoredAnswers, "answered"):

        def counted(self: StoredAnswers, *asked: Any) -> Any:
            rows = answer(self, *asked)
            StoredAnswers.answered += not isinstance(rows, str)  # type: ignore[attr-defined]
            return rows

        StoredAnswers.answered = 0  # type: ignore[attr-defined]
        StoredAnswers.answer = counted  # type: ignore[assignment, method-assign]


def _answers_of_index() -> int:
    from rocpd.index.answers import StoredAnswers

    return getattr(StoredAnswers, "answered", 0)


def test_ranks_are_batched(files: list[Path], client: distributed.Client) -> None:
    with rocpd.connect(files, client=client) as session:
        seen: list[tuple[int, int]] = []
        rows = session.execute(
            "SELECT count(*) FROM kernels", on_progress=lambda done, total: seen.append((done, total))
        )
        assert rows.fetchall()[0][0] > 0
    assert 1 <= len(seen) < 9
    assert seen[-1] == (9, 9)


@pytest.mark.soak
@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("sql", sample([STATEMENTS[1], STATEMENTS[4]], 2))
def test_a_worker_that_is_killed_in_mid_query(sql: str, files: list[Path], local: distributed.LocalCluster) -> None:
    """Other workers repeat what it had done."""
    with rocpd.connect(files) as here:
        wanted = here.execute(sql).fetchall()
    with connect_to(local) as client, rocpd.connect(files, client=client) as session:
        client.wait_for_workers(2)
        killed: list[int] = []

        def kill(done: int, total: int) -> None:
            if not killed and done < total:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        assert session.execute(sql, on_progress=kill).fetchall() == wanted
        assert killed


@pytest.mark.usefixtures("many_tasks")
def test_summaries_and_converters_are_the_same(files: list[Path], client: distributed.Client, tmp_path: Path) -> None:
    with rocpd.connect(files) as here, rocpd.connect(files, client=client) as there:
        wanted, actual = (list(summarize(session, SummaryOptions(by_rank=True))) for session in (here, there))
        assert [(table.name, table.fetchall()) for table in actual] == [(t.name, t.fetchall()) for t in wanted]
        for name in ("kernels", "gpu-time", "ranks", "calls"):
            assert list(there.summary(name)) == list(here.summary(name))
        for session, folder in ((here, "here"), (there, "there")):
            FORMATS["pftrace"].write(session, ConvertOptions(tmp_path / folder))
            FORMATS["csv"].write(session, ConvertOptions(tmp_path / folder))
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert len(names) > 3
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name


def test_files_are_read_on_their_hosts(client: distributed.Client, tmp_path: Path) -> None:
    host = socket.gethostname()
    first = TraceBuilder(1, host=host).kernel("gemm", 1, 5).write(tmp_path / "1.db")
    (tmp_path / f"{host}.site.org").mkdir()
    second = TraceBuilder(2, host="login1").kernel("gemm", 1, 5).write(tmp_path / f"{host}.site.org" / "2.db")
    with rocpd.connect([first, second], client=Cluster(client, local_hosts=True)) as session:
        assert session.execute("SELECT sum(duration) FROM kernels").fetchall() == [(8,)]
    third = TraceBuilder(3, host="elsewhere7").kernel("gemm", 1, 5).write(tmp_path / "3.db")
    with (
        rocpd.connect([first, third], client=Cluster(client, local_hosts=True)) as session,
        pytest.raises(UsageError, match=r"3\.db: no worker on its host \(elsewhere7\)"),
    ):
        session.execute("SELECT sum(duration) FROM kernels").fetchall()


def test_errors_of_a_worker_are_raised_as_local_ones(client: distributed.Client, tmp_path: Path) -> None:
    files = [TraceBuilder(n).kernel("gemm", 1, 5).write(tmp_path / f"{n}.db") for n in range(3)]
    with rocpd.connect(files, client=client) as session:
        files[1].unlink()
        with pytest.raises(InputError, match=r"1\.db: cannot be opened") as caught:
            session.execute("SELECT sum(duration) FROM kernels").fetchall()
    assert caught.value.hint == "check its permissions"


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    impatient = Limits(dial_s=0.2)
    with pytest.raises(UsageError, match="no scheduler at tcp:"):
        Cluster("tcp://127.0.0.1:9", limits=impatient)
    with pytest.raises(UsageError, match=r"no scheduler at .*none\.json"):
        Cluster(str(tmp_path / "none.json"), limits=impatient)


def test_a_client_that_is_closed_or_cannot_wait(files: list[Path], local: distributed.LocalCluster) -> None:
    async def in_a_loop() -> None:
        async with connect_to(local.scheduler_address, asynchronous=True) as client:
            rocpd.connect(files, client=client)

    # In a thread of its own: a browser that other tests keep open has an event loop in this one.
    with ThreadPoolExecutor(1) as thread, pytest.raises(UsageError, match="client: not a synchronous one"):
        thread.submit(lambda: asyncio.run(in_a_loop())).result()
    early = connect_to(local)
    session = rocpd.connect(files, client=early)
    early.close()
    with pytest.raises(UsageError, match="the client of the cluster is closed"):
        rocpd.connect(files, client=early)
    with pytest.raises(RocpdError, match="the client of the cluster was closed"):
        session.execute(STATEMENTS[1]).fetchall()
    with pytest.raises(RocpdError, match="the client of the cluster was closed"):
        session.summary("kernels").fetchall()
    session.close()


def test_a_session_that_is_closed_while_its_rows_are_read(files: list[Path], local: distributed.LocalCluster) -> None:
    session = rocpd.connect(files, client=local.scheduler_address)
    rows = session.execute("SELECT * FROM kernels")
    session.close()
    with pytest.raises(ClosedError):
        list(rows)


def test_workers_with_another_version(client: distributed.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "__version__", "99.0")
    with pytest.raises(UsageError, match=r"workers have another rocpd than 99\.0: \d"):
        Cluster(client)


def test_a_cluster_builds_an_index_that_answers(
    files: list[Path], client: distributed.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with rocpd.connect(files, client=client) as session:
        built = build(session, tmp_path / "index")
        indexed = [rank.opening.path for rank, each in zip(session.ranks, built, strict=True) if each.is_new]
    assert len(indexed) > 3  # the others have a journal
    sql = "SELECT rank, name, count(*), sum(duration) FROM kernels GROUP BY rank, name ORDER BY 1, 2"
    with rocpd.connect(indexed, index="off") as session:
        expected = session.execute(sql).fetchall(), list(session.summary("kernels"))
    for _ in range(2):
        with rocpd.connect(indexed, client=client, index="require", index_folder=tmp_path / "index") as session:
            answers = session.execute(sql, strategy="columnar").fetchall(), list(session.summary("kernels"))
        assert answers == expected
        monkeypatch.setattr(Cluster, "each", None)  # what was kept needs no worker


def test_the_commands_take_a_scheduler(
    files: list[Path], local: distributed.LocalCluster, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process; the test of Ctrl-C has one of its own."""
    address = local.scheduler_address
    plain = cli("query", STATEMENTS[1], *files, "-f", "csv")
    assert plain.out.count("\n") > 3
    assert cli("query", STATEMENTS[1], *files, "-f", "csv", "--scheduler", address).out == plain.out
    summary = cli("summary", "kernels", *files, "-f", "csv").out
    with monkeypatch.context() as context:
        context.setenv("DASK_SCHEDULER_ADDRESS", address)
        assert cli("summary", "kernels", *files, "-f", "csv").out == summary
    converted = ("convert", "-f", "json", "-d", tmp_path, *files, "--scheduler", address)
    assert cli(*converted, "--local-hosts").code == 2
    assert cli(*converted).code == 0
    assert (tmp_path / "out.json").stat().st_size > 1000


def test_ctrl_c_ends_the_tasks_too(local: distributed.LocalCluster, tmp_path: Path) -> None:
    files = list(simulate(JobOptions(out=tmp_path, ranks=2, events_per_rank=4000)))
    command = [
        sys.executable,
        "-m",
        "rocpd",
        "query",
        ENDLESS,
        *map(str, files),
        "--scheduler",
        local.scheduler_address,
    ]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_env(), start_new_session=True) as process,
        connect_to(local) as client,
    ):
        until(lambda: any(client.processing().values()))
        time.sleep(0.5)  # the statement runs
        process.send_signal(signal.SIGINT)
        assert process.wait() != 0
        assert process.stderr
        assert "Traceback" not in process.stderr.read()
        until(lambda: not any(client.processing().values()))
        until(lambda: not any(client.run(_busy).values()))  # Dask itself would let it run on


def _busy(dask_worker: distributed.Worker) -> bool:
    return bool(dask_worker.active_threads)


def _env() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROCPD_", "DASK_"))}
    return inherited | {"PYTHONPATH": str(SOURCE)}
