"""Owns what a user can ask of every trace format, as one frozen value.

Never reads a database and never checks that outputs are free (the writers do).
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from pathlib import Path


class AgentIndex(enum.StrEnum):
    """How agents are named: `Agent-4` (hardware node), `Agent-2` (visible ones), `GPU-1` (visible ones of a type)."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"
    TYPE_RELATIVE = "type-relative"


class Split(enum.StrEnum):
    """What gets an output of its own."""

    RANK = "rank"
    NODE = "node"


@dataclass(frozen=True)
class ConvertOptions:
    """Where outputs go and how events are shown.

    Args:
        folder: folder of the outputs; made when missing.
        name: base name of the outputs: `out` gives `out.pftrace`, `out_kernel_trace.csv` …; a name that ends in `.gz`
            asks for `gzip`.
        force: replace existing outputs.
        group_by_queue: one track per agent and HSA queue instead of HIP stream.
        agent_index_value: which index of an agent its name shows.
        kernel_rename: the text of the enclosing marker names a kernel.
        annotate_args: API calls carry their arguments.
        annotate_pmc: dispatches carry their counter values.
        split: one output per rank or node instead of one for all; csv, json, otf2, pftrace.
        gzip: compress outputs: csv, json, pftrace.
        stats: csv also writes the statistics files of rocprofv3.
        views: readable views to write: parquet (none: those that make up a trace), arrow (one, default kernels).
        stream: arrow writes the streaming format instead of a file.
    """

    folder: Path
    name: str = "out"
    force: bool = False
    group_by_queue: bool = False
    agent_index_value: AgentIndex = AgentIndex.RELATIVE
    kernel_rename: bool = False
    annotate_args: bool = False
    annotate_pmc: bool = False
    split: Split | None = None
    gzip: bool = False
    stats: bool = False
    views: tuple[str, ...] = ()
    stream: bool = False

    def path(self, ending: str) -> Path:
        """Give the path of one output: folder, base name and `ending`, such as `.pftrace`."""
        return self.folder / f"{self.name}{ending}"

    def plain(self) -> ConvertOptions:
        """Give the same with `gzip` in place of a `.gz` in the name; `t.pftrace.gz` loses its `.pftrace` too."""
        if not self.name.lower().endswith(".gz"):
            return self
        name = self.name[:-3]
        for ending in (".pftrace", ".json", ".csv"):
            name = name.removesuffix(ending)
        return dataclasses.replace(self, name=name or "out", gzip=True)
