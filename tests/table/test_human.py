"""Tables for people: units, and what a narrow terminal shows."""

from __future__ import annotations

import io

import pytest

from rocpd.table.human import Head, Pictures, readable, write_readable
from rocpd.table.palette import BLUE, MANY, RED, Screen


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "ns", "0 ns"),
        (999, "ns", "999 ns"),
        (1000, "ns", "1.00 us"),
        (999_499, "ns", "999 us"),
        (999_500, "ns", "1.00 ms"),
        (12_345_678, "ns", "12.3 ms"),
        (5_025_000_000_000, "ns", "5025 s"),
        (82.4, "ns", "82.4 ns"),
        (1023, "bytes", "1.00 KiB"),
        (384 * 2**20, "bytes", "384 MiB"),
        (2**50, "bytes", "1024 TiB"),
        (0.04, "%", "0.040 %"),
        (100.0, "%", "100 %"),
        (43.81, "GiB/s", "43.8 GiB/s"),
        (1.7386, "", "1.74"),
        (2_756_212.4, "", "2756212"),
        (2.5e13, "", "2.5e+13"),
        (0.00001, "", "1e-05"),
        (7, "", "7"),
        ("a\nb", "", "a\\nb"),
        (None, "ns", "-"),
    ],
)
def test_readable(value: object, unit: str, text: str) -> None:
    assert readable(value, unit) == text


COLUMNS = (Head("name"), Head("total_ns", "ns"), Head("p99_ns", "ns", True), Head("percent", "%"))
ROWS = [("void gemm<float, 128>(int) and more of it", 12_000_000, 5, 60.0), ("relu", 8, None, 40.0)]


def text_of(width: int | None, limit: int = 0) -> tuple[str, object]:
    out = io.StringIO()
    cut = write_readable(COLUMNS, iter(ROWS), out, limit, Screen(width) if width else None)
    return out.getvalue(), cut


def test_a_pipe_gets_every_column() -> None:
    assert text_of(None) == (
        "name                                         total   p99  percent\n"
        "-----------------------------------------  -------  ----  -------\n"
        "void gemm<float, 128>(int) and more of it  12.0 ms  5 ns   60.0 %\n"
        "relu                                          8 ns     -   40.0 %\n",
        (False, ()),
    )


def test_a_narrow_terminal_gets_fewer_columns_and_shorter_names() -> None:
    text, cut = text_of(38)
    assert cut == (False, ("p99_ns",))
    assert "void gemm" in text
    assert "…" in text
    assert max(map(len, text.splitlines())) <= 38


def test_a_screen_has_bars_and_distributions() -> None:
    heads = (Head("name"), Head("total_ns", "ns"), Head("min_ns", "ns", True), Head("percent", "%", is_share=True))
    rows = [("gemm", 12_000_000, 5, 55.0), ("relu", 8_000_000, 1, 45.0), ("none", 0, None, None)]
    pictures = Pictures([BLUE, RED], [(1, 0, 8), (4,)])
    shown: dict[int, list[str]] = {}
    for width in (80, 50, 30):
        out = io.StringIO()
        assert write_readable(heads, iter(rows), out, screen=Screen(width), pictures=pictures).rows is False
        shown[width] = out.getvalue().splitlines()
    assert shown[80][2].split() == ["gemm", "12.0", "ms", "5", "ns", "55.0", "%", "███████████", "▁", "█"]
    assert shown[80][3].split()[-2:] == ["█████████", "█"]
    assert shown[80][4].split()[-1] == "-"
    assert shown[50][0].split() == ["name", "total", "percent", "distribution"]  # what is minor goes first
    assert shown[30][0].split() == ["name", "total", "percent"]
    out = io.StringIO()
    write_readable(heads, iter(rows), out, pictures=pictures)
    assert not set("█▁") & set(out.getvalue())


def test_bars_have_the_colours_of_their_rows() -> None:
    out = io.StringIO()
    write_readable(
        (Head("percent", "%", is_share=True),), iter([(50.0,), (50.0,)]), out, 0, Screen(80, MANY), Pictures([RED])
    )
    _, _, first, second = out.getvalue().splitlines()
    assert f"\x1b[38;2;{RED.red};{RED.green};{RED.blue}m██████████" in first
    assert f"\x1b[38;2;{BLUE.red};{BLUE.green};{BLUE.blue}m██████████" in second


def test_rows_are_cut() -> None:
    text, cut = text_of(None, limit=1)
    assert cut == (True, ())
    assert len(text.splitlines()) == 3


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    start, end = "void ck::kernel_gemm_xdl_cshuffle<ck::GridwiseGemm<", ">, true, false>(ck::Argument, ck::Argument)"
    names = [f"{start}{middle}{end}" for middle in ("128, 64, 1", "128, 64, 2", "256, 64, 1", "256, 64, 1")]
    for width in (40, 60, 80, None):
        out = io.StringIO()
        write_readable(
            [Head("name"), Head("total_ns", "ns")],
            iter((name, 5) for name in names),
            out,
            screen=Screen(width) if width else None,
        )
        lines = out.getvalue().splitlines()[2:]
        assert len(set(lines)) == 3
        assert lines[2] == lines[3]
        assert width is None or max(map(len, lines)) <= width


def test_a_table_without_rows_has_its_head() -> None:
    out = io.StringIO()
    write_readable([Head("name"), Head("total_ns", "ns")], iter(()), out, screen=Screen(40))
    assert out.getvalue().split() == ["name", "total", "----", "-----"]
