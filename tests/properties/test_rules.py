"""Laws of the rules of the field: every format and analysis gives the same answer to the same question.

Which call launched an operation is asked of traces (flows), `launch` and `calls`; which agent it belongs to of the
tracks of three formats, `op-trace`, `gpu-time`, `copies`, the filter `--agent` and the view `busy`.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rocpd
from rocpd.base import RocpdError
from rocpd.convert import FORMATS
from rocpd.convert.options import AgentIndex, ConvertOptions
from rocpd.simulator import JobOptions, simulate
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.perfetto_engine import Engine
from tests.soak import sized
from tests.summary.cells import cells

pytestmark = pytest.mark.soak(33)
EXAMPLES = sized(6, 200)
LAWS = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
BASE = 1_000_000
GPUS, UNKNOWN = (GPU, GPU2), 99
Flow: TypeAlias = tuple[str, str]
"""Names of a call and of an operation."""

FLOWS = """
SELECT MIN(o.name, i.name), MAX(o.name, i.name) FROM flow f
JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in"""
TRACKS = "SELECT name, track FROM recorded"
BY_INDEX = partial(ConvertOptions, agent_index_value=AgentIndex.RELATIVE)


@dataclass(frozen=True)
class Event:
    """A region (`call0` …), kernel (`kernel0` …) or copy (`copy0` …); `agents` are those that it may belong to.

    Calls come before operations in the order of letters.
    """

    name: str
    start: int
    end: int | None
    stack: int
    agents: tuple[int | None, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the times make sense."""
        return self.start > 0 and self.end is not None and self.end >= self.start

    @property
    def duration(self) -> int:
        """Length [ns], 0 without valid times."""
        return (self.end or 0) - self.start if self.valid else 0

    @property
    def agent(self) -> int | None:
        """The agent of an operation: of a copy (destination, source) the first GPU, else the destination."""
        return next((agent for agent in self.agents if agent in GPUS), self.agents[0])

    @property
    def track(self) -> str:
        """How traces begin the name of its track."""
        if self.agent is None:
            return "agent ?"
        return f"Agent {self.agent}" if self.agent != UNKNOWN else f"agent ? (id {UNKNOWN})"


@dataclass(frozen=True)
class Rank:
    """What happened in a rank."""

    calls: tuple[Event, ...]
    work: tuple[Event, ...]

    def flows(self) -> set[Flow]:
        """Which call launched what: of the shown ones with its stack id the innermost."""
        links = set()
        for operation in self.work:
            known = [
                (call.start, -call.start - call.duration, row, call.name)
                for row, call in enumerate(self.calls)
                if call.start > 0 and call.stack == operation.stack > 0
            ]
            if known and operation.start > 0:
                links.add((max(known)[-1], operation.name))
        return links

    def write(self, folder: Path) -> rocpd.Session:
        """Write the rank and open it."""
        trace = TraceBuilder()
        for call in self.calls:
            trace.region(call.name, call.start, call.end, stack=call.stack)  # type: ignore[arg-type]
        for event in self.work:
            times = {"start": event.start, "end": event.end, "stack": event.stack}
            if event.name.startswith("kernel"):
                trace.kernel(event.name, agent=event.agents[0], **times)  # type: ignore[arg-type]
            else:
                to, source = event.agents
                trace.copy(name=event.name, dst_agent_id=to, src_agent_id=source, **times)  # type: ignore[arg-type]
        return rocpd.connect([trace.write(folder / "0.db")])


def events(name: str, agents: int, damaged: bool) -> st.SearchStrategy[tuple[Event, ...]]:
    """Events whose times and stack ids often meet; some with times that make no sense."""
    start = st.integers(1, 12).map(lambda time: BASE + time)
    length: st.SearchStrategy[int | None] = st.integers(0, 8)
    if damaged:
        start, length = start | st.just(0), length | st.sampled_from((-1, None))
    call = st.tuples(
        start, length, st.integers(0, 3), st.tuples(*[st.sampled_from((CPU, GPU, GPU2, UNKNOWN, None))] * agents)
    )
    return st.lists(call, min_size=1, max_size=6).map(
        lambda drawn: tuple(
            Event(f"{name}{i}", start, None if length is None else start + length, stack, where)
            for i, (start, length, stack, where) in enumerate(drawn)
        )
    )


def ranks(*, damaged: bool) -> st.SearchStrategy[Rank]:
    """Ranks with calls, kernels and copies."""
    work = st.tuples(events("kernel", 1, damaged), events("copy", 2, damaged)).map(lambda both: (*both[0], *both[1]))
    return st.builds(Rank, events("call", 0, damaged), work)


@contextlib.contextmanager
def opened(rank: Rank) -> Iterator[tuple[rocpd.Session, Path]]:
    """Write a rank into a folder that goes, and open it."""
    with tempfile.TemporaryDirectory(prefix="rocpd-rules-") as folder, rank.write(Path(folder)) as session:
        yield session, Path(folder)


