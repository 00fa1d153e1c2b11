"""Cells of Markdown are read by a parser of Markdown as the texts that they are."""

from __future__ import annotations

import io
import re
from html import unescape

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rocpd.table.cell import one_line
from rocpd.table.markdown import write_markdown


@given(st.text("ab1 *_~|<>&;#[]()!\\é", min_size=1).map(str.strip).filter(bool))
@example("__launch__(int*, float*)")
@example("a*b*c ~x~ _y_ snake_case_name")
@example("![x](http://example.org/x.png)")
def test_a_cell_is_its_text(text: str) -> None:
    out = io.StringIO()
    write_markdown(["name"], iter([(text,)]), out)
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(out.getvalue())
    (cell,) = re.findall(r"<td>(.*)</td>", page)
    assert unescape(cell) == one_line(text)
