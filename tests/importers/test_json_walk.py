"""Walking through JSON: as the whole document, wherever the blocks that are read begin and end."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocpd.base import InputError
from rocpd.importers import json_stream
from rocpd.importers.json_stream import JsonWalk
from tests.soak import sized

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


def walk(text: bytes) -> JsonWalk:
    return JsonWalk(io.BytesIO(text), Path("a.json"), "hint")


@settings(max_examples=sized(15, 600))
@given(st.dictionaries(st.text(max_size=4), st.lists(VALUES, max_size=5) | VALUES, max_size=5), st.integers(1, 9))
def test_values_are_those_of_the_document(document: dict[str, Any], block: int) -> None:
    """Numbers and characters of several bytes that a block ends in go on."""
    text = json.dumps(document, ensure_ascii=False, indent=block % 3).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_WALK_BLOCK", block)
        patch.setattr(json_stream, "_BATCH", 2)
        place = walk(text)
        found = {
            name: place.value() if not isinstance(document[name], list) else [x for b in place.batches() for x in b]
            for name in place.members()
        }
    assert found == document


@pytest.mark.parametrize(
    "text", [b"", b"[", b'{"a"', b'{"a": [1, 2', b'{"a": 1 "b": 2}', b'{"a": tru}', b"{1: 2}", b"7"]
)
def test_damage_names_the_file(text: bytes) -> None:
    place = walk(text)
    with pytest.raises(InputError, match=r"a.json: damaged: no JSON from about byte \d"):
        list(itertools.chain.from_iterable(place.batches() for _ in place.members()))


def test_memory_is_that_of_a_batch() -> None:
    """Ten thousand items of a kilobyte: no more than some blocks are held."""
    place = walk(json.dumps({"a": ["x" * 1000] * 10_000}).encode())
    longest = 0
    for _ in place.members():
        for _ in place.items():
            place.value()
            longest = max(longest, len(place._text))
    assert longest < 3 << 20
