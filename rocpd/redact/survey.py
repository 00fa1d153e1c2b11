"""Owns what is known before anything is replaced: hosts, machines, users, secrets and GUIDs of all ranks.

They are replaced wherever they stand, not only in the columns that they come from.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.frozen import frozen
from rocpd.read.documents import json_object
from rocpd.redact.columns import MOMENTS_AND_ADDRESSES
from rocpd.redact.names import kernel_names, marker_names
from rocpd.redact.options import Clue
from rocpd.redact.pseudonyms import Pseudonyms
from rocpd.redact.texts import NOT_TELLING, SECRET_VARIABLES
from rocpd.schema.quote import quote_name
from rocpd.trace.kernel_names import without_instrumentation
from rocpd.trace.tables import MEASURED

_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOST_VARIABLES = ("HOSTNAME", "HOST", "SLURMD_NODENAME", "SLURM_JOB_NODELIST", "SLURM_SUBMIT_HOST")
_FORMS = ("formatted_kernel_name", "demangled_kernel_name", "truncated_kernel_name")
_MESSAGES = "SELECT DISTINCT json_extract(extdata, '$.message') FROM rocpd_event WHERE json_valid(extdata)"
_SMALL = 4096  # times and addresses up to here are none
_LEAST = 3  # characters of what is replaced in the middle of any text


@frozen
class Survey:
    """What identifies.

    Args:
        known: text -> what it is.
        guids: GUID of a rank -> the one that it gets; in the same order, so that ranks keep their numbers.
    """

    known: Mapping[str, Clue]
    guids: Mapping[str, str]


def survey(session: Federation, pseudonyms: Pseudonyms, keep: Collection[str]) -> Survey:
    """Look at all ranks, and give hosts and machines names in their order; variables in `keep` give nothing away."""
    known: dict[str, Clue] = {}
    for rank in session.ranks:
        for text, kind in _of_rank(session.reader(rank.number).whole(), keep):
            if text not in NOT_TELLING and len(text) >= _LEAST:
                known.setdefault(text, kind)
    for kind in (Clue.HOST, Clue.MACHINE):
        pseudonyms.in_order(kind, [text for text, of in known.items() if of is kind])
    guids = sorted({rank.guid for rank in session.ranks})
    fresh = sorted(str(uuid.uuid4()) for _ in guids)
    return Survey(known, dict(zip(guids, fresh, strict=True)))


def kernels_and_markers(session: Federation) -> dict[str, str]:
    """Return names of kernels and texts of markers -> what stands in their place in strict files."""
    symbols: set[tuple[str, ...]] = set()
    markers: set[str] = set()
    for rank in session.ranks:
        reader = session.reader(rank.number).whole()
        symbols.update(_texts(reader, "kernel_symbols", "display_name", "kernel_name", *_FORMS))
        markers.update(str(text) for (text,) in reader.rows(_MESSAGES) if text)
    measured = _measured_kernels(session)
    known = {without_instrumentation(display): display for display, *_ in sorted(symbols)}
    names = kernel_names({*symbols, *((kernel, "") for kernel in measured if kernel not in known)})
    same = {kernel: names[known[kernel]] for kernel in measured if known.get(kernel) in names}
    return {**marker_names(markers), **names, **same}


def _measured_kernels(session: Federation) -> set[str]:
    """Return the names of kernels that runs with instrumentation measured, which find those of a trace."""
    return {
        str(kernel)
        for rank in session.ranks
        for base in sorted(MEASURED)
        if "kernel" in rank.tables.get(base, ())
        for (kernel,) in session.reader(rank.number).whole().rows(f"SELECT DISTINCT kernel FROM {base}")  # noqa: S608
        if isinstance(kernel, str)
    }


def shifts(session: Federation) -> dict[tuple[str, str], str]:
    """Return (table, column) -> expression in place of times and addresses: they count from the least of the job."""
    least = {True: 1 << 62, False: 1 << 62}
    for rank in session.ranks:
        for base, columns in MOMENTS_AND_ADDRESSES.items():
            for column, is_time in columns.items():
                if column in rank.tables.get(base, ()):
                    name = quote_name(column)
                    sql = f"SELECT MIN({name}) FROM {base} WHERE typeof({name}) = 'integer' AND {name} > {_SMALL}"  # noqa: S608
                    [(value,)] = session.reader(rank.number).whole().rows(sql)
                    least[is_time] = min(least[is_time], least[is_time] if value is None else int(value))
    return {
        (
            base,
            column,
        ): f"CASE WHEN {{column}} > {_SMALL} THEN {{column}} - {least[is_time] - 2 * _SMALL} ELSE {{column}} END"
        for base, columns in MOMENTS_AND_ADDRESSES.items()
        for column, is_time in columns.items()
    }


def _of_rank(reader: RankReader, keep: Collection[str]) -> Iterator[tuple[str, Clue]]:
    for host, machine, domain in _texts(reader, "rocpd_info_node", "hostname", "machine_id", "domain_name"):
        yield host, Clue.HOST
        yield host.split(".")[0], Clue.HOST
        yield domain, Clue.HOST
        yield machine, Clue.MACHINE
    for environment, extdata in _texts(reader, "rocpd_info_process", "environment", "extdata"):
        yield from _of_environment(environment, keep)
        yield str((json_object(extdata) or {}).get("boot_id", "")), Clue.MACHINE


def _texts(reader: RankReader, base: str, *columns: str) -> Iterable[tuple[str, ...]]:
    items = ", ".join(f'CAST("{column}" AS BLOB)' for column in columns)
    for row in reader.rows(f"SELECT {items} FROM {base}"):  # noqa: S608 (names of the contract)
        yield tuple(bytes(cell or b"").decode("utf-8", "replace") for cell in row)


def _of_environment(text: str, keep: Collection[str]) -> Iterator[tuple[str, Clue]]:
    for name, value in ((name, str(value)) for name, value in (json_object(text) or {}).items()):
        if name in keep:
            continue
        if SECRET_VARIABLES.search(name):
            yield value, Clue.SECRET
        elif name in _USER_VARIABLES:
            yield value, Clue.USER
        elif name == "HOME":
            yield PurePosixPath(value).name, Clue.USER
        elif name in _HOST_VARIABLES:
            yield value, Clue.HOST
