"""Owns `rocpd cache`: what was imported to answer commands."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated

from rocpd.cli import tables
from rocpd.cli.diagnostics import note
from rocpd.cli.options import OutputOptions, TableOptions
from rocpd.frozen import frozen
from rocpd.option import Option


class CacheAction(enum.StrEnum):
    """What can be done with the cache."""

    LIST = "list"
    CLEAR = "clear"


@frozen
class CacheOptions:
    """What is asked of the cache."""

    action: Annotated[CacheAction, Option("What to do.", "list|clear", is_positional=True, is_required=True)]
    format: Annotated[str, tables.FORMAT] = ""


def cache(asked: CacheOptions) -> None:
    """List or remove what was imported to answer commands.

    Traces of other profilers are imported once, into $XDG_CACHE_HOME/rocpd/import, else ~/.cache/rocpd/import. Above
    $ROCPD_CACHE_SIZE (20G) what was not used for the longest time goes by itself.

    Examples:
        rocpd cache list
        rocpd cache clear
    """
    from rocpd.importers.cache import clear, entries

    if asked.action is CacheAction.CLEAR:
        note(f"removed {clear() / 1e6:.1f} MB")
        return
    rows = (
        (entry.source, entry.importer, len(entry.files), entry.size, f"{datetime.fromtimestamp(entry.used):%F %T}")
        for entry in entries()
    )
    form, _ = tables.format_and_path(asked.format, OutputOptions())
    with tables.open_output(None, TableOptions()) as out:
        tables.write_rows(("source", "importer", "ranks", "bytes", "last_used"), rows, out, form)
