"""What is said of a job that runs is what `rocpd summary` says of the same steps when it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.top.glance import Glance, JobState
from rocpd.top.pace import LookPace
from rocpd.top.watch import Watch, WatchOptions
from tests.live.writer import GrowingFile
from tests.top.played import played

_STEPS = 6
_AT_ONCE = 1e9  # cores: no look is put off


def _growing(finished: Path, folder: Path) -> list[GrowingFile]:
    return [GrowingFile(path, folder / path.name) for path in sorted(finished.glob("*.db"))]


def _watching(folder: Path) -> Watch:
    return Watch([str(folder)], WatchOptions(steps=_STEPS), LookPace(_AT_ONCE))


def _said(session: rocpd.Session) -> tuple[dict[str, float], dict[str, float], list[tuple[int, int]]]:
    """Return shares of the time, costs of ranks, and time of kernels."""
    parts = {part: percent for part, _, _, percent in session.summary("budget")}
    causes = [row for row in session.summary("causes") if row[-2]]
    kernels = [(calls, time) for _, calls, time, *_ in session.summary("kernels")]
    return parts, {row[-2]: row[1] for row in causes}, kernels


def _check(glance: Glance, session: rocpd.Session) -> None:
    parts, costs, kernels = _said(session)
    assert dict(glance.parts) == pytest.approx(parts)
    found = {str(rank.rank): rank.cost_ns for rank in glance.ranks if rank.cost_ns is not None}
    assert found == pytest.approx(costs, rel=0.01)  # waits are inferred from what is there: more of it, another ns
    assert [(calls, time) for _, calls, time, _ in glance.kernels] == kernels[: len(glance.kernels)]


def test_a_look_says_of_the_last_steps_what_a_summary_of_them_says(finished: Path, tmp_path: Path) -> None:
    files = _growing(finished, tmp_path)
    first, last = min(file.first for file in files), max(file.rows[-1][0] for file in files)
    with (
        _watching(tmp_path) as watch,
        rocpd.connect(finished) as whole,
    ):
        glance = watch.look()
        for share in (0.3, 0.6, 0.9):
            for number, file in enumerate(files):
                file.write_until(first + (last - first) * (share + 0.01 * number))  # none is where others are
            glance = watch.look()
        _, low, _, high = glance.looked_at.split()
        assert int(high) - int(low) + 1 == _STEPS
        _check(glance, whole.within(rocpd.Window(start_marker=f"step {low}", end_marker=f"step {high}")))
        assert glance.state is JobState.RUNNING
        (straggler,) = [rank for rank in glance.ranks if rank.is_straggler]
        assert glance.ranks[0] == straggler
    for file in files:
        file.close()


def test_a_job_that_is_over_has_the_numbers_of_its_summary(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocpd.top.watch._OVER_S", -1.0)
    files = _growing(finished, tmp_path)
    with (
        _watching(tmp_path) as watch,
        rocpd.connect(finished) as whole,
    ):
        for file in files:
            file.write_until(file.rows[len(file.rows) // 2][0])
        assert watch.look().state is JobState.RUNNING
        for file in files:
            file.finish()
        watch.look()
        glance = watch.look()
        assert (glance.state, glance.looked_at) == (JobState.ENDED, "all of it")
        _check(glance, whole)
    for file in files:
        file.close()


def test_until_there_are_steps_enough_one_file_is_read(tmp_path: Path) -> None:
    with (
        played(tmp_path, ranks=4, steps=10, plant="none") as job,
        Watch([str(job.job.options.out)], WatchOptions(rows_first=True), LookPace(_AT_ONCE)) as watch,
    ):
        rows: list[dict[int | None, int]] = []
        for steps in (1, 2, 3):
            job.play(steps)
            rows.append({rank.rank: rank.rows for rank in watch.look().ranks})
        _, before, after = rows
        assert len(before) == 4
        assert sum(after[rank] > before[rank] for rank in before) == 1
        job.play(9)
        assert watch.look().looked_at == "steps 0 to 7"


def test_the_first_conclusions_do_not_wait_for_the_next_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step but one brings the rows of all ranks, so that less is left to copy with the last one."""
    monkeypatch.setattr("rocpd.top.watch._SOON_S", 0.0)
    with (
        played(tmp_path, ranks=4, steps=10, plant="none") as job,
        Watch([str(job.job.options.out)], WatchOptions(rows_first=True), LookPace(_AT_ONCE)) as watch,
    ):
        assert not watch.can_conclude()
        job.play(2)
        watch.look()
        watch.look()
        job.play(3)
        before = {rank.rank: rank.rows for rank in watch.look().ranks}
        assert not watch.can_conclude()
        job.play(4)
        assert not watch.can_conclude()
        assert all(rank.rows > before[rank.rank] for rank in watch.look().ranks)
        assert not watch.can_conclude()
        job.play(5)
        assert watch.can_conclude()
        assert watch.look().looked_at == "steps 0 to 3"
        assert not watch.can_conclude()


def test_a_folder_without_files_is_waited_for(tmp_path: Path) -> None:
    with Watch([str(tmp_path)], WatchOptions()) as watch:
        glance = watch.look()
    assert glance.state is JobState.WAITING
    assert "without *.db files" in glance.problems[0]
