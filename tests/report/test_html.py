"""The page is valid, loads nothing, runs nothing of a trace, and stays small."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import html5lib
import pytest

import rocpd
from rocpd.report.build import build
from rocpd.report.model import Report
from rocpd.report.writers.html import html
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "</style><style>*{display:none}",
    "]]>--><!--\u2028\u2029",
    "\u202eevil\u202c &lt;b&gt; &#60;",
    "javascript:alert(1)",
    "=cmd|' /C calc'!A0",
    "a\x00b\x1b[31mc\ufffe",
)


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return html(report)


def check(page: str) -> None:
    """Parse as browsers do, with every error of the standard raised."""
    html5lib.HTMLParser(strict=True, tree=html5lib.getTreeBuilder("etree")).parse(page)


def test_the_page_is_valid(page: str) -> None:
    check(page)


def test_the_page_loads_nothing(page: str) -> None:
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert addresses
    assert [address[:20] for address in addresses if not address.startswith(("#", "data:image/png;base64,"))] == []
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", page)


def test_the_policy_names_the_script_and_the_style(page: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    for element in ("script", "style"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in unescape(policy)
    assert "unsafe" not in policy
    assert "default-src 'none'" in unescape(policy)
    assert not re.search(r"<[^>]*\s(on\w+|style)=", page)


def test_the_page_is_small(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(script.encode()) <= 15_000
    assert len(page.encode()) <= 300_000


def test_a_page_of_many_kernels_is_small(tmp_path: Path) -> None:
    """Eight ranks of fifty kernels, whose names are as long as those of templates."""
    files = []
    for rank in range(8):
        builder = TraceBuilder(rank)
        for number in range(60):
            name = f"void at::native::kernel_{number % 50}<{'float, ' * 100}{number % 50}>(at::Tensor*)"
            builder.kernel(name, 1000 * number, 1000 * number + 500 + number)
        files.append(builder.write(tmp_path / f"{rank}.db"))
    with rocpd.connect(files) as session:
        page = html(build(session))
    assert page.count("at::native::kernel_") >= 32
    assert len(page.encode()) <= 300_000


def test_every_chart_has_a_name_and_its_table(report: Report, page: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", page, re.S)
    assert len(figures) == len(list(report.figures())) > 5
    for figure in figures:
        assert re.search(r'<svg role="(?:img|group)"[^>]* aria-label="[^"]+"', figure)
        assert re.search(r"<details.*<table.*</details>", figure, re.S)


def test_names_of_a_trace_are_text(open_job: OpenJob) -> None:
    builder = TraceBuilder()
    for number, name in enumerate(HOSTILE):
        builder.kernel(name, 1000 * number, 1000 * number + 500)
        builder.region("range", 1000 * number, 1000 * number + 900, message=f"step {number} {name}")
    page = html(build(open_job(builder)))
    check(page)
    assert len(re.findall(r"<script", page)) == 2  # the page's own, and what the time line shows
    assert not re.search(r"<(img|iframe|object|style [^>])", page)
    assert not set("\x00\x1b\u2028\u2029\u202e") & set(page)
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    shown = " ".join(tree.itertext())
    assert "<script>alert(1)</script>" in shown


def test_same_bytes_twice(files: tuple[Path, ...], page: str) -> None:
    with rocpd.connect(files) as session:
        assert html(build(session)) == page


def test_command_writes_and_replaces_only_when_told(files: tuple[Path, ...], tmp_path: Path, cli: Cli) -> None:
    target = tmp_path / "x.html"
    folder = str(files[0].parent)
    assert cli("report", folder, "-o", str(target), "--sections", "verdict", "--start", "20%").code == 0
    before = target.read_text()
    refused = cli("report", folder, "-o", str(target))
    assert refused.code
    assert "--force" in refused.err
    assert target.read_text() == before
    assert cli("report", folder, "-o", str(target), "--force").code == 0
    assert "--start 20%" not in target.read_text()
    unknown = cli("report", folder, "-o", "x.docx")
    assert unknown.code
    assert ".html" in unknown.err
