"""Owns `rocpd cache`: what was imported, indexed or kept to answer commands."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated

from rocpd.base.frozen import frozen
from rocpd.base.option import Option
from rocpd.cli import tables
from rocpd.cli.diagnostics import note
from rocpd.cli.options import OutputOptions, TableOptions


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
    """List or remove what was imported, indexed or kept of answers.

    Traces of other profilers are imported once, into $XDG_CACHE_HOME/rocpd/import, else ~/.cache/rocpd/import; the
    index lies beside them, and so does what ranks with an index answered to analyses. Above $ROCPD_CACHE_SIZE (20G) of
    one of them, what was not used for the longest time goes by itself, and with it what was made of files that have
    changed since. An index in a folder of your choice is neither listed nor removed.

    Examples:
        rocpd cache list
        rocpd cache clear
    """
    from rocpd.base.home import cache_root
    from rocpd.importers.cache import imports
    from rocpd.index.entries import indexes
    from rocpd.index.kept import kept_answers

    imported, indexed, answers = imports(), indexes(cache_root("index")), kept_answers()
    if asked.action is CacheAction.CLEAR:
        note(f"removed {(imported.clear() + indexed.clear() + answers.clear()) / 1e6:.1f} MB")
        return
    rows = [
        *((each.source, each.importer, len(each.files), each.size, _time(each.used)) for each in imported.entries()),
        *((each.source, "index", 1, each.size, _time(each.used)) for each in indexed.entries()),
        *((each.source, "answers", 1, each.size, _time(each.used)) for each in answers.entries()),
        *(
            (str(folder.path), "unreadable", 0, folder.size, _time(folder.used))
            for kind in (imported, indexed, answers)
            for folder in kind.unreadable()
        ),
    ]
    form, _ = tables.format_and_path(asked.format, OutputOptions())
    with tables.open_output(None, TableOptions()) as out:
        tables.write_rows(("source", "made_by", "ranks", "bytes", "last_used"), iter(rows), out, form)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%F %T}"
