"""What the job is: ranks, hosts, GPUs, clocks with their uncertainty, and what was not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rocpd.federate.describe import describe
from rocpd.report.material import Material
from rocpd.report.model import Block, Column, Table, Text
from rocpd.trace.collectives import listed
from rocpd.types import Row


def job(material: Material) -> Iterator[Block]:
    """Yield the facts."""
    session = material.session
    described = describe(session, ("job", "agents", "clocks"))
    job, agents, clocks = (described[name].fetchall() for name in ("job", "agents", "clocks"))
    yield _table("job", "Facts", "What it is, and what recorded it.", _FACTS, job, material.inputs)
    yield _table("ranks", "Hosts", "Where the processes ran.", _HOSTS, _hosts(material), material.inputs)
    if session.runs > 1:
        yield Text(f"These are {session.runs} separate runs, not one job: nothing compares their ranks.")
    if session.window or session.selection.filtered:
        yield Text(f"Only a part of the job is shown: {material.inputs}")
    yield _table("agents", "Processors", "Of each host, by kind.", _AGENTS, agents, material.inputs)
    aligned = [row for row in clocks if row[1] != "none" or row[2]]
    if aligned:
        yield _table("clocks", "Clocks", _ABOUT_CLOCKS, _CLOCKS, aligned, material.inputs)
    trace = material.tables("trace").get("trace")
    if trace:
        lacks = [row for row in trace if row[1] != "none"]
        columns = ("check", "verdict", "missing", "of", "ranks", "meaning")
        table = material.table(trace, "What was not recorded", columns, lacks)
        yield replace(table, total=len(lacks)) if lacks else Text("Nothing is missing that can be checked.")


_FACTS = (Column("fact", "", "what", False), Column("value", "", "of the job", False))
_HOSTS = (
    Column("host", "", "name of the machine", False),
    Column("ranks", "", "numbers of its ranks", False),
    Column("processes", "", "how many", True),
    Column("recorded", "ns", "from the first event to the last, of the rank that was recorded longest", True),
    Column("size", "bytes", "of the files", True),
)
_AGENTS = (
    Column("host", "", "name of the machine", False),
    Column("type", "", "CPU or GPU", False),
    Column("agent", "", "as ROCm names it", False),
    Column("product", "", "as it is sold", False),
    Column("count", "", "how many the host has", True),
    Column("CUs", "", "compute units", True),
    Column("memory", "GiB", "of one", True),
    Column("clock", "MHz", "at most", True),
)
_CLOCKS = (
    Column("host", "", "name of the machine", False),
    Column("method", "", "what the clocks are aligned by", False),
    Column("offset", "ns", "what is added to its times", True),
    Column("certain", "ns", "the offset is right to this", True),
    Column("likely", "ns", "and probably to this", True),
    Column("drift", "ppm", "against the reference clock", True),
    Column("collectives", "", "how many say so", True),
)
_ABOUT_CLOCKS = "How the times of hosts are laid on one time line, and how far that can be trusted."


def _table(name: str, title: str, doc: str, columns: tuple[Column, ...], rows: Iterable[Row], inputs: str) -> Table:
    known = tuple(tuple(row[: len(columns)]) for row in rows)
    command, code = f"rocpd info --only {name} {inputs}", f'session.info()["{name}"]'
    return Table(name, title, doc, columns, known, len(known), command, code)


def _hosts(material: Material) -> Iterator[Row]:
    session = material.session
    ranks_of: dict[str, list[int]] = {}
    sizes: dict[str, dict[str, int]] = {}  # host -> file -> bytes
    for rank in session.ranks:
        host = rank.hostname or "?"
        ranks_of.setdefault(host, []).append(rank.number)
        sizes.setdefault(host, {})[str(rank.opening.path)] = rank.opening.path.stat().st_size
    for host, ranks in sorted(ranks_of.items()):
        spans = [session.spans[rank] for rank in ranks if rank in session.spans]
        longest = max((span.end - span.start for span in spans), default=None)
        yield host, listed(ranks), len(ranks), longest, sum(sizes[host].values())