def trace_of(session: rocpd.Session, folder: Path, form: str = "pftrace") -> Engine:
    """Convert, and load the trace."""
    (path,) = FORMATS[form].write(session, BY_INDEX(folder / f"{form}-{len(list(folder.iterdir()))}"))
    return Engine(path)


def launched(session: rocpd.Session) -> dict[str, int]:
    """Give the delays of the operations that count, whose call `launch` knows [ns]."""
    try:
        return dict(cells(session, "launch", "name delay_ns"))
    except RocpdError:
        return {}


def gpu_of_calls(session: rocpd.Session) -> Counter[str]:
    """Give the time that calls launched themselves by `calls` [ns], where there is some."""
    try:
        links = cells(session, "calls", "name gpu_self_ns")
    except RocpdError:
        return Counter()
    return +sum((Counter({name: time}) for name, time in links), Counter())


NESTED = Rank(
    (
        Event("call0", BASE + 10, BASE + 90, 1), Event("call1", BASE + 20, BASE + 80, 1),
        Event("call2", BASE + 30, BASE + 40, 1), Event("call3", BASE + 100, BASE + 120, 2),
        Event("call4", BASE + 100, BASE + 120, 2), Event("call5", BASE + 130, None, 3),
        Event("call6", BASE + 125, BASE + 140, 3),
    ),
    (
        Event("kernel0", BASE + 50, BASE + 60, 1, (GPU,)), Event("kernel1", BASE + 110, BASE + 150, 2, (GPU,)),
        Event("kernel2", BASE + 150, BASE + 170, 3, (GPU2,)), Event("kernel3", BASE + 180, None, 1, (GPU,)),
        Event("copy0", BASE + 60, BASE + 70, 1, (CPU, GPU)), Event("copy1", BASE + 75, BASE + 79, 2, (CPU, CPU)),
    ),
)  # fmt: skip
"""Three calls deep with one stack id; two calls at the same times; one that never ended; copies to and on the host."""


def check_links(rank: Rank) -> None:
    """Flows are those worked out here, and `launch` and `calls` count by them what has valid times."""
    calls, work = ({event.name: event for event in events} for events in (rank.calls, rank.work))
    with opened(rank) as (session, folder):
        flows = set(trace_of(session, folder).rows(FLOWS))
        assert flows == rank.flows()
        links = [(calls[call], work[name]) for call, name in flows if calls[call].valid and work[name].valid]
        delays = {event.name: max(event.start - (call.end or 0), 0) for call, event in links}
        assert launched(session).items() <= delays.items()  # those between the first and the last dispatch
        expected: Counter[str] = Counter()
        for call, event in links:
            expected[call.name] += event.duration
        assert gpu_of_calls(session) == +expected


def test_nested_calls_of_one_stack_id() -> None:
    assert NESTED.flows() == {
        ("call2", "kernel0"), ("call4", "kernel1"), ("call5", "kernel2"), ("call2", "kernel3"), ("call2", "copy0"),
        ("call4", "copy1"),
    }  # fmt: skip
    check_links(NESTED)


@LAWS
@given(ranks(damaged=False))
def test_flows_are_the_links_of_launch_and_calls(rank: Rank) -> None:
    check_links(rank)


@LAWS
@given(ranks(damaged=True))
def test_flows_are_the_links_of_launch_and_calls_where_times_are_damaged(rank: Rank) -> None:
    check_links(rank)


@LAWS
@given(ranks(damaged=True), st.tuples(st.integers(1, 8), st.integers(1, 8)), st.booleans())
def test_a_window_shows_flows_of_the_whole_and_no_others(rank: Rank, edges: tuple[int, int], clip: bool) -> None:
    """A call outside of the window launches what it launches: no other call of the stack id stands in for it."""
    with opened(rank) as (session, folder):
        window = rocpd.Window(BASE + edges[0], BASE + edges[0] + edges[1], clip=clip)
        with contextlib.suppress(RocpdError):  # outside the trace
            part = session.within(window)
            engine = trace_of(part, folder)
            shown = dict(engine.rows("SELECT name, dur FROM recorded"))
            flows = {flow for flow in rank.flows() if set(flow) <= set(shown)}
            assert set(engine.rows(FLOWS)) == flows
            expected: Counter[str] = Counter()
            valid = {event.name for event in (*rank.calls, *rank.work) if event.valid}
            for call, name in flows:
                expected[call] += shown[name] if {call, name} <= valid else 0
            assert gpu_of_calls(part) == +expected


def op_trace(session: rocpd.Session) -> dict[str, int | None]:
    """Give the agent of each operation by `op-trace`."""
    try:
        return dict(cells(session, "op-trace", "name agent"))
    except RocpdError:
        return {}


def by_agent(rows: Sequence[tuple[int | None, int]]) -> Counter[int | None]:
    """Add up what stands beside agents."""
    return sum((Counter({agent: value}) for agent, value in rows), Counter())


