"""What a history says of its runs: changes, reasons, other jobs, the gate, SQL, files for other tools."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocpd
from rocpd.compare.options import DiffOptions
from rocpd.compare.run import profiles_of
from rocpd.compare.run_profile import RunProfile
from rocpd.history.history import HistoryOptions, JobHistory, open_history
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob, private
from tests.history.runs import run_of, stored, with_facts

_NOISE = 1e6 * np.exp(0.01 * np.random.default_rng(1).standard_normal(60))


def noisy(numbers: range, factor: float = 1.0, kernel: str = "gemm", grid: int = 64) -> list[RunProfile]:
    return [run_of(n, float(_NOISE[n]) * factor, kernel, grid) for n in numbers]


def texts(history: JobHistory) -> str:
    return "\n".join(finding.text for finding in history.findings)


MS = 1_000_000


def test_a_jump_is_said_with_its_run_label_and_what_explains_it(tmp_path: Path) -> None:
    stored(tmp_path, [*noisy(range(20)), *noisy(range(20, 30), 1.1)])
    found = open_history(tmp_path)
    (change,) = (change for change in found.found if change.metric == "step")
    assert (change.at, change.kind, change.reasons) == (20, "jump", ())
    assert change.ratio == pytest.approx(1.1, rel=0.01)
    said = texts(found)
    assert re.search(
        r"step 1\.00 ms -> 1\.10 ms \(\+\d+\.\d %\) since run 21, commit c020, 2026-10-11; gemm explains 9\d %", said
    )
    assert "kernel" not in said  # it is what the step consists of, and changed with it


def test_nothing_changed_is_said(tmp_path: Path) -> None:
    found = open_history(stored(tmp_path, noisy(range(30))))
    assert found.changes().fetchall() == []
    assert "nothing changed" in texts(found)
    assert found.noise_percent == pytest.approx(np.log(_NOISE[:30]).std(ddof=1) * 100, rel=0.1)


@pytest.mark.parametrize("what", ["grid", "ROCm", "GPU", "command"])
def test_another_configuration_is_the_reason_not_a_regression(tmp_path: Path, what: str) -> None:
    facts: dict[str, dict[str, Any]] = {
        "ROCm": {"rocm": ("7.2.0",)},
        "GPU": {"gpus": ("MI355X",)},
        "command": {"commands": ("train --b 8",)},
    }
    after = noisy(range(20, 30), 1.3, grid=128 if what == "grid" else 64)
    stored(tmp_path, [*noisy(range(20)), *(with_facts(run, **facts.get(what, {})) for run in after)])
    found = open_history(tmp_path)
    change = next(change for change in found.found if change.metric == "step")
    assert any(reason.startswith(what) for reason in change.reasons)
    assert "another configuration" in texts(found)
    assert all(finding.verdict != "problem" for finding in found.findings)


@pytest.mark.parametrize(("batch", "reasons"), [(2, ()), (4, ("command: --batch 2 -> --batch 4",))])
def test_numbers_of_a_command_that_are_new_with_each_run_excuse_nothing(
    tmp_path: Path, batch: int, reasons: tuple[str, ...]
) -> None:
    runs = [(run, 2) for run in noisy(range(20))] + [(run, batch) for run in noisy(range(20, 30), 1.1)]
    ran = (with_facts(run, commands=(f"train{n} --batch {each}",)) for n, (run, each) in enumerate(runs))
    found = open_history(stored(tmp_path, list(ran)))
    (change,) = (change for change in found.found if change.metric == "step")
    assert change.reasons == reasons


def test_containers_that_are_new_with_each_run_excuse_nothing_another_machine_for_good_does(tmp_path: Path) -> None:
    names = {"containers": [f"c{n}" for n in range(30)], "machines": ["a"] * 20 + ["b"] * 10}
    for what, hosts in names.items():
        factors = [1.0] * 20 + [1.1] * 10
        runs = [run_of(n, float(_NOISE[n]) * factor, host=hosts[n]) for n, factor in enumerate(factors)]
        (change,) = (c for c in open_history(stored(tmp_path / what, runs)).found if c.metric == "step")
        assert change.reasons == (("machines: a -> b",) if what == "machines" else ())


def test_runs_of_another_job_are_kept_apart(tmp_path: Path) -> None:
    others = [with_facts(run, ranks=8) for run in noisy(range(30, 40))]
    stored(tmp_path, [run for pair in zip(noisy(range(10)), others, strict=True) for run in pair])
    found = open_history(tmp_path)
    assert [len(job) for job in found.jobs] == [10, 10]
    assert [entry.name for entry in found.entries] == [f"run{n}" for n in range(30, 40)]
    assert "10 runs of other jobs, which do not compare: --job 2" in texts(found)
    assert open_history(tmp_path, HistoryOptions(job=2)).entries[0].name == "run0"
    with pytest.raises(rocpd.UsageError, match="no such job"):
        open_history(tmp_path, HistoryOptions(job=3))


def test_runs_of_another_configuration_that_come_and_go_are_named_and_in_no_series(tmp_path: Path) -> None:
    others = [run_of(n, 0.5e6, grid=128) for n in (10, 11, 12)]
    runs = [*noisy(range(10)), *others, *noisy(range(13, 25))]
    found = open_history(stored(tmp_path, runs))
    assert found.found == []
    assert found.step.places.tolist() == [*range(10), *range(13, 25)]
    assert "run 11, 12, 13: another configuration that came and went, grid of gemm: 64x1x1 -> 128x1x1" in texts(found)
    assert found.sql("select run, value_ns, level_ns from runs where reason is not null order by run").fetchall() == [
        (run, 0.5e6, None) for run in (11, 12, 13)
    ]
    assert "run12" not in found.against([run_of(90)], DiffOptions()).base


def test_another_configuration_that_stays_or_costs_nothing_stays_in_the_series(tmp_path: Path) -> None:
    alike = [replace(run, uses=run_of(0, grid=128).uses) for run in noisy(range(10, 12))]
    for what, runs in {
        "alike": [*noisy(range(10)), *alike, *noisy(range(12, 20))],
        "stays": [*noisy(range(10)), *noisy(range(10, 20), 0.5, grid=128)],
    }.items():
        assert open_history(stored(tmp_path / what, runs)).passing == {}


def test_too_few_runs_say_what_can_be_known(tmp_path: Path) -> None:
    found = open_history(stored(tmp_path, [*noisy(range(2)), run_of(2, 2e6)]))
    assert "from 8 runs on" in texts(found)
    assert ": step 2.00 ms now" in texts(found)
    assert [len(table.fetchall()) for table in found.tables()] == [0, 3, 12, 4]


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "same"), (1.15, "slower"), (0.85, "faster")])
def test_the_gate_compares_with_the_newest_level(tmp_path: Path, factor: float, verdict: str) -> None:
    stored(tmp_path, [*noisy(range(20), 0.5), *noisy(range(20, 40))])
    new = [run_of(90, 1e6 * factor)]
    assert open_history(tmp_path).against(new, DiffOptions(margin=5)).verdict == verdict


def test_a_run_that_is_in_the_store_is_not_compared_with_itself(tmp_path: Path) -> None:
    runs = noisy(range(12))
    found = open_history(stored(tmp_path, runs))
    assert "run11" not in found.against([runs[-1]], DiffOptions()).base
    with pytest.raises(rocpd.RocpdError, match="no other run"):
        found.base(runs)


def test_sql_and_frames_have_what_tables_have(tmp_path: Path) -> None:
    found = open_history(stored(tmp_path, [*noisy(range(10)), *noisy(range(10, 20), 1.2)]))
    assert found.sql("select count(*), min(run), max(run) from runs").fetchall() == [(20, 1, 20)]
    assert found.sql("select value from labels where name = ? and run = 3", ("commit",)).fetchall() == [("c002",)]
    assert found.sql("select run from changes where metric = 'step'").fetchall() == [(11,)]
    assert found.series().df().query("metric == 'step'").value.tolist() == pytest.approx(
        [float(x) for x in found.fitted["step"].values]
    )
    with pytest.raises(rocpd.QueryError):
        found.sql("delete from runs").fetchall()


def test_metrics_are_chosen_by_name_and_expression(tmp_path: Path) -> None:
    stored(tmp_path, noisy(range(10)))
    with pytest.raises(rocpd.UsageError, match="no run has such a label"):
        _ = open_history(tmp_path, HistoryOptions(by="branch")).groups
    chosen = {
        word: open_history(tmp_path, HistoryOptions(metrics=(word,))).metrics for word in ("kernel:ge", "part:idle")
    }
    assert chosen == {"kernel:ge": ["kernel:gemm"], "part:idle": ["part:idle: host work"]}
    for word in ("kernel:conv", "kernel:(", "speed"):
        with pytest.raises(rocpd.UsageError):
            _ = open_history(tmp_path, HistoryOptions(metrics=(word,))).metrics


def test_the_command_line_adds_shows_checks_reports_and_exports(tmp_path: Path, cli: Cli) -> None:
    store, job = tmp_path / "store", tmp_path / "job"
    rocpd.simulate(job, ranks=1, steps=4, seed=1, plant="none")
    stored(store, noisy(range(12)))
    assert cli("history", "add", store, job, "--label", "commit=x", "--date", "2027-01-01").code == 0
    assert "1 run known" in cli("history", "add", store, job, "--date", "2027-01-01").err
    assert cli("history", store, "--job", "2").out.startswith("12 runs of train on 1 rank")
    assert cli("history", store, "--job", "2", "--sql", "select count(*) n from runs", "-f", "csv").out == "n\n12\n"
    assert cli("history", "check", store, job).code == 3  # it is the only run of its job
    assert cli("diff", job, "--history", store).code == 3


def test_the_gate_of_the_command_line_ends_as_diff_does(tmp_path: Path, cli: Cli) -> None:
    job = tmp_path / "job"
    rocpd.simulate(job, ranks=1, steps=4, seed=1, plant="none")
    for name, factor in (("same", 1.0), ("slow", 0.5)):
        with rocpd.connect(job) as session:
            (run,) = profiles_of(session, DiffOptions())
        stored(tmp_path / name, [_like(run, n, factor) for n in range(12)])
    assert cli("history", "check", tmp_path / "same", job).code == 0
    said = cli("history", "check", tmp_path / "slow", job)
    assert (said.code, said.out.startswith("slower: median step")) == (1, True)
    again = json.loads(cli("diff", job, "--history", tmp_path / "slow", "--format", "json").out)
    assert (again["verdict"], len(again["base"]["runs"]), len(again["new"]["runs"])) == ("slower", 12, 1)


def _like(run: RunProfile, number: int, factor: float) -> RunProfile:
    factor *= float(_NOISE[number]) / 1e6
    samples = {name: tuple(value * factor for value in values) for name, values in run.samples.items()}
    return replace(run, name=f"run{number}", samples=samples, guids=(f"g{number}",))


@pytest.mark.parametrize(
    "words",
    [(), ("add",), ("check", "store"), ("store", "nothing"), ("store", "--label", "a=b"), ("export", "store", "x")],
)
def test_wrong_usage_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, words: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    stored(Path("store"), noisy(range(8)))
    assert cli("history", *words).code == 2


def test_exports_agree_with_the_series(tmp_path: Path, cli: Cli) -> None:
    store = stored(tmp_path / "store", noisy(range(9)))
    for name in ("m.prom", "m.csv", "m.json"):
        assert cli("history", "export", store, "-o", tmp_path / name).code == 0
    series = open_history(store).series().fetchall()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "m.csv").read_text())))
    assert [float(row["value"]) for row in rows] == [row[4] for row in series]
    lines = (tmp_path / "m.prom").read_text().splitlines()
    assert lines[-1] == "# EOF"
    samples = [line for line in lines if line.startswith("rocpd_history_value_seconds{")]
    assert [float(line.split()[-2]) for line in samples] == pytest.approx([row[4] / 1e9 for row in series])
    panels = json.loads((tmp_path / "m.json").read_text())["panels"]
    assert [panel["title"] for panel in panels] == ["step", "compute", "gemm", "idle: host work"]


@pytest.mark.parametrize("ending", ["html", "ipynb", "md", "xlsx"])
def test_reports_are_written(tmp_path: Path, cli: Cli, ending: str) -> None:
    store = stored(tmp_path / "store", [*noisy(range(10)), *noisy(range(10, 20), 1.2)])
    path = tmp_path / f"h.{ending}"
    assert cli("history", "report", store, "-o", path).code == 0
    content = path.read_bytes()
    assert cli("history", "report", store, "-o", path, "--force").code == 0
    assert path.read_bytes() == content
    if ending != "xlsx":
        assert b"since run 11, commit c010" in content


def test_memory_and_energy_are_kept_where_they_are_recorded(open_job: OpenJob) -> None:
    """100 W for a millisecond and 300 W for two are 700/3 W; a step of 2 ms takes that by its time."""
    trace = TraceBuilder().region("roctxRangePushA", MS, 3 * MS, message="step 0").kernel("k", MS, 2 * MS)
    trace.alloc(MS, MS + 9, size=1000)
    for at, power in ((1, 100.0), (2, 300.0), (3, 65535.0), (4, 100.0)):
        trace.sample("smi", at * MS).counter("device_power", power, units="W").counter("device_temp", 900.0, units="C")
    asked = DiffOptions(everything=True)
    (run,) = profiles_of(open_job(trace), replace(asked, has_whole=True))
    assert run.samples["memory.peak"] == (1000.0,)
    assert list(run.samples["energy"]) == pytest.approx([1.4 / 3])
    (bare,) = profiles_of(open_job(trace), asked)
    assert bare.samples.keys() == {"step"}


def test_values_have_the_unit_of_their_row_wherever_people_read_them(tmp_path: Path, cli: Cli) -> None:
    """Times and memory stand in one column: on pages, in notebooks, on the console."""
    runs = [replace(run, samples={**run.samples, "memory.peak": (3.0 * 2**30,)}) for run in noisy(range(3))]
    store = stored(tmp_path / "store", runs)
    noise = next(table for table in open_history(store).tables() if table.name == "noise")
    page = tmp_path / "h.md"
    assert cli("history", "report", store, "-o", page).code == 0
    for shown in (noise._repr_html_(), page.read_text(encoding="utf-8"), cli("history", store, "noise").out):
        assert "1.00 ms" in shown
        assert "3.00 GiB" in shown
        assert "unit of the row" not in shown


_OF_OTHERS = ("bmmIGLP_", "bmm_20251215_", "bmm_transe20251219_", "bmm_transe_20251230_")
"""Files of other programs than ./batched_gemm."""


def test_the_runs_of_one_real_program_did_not_change(tmp_path: Path, cli: Cli) -> None:
    """Eight runs differ by what the machine did, and three by the grid that they launched, which is named."""
    every = private("rocprofv3/bmm*_results.db", 12)
    runs = [path for path in every if not path.name.startswith(_OF_OTHERS)]
    for number, path in enumerate(sorted(runs, key=lambda path: re.findall(r"2025\d+_\d+", path.name)), 1):
        assert cli("history", "add", tmp_path / "store", path, "--date", f"2025-12-{number:02}").code == 0
    found = open_history(tmp_path / "store")
    assert len(found.entries) == 8
    assert [change for change in found.found if change.kind != "unclear" and not change.reasons] == []
    assert all(change.reasons[0].startswith("grid of") for change in found.found)
