"""Panels against the tables of AMD's tool for three real workloads: from the folder through a file to the table."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rocpd
from rocpd.counters.definitions import is_counter, needs
from rocpd.counters.measured import Measured
from rocpd.counters.metrics import Calculated, Calculator, terms_of
from rocpd.counters.panels import PANELS
from rocpd.summary.counters.counters import measured
from tests.conftest import private
from tests.soak import sized

WORKLOADS = ("path_MI200", "path_MI300X_A1", "vcopy_MI300X_A1_rocpd")
SECTIONS = {"2", "5", "6", "7", "10", "11", "12", "13", "14", "15", "16", "17"}
COLUMNS = {
    "Avg": "value", "Min": "min", "Max": "max", "Peak": "peak", "Pct of Peak": "percent", "Q1": "q1",
    "Median": "median", "Q3": "q3",
}  # fmt: skip
EXCEPTIONS = {
    # rocprof-compute names a counter of gfx942 there, which gfx90a does not have, and so has no value.
    ("path_MI200", "17.2", "Write and Atomic BW"),
}


@pytest.fixture(scope="module", params=WORKLOADS)
def workload(request: pytest.FixtureRequest) -> Path:
    (path,) = private(f"rocprof-compute/{request.param}/workload/pmc_perf.csv", 1)
    return path.parents[1]


def ours(session: rocpd.Session, is_amds: bool = False) -> Iterator[tuple[tuple[str, str], dict[str, object]]]:
    for name in PANELS:
        table = session.summary(name, amd_compatible=is_amds)
        for row in table:
            cells = dict(zip(table.columns, row, strict=True))
            yield (str(cells["table"]).split()[0], str(cells["metric"])), cells


def test_every_value_is_amds(workload: Path) -> None:
    with rocpd.connect(workload / "workload") as session:
        rows = dict(ours(session, is_amds=True))
    compared, different = 0, set()
    for path in sorted((workload / "amd-analyze").glob("*.csv")):
        table = path.name.partition("_")[0]
        if table.partition(".")[0] not in SECTIONS:
            continue
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                cells = rows.pop((table, row["Metric"]))
                for column, value in ((COLUMNS[name], text) for name, text in row.items() if name in COLUMNS):
                    compared += 1
                    if not agree(value, cells[column]):
                        different.add((workload.name, table, row["Metric"]))
    assert compared >= 876
    assert different == {known for known in EXCEPTIONS if known[0] == workload.name}
    assert rows == {}, "metrics that AMD does not have"


def agree(text: str, value: object) -> bool:
    """Whether a value of AMD's, which has six decimals, is ours."""
    if text == "" or value is None:
        return (text == "") == (value is None)
    assert isinstance(value, float)
    return math.isclose(float(text), value, rel_tol=1e-5, abs_tol=6e-7)


def metrics(counted: Measured) -> dict[tuple[str, str], Calculated]:
    (gpu,) = counted.hardware
    calculator = Calculator(counted, gpu, np.arange(counted.count))
    return {
        (table.id, metric.name): calculator.calculate(metric)
        for table in calculator.architecture.tables
        for metric in table.metrics
    }


def without(counted: Measured, name: str) -> Measured:
    passes = tuple(
        replace(one, counters={key: rows for key, rows in one.counters.items() if key != name})
        for one in counted.passes
    )
    return replace(counted, passes=passes)


@pytest.mark.soak(15)
def test_what_depends_on_a_counter_goes_with_it_and_nothing_else(workload: Path) -> None:
    with rocpd.connect(workload / "workload") as session:
        counted = measured(session.reader(0))
    whole = metrics(counted)
    (gpu,) = counted.hardware
    assert gpu.architecture
    terms = terms_of(gpu.architecture)
    needed = {
        (table.id, metric.name): {name for name in needs(metric.value, terms) if is_counter(name)}
        for table in gpu.architecture.tables
        for metric in table.metrics
    }
    lost = set()
    for name in sorted({name for run in counted.passes for name in run.counters})[:: sized(15, 1)]:
        for key, calculated in metrics(without(counted, name)).items():
            before = whole[key]
            if calculated.values is None and before.values is not None:
                lost.add(name)
                assert {part.removesuffix("_sum") for part in calculated.missing} & {
                    name.removesuffix("_sum"), f"ACC({name.removesuffix('_ACCUM')})", f"ACC({name})"
                }  # fmt: skip
                assert needed[key] & set(calculated.missing)
            elif name.removesuffix("_sum") not in {part.removesuffix("_sum") for part in needed[key]}:
                if name.endswith("_ACCUM") or any(part == f"ACC({name})" for part in needed[key]):
                    continue
                np.testing.assert_array_equal(calculated.values, before.values)
    assert len(lost) > 5


def test_without_compatibility_ratios_are_of_one_pass_and_windows_are_noticed() -> None:
    (path,) = private("rocprof-compute/path_MI300X_A1/workload/pmc_perf.csv", 1)
    with rocpd.connect(path.parent) as session:
        rows = dict(ours(session))
    occupancy, use = rows["2.1", "Wavefront Occupancy"], rows["2.1", "VALU Utilization"]
    assert occupancy["value"] == pytest.approx(2416.6, abs=0.1)  # 391.7 with cycles of another pass
    assert occupancy["note"] is None
    assert "cycles were counted 10.6 times as long as the kernel ran" in str(use["note"])
    assert rows["2.1", "MFMA FLOPs (F8)"]["missing"] == "SQ_INSTS_VALU_MFMA_MOPS_F8"
