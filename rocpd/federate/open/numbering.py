"""Relations of the ranks of a job: duplicates in two files, machines, rank numbers and runs.

Goes by the process data in the files. Where ranks share a table suffix, it reads their tables too, to find out whether
one rank occurs in two inputs; where the process data of several machines say too little, their GPUs and kernels. Never
drops a rank whose rows differ, and never reads an event of other ranks.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing

from rocpd.base import Row, by_key
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.result import decoded
from rocpd.schema.quote import quote_name
from rocpd.schema.rules.events import MEASURED
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.schema.versions import suffix_of

_CLOCKS_DIFFER_NS = 600 * 10**9  # between machines whose clocks show the date: ranks further apart ran at another time
_TIMES_AND_VALUES = frozenset({"start", "end", "timestamp", "value", "size"})


def without_duplicates(ranks: Iterable[Rank]) -> tuple[tuple[Rank, ...], tuple[str, ...]]:
    """Return each rank once, and a note on each that is dropped or gets another GUID.

    Ranks with one suffix are the same if all tables but the metadata have equal numbers of rows and equal sums of
    ids, times, sizes, values and lengths of strings. If not, the later is a separate rank: its GUID gets `#2`.

    Raises:
        InputError: a file that has to be compared is damaged or locked.
    """
    by_suffix: dict[str, list[Rank]] = {}
    known: dict[tuple[object, str], Mapping[str, Row]] = {}

    def rows_of(rank: Rank) -> Mapping[str, Row]:
        key = (rank.opening, rank.suffix)
        if key not in known:
            known[key] = _sums(rank)
        return known[key]

    all_ranks: list[Rank] = []
    notes = []
    for rank in ranks:
        guid = rank.plain_guid
        others = by_suffix.setdefault(suffix_of(guid), [])
        if same := next((other for other in others if rows_of(rank) == rows_of(other)), None):
            notes.append(f"{rank.opening.path}: GUID {rank.guid} counts once, it is also in {same.opening.path}")
            continue
        distinct = dataclasses.replace(rank, guid=_unused(rank.guid, guid, {other.guid for other in others}))
        if distinct.guid != rank.guid:
            notes.append(
                f"{rank.opening.path}: the table suffix is that of {others[0].opening.path}, the rows are not: "
                f"a rank of its own, with the GUID {distinct.guid}"
            )
        others.append(distinct)
        all_ranks.append(distinct)
    return tuple(all_ranks), tuple(notes)


def _unused(guid: str, base: str, used: set[str]) -> str:
    number = 1
    while guid in used:
        number += 1
        guid = f"{base}#{number}"
    return guid


def _sums(rank: Rank) -> Mapping[str, Row]:
    """Return table -> number of rows and sums over them, of tables with rows."""
    with closing(rank.opening.connect()) as connection, as_input_error(rank.opening.path):
        selects = {base: _select(rank, base) for base in rank.tables if base != "rocpd_metadata"}
        rows = {base: tuple(connection.execute(sql).fetchall()[0]) for base, sql in selects.items()}
        return {base: row for base, row in rows.items() if row[0]}


def _select(rank: Rank, base: str) -> str:
    items = ["COUNT(*)"]
    for column in sorted(rank.tables[base], key=str.lower):
        name = quote_name(column)
        if column.lower() == "string":
            items.append(f"SUM(LENGTH(CAST({name} AS BLOB)))")
        elif column.lower() in _TIMES_AND_VALUES or (column.lower().endswith("id") and column.lower() != "guid"):
            # In halves, whose sums do not overflow for any number of rows.
            items += [f"COUNT({name})", f"SUM({name} & 4294967295)", f"SUM({name} >> 32)"]
    return f"SELECT {', '.join(items)} FROM {quote_name(base + rank.suffix)}"


def with_machines(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks, with the boot id in the machine id where one machine id has several boots.

    These are several machines, or one that was restarted meanwhile: times of two boots do not compare either way.
    """
    starts = {(rank.machine_id, rank.boot) for rank in ranks if rank.machine_id is not None and rank.boot}
    counts = Counter[str | None](machine for machine, _ in starts)
    return tuple(
        dataclasses.replace(rank, machine_id=f"{rank.machine_id}/{rank.boot}")
        if rank.boot and counts[rank.machine_id] > 1
        else rank
        for rank in ranks
    )


