"""Laws of all panels at once, on a simulated job with many counters: splits, merges, windows and orders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import rocpd
from rocpd.counters.panels import PANELS
from rocpd.simulator import JobOptions, simulate

KEY = "panel, section, metric, kernel"
VALUES = f"SELECT {KEY}, value, min, max, dispatches FROM metrics"
BY_RANK = f"SELECT {KEY}, value, min, max, dispatches FROM metrics('rank') WHERE dispatches > 0"
EVERYTHING = f"SELECT {KEY}, value, unit, peak, percent, of_sums, min, max, dispatches, missing, note FROM metrics"

Rows = dict[tuple[object, ...], list[tuple[float, float, float, int]]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    job = JobOptions(tmp_path_factory.mktemp("job"), ranks=2, steps=2, seed=23, counters="many")
    return list(simulate(job))


def rows(session: rocpd.Session, sql: str = EVERYTHING) -> list[tuple[object, ...]]:
    return sorted(session.sql(sql).fetchall(), key=repr)


def known(answers: Iterable[tuple[object, ...]]) -> Rows:
    """Return value, least, most and dispatches by key, of metrics that have a value."""
    parts: Rows = {}
    for *key, value, least, most, count in answers:
        if count:
            parts.setdefault(tuple(key), []).append((value, least, most, count))  # type: ignore[arg-type]
    return parts


def add_up(whole: Rows, parts: Rows) -> None:
    """Check that parts have the means, extremes and numbers of the whole; what is shown of a mean has no extremes."""
    assert whole.keys() == parts.keys()
    for key, ((value, least, most, count),) in whole.items():
        some = parts[key]
        assert count == sum(part[-1] for part in some), key
        if least is not None:
            assert value == pytest.approx(sum(part[0] * part[-1] for part in some) / count), key
            assert (least, most) == (min(part[1] for part in some), max(part[2] for part in some)), key


def test_the_job_has_values_in_most_panels(files: list[Path]) -> None:
    with rocpd.connect(files) as session:
        panels = {row[0] for row in session.sql(f"{VALUES} WHERE dispatches > 0").fetchall()}
    assert panels - {"derived"} > {"speed-of-light", "compute", "lds", "l1", "fabric", "launch-stats"}
    assert panels - {"derived"} <= set(PANELS)


def test_ranks_add_up(files: list[Path]) -> None:
    with rocpd.connect(files) as session:
        by_rank = known(session.sql(BY_RANK).fetchall())
        add_up(known(session.sql(VALUES).fetchall()), by_rank)
    alone: Rows = {}
    for file in files:
        with rocpd.connect(file) as session:
            for key, part in known(session.sql(VALUES).fetchall()).items():
                alone.setdefault(key, []).extend(part)
    assert alone == by_rank


def test_order_and_merging_change_nothing(files: list[Path], tmp_path: Path) -> None:
    with rocpd.connect(files) as session:
        expected = rows(session)
        merged = session.merge(tmp_path / "merged.db")
    for inputs in (files[::-1], merged):
        with rocpd.connect(inputs) as session:
            assert rows(session) == expected


def test_adjoining_windows_add_up(files: list[Path]) -> None:
    """Divided where no kernel runs."""
    with rocpd.connect(files[0]) as session:
        times = session.sql('SELECT start, "end" FROM kernels ORDER BY start').fetchall()
        latest, gaps = 0, []
        for start, end in times:
            if latest and start > latest + 1000:
                gaps.append((latest + start) // 2)
            latest = max(latest, end)
        middle = gaps[len(gaps) // 2]
        whole = known(session.sql(VALUES).fetchall())
        parts: Rows = {}
        for window in (rocpd.Window(end=str(middle)), rocpd.Window(start=str(middle))):
            for key, part in known(session.within(window).sql(VALUES).fetchall()).items():
                parts.setdefault(key, []).extend(part)
    add_up(whole, parts)
    assert any(len(some) == 2 for some in parts.values())
