"""The examples in docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rocpd.federate
import rocpd.schema

MODULES = [
    f"{package.__name__}.{found.name}"
    for package in (rocpd.schema, rocpd.federate)
    for found in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", [*MODULES, "rocpd.errors", "rocpd.output"])
def test_doctests(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_doctests() -> None:
    assert doctest.testmod(importlib.import_module("rocpd.schema.quote")).attempted >= 2
