"""A glance as text, as JSON, and without names."""

from __future__ import annotations

import json

from rocpd.table.palette import Screen
from rocpd.top.glance import Glance, JobState, TopPage
from tests.top.made import GLANCE, glance


def test_a_line_says_what_matters() -> None:
    assert GLANCE.line() == (
        "step 9: 20.0 ms, usually 10.0 ms; compute 70.0 %, communication 20.0 %, copies 0.0 %, idle 10.0 %; "
        "rank 4 costs 20.0 % (compute); rank 0 silent for 42 s; /job/rank7.db: empty"
    )
    assert Glance(0.0, JobState.WAITING, problems=("no file",)).line() == "waiting; no file"


def test_a_line_says_that_a_folder_holds_two_jobs() -> None:
    assert glance(runs=2).line().startswith("2 separate runs, not one job; step 9: ")
    assert glance(runs=2).without_names().document()["runs"] == 2


def test_a_page_fits_the_screen() -> None:
    for page in TopPage:
        assert max(map(len, GLANCE.page(page, Screen(80, 0)))) <= 80
        assert Glance(0.0, JobState.WAITING).page(page, Screen(80, 0))
    assert max(map(len, GLANCE.head(40))) <= 40
    assert [line.split()[:2] for line in GLANCE.page(TopPage.HOSTS, Screen(80, 0))[2:]] == [
        ["node17", "1"],
        ["node3", "1"],
    ]


def test_conclusions_that_are_old_say_so() -> None:
    assert not [line for line in GLANCE.head() if "ago" in line]
    assert "idle 10.0 %; steps 0 to 9, 42 s ago" in "\n".join(glance(age_s=42.4).head())


def test_json_has_what_a_glance_has() -> None:
    document = json.loads(json.dumps(GLANCE.document()))
    assert (document["step"], document["step_ns"], document["usual_step_ns"]) == (9, 20e6, 10e6)
    assert [(rank["rank"], rank["state"], rank["cost_percent"]) for rank in document["ranks"]] == [
        (4, "running", 20.0),
        (0, "silent", None),
    ]
    assert json.loads(json.dumps(Glance(0.0, JobState.WAITING).document()))["step"] is None


def test_without_names_nothing_says_where_it_runs() -> None:
    redacted = GLANCE.without_names()
    text = json.dumps(redacted.document()) + redacted.line() + "".join(redacted.lines())
    assert not [name for name in ("node17", "node3", "secret", "/job") if name in text]
    assert [rank.host for rank in redacted.ranks] == ["host-01", "host-02"]
    assert "rank 4 on host-01 costs" in text
