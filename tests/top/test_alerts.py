"""Alerts: what is out of bounds rings once, and runs a program that finds the reason in its environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocpd.base import UsageError
from rocpd.top.alerts import AGAIN_S, Bell, Bounds, alerts, bounds_of
from rocpd.top.glance import JobState
from tests.top.made import GLANCE, RANKS, glance
from tests.waiting import until


@pytest.mark.parametrize(
    "text", ["", "step", "step=", "step=-1", "straggler=5s", "silent=5%", "hang=5%", "other=1", "step=1,step=2"]
)
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a bound"):
        bounds_of(text)


def test_what_is_out_of_bounds() -> None:
    found = [
        (each.what, each.rank, each.value) for each in alerts(GLANCE, bounds_of("straggler=20%,silent=42s,step=2"))
    ]
    assert found == [("straggler", 4, 20.0), ("silent", 0, 42.0), ("step", None, 2.0)]
    assert list(alerts(GLANCE, bounds_of("straggler=20.1,silent=43,step=2.1"))) == []
    assert list(alerts(GLANCE, Bounds())) == []


def test_what_chance_explains_and_what_is_over_is_no_reason() -> None:
    by_chance = glance(ranks=(replace(RANKS[0], chance=0.02),))
    assert list(alerts(by_chance, Bounds(straggler=1))) == []
    assert list(alerts(glance(state=JobState.ENDED), Bounds(1, 1))) == []


def test_a_job_that_hangs_names_who_is_missing() -> None:
    hanging = glance(hangs=True, hang_s=31.5, missing=(4,))
    (alert,) = alerts(hanging, bounds_of("hang=30s"))
    assert (alert.what, alert.rank, alert.host, alert.value) == ("hang", 4, "node17", 31.5)
    assert alert.text == GLANCE.hang[0]
    (alert,) = alerts(replace(hanging, missing=(0, 4)), bounds_of("hang=30s"))
    assert (alert.rank, alert.host) == (None, "")
    assert list(alerts(hanging, bounds_of("hang=32s"))) == []
    assert list(alerts(replace(hanging, hangs=False), bounds_of("hang=30s"))) == []


def test_it_rings_once_in_a_while() -> None:
    now, said = [0.0], list[str]()
    bell = Bell(bounds_of("silent=30"), "", said.append, lambda: now[0])
    for now[0] in (0.0, 1.0, AGAIN_S - 1, AGAIN_S):
        bell.ring(GLANCE)
    assert said == ["alert: rank 0 is silent for 42 s"] * 2


def test_ranks_that_fall_silent_together_ring_once() -> None:
    said = list[str]()
    bell = Bell(bounds_of("silent=30"), "", said.append, lambda: 0.0)
    silent = tuple(replace(RANKS[1], rank=rank, silent_s=40.0 + rank) for rank in range(64))
    for ranks in (silent[:1], silent, silent):
        bell.ring(glance(ranks=ranks))
    assert said == ["alert: rank 0 is silent for 40 s", "alert: ranks 1-63 are silent for 103 s"]


def test_a_program_finds_the_reason_in_its_environment(tmp_path: Path) -> None:
    program, seen = tmp_path / "page me; rm", tmp_path / "seen"
    program.write_text(f'#!/bin/sh\necho "$ROCPD_ALERT|$ROCPD_RANK|$ROCPD_VALUE|$ROCPD_HOST|$#" >> "{seen}"\n')
    program.chmod(0o755)
    bell = Bell(bounds_of("straggler=5"), str(program), lambda _: None)
    bell.ring(glance(ranks=(replace(RANKS[0], host="$(touch bad)"),)))
    until(lambda: seen.exists() and seen.read_text().endswith("\n"))
    assert seen.read_text() == "straggler|4|20|$(touch bad)|0\n"


def test_a_program_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no such program"):
        Bell(Bounds(), "/nowhere/at-all", lambda _: None)
