"""Owns what `Session.advise` returns: the answers of the rules, which show themselves."""

from __future__ import annotations

from typing import Any

from rocpd.advice.answers import Answers
from rocpd.frozen import frozen


@frozen
class Advice(Answers):
    """What costs time, and what to do about it; `str` shows it as the console does, notebooks as a page.

    Args:
        job: facts of the job; gains are shares of a step of its critical rank.
        findings: what was found; what the recording lacks first, then by what it may gain.
        explained: findings that have one of these as their cause.
        silent: rules that looked and found nothing that matters, by their ids.
        unable: for each rule that could not look the reason (`text`), with its id (`rule`).
    """

    def document(self) -> dict[str, Any]:
        """Return it as dictionaries, lists and values of JSON: what `--format json` writes."""
        from rocpd.advice.show.json import document

        return document(self)

    def __str__(self) -> str:
        """Return it as the console shows it."""
        from rocpd.advice.show.console import console_lines

        return "\n".join(console_lines(self))

    def _repr_html_(self) -> str:
        from rocpd.advice.show.html import html_lines

        return "\n".join(html_lines(self))
