"""Adds up the answers of ranks: sums that merge in any order, field by field and key by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Protocol, Self, TypeVar

from rocpd.frozen import frozen


class Addable(Protocol):
    """What can be added up."""

    def __add__(self, other: Self, /) -> Self:
        """Add another of its kind; neither changes."""
        ...


Key = TypeVar("Key")
Sum = TypeVar("Sum", bound=Addable)


@frozen
class Total:
    """Base of sums whose fields are added up one by one."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))


def merge(sums: dict[Key, Sum], part: Mapping[Key, Sum]) -> None:
    """Add the sums of a part to others, by key."""
    for key, value in part.items():
        sums[key] = sums[key] + value if key in sums else value
