"""One small awkward result, byte for byte in every format; and formats that agree cell for cell."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import Row
from rocpd.table import TABLE_FORMATS, Sheet
from rocpd.table.cell import one_line
from rocpd.table.html import write_html_page
from rocpd.table.human import write_console
from rocpd.table.json import distinct_names
from tests.soak import sized

COLUMNS = ("name", "n", "x", "n")
ROWS: tuple[Row, ...] = (
    ('say "hi", \\ a|b', 9223372036854775807, 0.1, b"\x00\xff"),
    ("l\nbreak\r\té <b>&", -9223372036854775808, math.inf, None),
    (None, 0, -1.5e300, "漢字"),
    ("", None, -math.inf, 1),
)


@dataclass(frozen=True)
class Golden:
    """The bytes of a format: of ROWS, and of no rows of columns `a` and `b`."""

    shown: str
    empty: str


HTML_TABLE = r"""<table><thead><tr><th>name</th><th class="n">n</th><th class="n">x</th><th>n</th></tr></thead><tbody>
<tr><td>say &quot;hi&quot;, \ a|b</td><td class="n">9223372036854775807</td><td class="n">0.1</td><td>00ff</td></tr>
<tr><td>l\nbreak\r\té &lt;b&gt;&amp;</td><td class="n">-9223372036854775808</td><td class="n">inf</td><td>NULL</td></tr>
<tr><td>NULL</td><td class="n">0</td><td class="n">-1.5e+300</td><td>漢字</td></tr>
<tr><td></td><td>NULL</td><td class="n">-inf</td><td class="n">1</td></tr>
</tbody></table>
"""

GOLDEN = {
    "csv": Golden(
        "name,n,x,n\n"
        '"say ""hi"", \\ a|b",9223372036854775807,0.1,00ff\n'
        '"l\nbreak\r\té <b>&",-9223372036854775808,inf,\n'
        ",0,-1.5e+300,漢字\n"
        ",,-inf,1\n",
        "a,b\n",
    ),
    "json": Golden(
        r"""[
{"name": "say \"hi\", \\ a|b", "n": 9223372036854775807, "x": 0.1, "n_2": "00ff"},
{"name": "l\nbreak\r\té <b>&", "n": -9223372036854775808, "x": 9e999, "n_2": null},
{"name": null, "n": 0, "x": -1.5e+300, "n_2": "漢字"},
{"name": "", "n": null, "x": -9e999, "n_2": 1}
]
""",
        "[]\n",
    ),
    "md": Golden(
        r"""| name | n | x | n |
| --- | ---: | ---: | --- |
| say "hi", \\ a\|b | 9223372036854775807 | 0.1 | 00ff |
| l\\nbreak\\r\\té &lt;b>& | -9223372036854775808 | inf | NULL |
| NULL | 0 | -1.5e+300 | 漢字 |
|  | NULL | -inf | 1 |
""",
        "| a | b |\n| --- | --- |\n",
    ),
    "console": Golden(
        r"""name                                   n          x  n
------------------  --------------------  ---------  ----
say "hi", \ a|b      9223372036854775807        0.1  00ff
l\nbreak\r\té <b>&  -9223372036854775808        inf  NULL
NULL                                   0  -1.5e+300  漢字
                                    NULL       -inf  1
