"""Compares with stored files: `ROCPD_GOLDEN=write pytest tests/convert/test_golden.py` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, data: bytes, folder: Path = FOLDER) -> None:
    """Compare `data` with the golden file `name`, byte for byte."""
    path = folder / name
    if os.environ.get("ROCPD_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    assert path.read_bytes() == data, f"{path} differs; ROCPD_GOLDEN=write writes it anew"
