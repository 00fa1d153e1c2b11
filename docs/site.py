"""Builds the documentation site: `python -m docs.site [FOLDER]`, by default `site`. Needs `pip install '.[site]'`.

Pages are taken where they lie and keep their places, so that the links between them hold on a code host and on the
site. Warnings are errors, and so is a page that loads anything from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CONTENT = ("*.md", "LICENSE", "docs/**/*.md", "docs/images/*", "schema/**/*.*", "benchmarks/*.md")
"""Pages, and the files that they show or link."""

KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "docs/analyses/allocation-sites.md": ("leak",),
    "docs/analyses/memory.md": ("memory", "peak"),
    "docs/analyses/ranks.md": ("straggler", "slow rank", "slow step"),
    "docs/compare.md": ("compare", "regression"),
    "docs/convert.md": ("export", "Perfetto", "merge"),
    "docs/history.md": ("history", "trend"),
    "docs/redact.md": ("redact", "anonymize"),
    "docs/whatif.md": ("whatif", "predict"),
    "docs/view.md": ("timeline", "browser"),
}
"""Words that people search for and that are not in the title of the page that answers."""

_REFERENCE = ("CHANGELOG.md", "CONTRIBUTING.md", "docs/api.md", "docs/cli.md", "docs/more-questions.md", "schema/")
"""Pages that the search finds after the others."""

_CODE_IN_TABLE = re.compile(r"(?<=[ |])`[^`\n]*\\\|[^`\n]*`(?=[^\n]*\|$)", re.M)
_ALL_PAGES = re.compile(r"^( *- )(\S+/\*\.md)$", re.M)
_STYLE = (
    ".md-typeset pre>code .said{white-space:pre-wrap;overflow-wrap:anywhere;"  # tables scroll, sentences need not
    "display:inline-block;--hang:min(var(--at,2ch),26vw);padding-left:var(--hang);text-indent:calc(-1*var(--hang))}"
    ".md-typeset pre>code .line{display:inline-block;max-width:100%;overflow:hidden;vertical-align:bottom}"
    "@media(max-width:45em){.md-typeset pre>code.wraps{white-space:pre-wrap;overflow-wrap:anywhere}}"  # on phones
    ".md-tabs__link{opacity:1}.md-typeset :is(p,li,td) a{text-decoration:underline}"  # links are to be seen
    "[data-md-color-scheme=default]{--md-default-fg-color--light:#0000009c}"
    "[data-md-color-scheme=slate]{--md-code-hl-number-color:#ec8a7f;--md-code-hl-constant-color:#a99cea}"
    "[data-md-color-scheme=slate] .md-typeset a code{color:#84a9ea}"
)
_BREAKS_A_STANDARD = {
    re.compile(r'(<input\b[^>]*type="checkbox"[^>]*?) autocomplete="off"'): r"\1",
    re.compile(r'(<label\b[^>]*?) tabindex=""'): r"\1",
    re.compile(r"(<(?:br|hr|img)\b[^>]*?) ?/>"): r"\1>",
    re.compile(r'(data-md-component="search" role="dialog")'): r'\1 aria-label="Search"',
    re.compile(r"<th\b([^>]*)></th>"): r"<td\1></td>",
    re.compile(r'"nav",(\{class:"md-code__nav"\})'): r'"div",\1',
    re.compile(r'(\{class:"md-typeset__scrollwrap")\}'): r"\1,tabIndex:0}",
    re.compile(r'<code>(?=<span class="(?:n|k|kn|nb|nd|c1)">|Usage: )'): '<code class="wraps">',
    re.compile(r'<span class="go">((?:(?!  )[^<\n])+)</span>'): r'<span class="go said">\1</span>',
    re.compile(r'(<span class="gp">\$ </span>[^\n]*)'): r'<span class="said">\1</span>',
    re.compile("</head>"): f"<style>{_STYLE}</style></head>",
}
"""Markup and scripts of the theme and of Markdown that break a standard of pages, or of access -> the replacement."""

_LAST_CELL = re.compile(r'<span class="go">([^<\n]*  )(https:[^<\n ]+|(?:(?!  )[^<\n])+(?: (?! )[^<\n ]+){4})</span>')
"""A row whose last cell is a sentence or an address, which goes on below its start."""

_LINE = re.compile(r'<span class="go">([- ]*-{50})')
"""The line below the heads of a table whose last cells are sentences."""

_FOREIGN = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="?(?:https?:)?//[^>]*>')


def content() -> list[Path]:
    """Return the files of the site, relative to the repository."""
    return sorted({path.relative_to(ROOT) for pattern in CONTENT for path in ROOT.glob(pattern) if path.is_file()})


def configuration() -> str:
    """Return docs/mkdocs.yml with the pages of each `folder/*.md` in its place."""

    def pages(row: re.Match[str]) -> str:
        found = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(row[2]))
        return "\n".join(f"{row[1]}{page}" for page in found)

    return _ALL_PAGES.sub(pages, (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))


def assemble(folder: Path) -> Path:
    """Put the configuration and a copy of all content into `folder`; return the path of the configuration.

    In code in a table, code hosts want `|` as `\\|` and mkdocs as it is. What the search knows of a page goes above it.
    """
    for path in content():
        copy = folder / "content" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy)
        if path.suffix == ".md":
            text = copy.read_text(encoding="utf-8")
            text = _CODE_IN_TABLE.sub(lambda code: code[0].replace("\\|", "|"), text)
            copy.write_text(_for_search(path.as_posix()) + text, encoding="utf-8")
    config = folder / "mkdocs.yml"
    config.write_text(configuration(), encoding="utf-8")
    return config


def _for_search(page: str) -> str:
    """Return what stands above a page for the search: its keywords, and less weight for pages of reference."""
    tags = [f"tags: {json.dumps(KEYWORDS[page])}"] if page in KEYWORDS else []
    weight = ["search: {boost: 0.2}"] if page.startswith(_REFERENCE) else []
    return "\n".join(["---", *tags, *weight, "---", "", ""]) if tags or weight else ""


def found(site: Path, words: Sequence[str]) -> list[list[str]]:
    """Return the pages that the search of a built site finds for each of some words, best first.

    Its own script is asked, by node (`docs/search.js`).
    """
    command = ["node", str(ROOT / "docs" / "search.js"), str(site), *words]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    return [[place.partition("#")[0] for place in json.loads(line)] for line in lines]


def mend(site: Path) -> None:
    """Make the pages of a built site valid, and readable for everybody."""
    for page in (*site.rglob("*.html"), *site.glob("assets/javascripts/bundle.*.js")):
        text = page.read_text(encoding="utf-8")
        for wrong, right in _BREAKS_A_STANDARD.items():
            text = wrong.sub(right, text)
        text = _LINE.sub(r'<span class="go line">\1', _LAST_CELL.sub(_hanging, text))
        page.write_text(text, encoding="utf-8")


def _hanging(row: re.Match[str]) -> str:
    return f'<span class="go said" style="--at:{len(unescape(row[1]))}ch">{row[1]}{row[2]}</span>'


def foreign(site: Path) -> Iterator[str]:
    """Name each tag that would load something from elsewhere."""
    for page in sorted(site.rglob("*.html")):
        for tag in _FOREIGN.findall(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(site)}: {tag}"


def main(arguments: list[str]) -> int:
    """Build the site; return mkdocs' exit code, or 1 if a page loads something from elsewhere."""
    site = Path(arguments[0] if arguments else ROOT / "site").resolve()
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
        # The theme advertises on stderr what does not concern a pinned mkdocs 1.
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run([*command, "--config-file", str(assemble(Path(name)))], env=environment, check=False)
    if done.returncode:
        return done.returncode
    mend(site)
    tags = list(foreign(site))
    print("\n".join(tags) or f"wrote {site}/index.html")
    return 1 if tags else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
