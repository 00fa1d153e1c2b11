"""Rules of advice and their thresholds, which a file of the user can replace. Does not judge."""

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
"""Entry point group; each entry point names a `Rule`."""


@frozen
class Threshold:
    """A number that a rule compares with; `--thresholds` replaces it.

    Args:
        name: within the rule; ends in its unit.
        value: the default.
        doc: the quantity that is compared with it.
    """

    name: str
    value: float
    doc: str


@frozen
class Need:
    """A table of an analysis that a rule reads.

    Args:
        table: its name.
        without: reason why the rule can't look without the table: what is not recorded, and how to record it.
    """

    table: str
    without: str | NotRecorded

    def text(self, recorder: TraceProfiler = ROCPROFV3) -> str:
        """Return the reason, with the options of a profiler."""
        return self.without if isinstance(self.without, str) else self.without.text(recorder)


Look: TypeAlias = Callable[[Case], Iterable[Finding]]
"""Returns problems; nothing where there are none. Raises `CannotLookError`."""


@frozen
class Rule:
    """A rule.

    Args:
        id: word that stays the same.
        asks: the question, in a few words.
        fires: condition of a problem, and how much it may gain; thresholds as `{name}`.
        look: judges a case.
        needs: tables that it reads; without one of them it can't look.
        thresholds: numbers that it compares with.
        explains: whether a finding of this rule causes another finding, which then is not reported by itself.
        without: changes to replay the job with, which regain the gain of a finding; none: no replay can give it.
        after: changes to make before `without`; a finding gains only what `without` regains on top of them.
        otherwise: action and changes for findings whose `without` gains nothing.
        shown_by, action, reference: defaults for its findings, as in `Finding`.
        is_fault: whether its findings are about ranks or steps that take longer than their equals; other findings
            ask for another program, which seldom gains as much as it may.
        is_bounded: whether the time that a finding is about bounds its gain, whatever a replay says.
        besides: further tables that it reads where they exist.
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
        """Yield the problems that it finds, with the texts that all its findings share. Raises `CannotLookError`."""
        for finding in self.look(case):
            yield replace(
                finding,
                rule=self.id,
                shown_by=finding.shown_by or self.shown_by,
                action=finding.action or self.action,
                reference=finding.reference or self.reference,
            )


COMMON = (Threshold("least_percent", 2.0, "findings that may gain less of a step are only named, after the others"),)
"""Thresholds that all rules share."""

ALL = "all"
"""The name of `COMMON` in files of thresholds."""


Limits: TypeAlias = Mapping[str, Mapping[str, float]]
"""Rule -> threshold -> value."""


def thresholds(rules: Mapping[str, Rule], path: Path | None = None) -> Limits:
    """Return rule -> threshold -> value.

    Args:
        rules: by id.
        path: TOML: a table for each rule, as `[gpu.starved]`, with `name = number`; `[all]` for shared thresholds.

    Raises:
        InputError: the file can't be read, or is not TOML.
        UsageError: it names an unknown rule or threshold, or a value that is not a number.
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
    """Yield rule, name and value of each entry of a file."""
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
