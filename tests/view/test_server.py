"""What the server answers, to whom, and what it refuses."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.base.boundary import Policy, failures
from rocpd.schema.versions import suffix_of
from rocpd.view.desk import Desk, ViewedJob
from rocpd.view.outlines import Overview
from rocpd.view.questions import Statement, TimeLineStart
from rocpd.view.server import ViewServer
from tests.build import TraceBuilder, guid_of
from tests.federate.writers import HALF_DONE, killed_writer
from tests.perfetto_engine import Engine
from tests.view.conftest import Ask
from tests.waiting import PATIENCE

FOREIGN = (
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example:80"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_other_pages_are_refused(ask: Ask, headers: dict[str, str]) -> None:
    assert ask("job").status == 200
    for name, body in (("job", None), ("", None), ("perfetto/index.html", None), ("sql", {"sql": "select 1"})):
        assert ask(name, body, **headers).status == 403


@pytest.mark.parametrize("token", ["", "x", "%C3%A9", "a" * 32])
def test_nothing_is_answered_without_the_secret(ask: Ask, token: str) -> None:
    for name in ("", "job", "view.js", "sql", "perfetto/index.html"):
        said = ask(name, token=token)
        assert (said.status, b"rocpd view printed" in said.body) == (403, True)


def test_what_is_no_address_is_refused(server: ViewServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")


def test_only_this_machine_is_listened_to(server: ViewServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with socket.socket() as probe:
        probe.bind(("", 0))
        others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1", "::1"}
    for address in others:
        with socket.socket(socket.AF_INET6 if ":" in str(address) else socket.AF_INET) as attempt:
            attempt.settimeout(1)
            assert attempt.connect_ex((str(address), server.port)) != 0


def test_pages_load_nothing_from_elsewhere(ask: Ask) -> None:
    for name in ("", "view.js", "timeline.js", "view.css", "report.css", "report.js"):
        said = ask(name)
        assert said.status == 200, name
        policy = said.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "Access-Control-Allow-Origin" not in said.headers
        assert said.headers["Referrer-Policy"] == "no-referrer"
        assert b"http://" not in said.body.replace(b"http://www.w3.org/", b"")


def test_sql(ask: Ask, job: Path) -> None:
    said = ask("sql", {"sql": "select rank, count(*) as n, null as missing from kernels group by rank order by rank"})
    with rocpd.connect(job) as session:
        expected = session.sql("select rank, count(*) from kernels group by rank order by rank").fetchall()
    answer = said.json["answer"]
    assert answer["columns"] == ["rank", "n", "missing"]
    assert answer["rows"] == [[str(rank), str(n), None] for rank, n in expected]
    assert (answer["numeric"], answer["more"]) == ([True, True, True], False)


def test_sql_has_what_analyses_say(ask: Ask, job: Path) -> None:
    known = {relation["name"]: relation["columns"] for relation in ask("schema").json}
    assert {"name": "time_ns", "unit": "ns", "about": "of all agents together"} in known["summary.budget"]
    with rocpd.connect(job) as session:
        expected = session.summary("budget").fetchall()
    answer = ask("sql", {"sql": "select part, time_ns from summary.budget"}).json["answer"]
    assert answer["rows"] == [[row[0], str(row[1])] for row in expected]


def test_rows_have_a_limit_and_keep_every_digit(ask: Ask) -> None:
    statement = "with recursive n(i) as (select 9007199254740993 union all select i + 1 from n) select i from n"
    answer = ask("sql", {"sql": statement}).json["answer"]
    assert (len(answer["rows"]), answer["more"]) == (5, True)
    assert answer["rows"][0] == ["9007199254740993"]


@pytest.mark.parametrize(
    "statement",
    [
        "create temp table t(x)",
        "insert into rocpd_string(string) values ('x')",
        "select 1; drop table rocpd_string",
        "attach 'x.db' as x",
        "pragma journal_mode = wal",
        "/* select */ delete from rocpd_string",
        "-- select\nvacuum",
        "with x as (select 1) delete from rocpd_string",
        "select load_extension('x')",
        f"{' ' * 60_000}(select 1)",
        f"{'/**/' * 10_000}(select 1)",
        "",
    ],
    ids=lambda statement: statement.strip()[:20],
)
def test_sql_that_does_not_only_read_is_refused(ask: Ask, job: Path, statement: str) -> None:
    before = {path: path.read_bytes() for path in job.iterdir()}
    said = ask("sql", {"sql": statement})
    assert (said.status, sorted(said.json)) == (400, ["error", "hint"])
    assert "stopped" not in said.json["error"]
    assert {path: path.read_bytes() for path in job.iterdir()} == before


def test_sql_that_takes_too_long_is_stopped(job: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n"
    desk = Desk(ViewedJob((str(job),), jobs=1), seats=1)
    with contextlib.closing(desk):
        with pytest.raises(RocpdError, match=r"stopped after 0\.5 s"):
            desk.ask(Statement(endless, 5), 0.5)
        assert desk.ask(Statement("select 1", 5), PATIENCE).value["rows"] == [["1"]]


def test_mistakes_are_one_line(ask: Ask) -> None:
    assert "no such table" in ask("sql", {"sql": "select * from nowhere"}).json["error"]
    assert ask("report?start=x").json["error"] == "start is a whole number, of times in nanoseconds"
    assert ask("nowhere").status == 404
    assert ask("perfetto/../../../../../../etc/passwd").status == 404
    assert ask("sql", {"sql": "x" * 70_000}).status == 400
    assert ask("sql", ["select 1"]).json["error"] == "a request is a JSON object"
    assert ask("sql", {"sql": "select 1"}, Content_Type="text/plain").json["error"] == "a request is JSON"


@pytest.mark.parametrize(
    "values",
    ["select zeroblob(90000000) from n", "select hex(zeroblob(40000000)), zeroblob(90000000), rank from kernels, n"],
)
def test_answers_have_a_limit_in_bytes(ask: Ask, values: str) -> None:
    said = ask("sql", {"sql": f"with recursive n(x) as (select 1 union all select x + 1 from n limit 60) {values}"})
    assert len(said.body) < 10_000_000
    if said.status == 200:
        assert said.json["answer"]["more"]
    else:
        assert "too much memory" in said.json["error"] or "stopped after" in said.json["error"]
    assert ask("sql", {"sql": "select 1"}).json["answer"]["rows"] == [["1"]]


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"sql": "select \'\\ud800\'"}', b"\xff", b'{"sql": 1e999}'])
def test_whatever_is_asked_is_answered(body: bytes, server: ViewServer) -> None:
    head = f"POST /{server.token}/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_the_body_of_a_get_is_no_request(server: ViewServer) -> None:
    get = f"GET /{server.token}/job HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(f"{get}Content-Length: {len(get) + 2}\r\n\r\n{get}\r\n".encode())
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert received.count(b"HTTP/1.1 ") == 1


def test_what_fails_is_answered(server: ViewServer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: ViewedJob) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Policy, "is_raised", False)
    monkeypatch.setattr(ViewedJob, "stamp", fail)
    said = ask("stamp")
    assert (said.status, said.json["error"]) == (500, "could not be judged: ZeroDivisionError: division by zero")
    assert [failure.what for failure in failures] == ["page stamp"]
    failures.clear()


def test_endless_statements_keep_no_page_waiting(job: Path) -> None:
    endless = Statement("with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n", 5)
    desk = Desk(ViewedJob((str(job),), jobs=1), seats=2)

    def ask() -> None:
        with pytest.raises(RocpdError, match="the viewer has ended"):
            desk.ask(endless, PATIENCE)

    with ThreadPoolExecutor(3) as people:
        asked = [people.submit(ask) for _ in range(3)]
        assert desk.ask(TimeLineStart(), PATIENCE).value.isdecimal()
        assert not any(each.done() for each in asked)
        desk.close()
        assert [each.result() for each in asked] == [None] * 3


def test_two_people_at_once(ask: Ask) -> None:
    slow = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) select count(*) from n"
    with ThreadPoolExecutor(6) as people:
        answers = [said.json["answer"]["rows"] for said in people.map(lambda _: ask("sql", {"sql": slow}), range(6))]
    assert answers == [[["3000"]]] * 6


def test_everything_is_of_the_part_that_was_taken(ask: Ask, job: Path) -> None:
    with rocpd.connect(job) as session:
        start, end = session.time_range or (0, 0)
        sides = {"start": (end - start) // 3, "end": (end - start) // 2}
        part = session.within(rocpd.Window(f"+{sides['start']}ns", f"+{sides['end']}ns"))
        kernels = part.sql("select count(*) from kernels").fetchall()[0][0]
        assert 0 < kernels < session.sql("select count(*) from kernels").fetchall()[0][0]
    assert ask("sql", {"sql": "select count(*) from kernels", **sides}).json["answer"]["rows"] == [[str(kernels)]]
    assert len(ask("trace", sides).body) < len(ask("trace", {}).body)
    report = ask(f"report?start={sides['start']}&end={sides['end']}").json["answer"]
    assert f"rocpd summary kernels {job} --start {sides['start']}ns --end {sides['end']}ns" in report
    assert report != ask("report").json["answer"]


def test_the_trace_of_a_finding_holds_its_place(ask: Ask, tmp_path: Path) -> None:
    """The page asks for the trace around a finding, and shows the place by the time at which its time line starts."""
    page = ask("report").json["answer"]
    (found,) = re.findall(r'<li class="problem"[^>]* data-start="(\d+)" data-end="(\d+)" data-rank="(\d+)">', page)
    start, end, rank = map(int, found)
    said = ask("trace", {"start": start - 50_000, "end": end + 50_000})
    origin = int(ask("start").json["answer"])
    (tmp_path / "x.pftrace").write_bytes(said.body)
    engine = Engine(tmp_path / "x.pftrace")
    steps = engine.rows("SELECT MIN(ts), MAX(ts + dur) FROM recorded WHERE title GLOB 'step [0-9]' GROUP BY title")
    assert (origin + start, origin + end) in [
        pytest.approx(step, abs=50_000) for step in steps
    ]  # ranks differ by 20 us
    ((first, last),) = engine.rows(f"SELECT MIN(ts), MAX(ts + dur) FROM recorded WHERE rank GLOB 'rank {rank} *'")
    assert first < origin + start < origin + end <= last


def test_a_job_that_grows_is_read_anew(tmp_path: Path, job: Path) -> None:
    first, second = sorted(job.glob("*.db"))
    (tmp_path / "0.db").write_bytes(first.read_bytes())
    grows = ViewedJob((str(tmp_path),), jobs=1)
    desk, overview = Desk(grows, seats=1), Overview(grows)
    count = Statement("select count(*) from processes", 5)

    def drawn() -> int:
        ranks = [rank["rank"] for rank in overview.ranks().value["ranks"]]
        return len(overview.outlines(ranks, 100).value["ranks"])

    try:
        assert (desk.ask(count, 60).value["rows"], drawn()) == ([["1"]], 1)
        (tmp_path / "1.db").write_bytes(second.read_bytes())
        assert (desk.ask(count, 60).value["rows"], drawn()) == ([["2"]], 2)
        (tmp_path / "0.db").unlink()
        assert (desk.ask(count, 60).value["rows"], drawn()) == ([["1"]], 1)
        (tmp_path / "1.db").unlink()
        with pytest.raises(rocpd.InputError):
            desk.ask(count, 60)
        with pytest.raises(rocpd.InputError):
            overview.ranks()
        (tmp_path / "1.db").write_bytes(second.read_bytes())
        assert (desk.ask(count, 60).value["rows"], drawn()) == ([["1"]], 1)
    finally:
        desk.close()
        overview.close()


def test_closing_ends_questions_under_way(job: Path) -> None:
    desk = Desk(ViewedJob((str(job),), jobs=1), seats=1)
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n"
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            desk.ask(Statement(endless, 5), 60)
        except rocpd.RocpdError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.5)
    desk.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert len(raised) == 1


def test_what_a_process_recovered_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TraceBuilder(1).kernel("gemm", 1, 2).write(tmp_path / "a.db")
    killed_writer(tmp_path / "a.db", HALF_DONE, f"rocpd_string{suffix_of(guid_of(1))}")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    desk = Desk(ViewedJob((str(tmp_path / "a.db"),), jobs=1), seats=1)
    assert desk.ask(Statement("select count(*) from kernels", 5), PATIENCE).value["rows"] == [["1"]]
    assert list(temporary.iterdir())
    desk.close()
    assert not list(temporary.iterdir())
