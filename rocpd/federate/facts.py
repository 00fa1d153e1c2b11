"""What a job is, in a few lines: ranks and hosts, command, GPUs, versions, when it ran. Only reads.

Files do not have the version of ROCm: it is in the paths of the process' environment. They have a date where their
clock counts the time of day; when a file was written says nothing of the run, as files are copied.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from rocpd.base.amount import amount
from rocpd.base.frozen import frozen
from rocpd.base.types import Row
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank

_MINUTE_NS = 60_000_000_000
_FEW = 3  # hosts, commands, versions that are named
_ROCM = re.compile(r"/rocm-(\d+\.\d+(?:\.\d+)?)")
_OURS = '"recorder"'  # in what our own recorder says of a process
_LOCAL_MEMORY = (1, 2)  # heaps of a GPU, as KFD numbers them: public and private frame buffer
_AGENTS = """
SELECT type, name, product_name, COUNT(*) AS number, MIN(id) AS first FROM rocpd_info_agent GROUP BY 1, 2, 3"""
_DETAILS = "SELECT extdata FROM rocpd_info_agent WHERE id = ?"
_PROCESS = "SELECT environment, extdata FROM rocpd_info_process LIMIT 1"
_IMPORTER = "SELECT value FROM rocpd_metadata WHERE tag = 'import::importer'"


@frozen
class Agents:
    """Agents of one kind on a host, and what one of them has; None: the file does not say."""

    host: str | None
    type: str | None
    name: str | None
    product: str | None
    number: int
    units: int | None = None
    memory_gib: float | None = None
    mhz: int | None = None


def agents_of(session: Federation) -> list[Agents]:
    """Return the agents of all hosts; every rank of a host lists those of the host."""
    most: dict[Row, tuple[int, Rank, int]] = {}
    for rank in session.ranks:
        for kind, name, product, number, first in session.reader(rank.number).rows(_AGENTS):
            key = (rank.hostname, kind, name, product)
            if key not in most or number > most[key][0]:
                most[key] = number, rank, first
    keys = sorted(most, key=lambda key: tuple(map(str, key)))
    return [_agents(session, key, *most[key]) for key in keys]


def _agents(session: Federation, key: Row, number: int, rank: Rank, first: int) -> Agents:
    """Return the agents of a key; what one has is read in the rank that lists most of them."""
    host, kind, name, product = key
    if kind != "GPU":
        return Agents(host, kind, name, product, number)
    ((text,),) = session.reader(rank.number).rows(_DETAILS, (first,)) or [(None,)]
    try:
        details = json.loads(text or "{}")
    except (TypeError, ValueError):
        details = {}
    banks = details.get("mem_banks") if isinstance(details, dict) else None
    local = [bank for bank in banks if _whole(bank, "heap_type") in _LOCAL_MEMORY] if isinstance(banks, list) else []
    memory = round(sum(_whole(bank, "size_in_bytes") or 0 for bank in local) / 2**30, 1) or None
    units, clock = _whole(details, "cu_count") or None, _whole(details, "max_engine_clk_fcompute") or None
    return Agents(host, kind, name, product, number, units, memory, clock)


def _whole(details: Any, name: str) -> int | None:
    value = details.get(name) if isinstance(details, dict) else None
    return value if isinstance(value, int) else None


def facts_of(session: Federation) -> Iterator[tuple[str, str]]:
    """Yield what the job is: (fact, value)."""
    hosts = sorted({rank.hostname or "?" for rank in session.ranks})
    ranks = amount(len(session.ranks), "rank")
    separate = f", {session.runs} separate runs, not one job" if session.runs > 1 else ""
    yield "ranks", f"{ranks} on {amount(len(hosts), 'host')} ({_some(hosts)}){separate}"
    for ranks_of in session.job.programs:
        numbers = ", ".join(f"{number} is pass {k}" for k, number in enumerate(ranks_of, 1))
        yield "passes", f"{len(ranks_of)} of one program, for different counters: rank {numbers}"
    commands = dict.fromkeys(rank.command for rank in session.ranks if rank.command)
    if commands:
        yield ("command" if len(commands) == 1 else f"{len(commands)} commands"), _some(commands, "; ")
    gpus = Counter(_described(each) for each in agents_of(session) if each.type == "GPU")
    if gpus:
        yield "gpus", _some(f"{words} on {_each(number)}" for words, number in gpus.items())
    yield from _software(session)
    yield "date", _date(session)


def _date(session: Federation) -> str:
    """Return when the job ran, by clocks that count the time of day; files say nothing of it: they are copied."""
    spans = [session.job.spans[rank.number] for rank in session.ranks if rank.has_date and rank.number in session.spans]
    if not spans:
        return "not recorded: times count from the start of the machine"
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    start, end = (datetime.fromtimestamp(time // 10**9).astimezone() for time in (first, last))
    return f"{start:%Y-%m-%d %H:%M}" + (f" to {end:%Y-%m-%d %H:%M}" if last - first >= _MINUTE_NS else "")


def _each(hosts: int) -> str:
    return "1 host" if hosts == 1 else f"each of {hosts} hosts"


def _described(agents: Agents) -> str:
    """Return the agents of a host in words: 8 × AMD Instinct MI300X (gfx942, 304 CUs, 192 GiB, 2100 MHz)."""
    details = [
        agents.name,
        *([f"{agents.units} CUs"] if agents.units else []),
        *([f"{agents.memory_gib:.0f} GiB"] if agents.memory_gib else []),
        *([f"{agents.mhz} MHz"] if agents.mhz else []),
    ]
    return f"{agents.number} × {agents.product or 'GPU'} ({', '.join(filter(None, details))})"


def importers_of(session: Federation) -> frozenset[str]:
    """Return the importers that made the files, as one rank of each host knows them; empty: none did."""
    readers = map(session.reader, _one_of_each_host(session))
    return frozenset("".join(str(name) for (name,) in reader.rows(_IMPORTER)) for reader in readers)


def _one_of_each_host(session: Federation) -> Sequence[int]:
    return list({rank.hostname: rank.number for rank in reversed(session.ranks)}.values())


def _software(session: Federation) -> Iterator[tuple[str, str]]:
    """Yield the versions of ROCm, and what recorded the files, as one rank of each host knows them."""
    rocm, profilers = set(), set()
    for reader in map(session.reader, _one_of_each_host(session)):
        ((environment, extdata),) = reader.rows(_PROCESS) or [(None, None)]
        environment, extdata = str(environment or ""), str(extdata or "")
        rocm.update(_ROCM.findall(environment))
        imported = [f"imported from {importer}" for (importer,) in reader.rows(_IMPORTER)]
        profiler = "rocprofv3" if "rocprofv3" in environment else "rocpd record" if _OURS in extdata else "unknown"
        profilers.update(imported or [profiler])
    if rocm:
        yield "rocm", _some(sorted(rocm))
    schemas = sorted({rank.version for rank in session.ranks})
    yield "profiler", f"{_some(sorted(profilers))}, schema {_some(schemas)}"


def _some(words: Iterable[str], joined: str = ", ") -> str:
    every = list(words)
    return joined.join(every[:_FEW]) + (f"{joined}… {len(every) - _FEW} more" if len(every) > _FEW else "")
