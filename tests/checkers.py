"""Checkers of pages by other people: axe (accessibility) in the browser, and the Nu checker (HTML), from npm.

`npm install --no-save --ignore-scripts axe-core vnu-jar` puts them into `node_modules`; without, tests skip.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

MODULES = Path(__file__).parent.parent / "node_modules"
AXE = MODULES / "axe-core" / "axe.min.js"
NU = MODULES / "vnu-jar" / "build" / "dist" / "vnu.jar"

_FINDINGS = """async () => (await axe.run({resultTypes: ["violations"]})).violations
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 200)).join(" ")}`)"""
_JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss4m")
"""Half of the time of so short a run would go into compiling well; what is compiled fast takes larger stacks."""
_NO_FINDING = ".*Content Security Policy.*"
"""The checker hashes an element with several lines otherwise than browsers do, which other tests ask instead."""


def of_axe(page: Page) -> list[str]:
    """Return what axe finds on an open page, whose context bypasses its policy; all that is folded is unfolded."""
    if not AXE.exists():
        pytest.skip("axe is not installed: npm install --no-save --ignore-scripts axe-core")
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    findings: list[Any] = page.evaluate(_FINDINGS)
    return [str(finding) for finding in findings]


def of_nu(pages: Sequence[Path]) -> list[str]:
    """Return what the Nu checker finds in files of HTML."""
    if not NU.exists() or not shutil.which("java"):
        pytest.skip("the Nu checker is not installed: npm install --no-save --ignore-scripts vnu-jar, and a Java")
    command = [*_JAVA, "-jar", str(NU), "--filterpattern", _NO_FINDING, "--skip-non-html", *map(str, pages)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()
