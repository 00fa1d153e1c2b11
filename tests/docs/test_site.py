"""The pages hold together as they lie, so that the site and a code host show the same; what a package index shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from docs.site import ROOT, assemble, configuration, content, foreign, mend
from rocpd.base.version import __version__

PAGES = [path for path in content() if path.suffix == ".md"]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def prose(text: str) -> str:
    """Return a page without its code, in which brackets are no links."""
    return re.sub(r"`[^`]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as code hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path, files: set[Path]) -> list[str]:
    """Return the links of a page into the repository that lead nowhere on the site."""
    bad = []
    for link in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        if path.startswith(("https://", "http://")):
            continue
        target = (page.parent / path).resolve() if path else page
        if target not in files or (anchor and anchor not in anchors(target)):
            bad.append(link)
    return bad


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_files_of_the_site(page: Path) -> None:
    assert broken(ROOT / page, {ROOT / path for path in content()}) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text("[a](other.md) [b](other.md#so-it-is) [c](#d) [e](https://e) `[f](g)` ![h](i.png) [j](other.md#k)")
    other.write_text("# Other\n\n## So it is!\n")
    assert broken(page, {page, other}) == ["#d", "i.png", "other.md#k"]


def test_the_navigation_has_each_page_once() -> None:
    named = re.findall(r"^ *- (?:Start: )?(\S+\.md)$", configuration(), re.M)
    assert sorted(named) == sorted(str(page) for page in PAGES)


def test_copies_are_the_pages_but_for_escaped_bars_of_code_in_tables(tmp_path: Path) -> None:
    assemble(tmp_path)
    copies = {path: (tmp_path / "content" / path).read_bytes() for path in content()}
    changed = {path for path, copy in copies.items() if copy != (ROOT / path).read_bytes()}
    assert Path("README.md") in changed
    for path in changed:
        copy = re.sub(r"\A---\n.*?\n---\n\n", "", copies[path].decode(), flags=re.S)
        assert copy.replace("\\|", "|") == (ROOT / path).read_text(encoding="utf-8").replace("\\|", "|"), path


def test_commands_and_sentences_wrap_and_tables_scroll(tmp_path: Path) -> None:
    lines = (
        '<span class="gp">$ </span>rocpd<span class="w"> </span>summary',
        '<span class="go">rank 5 costs 455 us of a step</span>',
        '<span class="go">compute  514 ms</span>',
    )
    (tmp_path / "page.html").write_text("\n".join(lines))
    mend(tmp_path)
    assert (tmp_path / "page.html").read_text().split("\n") == [
        f'<span class="said">{lines[0]}</span>',
        '<span class="go said">rank 5 costs 455 us of a step</span>',
        lines[2],
    ]


def test_programs_and_help_wrap_on_phones(tmp_path: Path) -> None:
    blocks = ('<code><span class="n">advice</span> = 1</code>', "<code>Usage: rocpd</code>", "<code>a  b</code>")
    (tmp_path / "page.html").write_text("\n".join(blocks))
    mend(tmp_path)
    wraps = [line.startswith('<code class="wraps">') for line in (tmp_path / "page.html").read_text().splitlines()]
    assert wraps == [True, True, False]


def test_a_sentence_in_the_last_column_goes_on_below_its_start(tmp_path: Path) -> None:
    row, line = "1  17 %  rank 2 takes 36 % longer &amp; waits", f"--  ----  {'-' * 60}"
    page = tmp_path / "index.html"
    page.write_text(f'<span class="go">{row}</span>\n<span class="go">{line}</span>\n')
    mend(tmp_path)
    wraps, is_cut = page.read_text().splitlines()
    assert wraps == f'<span class="go said" style="--at:9ch">{row}</span>'
    assert is_cut == f'<span class="go line">{line}</span>'


def test_what_a_page_would_load_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "fine.html").write_text('<a href="https://x">x</a><script src="a.js"></script><img src="b.png">')
    assert list(foreign(tmp_path)) == []
    (tmp_path / "page.html").write_text('<link rel="stylesheet" href="https://fonts/x.css"><script src=//y></script>')
    assert list(foreign(tmp_path)) == [
        'page.html: <link rel="stylesheet" href="https://fonts/x.css">',
        "page.html: <script src=//y>",
    ]


def test_the_index_page_has_no_link_into_the_repository() -> None:
    """The substitutions of pyproject.toml leave words in place of links that lead nowhere on a package index."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = readme
    for rule in _PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert [link for link in _LINK.findall(prose(text)) if not link.startswith("https://")] == []
    assert re.findall(r"https://[^)\s]+", text) == re.findall(r"https://[^)\s]+", readme)
    assert "](docs/tour.md)" in readme
    assert "a tour" in text


def test_the_changelog_has_this_version() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert __version__ in versions
