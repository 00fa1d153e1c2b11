"""Owns what a plan is: how a statement runs over many ranks, in which steps. Imports no SQL parser."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass


class Strategy(enum.StrEnum):
    """How a statement runs over many ranks."""

    AUTO = "auto"
    ROWS = "rows"
    AGGREGATES = "aggregates"
    ATTACHED = "attached"


@dataclass(frozen=True)
class Scatter:
    """Run `select` in every rank and gather its rows, in rank order, in `table` with `columns` of SQLite's `types`.

    `reads` are gathered tables that the statement joins; every rank gets a copy of them. `few`: a rank gives few rows.
    `merges` says of each column how rows with equal groups add up: `GROUP`, `SUM`, `TOTAL`, `MIN`, `MAX`; empty when
    they don't.
    """

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    select: str
    reads: tuple[str, ...] = ()
    few: bool = False
    merges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Combine:
    """Run `select` over gathered tables and keep the result as `table` with `columns` of SQLite's `types`."""

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    select: str


@dataclass(frozen=True)
class Plan:
    """What to run.

    Args:
        strategy: rows, aggregates or attached.
        reason: why, in words for people.
        sql: the statement with its positional parameters named.
        parameters: number of positional parameters.
        columns: names of the result's columns, as SQLite gives them; empty when attached.
        steps: what to gather first.
        final: rows: what every rank runs, streamed; aggregates: what runs over the gathered tables.
        reads: gathered tables that `final` of strategy rows needs in every rank.
    """

    strategy: Strategy
    reason: str
    sql: str
    parameters: int = 0
    columns: tuple[str, ...] = ()
    steps: tuple[Scatter | Combine, ...] = ()
    final: str = ""
    reads: tuple[str, ...] = ()

    def rows(self, ranks: int, small: bool) -> Iterator[tuple[str, str, str]]:
        """Describe the plan: step, where it runs, SQL."""
        yield "strategy", self.strategy.value, self.reason
        if small:
            yield "but", "one connection", "the job is small: the statement runs attached, as written"
        everywhere = f"each of {ranks} ranks"
        for step in self.steps:
            yield f"make {step.table}", everywhere if isinstance(step, Scatter) else "gathered", step.select
        if self.strategy is Strategy.ATTACHED:
            yield "result", "one connection", self.sql
        else:
            yield "result", everywhere if self.strategy is Strategy.ROWS else "gathered", self.final
