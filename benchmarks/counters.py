"""Speed of light of a job with 50 counters on every dispatch, against a bare scan of the values, in CPU time."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import apsw
import numpy as np

import rocpd
from benchmarks import measure
from benchmarks.measure import cache, cpu_seconds, scaled
from rocpd.counters.definitions import architecture, is_counter, needs
from rocpd.counters.metrics import terms_of
from rocpd.schema.trace.events import CounterValues, KernelDispatches
from rocpd.schema.trace.infos import AgentInfo, CounterInfo, KernelInfo, NodeInfo, ProcessInfo
from rocpd.schema.trace.writer import TraceWriter
from rocpd.schema.write import create
from rocpd.simulator.hardware import CPUS, agent

RANKS, DISPATCHES, COUNTERS = 16, 100_000, 50
_KERNELS, _DURATION, _BATCH = 24, 20_000, 5000


def run() -> None:
    """Print seconds of CPU time and their ratio; the bar is 2 x the scan."""
    ranks, dispatches = min(RANKS, measure.SIZE.most_ranks), scaled(DISPATCHES)
    files = _job(ranks, dispatches)
    scan = min(cpu_seconds(lambda: _scan(files)) for _ in range(2))
    panel = min(cpu_seconds(lambda: _speed_of_light(files)) for _ in range(2))
    values = ranks * dispatches * COUNTERS / 1e6
    print(f"{ranks} ranks x {dispatches} dispatches x {COUNTERS} counters = {values:.0f} million values")
    print(f"bare scan {scan:.1f} s, speed-of-light {panel:.1f} s of CPU: {panel / scan:.2f} x (bar: 2)", flush=True)


def _scan(files: list[Path]) -> None:
    """Loop in Python over event, counter and value, one cursor per file."""
    for path in files:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        for _ in connection.execute("SELECT event_id, pmc_id, value FROM rocpd_pmc_event"):
            pass
        connection.close()


def _speed_of_light(files: list[Path]) -> None:
    with rocpd.connect(files, jobs=1) as session:
        assert len(list(session.summary("speed-of-light"))) > _KERNELS


def _counters() -> list[str]:
    known = architecture("gfx942")
    assert known
    terms = terms_of(known)
    tables = sorted(known.tables, key=lambda table: table.panel != "speed-of-light")
    names = {name: None for table in tables for metric in table.metrics for name in needs(metric.value, terms)}
    return [name for name in names if is_counter(name) and not name.startswith("ACC(")][:COUNTERS]


def _job(ranks: int, dispatches: int) -> list[Path]:
    folder = cache() / f"counters-{ranks}x{dispatches}"
    folder.mkdir(exist_ok=True)
    return [_file(folder / f"rank{rank}.db", rank, dispatches) for rank in range(ranks)]


def _file(path: Path, rank: int, dispatches: int) -> Path:
    """Write a rank: kernels in turn, each with all counters, values at random."""
    if path.exists():
        return path
    random = np.random.default_rng(rank)
    gpu = CPUS + rank % 8
    with create(path, str(uuid.UUID(int=rank + 1))) as writer:
        process = ProcessInfo(1000 + rank, start=1, end=10**12, extdata=json.dumps({"mpi_rank": rank}))
        trace = TraceWriter(writer, NodeInfo(machine_id="node0", hostname="node0"), process)
        described = AgentInfo(extdata=json.dumps(agent(gpu)), name="gfx942", type="GPU", absolute_index=gpu)
        agent_id = trace.register(described)
        kernels = [
            trace.register(KernelInfo(kernel_name=f"kernel_{n}.kd", arch_vgpr_count=32)) for n in range(_KERNELS)
        ]
        counters = [trace.register(CounterInfo(agent_id=agent_id, name=name)) for name in _counters()]
        for first in range(0, dispatches, _BATCH):
            count = min(_BATCH, dispatches - first)
            start = 1_000_000 + (first + np.arange(count)) * 2 * _DURATION
            written = trace.write(
                KernelDispatches(
                    start=start,
                    end=start + _DURATION,
                    tid=1000 + rank,
                    agent_id=agent_id,
                    kernel_id=np.resize(kernels, count),
                    workgroup_size_x=256,
                    grid_size_x=65536,
                )
            )
            trace.write(
                CounterValues(
                    event_id=np.repeat(np.asarray(written.events), len(counters)),
                    pmc_id=np.tile(counters, count),
                    value=random.integers(1, 10**7, count * len(counters)).astype(float),
                )
            )
    return path


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
