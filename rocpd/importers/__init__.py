"""The table of contents of importers: traces of other profilers become rocpd files, one per process.

Each format has one row; other packages add theirs by entry point. The content of an input determines its importer:
names of files decide nothing, and no importer of this package is imported before it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rocpd.base import UsageError, entries, frozen
from rocpd.base.boundary import each_for_itself
from rocpd.importers import signs
from rocpd.importers.signs import InputHead, files_in, head_of

if TYPE_CHECKING:
    from rocpd.importers.files import TraceSource, TraceTarget

ENTRY_POINTS = "rocpd.importers"
"""Entry point group; each one names an `Importer`."""


@frozen
class Importer:
    """One kind of input.

    Args:
        name: short, stored in the files that it makes.
        doc: its inputs, for people.
        home: module with `read(source: TraceSource, target: TraceTarget) -> None` and
            `knows(head: InputHead) -> bool`, which goes by content and never by names.
        version: to be raised whenever it writes other files from the same input: files in the cache are then outdated.
        sign: used in place of `knows`, so that finding the importer of an input imports none.
    """

    name: str
    doc: str
    home: str
    version: int = 1
    sign: Callable[[InputHead], bool] | None = None

    def knows(self, head: InputHead) -> bool:
        """Whether it can read an input, going by its first bytes, its tables or the names in its folder."""
        return bool((self.sign or self._of_home("knows"))(head))

    def read(self, source: TraceSource, target: TraceTarget) -> None:
        """Read an input and write its processes.

        Raises:
            InputError: the input is damaged.
            OutputError: a file cannot be written.
        """
        self._of_home("read")(source, target)

    def _of_home(self, function: str) -> Callable[..., Any]:
        loaded: Callable[..., Any] = entries.load(f"{self.home}:{function}", f"importer {self.name}", UsageError)
        return loaded


IMPORTERS: Mapping[str, Importer] = MappingProxyType(
    {
        name: Importer(name, doc, f"rocpd.importers.{home}", version, sign)
        for name, home, version, sign, doc in (
            ("rpd", "rpd", 3, signs.is_rpd, "RPD traces (rocmProfileData), schemas 1 to 3"),
            ("chrome", "chrome", 2, signs.is_chrome, "Chrome JSON of `rocpd convert -f json`"),
            ("kineto", "kineto", 3, signs.is_kineto, "traces of PyTorch's profiler (Kineto), JSON"),
            ("nsys", "nsight", 2, signs.is_nsight, "exports of Nsight Systems, SQLite"),
            ("rocprofv3-json", "rocprofv3_json", 3, signs.is_rocprofv3_json, "rocprofv3's JSON"),
            ("rocprof-compute", "rocprof_compute", 3, signs.is_workload, "workload folders of rocprof-compute"),
            ("rocprof-v1", "rocprof_v1", 1, signs.is_rocprof_v1, "CSV files of the first rocprof, with counters"),
            ("rocprofv3-csv", "rocprofv3_csv", 4, signs.is_rocprofv3_csv, "folders of rocprofv3's CSV files"),
            ("omniprobe-memory", "omniprobe", 1, signs.is_memory_analysis, "Omniprobe's MemoryAnalysis, JSON"),
            ("omniprobe-blocks", "omniprobe", 1, signs.is_block_analysis, "Omniprobe's BasicBlockAnalysis"),
            ("omniprobe-heatmap", "omniprobe", 1, signs.is_heatmap, "Omniprobe's Heatmap"),
            ("omniprobe-addresses", "omniprobe", 1, signs.is_address_log, "Omniprobe's AddressLogger"),
            ("logduration", "omniprobe", 1, signs.is_logduration, "logs of logduration"),
        )
    }
)
"""The importers of this package, in the order in which they are asked whether they know an input."""
"""The importers of this package, in the order in which inputs are offered to them."""


def known_importers() -> dict[str, Importer]:
    """Return IMPORTERS and those that installed packages add; a built-in name cannot be replaced."""
    others = {name: entry for name, entry in entries.added(ENTRY_POINTS, Importer, _plain) if name not in IMPORTERS}
    return {**IMPORTERS, **others}


def importer_of(path: Path) -> Importer | None:
    """Return the importer that knows an input; None if there is none.

    Raises:
        OSError: the input cannot be read.
    """
    head = head_of(path)

    def knows(importer: Importer) -> bool:
        return each_for_itself(f"importer {importer.name}", partial(importer.knows, head), lambda _: False)

    return next(filter(knows, known_importers().values()), None)


def inputs_in(folder: Path) -> Sequence[Path]:
    """Return the inputs in a folder that importers know: the folder itself, or else files in it and in its folders.

    Raises:
        OSError: the folder cannot be listed.
    """
    if importer_of(folder):
        return (folder,)
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir() and importer_of(path)]
    files = [file for file in files_in(folder) if file.parent not in folders and importer_of(file)]
    return (*folders, *files)


def _plain(name: str, home: str, package: str) -> Importer:
    """Return the importer of a package whose entry point names anything in its module."""
    return Importer(name, f"from {package}", home.partition(":")[0])
