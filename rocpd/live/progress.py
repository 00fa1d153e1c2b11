"""The progress of each process of a job, from the state files beside its databases, and from the databases.

Reads state files; the federation reads the rest. Draws no conclusions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from rocpd.base import InputError, frozen
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.schema.live_state import ENDED, FAILED, GroupState, LiveState, ThreadState, read_state, state_file
from rocpd.schema.rules.kernel_categories import is_communication, load

SILENT_NS = 3_000_000_000
"""Time without a sign of life after which a process counts as stopped: signs come once a second."""


class Life(StrEnum):
    """The state of a process."""

    RUNS = "runs"
    STOPPED = "stopped"
    ENDED = "ended"
    UNKNOWN = "not recorded"


@frozen
class RankProgress:
    """One process, and its progress.

    Args:
        rank: its number.
        host: its host.
        run: number of its job among the files.
        life: whether it runs.
        silent_ns: time since its last sign of life [ns], 0: it gives signs.
        behind_ns: time from its last sign of life to the last one of the job [ns].
        lost_rows: whether it can write no rows any more.
        state: content of its state file, None without one.
        last: the last collective that it completed, by its rows: name and end [ns of its clock]; None: none.
    """

    rank: int
    host: str
    run: int
    life: Life
    silent_ns: int = 0
    behind_ns: int = 0
    lost_rows: bool = False
    state: LiveState | None = None
    last: tuple[str, int] | None = None

    @property
    def groups(self) -> tuple[GroupState, ...]:
        """The progress of its groups."""
        return self.state.groups if self.state else ()

    @property
    def calls(self) -> tuple[ThreadState, ...]:
        """Threads that are in calls: the first thread, then those with the longest calls."""
        if self.state is None:
            return ()
        pid = self.state.pid
        within = (thread for thread in self.state.threads if thread.since)
        return tuple(sorted(within, key=lambda thread: (thread.tid != pid, thread.since)))

    @property
    def range(self) -> ThreadState | None:
        """The thread whose range describes the work of the process: the first one, else that of the newest range."""
        if self.state is None:
            return None
        pid = self.state.pid
        within = (thread for thread in self.state.threads if thread.range_since)
        return max(within, key=lambda thread: (thread.tid == pid, thread.range_since), default=None)

    @property
    def is_gone(self) -> bool:
        """Whether it gives no sign of life while others of the job do; one that lost its disk gives none either."""
        return self.behind_ns > SILENT_NS and not self.lost_rows

    def since(self, at: int) -> int:
        """Return the time since a time of its clock [ns], up to now or to the last sign of life of the job."""
        return round((self.state.clock - at) / self.state.speed) + self.behind_ns if self.state else 0


def progress(session: Federation) -> tuple[RankProgress, ...]:
    """Return the progress of each rank of a job, by rank; notes state files that cannot be used."""
    places = [(rank, Path(rank.opening.path)) for rank in session.ranks]
    return progress_beside(places, _last_collectives(session), session.note)


def progress_beside(
    places: Sequence[tuple[Rank, Path]],
    last: Mapping[int, tuple[str, int]] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[RankProgress, ...]:
    """Return the progress of ranks from only the state files beside their databases, which takes 1 ms per rank.

    Args:
        places: each rank, and its database.
        last: rank -> the last collective that it completed, if known.
        note: called with notes on files that cannot be used.
    """
    states = [_state(rank, path, note) for rank, path in places]
    newest = max((state.wall for state in states if state), default=0)
    known = last or {}
    return tuple(
        _progress(rank, known.get(rank.number), state, newest) for (rank, _), state in zip(places, states, strict=True)
    )


def _progress(rank: Rank, last: tuple[str, int] | None, state: LiveState | None, newest: int) -> RankProgress:
    host = rank.hostname or "unknown host"
    if state is None:
        life = Life.ENDED if rank.life is not None and rank.life[1] else Life.UNKNOWN
        return RankProgress(rank.number, host, rank.run, life, last=last)
    silent = max(0, time.time_ns() - state.wall)
    is_silent = silent > SILENT_NS or bool(state.flags & ENDED)
    life = Life.STOPPED if is_silent else Life.RUNS
    lost = bool(state.flags & FAILED)
    behind = max(0, newest - state.wall)
    return RankProgress(rank.number, host, rank.run, life, silent * is_silent, behind, lost, state, last)


def _state(rank: Rank, database: Path, note: Callable[[str], None]) -> LiveState | None:
    """Return the state file beside a database if it belongs to it."""
    path = state_file(database)
    try:
        state = read_state(path)
    except FileNotFoundError:
        return None
    except (OSError, InputError) as error:
        note(f"{path.name}: not used: {error}")
        return None
    if state.guid != rank.guid:
        note(f"{path.name}: not used: it is of another process than {database.name}")
        return None
    return state


def _last_collectives(session: Federation) -> Mapping[int, tuple[str, int]]:
    """Return the last collective that each rank completed, by its kernels."""
    sql = 'SELECT rank, name, MAX("end") FROM kernels GROUP BY rank, name'
    rows: Sequence[Sequence[object]] = list(session.execute(sql))
    names = {str(row[1]) for row in rows}
    categories = load(None)
    communicates = {name for name in names if is_communication(categories.of(name))}
    last: dict[int, tuple[str, int]] = {}
    for rank, name, end in rows:
        if name in communicates and isinstance(end, int) and isinstance(rank, int):
            last[rank] = max(last.get(rank, ("", 0)), (str(name), end), key=lambda each: each[1])
    return last
