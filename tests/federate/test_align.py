"""Clock domains: which ranks share a clock, and what is added to align different clocks on one time line."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.federate.select.align import Align, Domain, Span, align
from tests.build import TraceBuilder
from tests.conftest import OpenJob


def at(number: int, start: int, end: int, machine: str = "m", host: str = "h") -> TraceBuilder:
    """One rank with one kernel."""
    return TraceBuilder(number, machine=machine, host=host).kernel("gemm", start, end)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ([at(0, 10, 20), at(1, 15, 30)], [Domain("m", (0, 1), 10, 30)]),
        ([at(0, 10, 20), at(1, 20, 30)], [Domain("m", (0, 1), 10, 30)]),
        ([at(0, 10, 20), at(1, 21, 30)], [Domain("m", (0,), 10, 20), Domain("m", (1,), 21, 30)]),
        ([at(0, 10, 90), at(1, 20, 30), at(2, 80, 95)], [Domain("m", (0, 1, 2), 10, 95)]),
        ([at(0, 10, 20), at(1, 10, 20, "other")], [Domain("m", (0,), 10, 20), Domain("other", (1,), 10, 20)]),
        ([at(0, 10, 20, host="a"), at(1, 12, 18, host="b")], [Domain("m", (0, 1), 10, 20)]),
        ([at(0, 50, 60), at(1, 10, 20), at(2, 55, 70)], [Domain("m", (1,), 10, 20), Domain("m", (0, 2), 50, 70)]),
        (
            [at(0, 10, 40), at(1, 12, 20, "n"), at(2, 30, 60), at(3, 19, 25, "n")],
            [Domain("m", (0, 2), 10, 60), Domain("n", (1, 3), 12, 25)],
        ),
        ([at(0, 10, 20), TraceBuilder(1)], [Domain("m", (0,), 10, 20)]),
        ([TraceBuilder(0)], []),
    ],
)
def test_domains(job: list[TraceBuilder], expected: list[Domain], open_job: OpenJob) -> None:
    assert list(open_job(*job).clock_domains) == expected


def test_ranks_of_unknown_machines_share_nothing(open_job: OpenJob) -> None:
    forget = 'DELETE FROM "rocpd_info_node{uuid}"'
    session = open_job(at(0, 10, 20).sql(forget), at(1, 10, 20).sql(forget))
    assert session.clock_domains == (Domain(None, (0,), 10, 20), Domain(None, (1,), 10, 20))


SPANS = {0: Span(100, 200), 1: Span(110, 260), 2: Span(5000, 5100)}
DOMAINS = [Domain("m", (0, 1), 100, 260), Domain("n", (2,), 5000, 5100)]


@pytest.mark.parametrize(
    ("how", "offsets", "note"),
    [
        (Align.AUTO, {0: 0, 1: 0, 2: -4900}, "time: 2 clock domains aligned at their first event"),
        (Align.START, {0: 0, 1: -10, 2: -4900}, "time: 3 ranks aligned at their first event"),
        (Align.NONE, {0: 0, 1: 0, 2: 0}, None),
    ],
)
def test_offsets(how: Align, offsets: dict[int, int], note: str | None) -> None:
    alignment = align(how, DOMAINS, SPANS)
    assert alignment.offsets == offsets
    assert (alignment.note or "").startswith(note or "")
    assert (alignment.note is None) == (note is None)


def test_clocks_of_the_day_stay_where_machines_ran_at_one_time() -> None:
    spans = {0: Span(100, 200), 1: Span(110, 260), 2: Span(150, 5100)}
    domains = [Domain("m", (0, 1), 100, 260), Domain("n", (2,), 150, 5100)]
    alignment = align(Align.AUTO, domains, spans, of_day=(0, 1, 2))
    assert alignment.offsets == {0: 0, 1: 0, 2: 0}
    assert {clock.method for clock in alignment.clocks} == {"utc"}
    assert (alignment.note or "").startswith("time: 2 clock domains stay at the time of day")
    assert align(Align.AUTO, domains, spans, of_day=(0, 1)).offsets[2] == -50  # one counts from its start
    assert align(Align.AUTO, DOMAINS, SPANS, of_day=(0, 1, 2)).offsets[2] == -4900  # one after the other


@pytest.mark.parametrize("how", list(Align))
def test_no_note_where_nothing_is_aligned(how: Align) -> None:
    assert align(how, [], {}).note is None
    assert align(how, DOMAINS[1:], {2: Span(5000, 5100)}).note is None
    assert align(Align.AUTO, DOMAINS[:1], {0: Span(100, 200), 1: Span(110, 260)}).note is None


def test_alignment_is_noted_once_and_timestamps_stay_as_recorded(open_job: OpenJob) -> None:
    session = open_job(at(0, 100, 200), at(1, 5000, 5300, "other"))
    notes: list[str] = []
    with rocpd.connect([rank.opening.path for rank in session.ranks], on_note=notes.append) as again:
        assert notes == []
        assert again.time_range == (100, 400)
        assert again.time_range == (100, 400)
        assert (
            notes
            == again.notes
            == [
                "time: 2 clock domains aligned at their first event: they have no collectives in common; "
                "--align none keeps times as recorded"
            ]
        )
        assert again.sql('SELECT start, "end" FROM kernels').fetchall() == [(100, 200), (5000, 5300)]


@pytest.mark.parametrize(("how", "expected"), [("auto", (100, 400)), ("none", (100, 5300)), ("start", (100, 400))])
def test_time_range(how: str, expected: tuple[int, int], tmp_path: Path) -> None:
    job = [at(0, 100, 200), at(1, 5000, 5300, "other")]
    paths = [trace.write(tmp_path / f"{n}.db") for n, trace in enumerate(job)]
    with rocpd.connect(paths, align=how) as session:
        assert session.time_range == expected


def test_the_span_is_that_of_all_kinds_of_events(open_job: OpenJob) -> None:
    kinds = [
        TraceBuilder(0).kernel("k", 5, 9),
        TraceBuilder(1).region("r", 5, 9),
        TraceBuilder(2).copy(5, 9),
        TraceBuilder(3).alloc(5, 9),
        TraceBuilder(4).graph_launch(5, 9),
        TraceBuilder(5).sample("s", 5).sample("s", 9),
        TraceBuilder(6).sample("s", 5).copy(7, 9),
    ]
    spans = open_job(*kinds).spans
    assert {rank: (span.start, span.end) for rank, span in spans.items()} == dict.fromkeys(range(7), (5, 9))
    parts = [(spans[rank].dispatched, spans[rank].copied) for rank in (0, 2, 6)]
    assert parts == [((5, 9), None), (None, (5, 9)), (None, (7, 9))]


def test_damaged_rows_do_not_stretch_the_span(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("k", 100, 200).kernel("k", 0, 300).region("r", 900, 50).copy(0, 0).sample("s", 0)
    trace.alloc(-5, 10).kernel("k", None, None)  # type: ignore[arg-type]
    session = open_job(trace, TraceBuilder(1).kernel("k", 0, 7), TraceBuilder(2))
    assert session.spans == {0: Span(100, 200, dispatched=(100, 200))}
    assert open_job(TraceBuilder()).time_range is None


def test_an_unknown_way_is_refused(tmp_path: Path) -> None:
    with pytest.raises((ValueError, rocpd.UsageError), match="sideways"):
        rocpd.connect(TraceBuilder().write(tmp_path / "a.db"), align="sideways")


def test_info_has_a_row_for_the_clock_of_each_host(tmp_path: Path) -> None:
    job = [at(0, 100, 200, host="n0"), at(1, 120, 250, host="n0"), at(2, 5000, 5100, "other", host="n1")]
    paths = [trace.write(tmp_path / f"{n}.db") for n, trace in enumerate(job)]
    with rocpd.connect(paths) as session:
        clocks = session.info()["clocks"]
        assert clocks.columns == ("host", "method", "offset_ns", "certain_ns", "likely_ns", "drift_ppm", "collectives")
        assert clocks.fetchall() == [
            ("n0", "start", 0, None, None, None, 0),
            ("n1", "start", -4900, None, None, None, 0),
        ]
    with rocpd.connect(paths, clock_offsets={"n1": (-7, 3)}) as session:
        assert [row[:4] for row in session.info()["clocks"]] == [("n0", "none", 0, None), ("n1", "given", -7, 3)]
    with rocpd.connect(paths, align="start") as session:
        assert [row[:3] for row in session.info()["clocks"]] == [("n0", "start", None), ("n1", "start", -4900)]


def test_info_numbers_clock_domains_by_their_lowest_rank(open_job: OpenJob) -> None:
    ranks = open_job(at(0, 900, 990, host="a"), at(1, 10, 20, "m2", "b"), at(2, 950, 990, host="c")).info()["ranks"]
    domain = ranks.columns.index("clock_domain")
    assert [row[domain] for row in ranks] == [0, 1, 0]


def test_runs_one_after_another_on_one_machine_stay_so(open_job: OpenJob) -> None:
    """By one clock: they were not at the same time, and another machine is laid on the first of them."""
    session = open_job(at(0, 100, 200), at(1, 900, 990), at(2, 70_000, 70_050, "n"))
    assert session.alignment.offsets == {0: 0, 1: 0, 2: -69_900}
    assert session.time_range == (100, 990)
