"""The pictures of the documentation: all are there, all are used, and show what there is."""

from __future__ import annotations

import json
import re

from docs.screens import SCREENS, TOP_SCREENS, picture
from rocpd.report.contents import SECTIONS
from tests.docs.console import ROOT

IMAGES = ROOT / "docs" / "images"


def test_all_pictures_are_used() -> None:
    named = set(re.findall(r"\(images/([^)]+)\)", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")))
    assert named == {path.name for path in IMAGES.iterdir()} - {"shown.json"}
    assert named >= {f"{name}.svg" for name in (*SCREENS, *TOP_SCREENS)}


def test_pictures_of_pages_are_of_today() -> None:
    """`python -m docs.screenshot` takes them anew when sections come or go."""
    shown = json.loads((IMAGES / "shown.json").read_text(encoding="utf-8"))
    rare = {entry.title for entry in SECTIONS.values() if entry.is_rare}
    titles = [entry.title for entry in SECTIONS.values() if not entry.has_base and not entry.is_rare]
    assert [title for title in shown["report.png"] if title not in rare] == titles
    assert shown["view.png"] == ["Ranks over time", *(title for title in titles if title != "Ranks over time"), "SQL"]


def test_a_screen_keeps_colours_and_columns() -> None:
    svg = picture("x", "\x1b[1mname\x1b[0m  \x1b[38;2;213;94;0m<██>\x1b[0m")
    assert 'font-weight="bold" xml:space="preserve">name</text>' in svg
    assert 'x="64.4" y="45" textLength="33.6" fill="#d55e00" xml:space="preserve">&lt;██&gt;</text>' in svg
