"""The table of contents of importers: traces of other profilers become rocpd files, one per process.

One row per format; other packages add theirs by entry point. Never imports an importer before a file is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from rocpd import entries
from rocpd.errors import UsageError
from rocpd.frozen import frozen

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

ENTRY_POINTS = "rocpd.importers"
"""Entry point group; each one names an `Importer`."""


@frozen
class Importer:
    """One kind of input.

    Args:
        name: short, stored in the files that it makes.
        doc: what it reads, for people.
        home: module with `knows(head: InputHead) -> bool`, which goes by content and never by names, and
            `read(source: TraceSource, target: TraceTarget) -> None`.
        version: to be raised whenever it writes other files from the same input: those in the cache no longer count.
    """

    name: str
    doc: str
    home: str
    version: int = 1

    def knows(self, head: InputHead) -> bool:
        """Whether it can read an input, by its first bytes, its tables or the names in its folder."""
        return bool(entries.load(f"{self.home}:knows", f"importer {self.name}", UsageError)(head))

    def read(self, source: TraceSource, target: TraceTarget) -> None:
        """Read an input and write its processes.

        Raises:
            InputError: the input is damaged.
            OutputError: a file cannot be written.
        """
        entries.load(f"{self.home}:read", f"importer {self.name}", UsageError)(source, target)


IMPORTERS: Mapping[str, Importer] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Importer("rpd", "RPD traces (rocmProfileData), schemas 1 to 3", "rocpd.importers.rpd", version=3),
            Importer("chrome", "Chrome JSON of `rocpd convert -f json`", "rocpd.importers.chrome"),
            Importer("kineto", "traces of PyTorch's profiler (Kineto), JSON", "rocpd.importers.kineto", version=2),
            Importer("nsys", "exports of Nsight Systems, SQLite", "rocpd.importers.nsight", version=2),
            Importer("rocprofv3-json", "rocprofv3's JSON", "rocpd.importers.rocprofv3_json", version=3),
            Importer(
                "rocprof-compute", "workload folders of rocprof-compute", "rocpd.importers.rocprof_compute", version=3
            ),
            Importer("rocprof-v1", "CSV files of the first rocprof, with counters", "rocpd.importers.rocprof_v1"),
            Importer("rocprofv3-csv", "folders of rocprofv3's CSV files", "rocpd.importers.rocprofv3_csv", version=4),
            Importer("omniprobe-memory", "Omniprobe's MemoryAnalysis, JSON", "rocpd.importers.omniprobe_memory"),
            Importer("omniprobe-blocks", "Omniprobe's BasicBlockAnalysis", "rocpd.importers.omniprobe_blocks"),
            Importer("omniprobe-heatmap", "Omniprobe's Heatmap", "rocpd.importers.omniprobe_heatmap"),
            Importer("omniprobe-addresses", "Omniprobe's AddressLogger", "rocpd.importers.omniprobe_addresses"),
            Importer("logduration", "logs of logduration", "rocpd.importers.logduration"),
        )
    }
)
"""The importers of this package, in the order in which they are asked whether they know an input."""


def known_importers() -> dict[str, Importer]:
    """Return IMPORTERS and those that installed packages add; a name of ours cannot be replaced."""
    others = {name: entry for name, entry in entries.added(ENTRY_POINTS, Importer, _plain) if name not in IMPORTERS}
    return {**IMPORTERS, **others}


def _plain(name: str, home: str, package: str) -> Importer:
    """Return the entry of a package that names anything in its module."""
    return Importer(name, f"from {package}", home.partition(":")[0])