""",
        "a  b\n-  -\n",
    ),
}
"""A format of tables has its row here and nothing else in this file; html and parquet have tests of their own."""


def text(form: str, columns: Sequence[str] = COLUMNS, rows: Sequence[Row] = ROWS) -> str:
    out = io.StringIO(newline="")
    if form == "console":
        assert write_console(columns, iter(rows), out) is False
    else:
        TABLE_FORMATS[form].write(columns, iter(rows), out)
    return out.getvalue()


@pytest.mark.parametrize("form", GOLDEN)
def test_bytes(form: str) -> None:
    assert text(form) == GOLDEN[form].shown


def test_bytes_of_html() -> None:
    page = text("html")
    assert page.startswith('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">')
    around = (
        '<main class="wide">\n<div class="across" tabindex="0" role="region" aria-label="table">\n',
        "</div>\n</main>",
    )
    assert page.endswith(HTML_TABLE.join(around) + "</body></html>\n")
    assert not re.search(r"<script|https?:|@import|src=", page)


def test_every_format_is_tested() -> None:
    assert {*TABLE_FORMATS, "console"} == {*GOLDEN, "html", "parquet"}


@pytest.mark.parametrize("form", GOLDEN)
def test_no_rows(form: str) -> None:
    assert text(form, ("a", "b"), ()) == GOLDEN[form].empty


def test_no_rows_in_html() -> None:
    assert "<th>a</th></tr></thead><tbody>\n</tbody></table>" in text("html", ("a",), ())


def test_a_page_of_several_tables() -> None:
    out = io.StringIO()
    write_html_page([Sheet("A & B", "", ("x",), iter([(1,)])), Sheet("C", "", ("y",), iter([]))], out)
    assert re.findall("<h2>(.*)</h2>", out.getvalue()) == ["A &amp; B", "C"]
    assert out.getvalue().count("<table>") == 2


def test_texts_of_numbers_stand_flush_right_with_their_head() -> None:
    out = io.StringIO()
    write_html_page([Sheet("A", "", ("part", "time"), iter([("compute", "3.2 ms")]), right=(False, True))], out)
    assert '<th>part</th><th class="n">time</th>' in out.getvalue()
    assert '<td>compute</td><td class="n">3.2 ms</td>' in out.getvalue()


def test_names_with_line_ends_stay_in_the_head() -> None:
    assert text("console", ("a\nb",), [(1,)]).splitlines() == ["a\\nb", "----", "   1"]
    assert text("md", ("a|b\n",), [(1,)]).splitlines()[0] == "| a\\|b\\\\n |"


def test_what_would_steer_a_terminal_is_made_visible() -> None:
    assert one_line("a\x07\x0b\x7f\x9b1m\u2028\x1b[0mé") == r"a\x07\x0b\x7f\x9b1m\u2028\e[0mé"


def test_entities_stay_text_in_markdown() -> None:
    assert text("md", ("x",), [("&lt; a && b; &x &#60;",)]).splitlines()[2] == "| &amp;lt; a && b; &x &amp;#60; |"


def test_cut_at_a_limit() -> None:
    out = io.StringIO()
    rows = iter([(1,), (2,), (3,)])
    assert write_console(("a",), rows, out, limit=2) is True
    assert out.getvalue() == "a\n-\n1\n2\n"
    assert write_console(("a",), iter([(1,), (2,)]), io.StringIO(), limit=2) is False


@given(st.lists(st.sampled_from(["a", "a_2", "b", "a_3"]), max_size=8))
def test_distinct_names_are_distinct(names: list[str]) -> None:
    matches = distinct_names(names)
    assert len(set(matches)) == len(names)
    assert all(new == old or new.startswith(f"{old}_") for new, old in zip(matches, names, strict=True))


CELLS = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=12)
    | st.text(st.sampled_from('|\\<>&;alt mp\n\r",`*_~'), max_size=12)
    | st.binary(max_size=4)
)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1, max_size=5)))
def test_formats_agree_cell_for_cell(rows: list[Row]) -> None:
    """Each format, read back by the rules of its readers, gives the same cells."""
    columns = [f"c{i}" for i in range(len(rows[0]))]
    shown = [[one_line(value) for value in row] for row in rows]
    assert all(len(line.splitlines()) <= 1 for row in shown for line in row)
    data = [[value.hex() if isinstance(value, bytes) else value for value in row] for row in rows]

    parsed = json.loads(text("json", columns, rows))
    assert [list(row.values()) for row in parsed] == data
    assert [[type(v) for v in row.values()] for row in parsed] == [[type(v) for v in row] for row in data]

    table = list(csv.reader(io.StringIO(text("csv", columns, rows), newline="")))
    assert table == [columns, *([["" if v is None else str(v) for v in row] for row in data])]

    assert console_cells(text("console", columns, rows)) == [[cell.strip(" ") for cell in row] for row in shown]

    matches = re.findall(r"<tr>(<td.*)</tr>", text("html", columns, rows))
    cells = [[html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in matches]
    assert cells == shown

    lines = text("md", columns, rows).split("\n")[2:-1]
    assert [markdown_cells(line) for line in lines] == [[cell.strip(" ") for cell in row] for row in shown]


def console_cells(shown: str) -> list[list[str]]:
    """Cut lines where the line of dashes says."""
    lines = shown.split("\n")[:-1]
    columns = [match.span() for match in re.finditer("-+", lines[1])]
    return [[line[a:b].strip(" ") for a, b in columns] for line in lines[2:]]


def markdown_cells(line: str) -> list[str]:
    assert line.startswith("| ")
    assert line.endswith(" |")
    cells = (re.sub(r"\\(.)", r"\1", cell) for cell in split_at_bars(line[1:-1]))
    return [cell.replace("&lt;", "<").replace("&amp;", "&").strip(" ") for cell in cells]


def split_at_bars(line: str) -> list[str]:
    cells = [""]
    for piece in re.findall(r"\\.|[^\\]", line):
        if piece == "|":
            cells.append("")
        else:
            cells[-1] += piece
    return cells


MEMORY = """
import sys
from rocpd.table import TABLE_FORMATS
for count in (1000, int(sys.argv[1])):
    rows = ((i, f"kernel {i % 97}", i * 0.5, None) for i in range(count))
    with open("/dev/null", "w") as out:
        TABLE_FORMATS[sys.argv[2]].write(("id", "name", "x", "y"), rows, out)
    with open("/proc/self/status") as status:  # `ru_maxrss` begins with that of the process that starts this one
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.soak(10)
@pytest.mark.parametrize("form", [form for form in TABLE_FORMATS if form != "parquet"])
def test_memory_stays_flat(form: str) -> None:
    command = [sys.executable, "-c", MEMORY, str(sized(100_000, 1_000_000)), form]
    few, many = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(many) - int(few) < 2 << 10  # [KiB]
