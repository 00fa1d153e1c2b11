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
    described = describe(session)
    inputs = material.inputs
    yield _table("hosts", "Hosts", "Where the processes ran.", _HOSTS, _hosts(material), inputs)
    if session.runs > 1:
        yield Text(f"These are {session.runs} separate runs, not one job: nothing compares their ranks.")
    if session.window or session.selection.filtered:
        yield Text(f"Only a part of the job is shown: rocpd summary {inputs}")
    rows = [(host, kind, name, product, count) for host, kind, name, product, count in described["agents"]]
    yield _table("agents", "Processors", "Of each host, by kind.", _AGENTS, rows, inputs)
    clocks = [row for row in described["clocks"] if row[1] != "none" or row[2]]
    if clocks:
        yield _table("clocks", "Clocks", _ABOUT_CLOCKS, _CLOCKS, clocks, inputs)
    trace = material.tables("trace").get("trace")
    if trace:
        lacks = [row for row in trace if row[1] != "none"]
        columns = ("check", "verdict", "missing", "of", "ranks", "meaning")
        table = material.table(trace, "What was not recorded", columns, lacks)
        yield replace(table, total=len(lacks)) if lacks else Text("Nothing is missing that can be checked.")


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
)
_CLOCKS = (
    Column("host", "", "name of the machine", False),
    Column("method", "", "what the clocks are aligned by", False),
    Column("offset", "ns", "what is added to its times", True),
    Column("certain", "ns", "the offset is right to this", True),
    Column("likely", "ns", "and probably to this", True),
    Column("drift ppm", "", "against the reference clock", True),
    Column("collectives", "", "how many say so", True),
)
_ABOUT_CLOCKS = "How the times of hosts are laid on one time line, and how far that can be trusted."


def _table(name: str, title: str, doc: str, columns: tuple[Column, ...], rows: Iterable[Row], inputs: str) -> Table:
    known = tuple(rows)
    only = "ranks" if name == "hosts" else name
    command, code = f"rocpd info --only {only} {inputs}", f'session.info()["{only}"]'
    return Table(name, title, doc, columns, known, len(known), command, code)


def _hosts(material: Material) -> Iterator[Row]:
    session = material.session
    by_host: dict[str, list[int]] = {}
    files: dict[str, set[str]] = {}
    for rank in session.ranks:
        host = rank.hostname or "?"
        by_host.setdefault(host, []).append(rank.number)
        files.setdefault(host, set()).add(str(rank.opening.path))
    paths = {str(rank.opening.path): rank.opening.path for rank in session.ranks}
    for host, ranks in sorted(by_host.items()):
        spans = [session.spans[rank] for rank in ranks if rank in session.spans]
        longest = max((span.end - span.start for span in spans), default=None)
        size = sum(paths[file].stat().st_size for file in files[host])
        yield host, listed(ranks), len(ranks), longest, size
