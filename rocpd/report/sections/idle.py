"""Why GPUs have nothing to do."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block


def idle(material: Material) -> Iterator[Block]:
    """Yield idle time by its cause, then the calls behind it."""
    tables = material.tables("idle")
    if "idle" in tables:
        table = material.table(tables["idle"], "Idle time by cause")
        yield material.figure("idle", tables["idle"], "What the host does while GPUs are idle.", table)
    if "idle-calls" in tables:
        yield material.table(tables["idle-calls"], "Calls and host work behind it")
