"""A report against the summaries that it shows, 16 ranks of 300k events; and the report of 1,024 small ranks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import cpu_seconds, job, scaled

ROUNDS = 3
_SHOWN = """
import sys
import rocpd
from rocpd.report.contents import chosen_sections
from rocpd.report.material import gather
from rocpd.facts.rank import Options
if __name__ == "__main__":
    with rocpd.connect(sys.argv[1:]) as session:
        sections = [section for section in chosen_sections(()) if section.name != "verdict"]
        for tables in gather(session, sections, Options(), "").answers.values():
            for table in tables.values():
                table.fetchall()
"""
"""All rows of each analysis of which a report shows a table: in one session, and each rank is read once for all.

The rules of the verdict, which look at more, the charts and the page are what the report has beyond that.
"""


def run() -> None:
    """Print CPU seconds, the least of some rounds in turn, and their ratio; then those of many ranks."""
    files = [str(path) for path in job(16, 300_000)]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "shown.py")
        script.write_text(_SHOWN, encoding="utf-8")
        summaries = [sys.executable, str(script)]
        report = [sys.executable, "-m", "rocpd", "report", "--force", "-o", str(Path(folder, "report.html"))]
        rounds = [(_cpu([*summaries, *files]), _cpu([*report, *files])) for _ in range(scaled(ROUNDS))]
        shown, reported = (min(times) for times in zip(*rounds, strict=True))
        print(f"16 ranks: summaries {shown:.1f} s CPU, report {reported:.1f} s: {reported / shown:.2f} x (bar: 1.3)")
        start = time.perf_counter()
        cpu = _cpu([*report, *map(str, job(1024, 200))])
        wall = time.perf_counter() - start
        print(f"1,024 ranks of 200 events: {cpu:.0f} s CPU, {wall:.0f} s (bar: 60 s on two cores)")


def _cpu(command: Sequence[str]) -> float:
    """Return the CPU time of a command and of what it starts [s], without the facts that an earlier one kept."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        return cpu_seconds(partial(subprocess.run, command, check=True, capture_output=True, env=environment))
