"""How long operations wait between launch and start, and how many wait."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block

_COLUMNS = ("name", "launched", "delay_ns", "median_delay_ns", "p95_delay_ns", "max_delay_ns", "api_ns", "gpu_ns")


def launch(material: Material) -> Iterator[Block]:
    """Yield the depth of queues over time with what agents wait for the CPU, then delays by kernel."""
    tables = material.tables("launch")
    if "queue-depth" in tables and tables["queue-depth"].fetchall() and "bottleneck" in tables:
        table = material.table(tables["bottleneck"], "How long each GPU waits for the CPU")
        says = "How many operations are launched and have not started: at 0 the GPU waits for the CPU."
        yield material.figure("queue-depth", tables["queue-depth"], says, table)
    if "launch" in tables:
        yield material.table(tables["launch"], "Delay from launch to start", _COLUMNS)
