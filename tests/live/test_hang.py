"""Who is missing in a job that hangs: by hand-made states, and by jobs that are written in real time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rocpd.agents.questions import answers
from rocpd.live.hang import Hanging, judged
from rocpd.live.progress import SILENT_NS, Life, RankProgress
from rocpd.schema.live_state import ABORTED, CROWDED, SIZE_UNKNOWN, GroupState, LiveState, ThreadState
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.live import Incident, parse_incident
from tests.conftest import Cli

NOW = 100_000_000_000
Calls = Mapping[str, tuple[int, int]]
"""Group -> operations that were entered and left."""

MEMBERS = {"all": (0, 1, 2, 3), "low": (0, 1), "high": (2, 3), "even": (0, 2), "odd": (1, 3)}


def rank(number: int, calls: Calls, *, call: str = "", operation: str = "ncclAllReduce", ago: int = 10) -> RankProgress:
    """Return a rank whose groups have not changed for `ago` seconds."""
    at = NOW - ago * 1_000_000_000
    groups = tuple(
        GroupState(
            sum(map(ord, name)), name, len(MEMBERS[name]), 0, entered, left, at, at, operation, "ncclAllReduce", 8
        )
        for name, (entered, left) in calls.items()
    )
    threads = (ThreadState(7, call, at, 0),) if call else ()
    state = LiveState("g", "host", "boot", 7, number, 0, NOW, NOW, 1.0, threads, groups)
    return RankProgress(number, "host", 0, Life.RUNS, state=state)


def test_who_waits_for_nobody_is_missing() -> None:
    """Rank 0 waits for 2, and 2 for 3: 3 is to blame, not 2."""
    said = judged(
        (
            rank(0, {"even": (5, 4), "low": (9, 9)}),
            rank(1, {"low": (9, 9), "odd": (4, 4)}),
            rank(2, {"even": (4, 4), "high": (9, 3)}),
            rank(3, {"high": (3, 3), "odd": (4, 4)}, call="hipMemcpyAsync"),
        )
    )
    assert (said.verdict, said.missing) == (Hanging.YES, (3,))
    assert said.lines[0] == (
        "hang: rank 3 has not come to ncclAllReduce 4 of high, where rank 2 waits, for 10 s: "
        "it has been in hipMemcpyAsync for 10 s"
    )
    assert said.lines[1] == "held up by rank 3: ranks 0,2"


def test_an_order_deadlock_is_named_by_both_groups() -> None:
    said = judged((rank(2, {"high": (4, 3), "all": (1, 1)}), rank(3, {"high": (3, 3), "all": (2, 1)})))
    assert said.missing == ()
    assert said.lines[0] == (
        "hang: order deadlock: rank 2 waits in ncclAllReduce 4 of high for rank 3, "
        "which waits in ncclAllReduce 2 of all for rank 2"
    )


def test_different_operations_of_one_group_are_named() -> None:
    said = judged((rank(0, {"low": (4, 3)}), rank(1, {"low": (4, 3)}, operation="ncclBroadcast")))
    assert said.lines[0] == (
        "hang: members of low called different operations as number 4: rank 0 ncclAllReduce; rank 1 ncclBroadcast"
    )


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        pytest.param((rank(0, {"low": (4, 3)}, ago=1), rank(1, {"low": (3, 3)}, ago=1)), "no hang", id="just now"),
        pytest.param((rank(0, {"low": (4, 3)}, ago=60), rank(1, {"low": (3, 3)}, ago=1)), "no hang", id="one goes on"),
        pytest.param((rank(0, {"low": (3, 3)}, ago=60), rank(1, {"low": (3, 3)}, ago=60)), "no hang", id="none waits"),
        pytest.param((rank(0, {}), rank(1, {})), "no hang seen", id="no groups"),
        pytest.param((RankProgress(0, "host", 0, Life.ENDED),), "ended", id="ended"),
        pytest.param((RankProgress(0, "host", 0, Life.UNKNOWN),), "not recorded: cannot tell who waits", id="no file"),
        pytest.param((), "not recorded", id="nobody"),
    ],
)
def test_nobody_is_named_where_nobody_is_known_to_wait(ranks: tuple[RankProgress, ...], said: str) -> None:
    answer = judged(ranks)
    assert answer.lines[0].startswith(said)
    assert (answer.missing, answer.waits) == ((), ())


def test_nobody_progresses_where_all_have_stopped() -> None:
    """Killed a second after rank 1 failed to come: too soon to tell."""
    ranks = rank(0, {"low": (4, 3)}, ago=1), rank(1, {"low": (3, 3)}, ago=1)
    answer = judged(tuple(replace(each, life=Life.STOPPED) for each in ranks))
    assert answer.lines[0] == "no hang seen: no group stood still for 5 s before the last sign of life"


def test_a_member_without_a_file_and_one_that_all_came_to() -> None:
    assert judged((rank(0, {"low": (4, 3)}),)).lines[0] == (
        "hang: rank 0 waits in ncclAllReduce 4 of low for 1 member whose files are not here"
    )
    all_came = judged((rank(0, {"low": (4, 3)}), rank(1, {"low": (4, 3)})))
    assert all_came.missing == ()
    assert all_came.lines[0].startswith("hang: all members have called ncclAllReduce 4 of low, which has not ended")


def test_who_aborted_a_group_waits_in_it_only_once_stopped() -> None:
    """A process that goes on with another communicator does not wait in the one that it gave up."""
    waits, late = rank(0, {"low": (4, 3)}), rank(1, {"low": (3, 3)})
    assert waits.state
    aborted = replace(waits.state, groups=tuple(replace(group, closed=ABORTED) for group in waits.groups))
    assert judged((replace(waits, state=aborted), late)).verdict is Hanging.NO
    assert judged((replace(waits, state=aborted, life=Life.STOPPED), late)).missing == (1,)


def test_no_member_counts_as_absent_where_their_number_is_unknown_or_a_file_had_no_room() -> None:
    """A part of a communicator; one that is in the file of one member only, as the other's is full."""
    (one,) = (rank(0, {"low": (4, 3)}),)
    assert one.state
    part = replace(one.state, groups=tuple(replace(group, size=SIZE_UNKNOWN) for group in one.groups))
    assert "files are not here" not in judged((replace(one, state=part),)).lines[0]
    assert judged((replace(one, state=replace(one.state, flags=CROWDED)),)).verdict is Hanging.NO


