"""Exposed communication by operation and size, and the share of it that is waiting for other ranks.

Counts communication that is matched already, and never looks for partners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rocpd.base import Ints, Row
from rocpd.facts.columns import distinct, find_rows
from rocpd.facts.communication.collectives import Channel, Group
from rocpd.facts.communication.exposed import ExposedPieces, Waits, waited
from rocpd.facts.communication.rccl import BARRIER
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Sums, merge, percent
from rocpd.summary.result import Field, Summary, by_name, table_of
from rocpd.table.human import readable

RULE = "comm.split"
SENDS = "send or receive"
PARTS = ("waiting for other ranks", "transfer", "not matched")
_NAMED = 2  # operations that a finding names
_MOSTLY = 50  # percent
_MUCH = 0.1  # share of exposed communication below which an operation is not named

TABLES = by_name(
    table_of(
        "exposed-communication",
        "Communication that nothing hides, by what it moves: how long ranks wait in it, and how long it transfers.",
        Field("operation", "", f"all-reduce …; {SENDS}; NULL where calls of RCCL don't say it"),
        Field("bytes", "bytes", "size of one, of the whole result; NULL where calls of RCCL don't say it"),
        Field("ranks", "", "how many take part in one; NULL where that is unknown"),
        Field("name", "", "kernel", is_kernel=True),
        Field("kernels", "", "of all ranks"),
        Field("exposed_ns", "ns", "time in which they run and nothing computes, of all ranks together"),
        Field("percent", "%", "share of all exposed communication", is_share=True),
        Field("waiting_ns", "ns", "of that, in which they wait for other ranks"),
        Field("transfer_ns", "ns", "of that, in which they move data"),
        Field(
            "unmatched_ns", "ns", "of that, of which nobody can say it: partners are unknown, or were not read", True
        ),
        title="Exposed communication",
    ),
    table_of(
        "exposed-parts",
        "The same in all: how much of exposed communication waits for other ranks.",
        Field("part", "", "activity of ranks meanwhile"),
        Field("time_ns", "ns", "of all ranks together"),
        Field("percent", "%", "share of all exposed communication", is_share=True),
    ),
)


_Moved = tuple[str | None, int | None, int | None, str | None]  # operation, bytes, ranks, name


def exposed_communication(
    ranks: Iterable[tuple[Sequence[Channel], ExposedPieces]], groups: Iterable[Group], waits: Waits
) -> Iterator[Summary]:
    """Yield the tables, if any communication is exposed in the time that counts.

    Args:
        ranks: exposed communication of each rank.
        groups: the groups of collectives: channels of one communicator each.
        waits: waits of the kernels of matched channels.
    """
    sizes = {id(member): group[0].size or len(group) for group in groups for member in group}
    sums: dict[_Moved, Sums] = {}
    for channels, pieces in ranks:
        waiting, unmatched = waited(pieces, channels, waits)
        length = pieces.end - pieces.start
        times = np.stack([length, waiting, length - waiting - unmatched, unmatched])
        for channel in channels:
            for moved, of_moved in _of_channel(channel, sizes.get(id(channel)), pieces.row, times):
                merge(sums, {moved: of_moved})
    in_all: int = sum(times[1] for times in sums.values())
    if in_all:
        rows = [(*moved, *times[:2], percent(times[1], in_all), *times[2:]) for moved, times in sums.items()]
        rows.sort(key=lambda row: (-row[5], *map(str, row[:4])))
        parts = [sum(row[column] for row in rows) for column in (7, 8, 9)]  # in the order of PARTS
        shares = [time * 100 / in_all for time in parts]
        findings = (_split(shares, _most(rows)),)
        yield Summary.whole(TABLES["exposed-communication"], rows, findings=findings)
        yield Summary.whole(TABLES["exposed-parts"], list(zip(PARTS, parts, shares, strict=True)), findings=findings)


def _of_channel(channel: Channel, size: int | None, row: Ints, times: Ints) -> Iterator[tuple[_Moved, Sums]]:
    """Yield the data that kernels of a channel move, the number of exposed kernels, and the times of their pieces."""
    at, is_its = find_rows(channel.rows, row)
    pieces = is_its.nonzero()[0]
    codes = channel.moves[at[pieces]] if len(channel.moves) else np.zeros(len(pieces), np.int64)
    for code in distinct(codes).tolist():
        of_transfer = pieces[codes == code]
        transfer = channel.transfers[code] if len(channel.moves) else None
        operation, volume = (SENDS, None) if channel.role else (None, None)
        if transfer and transfer.operation != BARRIER:
            operation, volume = transfer.shown, transfer.volume(size or 1) or None
        kernels = len(distinct(row[of_transfer]))
        yield (operation, volume, size, channel.shown), Sums((kernels, *times[:, of_transfer].sum(1).tolist()))


def _split(shares: Sequence[float], most: str) -> Finding:
    """Return the finding on the parts of exposed communication [%], and the operations with most of it."""
    evidence = dict(zip(("waiting_percent", "transfer_percent", "unmatched_percent"), shares, strict=True))
    finding = Finding("", RULE, Verdict.NOTE, Confidence.CERTAIN, evidence={**evidence, "most": most})
    return replace(finding, text=f"exposed communication: {split_of(finding)}")


def _most(rows: Sequence[Row]) -> str:
    """Return the names of the operations with most exposed communication; empty if calls don't give them."""
    named = [row for row in rows[:_NAMED] if row[0] and row[6] >= _MUCH * 100]
    return ", ".join(f"{row[0]}{_of(row[1])} ({row[6]:.0f} %)" for row in named)


def _of(size: int | None) -> str:
    return "" if size is None else f" of {readable(size, 'bytes')}"


def split_of(finding: Finding, is_brief: bool = False) -> str:
    """Return the finding of the table as a part of a sentence; in brief without operations."""
    waiting, transfer, unmatched = (
        float(str(finding.evidence[f"{part}_percent"])) for part in ("waiting", "transfer", "unmatched")
    )
    if unmatched > _MOSTLY:
        return "whether it waits for other ranks is not known"
    parts = [f"{waiting:.0f} % of it waits for others", f"{transfer:.0f} % transfers"]
    parts += [f"{unmatched:.0f} % is not matched"] if unmatched >= 1 else []
    parts += [f"most in {finding.evidence['most']}"] if finding.evidence["most"] and not is_brief else []
    return ", ".join(parts)
