"""One small job in every format, byte for byte; formats whose libraries write their version, as what they read back."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from tests.conftest import OpenJob
from tests.convert.golden import check
from tests.convert.small import small_job


@pytest.mark.parametrize("form", ["pftrace", "json", "csv"])
def test_bytes(open_job: OpenJob, tmp_path: Path, form: str) -> None:
    options = ConvertOptions(tmp_path, annotate_args=True, annotate_pmc=True, stats=True)
    paths = FORMATS[form].write(open_job(*small_job()), options)

    for path in paths:
        check(path.name, path.read_bytes())
    if form == "csv":
        assert len(paths) == 19


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables(open_job: OpenJob, tmp_path: Path, form: str) -> None:
    session = open_job(*small_job())
    if form == "arrow":
        (path,) = FORMATS[form].write(session, ConvertOptions(tmp_path))
        tables = {path.name: pa.ipc.open_file(path).read_all()}
    else:
        (folder,) = FORMATS[form].write(session, ConvertOptions(tmp_path))
        files = sorted(folder.rglob("*.parquet"))
        tables = {str(path.relative_to(folder)): pq.read_table(path, partitioning=None) for path in files}

    shown = {
        name: {
            "columns": [f"{field.name}: {field.type} {_about(field)}".strip() for field in table.schema],
            "rows": [list(row.values()) for row in table.to_pylist()],
        }
        for name, table in tables.items()
    }
    check(f"{form}.txt", (json.dumps(shown, indent=1, ensure_ascii=False) + "\n").encode())


def _about(field: pa.Field) -> str:
    unit = (field.metadata or {}).get(b"unit", b"").decode()
    return f"[{unit}]" if unit else ""


def test_otf2(open_job: OpenJob, tmp_path: Path) -> None:
    pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    tool = shutil.which("otf2-print")
    if tool is None:
        pytest.skip("otf2-print is not installed (Debian: otf2-tools)")
    (path,) = FORMATS["otf2"].write(open_job(*small_job()), ConvertOptions(tmp_path))

    shown = [subprocess.run([tool, *more, str(path)], capture_output=True, check=True).stdout for more in ([], ["-G"])]
    check("otf2.txt", re.sub(rb" +\n", b"\n", b"".join(shown)))
