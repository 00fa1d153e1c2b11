"""The search of the site finds the page first that answers: its own script is asked, over the built site."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from docs.site import found

ANSWERS = {
    "leak": "docs/analyses/allocation-sites",
    "idle": "docs/analyses/idle",
    "straggler": "docs/analyses/ranks",
    "slow step": "docs/analyses/ranks",
    "overlap": "docs/analyses/gpu-time",
    "roofline": "docs/analyses/roofline",
    "compare": "docs/compare",
    "PyTorch": "docs/from-pytorch",
    "hang": "docs/hang",
    "history": "docs/history",
    "memory": "docs/analyses/memory",
    "launch": "docs/analyses/launch",
    "copies": "docs/analyses/copies",
    "export": "docs/convert",
    "perfetto": "docs/convert",
    "sql": "docs/recipes",
    "merge": "docs/convert",
    "redact": "docs/redact",
    "index": "docs/index-format",
    "record": "docs/recording",
    "timeline": "docs/view",
    "anonymize": "docs/redact",
    "regression": "docs/compare",
    "whatif": "docs/whatif",
}


def test_what_people_search_for_is_found_first(site: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("no node")
    first = {word: pages[0] for word, pages in zip(ANSWERS, found(site, [*ANSWERS]), strict=True)}
    assert first == {word: f"{page}.html" for word, page in ANSWERS.items()}
