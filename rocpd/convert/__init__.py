"""The list of trace formats: one row per format; other packages add theirs by entry point.

A writer (or numpy) is imported only when it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, cast

from rocpd.base import Progress, UsageError, entries, frozen
from rocpd.base.option import Option, options_of, typed
from rocpd.convert.options import GZIP, ConvertOptions

if TYPE_CHECKING:
    from rocpd.federate.federation import Federation

Write: TypeAlias = "Callable[[Federation, ConvertOptions, Progress | None], tuple[Path, ...]]"

ENTRY_POINTS = "rocpd.formats"
"""Entry point group; each entry point names a `Format`, or a function (session, options, progress) -> paths written."""


@frozen
class Format:
    """One output format.

    Args:
        name: the value of `--output-format`.
        doc: one line for people.
        home: `module:function` of the writer.
        endings: endings of the names of outputs, such as `.pftrace`; `-o` with one of them names the output itself.
        reads: options that it reads: names of fields of `ConvertOptions`, or declarations of its own.
        aliases: further names for it.
        hints: words with which people look for it; they are answered with its name.
        is_archive: whether the path written is the entry to further files beside it, under the same name.
    """

    name: str
    doc: str
    home: str
    endings: tuple[str, ...] = ()
    reads: tuple[str | Option, ...] = ()
    aliases: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    is_archive: bool = False

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that it reads."""
        return entries.declared(self.reads, ConvertOptions)

    def write(self, session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
        """Write all ranks of `session`; return the paths written.

        Args:
            session: open files; notes for the user go to `session.note`.
            options: the place and the look of outputs.
            progress: called now and then with rows done and rows in total.

        Raises:
            OutputError: an output exists (without `force`) or cannot be written.
            UsageError: the format cannot be imported.
        """
        write = cast("Write", entries.load(self.home, f"format {self.name}", UsageError))
        options = entries.with_defaults(options, self.options)
        if "gzip" in self.reads:
            options = options.without_gz(ending for entry in known_formats().values() for ending in entry.endings)
        return write(session.with_amds_windows(), options, progress)

    def values(self, asked: Mapping[str, object]) -> dict[str, object]:
        """Return the values that a Python caller gives for its options, each converted to the type of the option.

        Raises:
            UsageError: a value has another type.
        """
        return {option.name: typed(option, asked[option.name]) for option in self.options if option.name in asked}


_SHOWN = ("group_by_queue", "agent_index_value", "kernel_rename", "annotate_args", "annotate_pmc", "queue_depth")
_FILES = ("split", "gzip")

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Format(
                "csv",
                "one CSV file per kind of event, as rocprofv3 writes them",
                "rocpd.convert.formats.csv:write",
                (".csv",),
                ("agent_index_value", "kernel_rename", *_FILES, "stats", "amd_version", "with_rank"),
            ),
            Format(
                "pftrace",
                "a trace for the Perfetto UI and trace_processor",
                "rocpd.convert.formats.pftrace:write",
                (".pftrace",),
                (*_SHOWN, "processes", *_FILES),
                aliases=("perfetto",),
            ),
            Format(
                "otf2",
                "an OTF2 archive for Vampir, Cube and otf2-print",
                "rocpd.convert.formats.otf2:write",
                (".otf2",),
                ("group_by_queue", "agent_index_value", "kernel_rename", "queue_depth", "split"),
                hints=("vampir",),
                is_archive=True,
            ),
            Format(
                "parquet",
                "a folder of Parquet files per view and rank",
                "rocpd.convert.formats.tables:write_parquet",
                (".parquet",),
                ("views", "with_rank"),
            ),
            Format(
                "arrow",
                "one view as an Arrow file or stream",
                "rocpd.convert.formats.tables:write_arrow",
                (".arrow", ".arrows"),
                ("views", "arrow_stream"),
                hints=("feather", "ipc"),
            ),
            Format(
                "json",
                "Chrome trace events, for chrome://tracing and others",
                "rocpd.convert.formats.json:write",
                (".json",),
                (*_SHOWN, *_FILES),
                hints=("chrome", "trace-event", "speedscope"),
            ),
        )
    }
)
"""The formats of this package, in the order in which help shows them."""


def known_formats() -> dict[str, Format]:
    """Return FORMATS and the formats of installed packages; these cannot replace a name in FORMATS."""
    others = {name: entry for name, entry in entries.added(ENTRY_POINTS, Format, _plain) if name not in FORMATS}
    return {**FORMATS, **others}


def _plain(name: str, home: str, package: str) -> Format:
    """Return the entry of a plain function: it may read all options of the built-in formats."""
    return Format(name, f"from {package}", home, reads=tuple(option.name for option in options_of(ConvertOptions)))


def find(name: str) -> Format:
    """Return the format that a user named, by name or alias.

    Raises:
        UsageError: there is no such format.
    """
    known = known_formats()
    word = name.lower()
    for entry in known.values():
        if name == entry.name or word in (entry.name, *entry.aliases):
            return entry
    meant = [entry.name for entry in known.values() if word in entry.hints]
    hint = f"did you mean {meant[0]}?" if meant else entries.near(word, known, f"one of {', '.join(known)}")
    raise UsageError(f"format {name}: unknown", hint)


def endings_of(formats: Iterable[Format]) -> list[str]:
    """Return the endings that name an output of `formats` itself, including those of compressed outputs."""
    return [
        ending + more
        for entry in formats
        for ending in entry.endings
        for more in (("", GZIP) if "gzip" in entry.reads else ("",))
    ]


def check_options(formats: Iterable[Format], given: Iterable[str]) -> list[str]:
    """Return the flags of AMD's options that none of `formats` reads.

    Raises:
        UsageError: none of them reads another given option.
    """
    asked = {entry.name: entry.options for entry in formats}
    return entries.unread(given, asked, {entry.name: entry.options for entry in known_formats().values()})
