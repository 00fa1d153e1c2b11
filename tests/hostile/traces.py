"""Small traces of other profilers, and what damages them: bytes, cells of databases, words of texts."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw

import rocpd
from rocpd.simulator import JobOptions, simulate
from tests.hostile.damage import BLOBS, DOCUMENTS, HUGE, REALS, TEXTS, Damage, flipped_bits
from tests.importers import test_kineto as kineto
from tests.importers import test_rocprof_v1 as rocprof_v1
from tests.importers import test_rocprofv3 as rocprofv3
from tests.importers.rpd import server
from tests.importers.test_nsight import export
from tests.omniprobe import accesses, memory_analysis

DATABASES = (".rpd", ".nsys")
"""Endings of the traces that are SQLite files."""

_COUNTERS = """Dispatch_ID,GPU_ID,Kernel_Name,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,\
Arch_VGPR,Accum_VGPR,SGPR,Start_Timestamp,End_Timestamp,Kernel_ID,SQ_WAVES,GRBM_GUI_ACTIVE
0,4,"vecCopy(double*, int) [clone .kd]",1048576,256,0,0,8,0,16,1000,2000,0,16384.0,21000
1,4,"vecCopy(double*, int) [clone .kd]",1048576,256,0,0,8,0,16,3000,4100,0,16384.0,21900
"""


_SYSTEM = """workload_name,command,hostname,gpu_model,gpu_arch,cu_per_gpu,simd_per_cu,wave_size,max_sclk,num_xcd
path,./vcopy -n 1048576,node1,MI200,gfx90a,104,4,64,1700,1
"""


def make_workload(folder: Path) -> Path:
    """Write the workload folder of a program with two dispatches."""
    folder.mkdir(exist_ok=True)
    (folder / "pmc_perf.csv").write_text(_COUNTERS)
    (folder / "sysinfo.csv").write_text(_SYSTEM)
    return folder


def make_traces(folder: Path) -> list[Path]:
    """Write a trace of each kind, and a good database at the end."""
    (good,) = simulate(JobOptions(folder / "good", ranks=1, steps=2, seed=5))
    with rocpd.connect(good) as session:
        session.convert("csv", folder / "csv" / "out")
        (chrome,) = session.convert("json", folder / "chrome")
    written = {
        "torch.json": json.dumps(
            {"schemaVersion": 1, "baseTimeNanoseconds": kineto.BASE, "traceEvents": [kineto.LAUNCH, kineto.KERNEL] * 9}
        ),
        "v3.json": json.dumps({"rocprofiler-sdk-tool": [rocprofv3.process(7)]}),
        "v1.csv": rocprof_v1.COUNTED,
        "probe.json": memory_analysis(accesses(3)),
    }
    for name, text in written.items():
        (folder / name).write_text(text)
    packed = folder / "packed.json.gz"
    packed.write_bytes(gzip.compress(chrome.read_bytes()[:60_000], mtime=0))
    databases = [server(folder / "a.rpd"), export(folder / "b.nsys")]
    return [
        *databases,
        *(folder / name for name in written),
        chrome,
        packed,
        folder / "csv",
        make_workload(folder / "workload"),
        good,
    ]


def cells(path: Path, random: Random) -> None:
    """Replace values of columns."""
    connection = apsw.Connection(str(path))
    tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for _ in range(random.choice((1, 3, 9))):
        table = random.choice(tables)
        columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        cell = random.choice((None, *HUGE, *TEXTS, *REALS, *BLOBS, *DOCUMENTS))
        with contextlib.suppress(apsw.Error):
            connection.execute(
                f'UPDATE {table} SET "{random.choice(columns)}" = ? WHERE rowid % 3 = ?', (cell, random.randrange(3))
            )
    connection.close()


def cut_off(path: Path, random: Random) -> None:
    """Lose the end."""
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(len(content))])


def lost_table(path: Path, random: Random) -> None:
    """Lose a table."""
    connection = apsw.Connection(str(path))
    tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    with contextlib.suppress(apsw.Error):
        connection.execute(f"DROP TABLE {random.choice(tables)}")
    connection.close()


_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[A-Za-z_]+')


def other_words(path: Path, random: Random) -> None:
    """Replace numbers, strings and names in a text."""
    content = _plain(path)
    places = list(_WORD.finditer(content))
    for place in sorted(random.sample(places, min(len(places), random.choice((1, 5, 40)))), key=lambda m: -m.start()):
        word: object = random.choice((None, *HUGE, *TEXTS, *REALS, *DOCUMENTS, [], {}, [[]], True))
        is_document = isinstance(word, str) and random.random() < 0.5
        text = str(word) if is_document else json.dumps(word)
        content = content[: place.start()] + text.encode("utf-8", "surrogatepass") + content[place.end() :]
    _write(path, content)


def lost_lines(path: Path, random: Random) -> None:
    """Lose lines, or what stands between brackets and commas where there are few."""
    parts = re.split(rb"(?<=[\n,}\]])", _plain(path))
    for _ in range(random.choice((1, 3, 30))):
        del parts[random.randrange(len(parts)) :][:1]
        parts.pop(random.randrange(len(parts))) if len(parts) > 1 else None
    _write(path, b"".join(parts))


def noise(path: Path, random: Random) -> None:
    """Put bytes in between that are no text."""
    content = bytearray(_plain(path))
    for _ in range(random.choice((1, 5))):
        at = random.randrange(len(content) + 1)
        content[at:at] = random.choice((b"\xff\xfe", b"\0" * 9, b"[" * 4000, b"\x1b[31m", b'"', b"\\", b"\xed\xa0\x80"))
    _write(path, bytes(content))


def in_a_file(damage: Damage) -> Damage:
    """Return what damages a file, or one of those of a folder."""

    def damaged(path: Path, random: Random) -> None:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        damage(random.choice(files), random)

    return damaged


def _named(*damages: Callable[[Path, Random], None]) -> list[tuple[str, Damage]]:
    return [(damage.__name__, in_a_file(damage)) for damage in damages]


of_databases = _named(cells, cells, cells, flipped_bits, cut_off, lost_table)
of_texts = _named(other_words, other_words, lost_lines, noise, flipped_bits, cut_off)


def _plain(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
