"""How advice looks: `FORMS` is the table of contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from rocpd import entries
from rocpd.errors import UsageError
from rocpd.frozen import frozen
from rocpd.table import CONSOLE

if TYPE_CHECKING:
    from rocpd.advice.answers import Answers


@frozen
class Form:
    """A form of advice.

    Args:
        home: `module:function` that returns the text of (advice, width of the terminal or None).
        ending: of its files.
    """

    home: str
    ending: str

    def write(self, advice: Answers, width: int | None = None) -> str:
        """Return the text."""
        function: Callable[[Answers, int | None], str] = entries.load(self.home, "advice")
        return function(advice, width)


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        CONSOLE: Form("rocpd.advice.show.console:as_text", ".txt"),
        "json": Form("rocpd.advice.show.json:as_json", ".json"),
        "md": Form("rocpd.advice.show.markdown:as_markdown", ".md"),
        "html": Form("rocpd.advice.show.html:as_html", ".html"),
    }
)
"""Name -> form."""


def form_of(name: str) -> Form:
    """Return a form.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in FORMS:
        raise UsageError(f"--format {name}: unknown", f"one of {', '.join(FORMS)}")
    return FORMS[name]


def endings() -> dict[str, str]:
    """Return ending of a file -> name of the form."""
    return {form.ending: name for name, form in FORMS.items()}
