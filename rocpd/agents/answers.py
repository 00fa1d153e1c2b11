"""The same answers in Python, in this process: `rocpd.answers`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from rocpd.agents.document import Document
from rocpd.agents.questions import QUESTIONS, asked, schema_of
from rocpd.session import Session, connect


class Answers:
    """A job that is open for questions; use it in a `with` block or call `close`.

    Args:
        inputs: files, folders and packages.
        session: the job.
        store: its history; empty: none.
    """

    def __init__(self, inputs: Sequence[str], session: Session, store: str = "") -> None:
        self._inputs, self._session, self._store = inputs, session, store

    def ask(self, question: str, **arguments: Any) -> Document:
        """Return the answer to a question as `rocpd mcp` gives it: a document that JSON can hold.

        Args:
            question: one of `questions()`.
            arguments: what it takes.

        Raises:
            UsageError: an unknown question or argument, or one that makes no sense.
            InputError: a file cannot be read.
        """
        return asked(question, self._inputs, arguments, self._store).of(self._session)

    @staticmethod
    def questions() -> dict[str, Document]:
        """Return question -> JSON schema of what it takes."""
        return {name: schema_of(question) for name, question in QUESTIONS.items()}

    def close(self) -> None:
        """Close the job; idempotent."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answers(*inputs: str, history: str | Path = "") -> Answers:
    """Open a job for questions whose answers are documents: units, certainty, the command that shows them again.

    Args:
        inputs: files, globs, folders, packages; none: as `rocpd.connect`.
        history: the store of the job's history; empty: none.

    Raises:
        InputError: no file matches, or one cannot be used.
    """
    return Answers(inputs, connect(list(inputs) or None), str(history))
