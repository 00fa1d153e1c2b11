"""Looking stays within its share of a core, from the first minute on."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from rocpd.top.pace import SHARE, LookPace

_START_S = 0.5  # CPU time of a process that has just been started


def _spent(
    monkeypatch: pytest.MonkeyPatch,
    ranks: int,
    first_s: float,
    look_s: float,
    minutes: int,
    *,
    begins_s: float = 3.0,
    rows_s: float = 0.01,
) -> list[float]:
    """Return the CPU time of each minute, looking each second, where conclusions take so long, rows before so [s]."""
    now, spent = 0.0, _START_S
    clocks = SimpleNamespace(monotonic=lambda: now, process_time=lambda: _START_S)
    monkeypatch.setattr("rocpd.top.pace.time", clocks)  # and nobody else's
    pace, sums, drawn = LookPace(), [0.0], 0
    for second in range(60 * minutes):
        now = float(second)
        pace.save(ranks)
        took, is_sure = 0.01, None
        if pace.is_due and second < begins_s:
            took = rows_s
        elif pace.is_due:
            took, is_sure, drawn = (look_s if drawn else first_s), drawn > 2, drawn + 1
        pace.spend(took, is_sure)
        spent += took
        if second % 60 == 59:
            sums.append(spent)
    return [after - before for before, after in itertools.pairwise(sums)]


@pytest.mark.parametrize(
    ("ranks", "first_s", "look_s"), [(8, 0.3, 0.5), (8, 0.05, 0.1), (64, 4.0, 5.0), (96, 6.0, 8.0), (128, 8.0, 10.5)]
)
def test_no_minute_takes_more_than_its_share(
    monkeypatch: pytest.MonkeyPatch, ranks: int, first_s: float, look_s: float
) -> None:
    minutes = _spent(monkeypatch, ranks, first_s, look_s, 30)
    most = 60 * (0.10 + 0.001 * max(0, ranks - 64))
    assert minutes[0] <= most
    mean = sum(minutes) / len(minutes)
    assert mean <= most
    assert mean > 60 * 0.7 * SHARE  # and is used


@pytest.mark.parametrize("ranks", [64, 96, 128, 256])
@pytest.mark.parametrize("begins_s", [20, 40, 58])
def test_steps_that_come_late_find_time_for_conclusions(
    monkeypatch: pytest.MonkeyPatch, ranks: int, begins_s: float
) -> None:
    first_s, rows_s = 0.04 * ranks, 0.004 * ranks
    minutes = _spent(monkeypatch, ranks, first_s, 2 * first_s, 5, begins_s=begins_s, rows_s=rows_s)
    assert minutes[0] <= 60 * (0.10 + 0.001 * (ranks - 64))


def test_conclusions_that_are_not_sure_are_drawn_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SimpleNamespace(monotonic=lambda: 0.0, process_time=lambda: _START_S)
    monkeypatch.setattr("rocpd.top.pace.time", clocks)
    pace = LookPace()
    looks = 0
    while pace.is_due and looks < 100:
        pace.spend(0.3, is_sure=False)
        looks += 1
    assert 2 <= looks <= 5
    pace = LookPace()
    pace.spend(0.3, is_sure=True)
    assert not pace.is_due