@LAWS
@given(ranks(damaged=True))
def test_an_operation_is_on_the_track_of_its_agent(rank: Rank) -> None:
    shown = {event.name: event.track for event in rank.work if event.start > 0}
    with opened(rank) as (session, folder):
        for form, separator in (("pftrace", " / "), ("json", " · ")):
            tracks = dict(trace_of(session, folder, form).rows(TRACKS))
            assert {name: tracks[name].split(separator)[0] for name in shown} == shown
        assert op_trace(session) == {event.name: event.agent for event in rank.work if event.valid}


@LAWS
@given(ranks(damaged=True))
def test_otf2_has_the_same_tracks(rank: Rank) -> None:
    otf2 = pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    shown = {event.name: event.track for event in rank.work if event.start > 0}
    with opened(rank) as (session, folder):
        (path,) = FORMATS["otf2"].write(session, BY_INDEX(folder))
        with otf2.reader.open(str(path)) as trace:
            tracks = {event.region.name: location.name for location, event in trace.events if hasattr(event, "region")}
    # The name of a location starts with its rank.
    assert {name: tracks[name].split(" · ")[1] for name in shown} == shown


@LAWS
@given(ranks(damaged=False))
def test_sums_and_filters_by_agent_agree(rank: Rank) -> None:
    expected = Counter[int | None]()
    for event in rank.work:
        expected[event.agent] += event.duration
    copies = [(event.agent, event.duration) for event in rank.work if event.name.startswith("copy")]
    with opened(rank) as (session, _):
        sums = session.sql("SELECT agent, sum(duration) FROM operations GROUP BY agent").fetchall()
        assert by_agent(sums) == expected
        assert by_agent(session.sql("SELECT agent_id, GpuTime FROM busy").fetchall()) == expected
        assert by_agent(cells(session, "copies", "agent total_ns", by="agent")) == by_agent(copies)
        for agent in (CPU, GPU, GPU2, UNKNOWN):
            wanted = {event.name: agent for event in rank.work if event.agent == agent}
            if wanted:
                assert op_trace(session.where(rocpd.Filters(agents=str(agent)))) == wanted


@pytest.fixture(scope="module", params=[False, True], ids=["sound", "faults"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=3, nodes=2, steps=2, faults=request.param))
    with rocpd.connect(folder / "job", skip_bad=True, align="none") as session:
        yield session


@pytest.fixture(scope="module")
def engine(job: rocpd.Session, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return trace_of(job, tmp_path_factory.mktemp("trace"))


VALID = 'start BETWEEN 1 AND 9223372036854775807 AND "end" BETWEEN start AND 9223372036854775807'
CALLS = 'SELECT rank, stack_id, start, "end" FROM regions WHERE start > 0 AND stack_id > 0 ORDER BY rank, start'
WORK = f"""
SELECT rank, stack_id, start FROM kernels WHERE {VALID}
UNION ALL SELECT rank, stack_id, start FROM memory_copies WHERE {VALID}"""


def test_flows_of_a_job_are_the_links_of_launch(job: rocpd.Session, engine: Engine) -> None:
    launching = {(rank, stack): (start, end) for rank, stack, start, end in job.sql(CALLS).fetchall()}
    links = [(launching.get((rank, stack)), start) for rank, stack, start in job.sql(WORK).fetchall()]
    known = [(call[0], call[1], start) for call, start in links if call is not None]
    times = "SELECT MIN(o.ts, i.ts), MAX(o.ts, i.ts) FROM flow f JOIN slice o ON o.id = f.slice_out"
    flows = Counter(engine.rows(f"{times} JOIN slice i ON i.id = f.slice_in"))
    assert not Counter(tuple(sorted((call, start))) for call, _, start in known) - flows
    valid = [(end, start) for call, end, start in known if end is not None and end >= call]
    assert sum(cells(job, "launch", "launched", everything=True)) == len(valid) > 0
    delay = sum(cells(job, "launch", "delay_ns", everything=True))
    assert delay == sum(max(start - end, 0) for end, start in valid)


def test_tracks_of_a_job_are_the_agents_of_op_trace(job: rocpd.Session, engine: Engine) -> None:
    agents = "SELECT P.rank, A.id, A.logical_index FROM rocpd_info_agent A JOIN processes P ON P.guid = A.guid"
    labels = {(rank, agent): f"Agent {index}" for rank, agent, index in job.sql(agents).fetchall()}
    first = job.time_range[0] if job.time_range else 0
    expected = Counter(
        (labels.get((rank, agent), "agent ?"), start + first)
        for rank, agent, start in cells(job, "op-trace", "rank agent start_ns")
    )
    tracks = engine.rows("SELECT track, ts FROM recorded")
    assert not expected - Counter((track.split(" / ")[0].split(" (id")[0], time) for track, time in tracks)
    assert expected
