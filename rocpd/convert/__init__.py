"""The table of contents of trace formats: one row per format, third parties add theirs by entry point.

Never imports a writer (or numpy) before that writer is asked to write.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, cast

from rocpd.errors import UsageError
from rocpd.types import Progress

if TYPE_CHECKING:
    from rocpd.convert.options import ConvertOptions
    from rocpd.federate.federation import Federation


Write: TypeAlias = "Callable[[Federation, ConvertOptions, Progress | None], tuple[Path, ...]]"

ENTRY_POINTS = "rocpd.formats"
"""Entry point group; each one names a function (session, options, progress) -> paths written."""


@dataclass(frozen=True)
class Format:
    """One output format.

    Args:
        name: what `--output-format` takes.
        doc: one line for people.
        home: `module:function` that writes it.
    """

    name: str
    doc: str
    home: str

    def write(self, session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
        """Write all ranks of `session`; give the paths written.

        Args:
            session: open files; what the user should be told goes to `session.note`.
            options: where to and how.
            progress: called now and then with rows done and rows in total.

        Raises:
            OutputError: an output exists (without `force`) or cannot be written.
            UsageError: the format cannot be imported.
        """
        module, _, function = self.home.partition(":")
        try:
            write = cast("Write", getattr(importlib.import_module(module), function))
        except (ImportError, AttributeError) as error:
            raise UsageError(f"format {self.name}: {error}", f"check the package that offers {self.home}") from error
        return write(session, options, progress)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Format(
                "csv", "one CSV file per kind of event, as rocprofv3 writes them", "rocpd.convert.formats.csv:write"
            ),
            Format("pftrace", "a trace for the Perfetto UI and trace_processor", "rocpd.convert.formats.pftrace:write"),
            Format("otf2", "an OTF2 archive for Vampir, Cube and otf2-print", "rocpd.convert.formats.otf2:write"),
            Format("parquet", "a folder of Parquet files per view and rank", "rocpd.convert.formats.parquet:write"),
            Format("arrow", "one view as an Arrow file or stream", "rocpd.convert.formats.arrow:write"),
            Format("json", "Chrome trace events, for chrome://tracing and others", "rocpd.convert.formats.json:write"),
        )
    }
)
"""The formats of this package, in the order in which help shows them."""

ALIASES: Mapping[str, str] = MappingProxyType({"perfetto": "pftrace"})


def known_formats() -> dict[str, Format]:
    """Give FORMATS and those that installed packages add; a name of ours cannot be replaced."""
    import importlib.metadata

    found = {
        point.name: Format(point.name, f"from {point.dist.name if point.dist else point.value}", point.value)
        for point in importlib.metadata.entry_points(group=ENTRY_POINTS)
    }
    return {**FORMATS, **{name: entry for name, entry in found.items() if name not in FORMATS}}


def find(name: str) -> Format:
    """Give the format that a user named, by name or alias.

    Raises:
        UsageError: no such format.
    """
    known = known_formats()
    word = name.lower()
    entry = known.get(name) or known.get(ALIASES.get(word, word))
    if entry is None:
        raise UsageError(f"format {name}: unknown", f"one of {', '.join(known)}")
    return entry