def numbered(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks in order, each with its number.

    If the processes that are ranks have distinct MPI ranks, these are their numbers, and the other processes follow:
    launchers, and children of ranks, such as workers of a data loader. Else all are numbered by (hostname, pid, GUID).
    """
    helpers = {rank.guid for rank in (*_launchers(ranks), *_started_by_ranks(ranks))}
    mpi_ranks = [rank.mpi_rank for rank in ranks if rank.guid not in helpers]
    in_order = sorted(ranks, key=lambda r: (r.hostname or "", r.pid if r.pid is not None else -1, r.guid))
    if not ranks or None in mpi_ranks or len(set(mpi_ranks)) != len(mpi_ranks):
        return tuple(dataclasses.replace(rank, number=index) for index, rank in enumerate(in_order))
    first = [dataclasses.replace(rank, number=rank.mpi_rank or 0) for rank in ranks if rank.guid not in helpers]
    first.sort(key=lambda rank: rank.number)
    others = (rank for rank in in_order if rank.guid in helpers)
    return (*first, *(dataclasses.replace(rank, number=n) for n, rank in enumerate(others, first[-1].number + 1)))


def _launchers(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the processes without an MPI rank that started ranks with one, and their other children without one."""
    starters = {(rank.machine_id, rank.parent) for rank in ranks if rank.mpi_rank is not None}
    without = [rank for rank in ranks if rank.mpi_rank is None and rank.pid is not None]
    launchers = {(rank.machine_id, rank.pid) for rank in without} & starters
    return [rank for rank in without if launchers & {(rank.machine_id, rank.pid), (rank.machine_id, rank.parent)}]


def _started_by_ranks(ranks: Iterable[Rank]) -> list[Rank]:
    """Return the processes that another process with the same MPI rank started."""
    known = (rank for rank in ranks if rank.machine_id is not None and rank.mpi_rank is not None)
    alike = by_key(((rank.machine_id, rank.mpi_rank), rank) for rank in known)
    return [rank for processes in alike.values() for rank in _without_first(processes)]


def _without_first(processes: Sequence[Rank]) -> list[Rank]:
    """Return all but the process that started before the others; only the children where the first is not known.

    The parent of a process need not be recorded, but the first process still lives when the others start.
    """
    pids = {rank.pid for rank in processes}
    children = [rank for rank in processes if rank.parent in pids]
    roots = [(rank.life, rank) for rank in processes if rank.parent not in pids]
    if not roots:
        return []  # damaged: each is the child of another
    lives = sorted(life for life, _ in roots if life)
    if len(lives) < len(roots) or len(roots) < 2 or not lives[0][0] < lives[1][0] <= lives[-1][0] <= lives[0][1]:
        return children
    return [*children, *(rank for life, rank in roots if life != lives[0])]


def with_runs(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks, each with the number of its run, which counts from 0 in the order of ranks."""
    runs: list[_Run] = []
    with_events = (rank for rank in ranks if MEASURED.isdisjoint(rank.tables))
    # A rank whose machine is unknown stands alone.
    machines = by_key((rank.number if rank.machine_id is None else rank.machine_id, rank) for rank in with_events)
    for machine in machines.values():
        taken: list[_Run] = []
        for part in map(_Run.of, _at_one_time(machine)):
            run = next((run for run in runs if run not in taken and run.may_be_of(part)), None)
            if run:
                run.add(part)
            else:
                runs.append(part)
            taken.append(run or part)
    if len(runs) < 2 or _are_parts_of_one([run.members for run in runs]):
        return tuple(ranks)
    runs.sort(key=lambda run: min(rank.number for rank in run.members))
    number = {rank.number: index for index, run in enumerate(runs) for rank in run.members}
    return tuple(dataclasses.replace(rank, run=number.get(rank.number, 0)) for rank in ranks)


def _at_one_time(ranks: Sequence[Rank]) -> Iterator[list[Rank]]:
    """Yield the ranks of one machine that lived at the same time, earliest first; undated ones go with the earliest."""
    part = [rank for rank in ranks if rank.life is None]
    last = None
    known = [(rank.life, rank) for rank in ranks if rank.life is not None]
    for (start, end), rank in sorted(known, key=lambda lived: (lived[0], lived[1].number)):
        if last is not None and start > last:
            yield part
            part = []
        part.append(rank)
        last = end if last is None else max(last, end)
    yield part


@dataclasses.dataclass(eq=False)
class _Run:
    """Processes of one job, while the processes of its machines are gathered.

    Args:
        members: the processes.
        mpi_ranks: MPI ranks of the processes.
        commands: commands of the processes, without numbers.
        sources: traces that the processes were imported from.
        lived: first start and last end of the processes whose clock shows the date [ns]; None: no clock does.
    """

    members: list[Rank]
    mpi_ranks: set[int]
    commands: set[str | None]
    sources: set[str]
    lived: tuple[int, int] | None

    @classmethod
    def of(cls, ranks: list[Rank]) -> _Run:
        """Return the run of processes of one machine that lived at the same time."""
        lived = _whole_life(rank.life for rank in ranks if rank.has_date)
        mpi_ranks = {rank.mpi_rank for rank in ranks if rank.mpi_rank is not None}
        return cls(ranks, mpi_ranks, set(map(_command, ranks)), {rank.source for rank in ranks if rank.source}, lived)

    @functools.cached_property
    def gpus(self) -> set[str]:
        """The architectures of the GPUs of processes without an MPI rank; importers may know only their numbers."""
        without = (rank for rank in self.members if rank.mpi_rank is None)
        names = (_names(rank, "rocpd_info_agent", "name", "type") for rank in without)
        return {name for of_rank in names for name, kind in of_rank if kind == "GPU" and name.startswith("gfx")}

    @functools.cached_property
    def has_collectives(self) -> bool:
        """Whether a process has kernels that communicate."""
        categories = load(None)
        names = (_names(rank, "rocpd_info_kernel_symbol", "display_name") for rank in self.members)
        return any(is_communication(categories.of(name)) for of_rank in names for (name,) in of_rank)

    def add(self, part: _Run) -> None:
        """Add the processes of another machine."""
        self.gpus |= part.gpus
        if not vars(self).get("has_collectives", True):  # the answer was of the earlier members
            self.has_collectives = part.has_collectives
        self.members += part.members
        self.mpi_ranks |= part.mpi_ranks
        self.commands |= part.commands
        self.sources |= part.sources
        self.lived = _whole_life((self.lived, part.lived))

    def may_be_of(self, part: _Run) -> bool:
        """Whether both are of one job: one command and distinct MPI ranks; without MPI ranks, equal GPUs and time.

        Where no command is known, they are of one trace, or both communicate, or lived at the same time.
        """
        commands = self.commands & part.commands
        if not commands or not self.mpi_ranks.isdisjoint(part.mpi_ranks):
            return False
        if (self.mpi_ranks and part.mpi_ranks) or not self.sources.isdisjoint(part.sources):
            return True
        are_others = self.gpus and part.gpus and self.gpus.isdisjoint(part.gpus)
        if are_others or not self._may_have_met(part):
            return False
        return commands != {None} or (self.has_collectives and part.has_collectives) or self._overlaps(part)

    def _overlaps(self, part: _Run) -> bool:
        """Whether processes of both lived at the same time, if their clocks were the same."""
        lives, others = ([rank.life for rank in run.members if rank.life] for run in (self, part))
        return any(max(start, first) <= min(end, last) for start, end in lives for first, last in others)

    def _may_have_met(self, part: _Run) -> bool:
        """Whether both may have had processes at the same time; unless their clocks show the date, they may."""
        if self.lived is None or part.lived is None:
            return True
        (start, end), (other_start, other_end) = self.lived, part.lived
        return max(start, other_start) - min(end, other_end) <= _CLOCKS_DIFFER_NS


def _names(rank: Rank, base: str, *columns: str) -> list[tuple[str, ...]]:
    """Return the text of some columns of a table; nothing where the file lacks one."""
    if not set(columns) <= {*rank.tables.get(base, ())}:
        return []
    texts = ", ".join(f"CAST({quote_name(column)} AS BLOB)" for column in columns)
    with closing(rank.opening.connect()) as connection, as_input_error(rank.opening.path):
        rows = connection.execute(f"SELECT DISTINCT {texts} FROM {quote_name(base + rank.suffix)}").fetchall()
        return [tuple(decoded(text) or "" for text in row) for row in rows]


def _whole_life(lives: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return the first start and last end of the known lives; None if none is known."""
    known = [life for life in lives if life]
    return (min(start for start, _ in known), max(end for _, end in known)) if known else None


def _command(rank: Rank) -> str | None:
    """Return the command without numbers, which may be ranks or ports."""
    return None if rank.command is None else re.sub(r"\d+", "#", rank.command)


def _are_parts_of_one(runs: Sequence[Sequence[Rank]]) -> bool:
    """Whether all processes have MPI ranks, each of one run only: the children of a rank have its MPI rank."""
    of_runs = [{rank.mpi_rank for rank in run} for run in runs]
    mpi_ranks = set().union(*of_runs)
    return None not in mpi_ranks and len(mpi_ranks) == sum(map(len, of_runs))
