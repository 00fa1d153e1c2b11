"""Writes `RESULTS.md`: one section per benchmark, replaced by each run, with the machine it ran on."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks import measure
from rocpd.federate.limits import usable_cores

RESULTS = Path(__file__).with_name("RESULTS.md")
_TITLE = "# Measured\n\nWritten by `python -m benchmarks`; ratios were measured side by side in one run.\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; columns after the first are numbers."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' + '---:|' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def write_section(name: str, text: str) -> None:
    """Put `text` under `## name`, in the place of what an earlier run left there; not in a tiny run."""
    if measure.SIZE is not measure.FULL:
        return
    content = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else _TITLE
    machine = f"{usable_cores()} cores ({platform.machine()}), Python {platform.python_version()}"
    section = f"## {name}\n\n{machine}\n\n{text.strip()}\n"
    sections = re.split(r"(?m)^(?=## )", content)
    others = [part.strip() for part in sections if not part.startswith(f"## {name}\n")]
    RESULTS.write_text("\n\n".join([*others, section.strip()]) + "\n", encoding="utf-8")
