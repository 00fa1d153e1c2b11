"""The work of kernels, by their names: categories from a JSON or TOML file of regular expressions.

The form is RAPTOR's: category -> list of expressions, searched in the name; of several matches the last in the file
wins. Names that start with `_` are RAPTOR's: `_COMM` and `_Collective` are communication, `_Other` is for kernels that
no expression matches, `_GPU_Idle` matches its rows of gaps, which are no kernels here. A file without a category of
communication gets that category before its own: overlap and waiting depend on it.

Communication, built in: NCCL 1 (AllReduceKernel<…>), NCCL 2 (ncclAllReduceRingLLKernel_sum_f16), 2.8 on
(ncclKernel_SendRecv_…), 2.19 on (ncclDevKernel_Generic_…), symmetric memory (ncclSymDevKernel_…, ncclSymKernel_…),
RCCL's own (rccl…, msccl…), and the all-reduces that frameworks bring along.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rocpd.base import UsageError
from rocpd.schema.rules.kernel_names import without_kd

COMMUNICATION = frozenset({"communication", "comm", "collective", "collectives", "rccl", "nccl"})
"""Names of categories that are communication, in small letters and without leading `_`."""

_OF_RAPTOR = {"_GPU_Idle", "_Other"}


class Categories:
    """Categories of kernel names."""

    def __init__(self, texts: Mapping[str, Sequence[str]], other: str = "other") -> None:
        """Take regular expressions by category, and the category of names that none matches."""
        self._texts = texts
        self.other = other
        self._known: dict[str | None, str] = {}

    def of(self, name: str | None) -> str:
        """Return the category of a kernel; of several whose expressions match, the last; of none, `other`."""
        if name not in self._known:
            short = without_kd(name or "")
            last_first = [*self._texts.items()][::-1]
            matching = (category for category, texts in last_first if any(re.search(text, short) for text in texts))
            self._known[name] = next(matching, self.other)
        return self._known[name]

    @property
    def is_built_in(self) -> bool:
        """Whether these are the built-in categories."""
        return self is _standard()

    def __reduce__(self) -> tuple[Callable[..., Categories], tuple[object, ...]]:
        """Send only the expressions to another process, without cached results; built-in ones stay a single object."""
        return (_standard, ()) if self.is_built_in else (Categories, (self._texts, self.other))


def is_communication(category: str) -> bool:
    """Whether a category is communication.

    >>> is_communication("_COMM"), is_communication("GEMM")
    (True, False)
    """
    return category.lower().removeprefix("_") in COMMUNICATION


def load(path: Path | str | None) -> Categories:
    """Read a file of categories; None: the built-in one.

    Raises:
        UsageError: it cannot be read, has another form, or holds an invalid regular expression.
    """
    if path is None:
        return _standard()
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = _of_toml(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: no categories can be read: {error}", "a JSON or TOML file is wanted") from error
    return _checked(content, str(path))


def _of_toml(text: str) -> dict[str, object]:
    import tomllib

    return tomllib.loads(text)


@functools.cache
def _standard() -> Categories:
    return Categories(_built_in())


def _built_in() -> dict[str, list[str]]:
    content: dict[str, list[str]] = json.loads((Path(__file__).parent / "data" / "categories.json").read_text("utf-8"))
    return content


def _checked(content: object, where: str) -> Categories:
    if isinstance(content, dict) and set(content) == {"categories"}:
        content = content["categories"]
    if not isinstance(content, dict):
        raise UsageError(f"{where}: not of the form category -> list of regular expressions")
    patterns = {}
    for category, texts in content.items():
        listed = [texts] if isinstance(texts, str) else texts
        if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
            raise UsageError(f"{where}: category {category}: not a list of regular expressions")
        try:
            patterns[category] = [re.compile(text).pattern for text in listed]
        except re.error as error:
            raise UsageError(f"{where}: category {category}: not a regular expression: {error}") from error
    raptors = any(category.startswith("_") for category in patterns)
    categories = {category: texts for category, texts in patterns.items() if category not in _OF_RAPTOR}
    if not any(map(is_communication, categories)):
        categories = {"_COMM" if raptors else "communication": _built_in()["communication"], **categories}
    return Categories(categories, "_Other" if raptors else "other")
