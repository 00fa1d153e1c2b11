"""Owns the session that users have: files answering as one database, opened by `connect`.

The only place that knows both the engine and what is built on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rocpd.federate import limits as standard
from rocpd.federate.connect import HowToOpen, Inputs, Workers, open_job
from rocpd.federate.federation import Federation, Notes, OnNote
from rocpd.federate.limits import Limits
from rocpd.federate.select.align import Align
from rocpd.federate.select.filters import Filters, unmatched
from rocpd.federate.select.selection import Selection
from rocpd.federate.select.window import Window


class Session(Federation):
    """Many rocpd files as one read-only database. Made by `rocpd.connect`; use it in a `with` block or call `close`."""


def connect(  # noqa: PLR0913 (keywords, each an everyday choice)
    inputs: Inputs = None,
    *,
    skip_bad: bool = False,
    align: str | Align = Align.AUTO,
    clock_offsets: Mapping[str, int] | None = None,
    window: Window | None = None,
    filters: Filters | None = None,
    client: Workers = None,
    jobs: int | None = None,
    limits: Limits | None = None,
    on_note: OnNote | None = None,
) -> Session:
    """Open rocpd files as one database.

    Args:
        inputs: file, glob, folder, package or a list of them; None: `$ROCPD_INPUT`, else what lies in the working
            directory.
        skip_bad: leave out files that cannot be used, with a note, instead of raising.
        align: `auto`, `none` or `start`: how ranks are laid on one time line where that matters.
        clock_offsets: host -> what is added to its times [ns] where ranks are laid on one time line; replaces `align`.
        window: let only events in it count.
        filters: let only these ranks, hosts, agents, streams, categories or kernels count.
        client: whose workers read the files: a `distributed.Client`, the address of a Dask scheduler, or a
            `rocpd.federate.run.cluster.Cluster`, which has more to choose; None: the cores of this machine.
        jobs: threads and processes that work on ranks on this machine; None: one per core, where they pay.
        limits: sizes and times at which the way of working changes.
        on_note: called with each line that the user should know.

    Raises:
        InputError: nothing found, or a file that cannot be used.
        UsageError: a window or filter that makes no sense.
        RocpdError: nothing is left of the job.
    """
    notes = Notes(on_note)
    how = HowToOpen(skip_bad, Align(align), clock_offsets or {}, client, jobs, limits or standard.DEFAULT)
    job = open_job(inputs, how, notes)
    whole = Session(job, Selection(), notes)
    try:
        for note in unmatched(whole.ranks, filters) if filters else ():
            whole.note(note)
        selected = whole.where(filters) if filters else whole
        if clock_offsets:
            _ = selected.alignment  # an offset for an unknown host is refused now, not when times first matter
        selected = selected.within(window) if window else selected
    except BaseException:
        whole.close()
        raise
    return Session(selected.job, selected.selection, notes)
