"""Writes `RESULTS.md`: one section per benchmark, replaced by each run, with the machine it ran on."""

from __future__ import annotations

import contextlib
import io
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from benchmarks import measure
from rocpd.federate.limits import usable_cores

RESULTS = Path(__file__).with_name("RESULTS.md")
_TITLE = "# Measured\n\nWritten by `python -m benchmarks`; ratios were measured side by side in one run.\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text; columns after the first are numbers."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])] for name, *numbers in (head, *rows))
    return "".join("  ".join(cells) + "\n" for cells in lines)


@contextlib.contextmanager
def recorded(name: str) -> Iterator[None]:
    """Write what is printed under `## name`, too, in the place of what an earlier run left there; not in a tiny run."""
    printed = _Both(sys.stdout)
    with contextlib.redirect_stdout(printed):
        yield
    if measure.SIZE is not measure.FULL:
        return
    content = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else _TITLE
    machine = f"{usable_cores()} cores ({platform.machine()}), Python {platform.python_version()}"
    section = f"## {name}\n\n{machine}\n\n```text\n{printed.getvalue().strip()}\n```"
    sections = re.split(r"(?m)^(?=## )", content)
    others = [part.strip() for part in sections if not part.startswith(f"## {name}\n")]
    RESULTS.write_text("\n\n".join([*others, section]) + "\n", encoding="utf-8")


class _Both(io.StringIO):
    """Text that is shown as it is written."""

    def __init__(self, shown: TextIO) -> None:
        super().__init__()
        self.shown = shown

    def write(self, text: str) -> int:
        self.shown.write(text)
        return super().write(text)

    def flush(self) -> None:
        self.shown.flush()
