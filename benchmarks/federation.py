"""Joins inside a rank and unions outside, against a join of unions: 1 to 64 ranks of 100k dispatches, 200k regions."""

from __future__ import annotations

import functools

import apsw

import rocpd
from benchmarks.measure import job, medians, seconds
from rocpd.schema.load import view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, select_text
from rocpd.session import Session

RANKS = (1, 2, 4, 8, 16, 64)
AGGREGATE = "select count(*), sum(duration) from kernels"
TOP = "select * from top_kernels"


def run() -> None:
    """Print seconds and ratios for both statements; at 64 ranks the join of unions is left out (it takes minutes)."""
    print(f"{'ranks':>5}  {'statement':10} {'rocpd s':>9} {'s/rank':>9} {'x bare scan':>12} {'join of unions':>15}")
    per_rank: dict[tuple[str, int], float] = {}
    files = job(max(RANKS), 300_000)
    for ranks in RANKS:
        with rocpd.connect(files[:ranks]) as session:
            unions = JoinOfUnions(session) if ranks <= 16 else None
            for name, sql in (("aggregate", AGGREGATE), ("top", TOP)):
                times = medians(
                    {
                        "rocpd": lambda sql=sql: session.execute(sql).fetchall(),  # type: ignore[misc]
                        "scan": lambda: bare_scan(session),
                    },
                    runs=5 if ranks <= 16 else 3,
                )
                other = seconds(functools.partial(unions.run, sql)) if unions else None
                per_rank[name, ranks] = times["rocpd"] / ranks
                shown = f"{other:8.2f} s {other / times['rocpd']:5.1f} x" if other else "-"
                scan = times["rocpd"] / times["scan"]
                print(
                    f"{ranks:5}  {name:10} {times['rocpd']:9.3f} {per_rank[name, ranks]:9.4f} {scan:12.2f} {shown:>15}",
                    flush=True,
                )
    for name in ("aggregate", "top"):
        print(f"{name}: time per rank at 64 is {per_rank[name, 64] / per_rank[name, 4]:.2f} x that at 4 (bar: 1.25)")


def bare_scan(session: Session) -> None:
    """Loop in Python over one cursor reading the columns that both statements use; no joins, one thread."""
    for part in session.attached_tables:
        sql = f'SELECT kernel_id, start, "end" FROM {part.name("rocpd_kernel_dispatch")}'
        for _ in session.connection.execute(sql):
            pass


class JoinOfUnions:
    """The same views written the other way: every base table a union over ranks, joined on (guid, id)."""

    def __init__(self, session: Session) -> None:
        self._connection = apsw.Connection(":memory:", flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        openings = dict.fromkeys(rank.opening for rank in session.ranks)
        for index, opening in enumerate(openings):
            self._connection.execute(f"ATTACH ? AS f{index}", (opening.uri,))
        for base in {each.table for each in view("kernels").tables}:
            self._create(base, select_text(base, session.attached_tables))
        tables = RankTables("", dict(session.attached_tables[0].columns))
        text = select_text("kernels", [tables])
        for each in view("kernels").tables[1:]:
            owner = each.key.partition(".")[0]
            text = text.replace(f" {each.alias} ON ", f" {each.alias} ON {each.alias}.guid = {owner}.guid AND ")
        self._create("kernels", text)
        self._create("top_kernels", select_text("top_kernels", [tables]))

    def _create(self, name: str, select: str) -> None:
        self._connection.execute(f"CREATE TEMP VIEW {quote_name(name)} AS {select}")

    def run(self, sql: str) -> object:
        """Run a statement to its end."""
        return self._connection.execute(sql).fetchall()
