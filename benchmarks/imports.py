"""Importing an RPD trace, against a loop that only reads and inserts the same rows; and a trace of PyTorch."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import apsw

from benchmarks.measure import cache, cost, medians, scaled
from rocpd.importers.run import import_traces
from rocpd.simulator import JobOptions, simulate
from tests.importers.rpd import SESSION, RpdBuilder

_ROWS, _CALLS = 500_000, 300_000


def run() -> None:
    """Print both times and their ratio for a trace of 300,000 calls and 200,000 operations."""
    trace, folder = _trace(cache() / f"{scaled(_ROWS)}.rpd"), cache() / "imported"
    (file,) = import_traces(trace, folder, force=True)
    kept = shutil.copy(file, cache() / "imported.db")
    times = medians(
        {
            "rocpd.import_traces": lambda: import_traces(trace, folder, force=True),
            "loop that reads and inserts": lambda: _loop(Path(kept), cache() / "loop.db"),
        },
        runs=3,
    )
    for name, value in times.items():
        print(f"{name:30} {value:7.2f} s  {scaled(_ROWS) / value:10,.0f} rows/s")
    ratio = times["rocpd.import_traces"] / times["loop that reads and inserts"]
    print(f"importing {scaled(_ROWS):,} rows takes {ratio:.2f} x the loop (bar: 2)")
    _pytorch()


def _pytorch() -> None:
    """Print how fast a trace of PyTorch's profiler is read, and in how much memory beyond an empty command's."""
    folder = cache() / f"kineto-{scaled(_CALLS)}"
    trace = folder / "rank0.json"
    if not trace.exists():
        simulate(JobOptions(out=folder / "job", ranks=1, events_per_rank=scaled(_CALLS), kineto=folder, force=True))
        with gzip.open(folder / "rank0.json.gz") as packed, trace.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    size, start = trace.stat().st_size / 1e6, cost("--version")
    taken = cost("import", str(trace), "-d", str(folder / "out"), "--force")
    used = taken.memory - start.memory
    print(f"PyTorch: {size:.0f} MB of JSON, {size / (taken.cpu - start.cpu):.0f} MB a second of CPU (bar: 30)")
    print(f"         in {used:.0f} MB, {used / size:.1f} x the file (bar: 3)")


def _trace(path: Path) -> Path:
    """Make an RPD trace on first use: of five calls two launch kernels, one is a marker with a text of its own."""
    if path.exists():
        return path
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    rpd = RpdBuilder(partial)
    names = [rpd.string(name) for name in ("hipLaunchKernel", "UserMarker", "hipGetDevice")]
    kernels = [rpd.string(f"void kernel{n}<float>(float*)") for n in range(64)]
    kind = rpd.string("KernelExecution")
    calls = scaled(_ROWS) * 3 // 5
    kinds = [0, 2, 0, 1, 2]
    for number in range(calls):
        name, call = kinds[number % 5], SESSION + number + 1
        text = rpd.add("rocpd_string", string=f"layer {number % 1000}") if name == 1 else 1
        start = 10**15 + number * 1000
        rpd.add("rocpd_api", id=call, pid=7, tid=8 + number % 3, start=start, end=start + 800, apiName_id=names[name],
                args_id=text)  # fmt: skip
        if name == 0:
            kernel = kernels[number % 64]
            rpd.launch(call, "", (number % 512 + 1, 1, 1), (256, 1, 1))
            rpd.add("rocpd_op", id=call, gpuId=2, queueId=0, sequenceId=0, start=start + 900, end=start + 1800,
                    description_id=kernel, opType_id=kind)  # fmt: skip
            rpd.add("rocpd_api_ops", api_id=call, op_id=call)
    rpd.close()
    partial.rename(path)
    return path


def _loop(source: Path, target: Path) -> None:
    """Copy all tables of a rocpd file, row by row."""
    target.unlink(missing_ok=True)
    reader = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    writer = apsw.Connection(str(target))
    for name, value in (("synchronous", 0), ("locking_mode", "exclusive"), ("cache_size", -65536)):
        writer.pragma(name, value)
    writer.execute("BEGIN")
    tables = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for table, sql in reader.execute(tables).fetchall():
        writer.execute(str(sql))
        width = len(reader.execute(f'PRAGMA table_info("{table}")').fetchall())
        rows = reader.execute(f'SELECT * FROM "{table}"')
        writer.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * width)})', rows)
    writer.execute("COMMIT")
    writer.close()
    reader.close()
