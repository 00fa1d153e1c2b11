"""Looks up the names that ids of a rank lead to, and numbers names, so that rows hold numbers only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

from rocpd.base.types import NULL, Ints
from rocpd.facts.ids import distinct, per_id
from rocpd.federate.run.rank_reader import RankReader

Text = TypeVar("Text", str, str | None)


class TextCodes(Generic[Text]):
    """Numbers for texts, from 0 in the order in which they come.

    Attributes:
        texts: the text of each number.
    """

    def __init__(self) -> None:
        self.texts: list[Text] = []
        self._codes: dict[Text, int] = {}

    def code(self, text: Text) -> int:
        """Return the number of a text; a new one gets the next."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def codes(self, ids: Ints, text_of: Callable[[int], Text]) -> Ints:
        """Return the numbers of what ids lead to; `text_of` is called once per distinct id."""
        return per_id(ids, lambda number: self.code(text_of(number)))

    def adopt(self, texts: Iterable[Text]) -> list[int]:
        """Return the numbers of a rank's texts, in the order of its own numbers."""
        return [self.code(text) for text in texts]


Names: TypeAlias = TextCodes[str | None]
"""Numbers for names, which may be unknown. Each rank has its own, which those of the job adopt."""


def texts_by_id(reader: RankReader, select: str, ids: Ints) -> dict[int, str | None]:
    """Return id -> text of a rank; not to be changed.

    Args:
        reader: reads the rank.
        select: gives id and text of the ids in `json_each(?)`.
        ids: those that are wanted, in any order, `NULL` among them.
    """
    wanted = tuple(number for number in distinct(ids).tolist() if number != NULL)
    return reader.once((select, wanted), lambda: _texts(reader, select, wanted)) if wanted else {}


def _texts(reader: RankReader, select: str, wanted: Sequence[int]) -> dict[int, str | None]:
    return {number: as_text(text) for number, text in reader.rows(select, (json.dumps(wanted),))}


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
