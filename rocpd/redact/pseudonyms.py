"""Owns the names that stand in place of others: the same text has the same name in all ranks of a job.

Never writes the pairs anywhere: who has only the outputs cannot go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocpd.redact.options import Clue


class Pseudonyms:
    """Names in place of texts, by what the texts are; `given` has all of them.

    >>> names = Pseudonyms()
    >>> names.of(Clue.HOST, "node17"), names.of(Clue.HOST, "node3"), names.of(Clue.HOST, "node17")
    ('host-01', 'host-02', 'host-01')
    """

    def __init__(self) -> None:
        self._names: dict[Clue, dict[str, str]] = {}
        self.given: set[str] = set()

    def of(self, kind: Clue, text: str, word: str = "") -> str:
        """Return the name of a text; `word` stands in it instead of the kind."""
        names = self._names.setdefault(kind, {})
        name = names.get(text)
        if name is None:
            name = names[text] = f"{word or kind}-{len(names) + 1:02}"
            self.given.add(name)
        return name

    def in_order(self, kind: Clue, texts: Iterable[str]) -> None:
        """Give names to texts in their order, so that what is sorted by them stays sorted."""
        ordered = sorted(set(texts))
        width = len(str(len(ordered)))
        for number, text in enumerate(ordered, 1):
            name = f"{kind}-{number:0{max(2, width)}}"
            self._names.setdefault(kind, {})[text] = name
            self.given.add(name)

    def replaced(self) -> Iterator[tuple[Clue, str]]:
        """Yield the texts that have a name; not those that are names, as in files that were redacted before."""
        for kind, names in self._names.items():
            for text in names:
                if text not in self.given:
                    yield kind, text
