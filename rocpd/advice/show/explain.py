"""Owns what is said of rules themselves: the list, and one in full. docs/advise.md is made of the same."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rocpd import entries
from rocpd.advice.registry import known_rules
from rocpd.advice.rule import Rule
from rocpd.errors import UsageError

_WIDTH = 100


def listed() -> Iterator[str]:
    """Yield a line for each rule."""
    rules = known_rules()
    longest = max(map(len, rules))
    for rule in rules.values():
        yield f"{rule.id:<{longest}}  {rule.asks}"


def explained(name: str) -> Iterator[str]:
    """Yield what a rule asks, needs and decides by.

    Raises:
        UsageError: there is none of that name.
    """
    rules = known_rules()
    if name not in rules:
        raise UsageError(f"no rule is called {name}", entries.near(name, rules, "`rocpd advise --list` shows all"))
    rule = rules[name]
    yield f"{rule.id}: {rule.asks}"
    yield ""
    yield from textwrap.wrap(f"Fires when {fires(rule)}.", _WIDTH)
    if rule.thresholds:
        yield ""
        yield f"Thresholds, as --thresholds FILE has them below [{rule.id}]:"
        yield from (f"  {each.name} = {each.value:g}  # {each.doc}" for each in rule.thresholds)
    if rule.needs:
        yield ""
        yield "Can't look where"
        for reason in dict.fromkeys(need.text() for need in rule.needs):
            yield from textwrap.wrap(reason, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def fires(rule: Rule) -> str:
    """Return when a rule fires, with its thresholds."""
    return rule.fires.format_map({each.name: f"{each.value:g}" for each in rule.thresholds})
