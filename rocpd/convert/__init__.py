"""The table of contents of trace formats: one row per format, third parties add theirs by entry point.

Never imports a writer (or numpy) before that writer is asked to write.
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
"""Entry point group; each one names a `Format`, or a function (session, options, progress) -> paths written."""


@frozen
class Format:
    """One output format.

    Args:
        name: what `--output-format` takes.
        doc: one line for people.
        home: `module:function` that writes it.
        endings: of names of outputs, `.pftrace`; `-o` with one of them names the output itself.
        reads: options that it reads: names of fields of `ConvertOptions`, or declarations of its own.
        aliases: further names that are taken for it.
        hints: words with which people look for it; they are answered with its name.
        is_archive: the path written is the entry to what lies beside it under the same name.
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
            session: open files; what the user should know goes to `session.note`.
            options: where to and how.
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
        """Return what a Python caller asked of the options that it reads, each value of its option's type.

        Raises:
            UsageError: a value of another type.
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
    """Return FORMATS and those that installed packages add; a name of ours cannot be replaced."""
    others = {name: entry for name, entry in entries.added(ENTRY_POINTS, Format, _plain) if name not in FORMATS}
    return {**FORMATS, **others}


def _plain(name: str, home: str, package: str) -> Format:
    """Return the entry of a function alone: it may read whatever our own formats read."""
    return Format(name, f"from {package}", home, reads=tuple(option.name for option in options_of(ConvertOptions)))


def find(name: str) -> Format:
    """Return the format that a user named, by name or alias.

    Raises:
        UsageError: no such format.
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
    """Return the endings that name an output of one of `formats` itself, those of compressed outputs too."""
    return [
        ending + more
        for entry in formats
        for ending in entry.endings
        for more in (("", GZIP) if "gzip" in entry.reads else ("",))
    ]


def check_options(formats: Iterable[Format], given: Iterable[str]) -> list[str]:
    """Return the flags of options of AMD's that none of `formats` reads.

    Raises:
        UsageError: another option that none of them reads.
    """
    asked = {entry.name: entry.options for entry in formats}
    return entries.unread(given, asked, {entry.name: entry.options for entry in known_formats().values()})
