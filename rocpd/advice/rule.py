"""Rules of advice and their thresholds, which a file of the user can replace. Never judges."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from rocpd.advice.case import Case, NotRecorded
from rocpd.base import InputError, UsageError, entries, frozen
from rocpd.facts.recorders import ROCPROFV3, TraceProfiler
from rocpd.replay.changes import Change
from rocpd.summary.findings import Finding

ENTRY_POINTS = "rocpd.rules"
"""Entry point group; each one names a `Rule`."""


@frozen
class Threshold:
    """A number that decides; `--thresholds` replaces it.

    Args:
        name: within the rule; ends in its unit.
        value: unless said otherwise.
        doc: what it is compared with.
    """

    name: str
    value: float
    doc: str


@frozen
class Need:
    """A table of an analysis that a rule reads.

    Args:
        table: its name.
        without: why the rule can't look where there is no such table: what is not recorded, and how it would be.
    """

    table: str
    without: str | NotRecorded

    def text(self, recorder: TraceProfiler = ROCPROFV3) -> str:
        """Return why, with the options of a profiler."""
        return self.without if isinstance(self.without, str) else self.without.text(recorder)


Look: TypeAlias = Callable[[Case], Iterable[Finding]]
"""Returns problems; nothing where there are none. Raises `CannotLookError`."""


@frozen
class Rule:
    """A rule.

    Args:
        id: word that stays the same.
        asks: the question, in a few words.
        fires: when it finds a problem, and how much it may gain; thresholds as `{name}`.
        look: judges a case.
        needs: what it reads; without one of them it can't look.
        thresholds: numbers that decide.
        explains: whether a finding of this rule is why there is another finding, which then is not reported by itself.
        without: changes with which the job is replayed to say what a finding of this rule gains; nothing: no replay
            can say it.
        after: changes that come before these: a finding gains what those of `without` regain once these are made.
        otherwise: action, and changes, of findings for which these gain nothing.
        shown_by, action, reference: of its findings that say nothing else, as `Finding`.
        is_fault: whether its findings are about what takes longer than its equals, other ranks or steps; the others
            ask for another program, which seldom gains all that it may.
        is_bounded: whether nobody gains more than the time that a finding is about, whatever a replay says.
        besides: further tables that it reads, where there are such.
    """

    id: str
    asks: str
    fires: str
    look: Look
    needs: tuple[Need, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    explains: Callable[[Finding, Finding], bool] = lambda _cause, _other: False
    without: Callable[[Finding], Sequence[Change]] = lambda _: ()
    otherwise: tuple[str, Sequence[Change]] | None = None
    shown_by: str | None = None
    action: str | None = None
    reference: str | None = None
    is_fault: bool = False
    is_bounded: bool = False
    besides: tuple[str, ...] = ()
    after: Callable[[Finding], Sequence[Change]] = lambda _: ()

    def found(self, case: Case) -> Iterator[Finding]:
        """Yield the problems that it finds, with what it says of all of them. Raises `CannotLookError`."""
        for finding in self.look(case):
            yield replace(
                finding,
                rule=self.id,
                shown_by=finding.shown_by or self.shown_by,
                action=finding.action or self.action,
                reference=finding.reference or self.reference,
            )


COMMON = (Threshold("least_percent", 2.0, "findings that may gain less of a step are only named, after the others"),)
"""Thresholds of all rules together."""

ALL = "all"
"""The name of `COMMON` in files."""


Limits: TypeAlias = Mapping[str, Mapping[str, float]]
"""Rule -> threshold -> value."""


def thresholds(rules: Mapping[str, Rule], path: Path | None = None) -> Limits:
    """Return rule -> threshold -> value.

    Args:
        rules: by id.
        path: TOML: a table for each rule, as `[gpu.starved]`, with `name = number`; `[all]` for those of all rules.

    Raises:
        InputError: the file can't be read, or is no TOML.
        UsageError: it names no rule or threshold, or gives it no number.
    """
    values = {rule.id: {each.name: each.value for each in rule.thresholds} for rule in rules.values()}
    values[ALL] = {each.name: each.value for each in COMMON}
    for rule, name, value in _given(path) if path else ():
        if rule not in values:
            raise UsageError(f"{path}: no rule is called {rule}", entries.near(rule, values, "rocpd advise --list"))
        if name not in values[rule]:
            known = ", ".join(values[rule]) or "it has none"
            raise UsageError(f"{path}: {rule} has no threshold {name}", f"thresholds of {rule}: {known}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{path}: {rule} {name} = {value!r}: not a number", f"as {name} = {values[rule][name]:g}")
        values[rule][name] = float(value)
    return values


def _given(path: Path) -> Iterator[tuple[str, str, object]]:
    """Yield rule, name and value of what stands in a file."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error
    yield from _leaves(document, ())


def _leaves(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, str, object]]:
    """Yield the values of nested tables: `[gpu.starved]` is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, name))
        else:
            yield ".".join(path), name, value
