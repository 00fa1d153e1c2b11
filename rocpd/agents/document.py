"""Documents that answer a question: tables with units, conclusions with their certainty, data that was not recorded.

Names from files are data: they occur only in values, made visible, never in our sentences. A document fits into a
number of bytes: first explanations are removed, then rows, the last of the longest table first. Everything left out is
mentioned in `cut`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from rocpd.base.texts import visible
from rocpd.summary.findings import Finding, Verdict
from rocpd.summary.result import Summary

Document: TypeAlias = dict[str, Any]
"""An answer, as JSON holds it."""

MOST_BYTES = 16_000
"""Default size of an answer as UTF-8 [bytes]."""

LEAST_BYTES = 2_000

_MOST_ROWS = 10_000  # of a statement, before the fitting number is known: about as many as a megabyte holds
_MOST_TEXT = 8_000_000  # characters of the rows of a statement
_LONGEST_CELL = 100_000  # characters of a value, or bytes
_LONGEST_TEXT = 400  # characters of a cell in an answer of `MOST_BYTES`
_LISTS = ("notes", "found_nothing", "gains_little", "not_recorded", "causes", "conclusions")


def table_of(summary: Summary) -> Document:
    """Return a table of an analysis: `table`, `about`, `columns` (`name`, `unit`, `about`), `rows_in_all`, `rows`.

    Names of kernels are short, as people see them; SQL has them in full.
    """
    rows = [list(map(_value, row)) for row in summary.shortened(summary.fetchall())]
    columns = [{"name": field.name, "unit": field.unit, "about": field.doc} for field in summary.fields]
    return {"table": summary.name, "about": summary.doc, "columns": columns, "rows_in_all": len(rows), "rows": rows}


def rows_of(columns: Sequence[str], rows: Iterable[Sequence[Any]], table: str = "rows", about: str = "") -> Document:
    """Return the first rows of a statement as a table; `rows_in_all` is None if there are more."""
    taken: list[list[Any]] = []
    room, remaining = _MOST_TEXT, iter(rows)
    for row in itertools.islice(remaining, _MOST_ROWS):
        taken.append(list(map(_value, row)))
        room -= sum(len(value) for value in taken[-1] if isinstance(value, str))
        if room < 0:
            break
    total = len(taken) if next(remaining, None) is None else None
    names = [{"name": visible(name)} for name in columns]
    return {"table": table, "about": about, "columns": names, "rows_in_all": total, "rows": taken}


def _value(value: Any) -> Any:
    """Return a value for JSON: text from files made visible, bytes in hex, no infinity."""
    if isinstance(value, str):
        return visible(value[:_LONGEST_CELL])
    if isinstance(value, bytes):
        return value[:_LONGEST_CELL].hex()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def conclusion(finding: Finding) -> Document:
    """Return the conclusion of an analysis: text, certainty, evidence, and the command that shows it."""
    fields = {
        "text": visible(finding.text),
        "rule": finding.rule,
        "verdict": finding.verdict.value,
        "certainty": finding.confidence.value,
        "rank": finding.rank,
        "step": finding.step and visible(finding.step),
        "window_ns": list(finding.window) if finding.window else None,
        "evidence": {name: _value(value) for name, value in finding.evidence.items()},
        "gain_percent": finding.gain_percent,
        "gain_bounds_percent": list(finding.gain_bounds) if finding.gain_bounds else None,
        "do": finding.action,
        "shown_by": finding.shown_by,
        "regained_by": finding.regained_by,
    }
    return {name: value for name, value in fields.items() if value is not None and value != {}}


def divided(findings: Iterable[Finding]) -> Document:
    """Return `conclusions`, and `not_recorded`: the questions without an answer, with the reason."""
    concluded, lacking = [], []
    for finding in findings:
        if finding.verdict is Verdict.UNKNOWN:
            lacking.append(f"{finding.rule}: {visible(finding.text)}")
        else:
            concluded.append(conclusion(finding))
    return {"conclusions": concluded, "not_recorded": lacking}


def fitted(document: Mapping[str, Any], most: int = MOST_BYTES) -> Document:
    """Return a document of at most `most` bytes as UTF-8, with `cut`: the omissions, or None.

    >>> document = {"tables": [{"table": "t", "about": "", "columns": [], "rows_in_all": 900,
    ...                         "rows": [[number] for number in range(900)]}]}
    >>> answer = fitted(document, 2_000)
    >>> size_of(answer) <= 2_000, answer["cut"]
    (True, ['t: the first 293 of 900 rows'])
    """
    answer: Document = {**document, "cut": None}
    if size_of(answer) <= most:
        return answer
    cut: list[str] = []
    longest = max(_LONGEST_TEXT, most // (MOST_BYTES // _LONGEST_TEXT))
    shortened = with_texts(answer, lambda text: text if len(text) <= longest else f"{text[:longest]}…")
    cut += [f"texts longer than {longest} characters"] if text_of(shortened) != text_of(answer) else []
    answer = shortened
    tables = [dict(table) for table in answer.get("tables", ())]
    frames = [{**table, "columns": _unexplained(table["columns"]), "rows": []} for table in tables]
    if any("about" in column for table in tables for column in table["columns"]):
        cut.append("explanations of columns")
    answer |= {"tables": frames, "cut": cut}
    room = most - _room_for_cut(tables)
    for name in _LISTS:
        _drop_last(answer, name, room, cut)
    for frame, table, count in zip(frames, tables, _fitting(tables, room - size_of(answer)), strict=True):
        _take(frame, table, count, cut)
    if not tables:
        answer.pop("tables")
    answer["cut"] = cut or None
    if size_of(answer) <= most:
        return answer
    return {"command": document.get("command", "")[: most // 4], "cut": ["everything: ask for a smaller part"]}


def size_of(document: object) -> int:
    """Return the size of a document, or of a part of one, as UTF-8 [bytes]."""
    return len(text_of(document).encode())


def text_of(document: object) -> str:
    """Return a document as text."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _unexplained(columns: Sequence[Document]) -> list[Document]:
    """Return columns with only their names and units."""
    return [{key: column[key] for key in ("name", "unit") if column.get(key)} for column in columns]


