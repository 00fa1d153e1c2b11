"""What was collected, and the options that collect the rest."""

from __future__ import annotations

import io
from collections import Counter
from itertools import pairwise

import pytest

from rocpd.base import RocpdError
from rocpd.counters.definitions import architecture, is_counter, needs
from rocpd.counters.measured import block_of, collecting_runs
from rocpd.counters.metrics import terms_of
from rocpd.counters.panels import PANELS
from rocpd.table.palette import Screen
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob
from tests.summary.cells import cells

SLOTS = {"SQ": 8, "TA": 2, "TD": 2, "TCP": 4, "TCC": 4, "CPC": 2, "CPF": 2, "SPI": 6, "GRBM": 2}


@pytest.mark.parametrize("kind", ["gfx90a", "gfx942", "gfx950"])
def test_runs_fit_the_hardware_and_have_all_that_is_needed(kind: str) -> None:
    known = architecture(kind)
    assert known
    for panel in PANELS:
        needed = [
            [name for name in needs(metric.value, terms_of(known)) if is_counter(name)]
            for _, metric in known.panel(panel)
        ]
        runs = collecting_runs(needed)
        for run in runs:
            assert all(count <= SLOTS[block] for block, count in Counter(map(block_of, run.counters)).items())
            assert run.counters[0] == "GRBM_GUI_ACTIVE"
            levels = [name for name in run.counters if name.startswith("SQ_") and "_LEVEL" in name]
            assert len(levels) == (1 if "SQ_ACCUM_PREV_HIRES" in run.counters else len(levels))
        collected = [set(run.counters) for run in runs]
        for names in needed:
            parts = [{"SQ_ACCUM_PREV_HIRES", name[4:-1]} if name.startswith("ACC(") else {name} for name in names]
            assert all(any(part <= counters for counters in collected) for part in parts)
        assert all(len(first | second) > len(first) for first, second in pairwise(collected))


def job(number: int = 0) -> TraceBuilder:
    """gemm twice, with waves of two instances and cycles; relu without counters."""
    trace = TraceBuilder(number).kernel("gemm", 1, 5).counter("SQ_WAVES", 4).counter("SQ_WAVES", 6)
    trace.counter("GRBM_GUI_ACTIVE", 100).kernel("gemm", 6, 9).counter("SQ_WAVES", 3)
    return trace.kernel("relu", 10, 12)


def test_what_was_collected(open_job: OpenJob) -> None:
    session = open_job(job(0), job(1))
    assert cells(session, "collected", "counter block passes instances dispatches of") == [
        ("GRBM_GUI_ACTIVE", "GRBM", "1", 1, 2, 4),
        ("SQ_WAVES", "SQ", "1", 2, 4, 4),
    ]
    options = cells(session, "to-collect", "panel run option")
    assert ("launch-stats", 1, "--pmc GRBM_GUI_ACTIVE SPI_CSN_WAVE SQ_WAVES_SAVED SQ_WAVES_RESTORED") in options


def test_options_to_copy_are_whole_on_a_narrow_terminal(open_job: OpenJob) -> None:
    out = io.StringIO()
    open_job(job()).summary("to-collect").write_readable(out, screen=Screen(40))
    assert "--pmc GRBM_GUI_ACTIVE SPI_CSN_WAVE SQ_WAVES_SAVED SQ_WAVES_RESTORED\n" in out.getvalue()


def test_the_command_has_four_tables(open_job: OpenJob, cli: Cli) -> None:
    (rank,) = open_job(job()).ranks
    said = cli("counters", rank.opening.path)
    assert [line for line in said.out.splitlines() if line.isupper()] == ["COLLECTED", "PANELS", "TO-COLLECT"]
    assert "launch-stats       gfx942" in said.out


def test_without_counters_it_says_so(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no counter values"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("collected")