def test_what_a_missing_rank_is_at_is_its_range_and_its_call() -> None:
    at = rank(1, {"low": (3, 3)}, call="hipMalloc")
    assert at.state
    inside = replace(at.state.threads[0], range="step 7", range_since=NOW - 20_000_000_000)
    for threads, said in (
        ((inside,), "it has been in hipMalloc for 10 s, in the range step 7 for 20 s"),
        ((replace(inside, since=0),), "it has been in the range step 7 for 20 s, and is in no call that is recorded"),
    ):
        answer = judged((rank(0, {"low": (4, 3)}), replace(at, state=replace(at.state, threads=threads))))
        assert answer.lines[0].endswith(said)


def test_jobs_of_two_runs_do_not_meet() -> None:
    """The groups of another run have the same ids where its layout is the same."""
    other = replace(rank(1, {"low": (3, 3)}), run=1)
    said = judged((rank(0, {"low": (4, 3)}), other))
    assert said.missing == ()
    assert "2 separate runs, not one job: rank 0; rank 1" in said.lines


@pytest.fixture(scope="module", params=["stall", "kill", "mismatch"])
def hung(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, JobOptions]:
    """A job of four ranks after it was killed while it hung."""
    folder = tmp_path_factory.mktemp("hung")
    hold = SILENT_NS / 1e9 + 0.5 if request.param == Incident.KILL else 0.3  # so long nobody knows who is gone
    options = JobOptions(
        folder, ranks=4, tp=2, steps=4, plant="none", live=20.0, incident=request.param, hold=hold, seed=1
    )
    simulate(options)
    return str(request.param), folder, options


def test_a_hung_job_names_its_rank(hung: tuple[str, Path, JobOptions], cli: Cli) -> None:
    """All ways to ask say the same; the rank is the one that was struck."""
    incident, folder, options = hung
    happening = parse_incident(incident, options.ranks, options.steps, options.seed)
    assert happening is not None
    said = cli("hang", str(folder), "--after", "0.1", "--format", "json")
    answer = json.loads(said.out)
    assert (said.code, answer["verdict"]) == (1, "hang")
    if incident == Incident.MISMATCH:
        assert answer["missing"] == []
        assert "order deadlock" in answer["lines"][0]
        assert f"rank {happening.rank}" in answer["lines"][0]
    else:
        assert answer["missing"] == [happening.rank]
    with answers(str(folder)) as asked:
        tool = asked.ask("hang", after=0.1)
    assert (tool["verdict"], tool.get("missing", [])) == ("hang", answer["missing"])
    assert tool["command"].endswith("--after 0.1")


@pytest.mark.parametrize("damage", ["cut", "other", "foreign"])
def test_bad_state_files_are_said(damage: str, tmp_path: Path, cli: Cli) -> None:
    simulate(JobOptions(tmp_path, ranks=2, steps=1, plant="none", live=100.0, incident="kill=0", hold=0.0))
    first, second = sorted(tmp_path.glob("*.live"))
    content = {"cut": first.read_bytes()[:4096], "other": second.read_bytes(), "foreign": b"x" * first.stat().st_size}
    first.write_bytes(content[damage])
    said = cli("hang", str(tmp_path))
    assert f"{first.name}: not used" in said.err
    assert "Traceback" not in said.err
    assert "rank 0" in said.out


def test_a_job_that_ended_says_so(tmp_path: Path, cli: Cli) -> None:
    simulate(JobOptions(tmp_path, ranks=2, steps=1, plant="none"))
    said = cli("hang", str(tmp_path))
    assert (said.code, said.out.splitlines()[0]) == (0, "ended: each of 2 ranks has ended")


def test_ranks_without_a_file_are_said(tmp_path: Path, cli: Cli) -> None:
    simulate(JobOptions(tmp_path, ranks=4, steps=1, plant="lost-rank"))
    (first, *_) = files = sorted(tmp_path.glob("rank*.db"))
    assert cli("hang", *files).out.splitlines()[1] == "1 of 4 ranks is not among the files"
    first.unlink()
    assert cli("hang", *files[1:]).out.splitlines()[1] == "2 of 4 ranks are not among the files"
