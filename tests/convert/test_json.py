"""json: valid Chrome trace events, and what the real trace_processor makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.convert.conftest import BASE, to_perfetto
from tests.convert.small import small_job
from tests.perfetto_engine import Engine

SLICES = "SELECT rank, name, title, category, ts, dur FROM recorded ORDER BY 1, 2, 3, 4, 5, 6"


def write(session: rocpd.Session, folder: Path, **options: object) -> Path:
    (path,) = FORMATS["json"].write(session, ConvertOptions(folder, **options))  # type: ignore[arg-type]
    return path


def test_events_of_a_small_job(open_job: OpenJob, tmp_path: Path) -> None:
    path = write(open_job(*small_job()), tmp_path, annotate_args=True, annotate_pmc=True)

    document = json.loads(path.read_text(encoding="utf-8"), parse_float=str)
    assert document["displayTimeUnit"] == "ns"
    events = document["traceEvents"]
    kernel = next(e for e in events if e["ph"] == "X" and e["args"].get("name") == "gemm<float>")
    assert (kernel["ts"], kernel["dur"], kernel["pid"]) == (
        f"{(BASE + 100) // 1000}.{(BASE + 100) % 1000:03d}",
        "0.200",
        16,
    )
    assert kernel["args"].items() >= {"dispatch_id": 1, "grid_x": 4096, "SQ_WAVES": "64.0"}.items()
    call = next(e for e in events if e["name"] == "hipLaunchKernel")
    assert call["args"]["stream"] == "0x0"
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {
        "rank 0 · node0",
        "rank 1 · node1",
    }
    assert len({e["pid"] for e in events}) == 2
    assert [e["ph"] for e in events if e["name"] == "launch"].count("s") == 4


@pytest.mark.parametrize("faults", [False, True], ids=["sound", "faults"])
def test_the_engine_reads_the_same_as_from_pftrace(tmp_path: Path, faults: bool) -> None:
    simulate(JobOptions(tmp_path / "job", ranks=3, nodes=2, steps=2, faults=faults))
    with rocpd.connect(tmp_path / "job", skip_bad=True) as session:
        ours = to_perfetto(session, tmp_path)
        engine = Engine(write(session, tmp_path))

    assert engine.complaints() == []
    assert engine.rows(SLICES) == ours.rows(SLICES)
    assert engine.one("SELECT COUNT(*) FROM flow") == ours.one("SELECT COUNT(*) FROM flow")
    of_ranks = "counter_track T ON T.id = counter.track_id AND T.name IS NOT 'step time'"
    counters = f"SELECT ts, value FROM counter JOIN {of_ranks} ORDER BY ts, value"
    assert engine.rows(counters) == ours.rows(counters)


def test_an_empty_job_is_valid(open_job: OpenJob, tmp_path: Path) -> None:
    document = json.loads(write(open_job(TraceBuilder(), TraceBuilder(1)), tmp_path).read_text())
    assert {e["ph"] for e in document["traceEvents"]} == {"M"}
