"""Exports of a job whose hosts have clocks of their own: times on one line, and how far that can be trusted."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.perfetto_engine import Engine

LONG = 60_000_000_000


def drifting(folder: Path) -> list[Path]:
    """Two hosts, 50 collectives in a minute; the second clock is 1000 s behind and runs 30 ppm fast."""
    ranks = [TraceBuilder(n, host=f"n{n}", pid=10 + n) for n in range(2)]
    for k in range(50):
        true = 10**12 + k * LONG // 50
        for n, rank in enumerate(ranks):
            start, end = true + 100 * n, true + 20_000 + (k % 7) * 100 * n
            if n:
                start, end = ((time - 10**12) * (1_000_030) // 1_000_000 + 7 for time in (start, end))
            rank.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, end)
    return [rank.write(folder / f"{n}.db") for n, rank in enumerate(ranks)]


@pytest.fixture(scope="module", params=["constant", "drifting"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("hosts")
    options = JobOptions(folder, ranks=4, nodes=2, steps=3, seed=7)
    with rocpd.connect(simulate(options) if request.param == "constant" else drifting(folder)) as session:
        assert bool(session.alignment.shift(len(session.ranks) - 1).drift) == (request.param == "drifting")
        yield session


def kernels_on_line(session: rocpd.Session) -> Counter[int]:
    """The starts of all kernels on the common time line."""
    rows = session.sql("SELECT rank, start FROM kernels")
    return Counter(session.alignment.shift(rank).to_line(start) for rank, start in rows)


def test_readers_of_otf2_lay_recorded_times_on_the_line(session: rocpd.Session, tmp_path: Path) -> None:
    otf2 = pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    (path,) = session.convert("otf2", tmp_path / "o.otf2")
    with otf2.reader.open(str(path)) as trace:
        events = [
            (event.time, location)
            for location, event in trace.events
            if isinstance(event, otf2.events.Enter)
            and location.type == otf2.LocationType.ACCELERATOR_STREAM
            and event.attributes
            and "KERNEL" in str(list(event.attributes.values())).upper()
        ]
    starts = Counter(time for time, _ in events)
    expected = kernels_on_line(session)
    assert sum(expected.values()) == sum(starts.values())
    assert all(abs(a - b) <= 1 for a, b in zip(sorted(expected.elements()), sorted(starts.elements()), strict=True))
    tool = shutil.which("otf2-print")
    if tool:
        shown = subprocess.run([tool, "-C", str(path)], capture_output=True, text=True, check=True).stdout
        records = [line.partition("Time: ")[2] for line in shown.splitlines() if line.startswith("CLOCK_OFFSET")]
        clock = session.alignment.clocks[1]
        span = session.spans[clock.ranks[0]]
        assert clock.likely_ns is not None
        offset = clock.shift.to_line(span.start) - span.start
        assert f"{span.start}, Offset: {offset:+d}, StdDev: {clock.likely_ns * 1.4826:g}" in records


def test_ranks_of_perfetto_are_described(session: rocpd.Session, tmp_path: Path) -> None:
    (path,) = session.convert("pftrace", tmp_path / "o.pftrace")
    engine = Engine(path)
    about = engine.rows("SELECT EXTRACT_ARG(source_arg_set_id, 'description') FROM track WHERE name GLOB 'rank *'")
    labels = [text.splitlines()[1] for (text,) in about]
    assert set(labels) == {str(clock) for clock in session.alignment.clocks}
    assert "clock: reference +0 ns" in labels
    starts = engine.rows("SELECT ts FROM recorded WHERE category = 'kernel_dispatch'")
    assert Counter(time for (time,) in starts) == kernels_on_line(session)


def test_json_says_how_each_clock_was_aligned(session: rocpd.Session, tmp_path: Path) -> None:
    (path,) = session.convert("json", tmp_path / "o.json")
    events = json.loads(path.read_text())["traceEvents"]
    facts = {event["pid"]: event["args"] for event in events if event["ph"] == "M" and event["name"] == "clock"}
    assert len(facts) == len(session.ranks)
    assert [fact["method"] for fact in facts.values()].count("reference") == len(session.ranks) // 2
    rows = {tuple(fact.values()) for fact in facts.values()}
    assert rows == {tuple(row[1:]) for row in session.info()["clocks"]}


def test_one_clock_needs_no_words(tmp_path: Path) -> None:
    path = TraceBuilder().kernel("k", 10, 20).write(tmp_path / "a.db")
    with rocpd.connect(path) as session:
        (written,) = session.convert("json", tmp_path / "o.json")
    assert "clock" not in written.read_text()


def test_what_touches_still_does_where_a_drift_is_taken_out(tmp_path: Path) -> None:
    """Times are laid on the line by both ends: a range of a minute still ends with the last of those inside it."""
    drifting(tmp_path)
    rank = TraceBuilder(2, host="n1", pid=12).region("all", 10**9, 10**9 + LONG)
    for k in range(60):
        rank.region(f"part {k}", 10**9 + k * LONG // 60, 10**9 + (k + 1) * LONG // 60)
    rank.write(tmp_path / "2.db")
    with rocpd.connect(tmp_path) as session:
        assert session.alignment.shift(2).drift == pytest.approx(-30e-6, abs=1e-6)
        (path,) = session.convert("pftrace", tmp_path / "o.pftrace")
    rows = Engine(path).rows(
        "SELECT name, depth, ts, ts + dur FROM recorded WHERE category LIKE 'hip%' ORDER BY ts, depth"
    )
    (_, depth, start, end), *parts = rows
    assert (depth, {row[1] for row in parts}) == (0, {1})
    assert [row[2] for row in parts] == [start, *(row[3] for row in parts[:-1])]
    assert parts[-1][3] == end
