"""Looks up the names that ids of a rank lead to, and numbers names, so that rows hold numbers only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from rocpd.federate.run.rank_reader import RankReader
from rocpd.types import NULL, Ints


class Names:
    """Numbers for names, in the order in which they come. Each rank has its own, which the job's adopt."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self._codes: dict[str | None, int] = {}

    def code(self, text: str | None) -> int:
        """Return the number of a name; a new one gets the next."""
        text = as_text(text)
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
        return self._codes[text]

    def adopt(self, texts: Iterable[str | None]) -> list[int]:
        """Return the numbers of a rank's names, in the order of its own numbers."""
        return [self.code(text) for text in texts]

    def translate(self, ids: Ints, known: Mapping[int, str | None]) -> Ints:
        """Turn ids of a rank into numbers; ids that lead nowhere have the name None."""
        if not len(ids):
            return ids
        distinct, places = np.unique(ids, return_inverse=True)
        codes = np.array([self.code(known.get(int(number))) for number in distinct], np.int64)
        return codes[places]


def texts_by_id(reader: RankReader, select: str, ids: Ints) -> dict[int, str | None]:
    """Return id -> text of a rank.

    Args:
        reader: reads the rank.
        select: gives id and text of the ids in `json_each(?)`.
        ids: those that are wanted, in any order, `NULL` among them.
    """
    wanted = [number for number in np.unique(ids).tolist() if number != NULL]
    rows = reader.rows(select, (json.dumps(wanted),)) if wanted else []
    return {number: as_text(text) for number, text in rows}


def all_texts(reader: RankReader, base: str, column: str) -> dict[int, str | None]:
    """Return id -> text of all rows of a table."""
    return {number: as_text(text) for number, text in reader.rows(f"SELECT id, {column} FROM {base}")}


def as_text(value: object) -> str | None:
    """Return a name as text: damaged files hold numbers and blobs where names belong.

    >>> as_text("gemm"), as_text(None), as_text(b"\\xff"), as_text(3)
    ('gemm', None, 'ff', '3')
    """
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)
