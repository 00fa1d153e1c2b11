"""`rocpd top` for scripts: --once, --follow, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

from tests.conftest import Cli


@pytest.fixture
def old(finished: Path) -> Path:
    """A job that is over since long ago."""
    for path in finished.iterdir():
        os.utime(path, (1e9, 1e9))
    return finished


def test_once_says_what_there_is_now(old: Path, cli: Cli) -> None:
    done = cli("top", old, "--once")
    assert done.code == 0
    assert done.out.startswith("ended: 4 ranks on 1 node")
    document = json.loads(cli("top", old, "--once", "--format", "json").out)
    assert (document["state"], len(document["ranks"]), document["looked_at"]) == ("ended", 4, "all of it")


def test_follow_ends_with_the_job(old: Path, cli: Cli) -> None:
    (line,) = cli("top", old, "--follow").out.splitlines()
    assert "step 13: " in line
    (line,) = cli("top", old, "--follow", "--format", "json", "--redact").out.splitlines()
    assert "gpu-node" not in line
    assert json.loads(line)["step"] == 13


def test_what_makes_no_sense_is_refused(old: Path, cli: Cli, tmp_path: Path) -> None:
    for words, code, message in (
        (("--once", "--follow"), 2, "contradict"),
        (("--exec", "true"), 2, "--exec needs --alert"),
        (("--once", "--alert", "nonsense"), 2, "not a bound"),
        (("--format", "json"), 2, "--once and --follow"),
        (("--once", "--metrics", "here"), 2, "not an address"),
        ((), 2, "no terminal"),
    ):
        done = cli("top", old, *words)
        assert done.code == code
        assert message in done.err
    done = cli("top", tmp_path, "--once")
    assert done.code == 3
    assert "without *.db files" in done.err


def test_without_the_package_that_draws_it_says_how_to_get_it(
    old: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    done = cli("top", old)
    assert done.code == 2
    assert "pip install 'rocpd[top]'" in done.err
