"""The options of trace formats as one frozen value; each field declares its own.

Never reads a database and never checks that outputs are free (the writers do). Imports nothing heavy.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from rocpd.base import AmdVersion, frozen
from rocpd.base.option import Heading, declare, plain
from rocpd.base.output import Destination

GZIP = ".gz"
"""Ending of compressed outputs."""


class AgentIndex(enum.StrEnum):
    """How agents are named: `Agent 4` (hardware node), `Agent 2` (visible ones), `GPU 1` (visible ones of a type)."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"
    TYPE_RELATIVE = "type-relative"

    @property
    def column(self) -> str:
        """The column of `rocpd_info_agent` that holds the index."""
        return {"absolute": "absolute_index", "relative": "logical_index", "type-relative": "type_index"}[self.value]

    @property
    def view_column(self) -> str:
        """The column of readable views that holds it."""
        return {"absolute": "agent_abs_index", "relative": "agent_log_index"}.get(self.value, "agent_type_index")

    @property
    def has_type(self) -> bool:
        """Whether the agent's type stands before the index, not just `Agent`."""
        return self is AgentIndex.TYPE_RELATIVE


class Split(enum.StrEnum):
    """The parts of a job that get an output of their own."""

    RANK = "rank"
    NODE = "node"


def _views() -> Iterable[str]:
    from rocpd.schema.load import VIEWS

    return VIEWS


@frozen
class ConvertOptions:
    """Where outputs go and how events are shown. Which format reads which option stands in `rocpd.convert.FORMATS`.

    Args:
        folder: folder of the outputs; made when missing.
        name: base name of the outputs: `out` gives `out.pftrace`, `out_kernel_trace.csv` …; a name that ends in `.gz`
            asks for `gzip`.
        force: replace existing outputs.
        ending: what the user's name for the output ended in, if that is a format's ending: `.arrow` of `-o x.arrow`.
        group_by_queue: one track per agent and HSA queue instead of HIP stream.
        agent_index_value: which index of an agent its name shows; None: that of its type in traces (`GPU 1`), that of
            the visible ones in CSV and in names of counters, as AMD's tools have it.
        kernel_rename: the text of the enclosing marker names a kernel.
        annotate_args: API calls carry their arguments.
        annotate_pmc: dispatches carry their counter values.
        processes: ranks are processes and threads are threads, as queries and AMD's reader of traces want them; else
            plain groups of tracks, which Perfetto's UI shows as they are laid out.
        queue_depth: a counter of operations that are launched and have not started, per agent.
        split: one output per rank or node instead of one for all.
        gzip: compress outputs.
        stats: also write the statistics files of rocprofv3.
        views: readable views to write: parquet (none: those that make up a trace), arrow (one, default kernels).
        amd_version: whose names of files and columns.
        with_rank: rows hold the number of their rank and its host name.
        arrow_stream: write the streaming format instead of a file.
        further: values of options that a format of another package declares, by name.
    """

    folder: Path
    name: str = "out"
    force: bool = False
    ending: str = ""
    group_by_queue: bool = declare(
        False, "One track per HSA queue, not per HIP stream.", heading=Heading.AMD, is_lenient=True
    )
    agent_index_value: AgentIndex | None = declare(
        None, "Agent 0/2/4, Agent 0/1/2, or CPU 0/GPU 0/GPU 1.", heading=Heading.AMD, is_lenient=True
    )
    kernel_rename: bool = declare(
        False, "Name kernels by their enclosing marker.", heading=Heading.AMD, is_lenient=True
    )
    annotate_args: bool = declare(False, "Show the arguments of API calls.", heading=Heading.AMD, is_lenient=True)
    annotate_pmc: bool = declare(False, "Show counter values with their kernel.", heading=Heading.AMD, is_lenient=True)
    processes: bool = declare(False, "Ranks as processes and threads, for queries by pid and tid.")
    queue_depth: bool = declare(False, "Also count, per agent, launched operations that wait.")
    split: Split | None = plain(None, "One output per rank or node.", heading=Heading.OUTPUT)
    gzip: bool = plain(False, "Compress outputs, as a NAME that ends in .gz does.", heading=Heading.OUTPUT)
    stats: bool = declare(False, "Also write rocprofv3's statistics files.", heading=Heading.AMD)
    views: tuple[str, ...] = plain(
        (), "Only this view, repeatable; arrow: one, else kernels.", "VIEW", ("--view",), complete=_views
    )
    amd_version: AmdVersion = declare(
        AmdVersion.V2025, "Files and columns of AMD's tool of this year.", heading=Heading.AMD
    )
    with_rank: bool = plain(False, "Also columns with the rank and its host.")
    arrow_stream: bool = declare(False, "Write a stream, not a file.")
    further: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def at(cls, target: Destination, force: bool, **fields: Any) -> ConvertOptions:
        """Return the options with which outputs go to `target`; a `.gz` after a format's ending compresses them."""
        fields["gzip"] = fields.get("gzip", False) or target.ending.endswith(GZIP)
        return cls(target.folder, target.name, force, target.ending.removesuffix(GZIP), **fields)

    def path(self, ending: str) -> Path:
        """Return the path of one output: folder, base name and `ending`, such as `.pftrace`."""
        return self.folder / f"{self.name}{ending}"

    def ending_of(self, usual: str, *endings: str) -> str:
        """Return what the names of a format's outputs end in: as the user named them if that is one of `endings`."""
        return self.ending if self.ending in endings else usual

    def without_gz(self, endings: Iterable[str]) -> ConvertOptions:
        """Return the same with `gzip` in place of a `.gz` in the name; of `t.pftrace.gz` one of `endings` goes too."""
        if not self.name.lower().endswith(GZIP):
            return self
        name = self.name[: -len(GZIP)]
        ending = max((ending for ending in endings if name.endswith(ending)), key=len, default="")
        return dataclasses.replace(self, name=name.removesuffix(ending) or "out", ending=ending, gzip=True)
