"""Scratch memory: the rule, the stored view and the trace writer say the same."""

from __future__ import annotations

import sqlite3

import pytest

from rocpd.schema.load import view
from rocpd.schema.rules.categories import domain_of
from rocpd.schema.rules.events import IS_SCRATCH, NOT_SCRATCH, SCRATCH
from rocpd.schema.trace.events import MemoryAllocations


@pytest.mark.parametrize("level", ["REAL", "VIRTUAL", SCRATCH, "scratch", None])
def test_every_row_is_either(level: str | None) -> None:
    connection = sqlite3.connect(":memory:")
    [row] = connection.execute(f"SELECT ({IS_SCRATCH}) IS 1, ({NOT_SCRATCH}) IS 1 FROM (SELECT ? AS level)", (level,))
    connection.close()
    assert row == (level == SCRATCH, level != SCRATCH)


@pytest.mark.parametrize("level", ["REAL", "VIRTUAL", SCRATCH])
def test_the_writer_knows_scratch_memory(level: str) -> None:
    events = MemoryAllocations(start=1, end=2, level=level).events()
    assert events
    assert (domain_of(str(events.category)) == "SCRATCH_MEMORY") == (level == SCRATCH)


def test_the_view_has_the_same_condition() -> None:
    condition = " ".join(view("scratch_memory").select.partition("WHERE")[2].split()).rstrip(";")
    assert condition == f"M.{IS_SCRATCH}"
