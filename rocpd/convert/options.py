"""Owns what a user can ask of every trace format, as one frozen value.

Never reads a database and never checks that outputs are free (the writers do).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path


class AgentIndex(enum.StrEnum):
    """How agents are named: `Agent-4` (hardware node), `Agent-2` (visible ones), `GPU-1` (visible ones of a type)."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"
    TYPE_RELATIVE = "type-relative"


@dataclass(frozen=True)
class ConvertOptions:
    """Where outputs go and how events are shown.

    Args:
        folder: folder of the outputs; made when missing.
        name: base name of the outputs: `out` gives `out.pftrace`, `out_kernel_trace.csv` …
        force: replace existing outputs.
        group_by_queue: one track per agent and HSA queue instead of HIP stream.
        agent_index_value: which index of an agent its name shows.
        kernel_rename: the text of the enclosing marker names a kernel.
        annotate_args: API calls carry their arguments.
        annotate_pmc: dispatches carry their counter values.
    """

    folder: Path
    name: str = "out"
    force: bool = False
    group_by_queue: bool = False
    agent_index_value: AgentIndex = AgentIndex.RELATIVE
    kernel_rename: bool = False
    annotate_args: bool = False
    annotate_pmc: bool = False

    def path(self, ending: str) -> Path:
        """Give the path of one output: folder, base name and `ending`, such as `.pftrace`."""
        return self.folder / f"{self.name}{ending}"