def with_texts(value: Any, changed: Callable[[str], str]) -> Any:
    """Return a value of a document with each text in it changed."""
    if isinstance(value, Mapping):
        return {key: with_texts(each, changed) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_texts(each, changed) for each in value]
    return changed(value) if isinstance(value, str) else value


def _room_for_cut(tables: Sequence[Document]) -> int:
    """Return the largest size of the words on omissions [bytes]."""
    return 200 + sum(len(table["table"].encode()) + 60 for table in tables)


def _drop_last(answer: Document, name: str, room: int, cut: list[str]) -> None:
    """Remove the last entries of a list until the document fits, or one entry is left."""
    entries = list(answer.get(name) or ())
    before = len(entries)
    while len(entries) > 1 and size_of(answer) > room:
        entries.pop()
        answer[name] = entries
    if len(entries) < before:
        cut.append(f"{name}: the first {len(entries)} of {before}")


def _fitting(tables: Sequence[Document], room: int) -> list[int]:
    """Return the number of rows of each table that fit; room that a table does not need goes to later ones."""
    counts = []
    for number, table in enumerate(tables):
        share = room // (len(tables) - number)
        count = 0
        for taken in (size_of(row) + 1 for row in table["rows"]):
            if taken > share:
                break
            share, room, count = share - taken, room - taken, count + 1
        counts.append(count)
    return counts


def _take(frame: Document, table: Document, count: int, cut: list[str]) -> None:
    frame["rows"] = table["rows"][:count]
    if count < len(table["rows"]):
        total = table["rows_in_all"]
        whole = f"{total:,}" if total is not None else f"more than {len(table['rows']):,}"
        cut.append(f"{visible(table['table'])}: the first {count:,} of {whole} rows")
