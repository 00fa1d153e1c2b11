"""Every error the project raises on purpose, and the exit code each one means.

Never prints and never exits: the command line turns these into one line and one hint.
"""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """Exit codes of the command line."""

    GOOD = 0
    FAILED = 1
    USAGE = 2
    INPUT = 3
    UNCLEAR = 4


class RocpdError(Exception):
    """Base of all errors: one line that says what is wrong, and what to do about it.

    Args:
        message: one line that names the file, table or option it is about.
        hint: what the user can do, or None.
    """

    exit_code = Exit.FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # tracebacks show it


class InputError(RocpdError):
    """An input file that cannot be used: missing, damaged, foreign, locked."""

    exit_code = Exit.INPUT


class ForeignError(InputError):
    """An input file of another kind, such as the trace of another profiler: an importer may know it."""


class UsageError(RocpdError):
    """A request that makes no sense: an unknown value of an option, an unknown view, a window that can't be read."""

    exit_code = Exit.USAGE


class QueryError(RocpdError):
    """SQL that SQLite refuses, in SQLite's own words."""


class ViewTextError(RocpdError, ValueError):
    """The text of a readable view that is not what views are made of, or that SQLite refuses.

    Args:
        name: of the view.
        problem: what is wrong with it.
    """

    def __init__(self, name: str, problem: object) -> None:
        super().__init__(f"rocpd/schema/sql/views/{name}.sql: {problem}", "CONTRIBUTING.md says how views are written")


class OutputError(RocpdError):
    """An output that cannot be written: it exists, the disk is full, the folder is read-only."""


class WriteError(OutputError):
    """A write that the system refused: no space is left, a quota or limit is reached, or rights are missing.

    Attributes:
        reason: what the system says.
        number: its `errno`.
        written: what had been written of the output by then [bytes].
    """

    reason = ""
    number = 0
    written = 0

    @classmethod
    def of(cls, error: OSError) -> WriteError:
        """Return the error of the system as one of an output that has no name yet."""
        made = cls(error.strerror or str(error))
        made.reason, made.number = made.message, error.errno or 0
        return made


class ClosedError(RocpdError):
    """A call on a session that was closed before."""
