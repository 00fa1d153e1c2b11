"""RAPTOR's tables: contexts that stay on their GPU, gaps one by one, categories with idle time; its command lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.facts.rank import Options
from rocpd.summary.kernels.variability import raptor
from rocpd.summary.reading import Reading
from tests.build import GPU2, TraceBuilder
from tests.conftest import Cli, OpenJob, private


def tables(session: rocpd.Session, **options: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        table.name: [dict(zip(table.columns, row, strict=True)) for row in table]
        for table in raptor(Reading(session, Options(**options)))
    }


def test_gaps_contexts_and_categories(open_job: OpenJob) -> None:
    """On one GPU Cijk 0-10 us, relu after 15 us, Cijk after none and 20 us long; on the other relu alone, 8 us."""
    trace = (
        TraceBuilder().kernel("Cijk_a", 1_000, 11_000).kernel("relu", 26_000, 30_000).kernel("Cijk_a", 30_000, 50_000)
    )
    trace.kernel("relu", 40_000, 48_000, agent=GPU2)
    found = tables(open_job(trace), sequence=1)
    top = {(row["Kernel"], row["Kernel+1"]): row for row in found["raptor-top"]}
    assert set(top) == {("Cijk_a", ""), ("relu", "Cijk_a"), ("Cijk_a", "relu"), ("relu", ""), ("GAP:10us-20us", None)}
    assert top["relu", "Cijk_a"]["PreGap_mean_us"] == 15.0
    assert top["relu", ""]["PreGap_mean_us"] is None
    assert (top["Cijk_a", "relu"]["First_ms"], top["Cijk_a", "relu"]["Dur_mean_us"]) == (0.029, 20.0)
    assert top["GAP:10us-20us", None]["TotalCalls"] == 1
    assert round(sum(row["PctTotal"] for row in found["raptor-top"])) == 100
    by_category = {row["Category"]: row for row in found["raptor-categories"]}
    assert (by_category["GEMM"]["TotalCalls"], by_category["GEMM"]["AvgDur_us"]) == (2, 15.0)
    assert (by_category["_GPU_Idle"]["TotalCalls"], by_category["_GPU_Idle"]["AvgDur_us"]) == (1, 15.0)


def test_time_above_the_shortest_instance(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("a", 1_000, 11_000).kernel("a", 11_000, 31_000).kernel("a", 31_000, 61_000)
    found = tables(open_job(trace))
    (row,) = found["raptor-top"]
    assert (row["TotalCalls"], row["Var_us"], row["VarPct"]) == (3, 10.0, 50.0)
    assert [(row["Variability"], row["Var_us"]) for row in found["raptor-variability"]] == [
        ("by_comm", 0.0),
        ("by_non_comm", 30.0),
    ]


def test_totals_of_a_real_trace() -> None:
    """All operations count, and idle time is that between them."""
    with rocpd.connect(private("rpd/mytrace.rpd.gz", 1)) as session:
        rows = {row["Category"]: row for row in tables(session, sequence=2)["raptor-categories"]}
    assert sum(row["TotalCalls"] for name, row in rows.items() if name != "_GPU_Idle") == 10_124
    assert rows["_GPU_Idle"]["TotalDur_ms"] == 36.3
    assert round(sum(row["TotalDur_ms"] for row in rows.values()), 0) == 453  # first start to last end


@pytest.mark.parametrize(
    ("words", "kernels"),
    [
        (("--roi-start", ".00002s"), ["b", "c"]),
        (("--roi-start", "0.02", "--roi-end=-15us"), ["b"]),
        (("--roi-start", "b"), ["b", "c"]),
        (("--roi-end", "15us"), ["a"]),
    ],
)
def test_regions_of_interest(words: tuple[str, ...], kernels: list[str], tmp_path: Path, cli: Cli) -> None:
    trace = TraceBuilder().kernel("a", 1_000, 11_000).kernel("b", 21_000, 31_000).kernel("c", 41_000, 51_000)
    said = cli("raptor", trace.write(tmp_path / "a.db"), "--kernelseq", "--kernelseq-len", "0", *words)
    assert said.code == 0, said
    shown = [line.split()[0] for line in said.out.splitlines()[3:]]
    assert [name for name in shown if not name.startswith("GAP")] == kernels


def test_each_command_line_of_its_document(tmp_path: Path, cli: Cli) -> None:
    trace = TraceBuilder().kernel("a", 1_000, 11_000).kernel("b", 21_000, 31_000).write(tmp_path / "a.db")
    for words, heads in (
        (("--categorize", "--top"), ["RAPTOR-CATEGORIES", "RAPTOR-TOP"]),
        (("--categorize", "--top", "--auto-roi"), ["RAPTOR-CATEGORIES", "RAPTOR-TOP"]),
        (("--variability",), ["RAPTOR-VARIABILITY"]),
        (("--op-trace",), []),
    ):
        said = cli("raptor", trace, *words)
        assert said.code == 0, said
        assert [line for line in said.out.splitlines() if line.startswith("RAPTOR-")] == heads
        assert ("GPU.Seq_Id" in said.out) is (words == ("--op-trace",))
