"""What people call kernels: names of every library, and that no two which are shown together look alike."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.facts.cxx import bare_name, readable, take_apart
from rocpd.facts.short_names import kernel_name, short_names
from rocpd.schema.rules.kernel_categories import load
from rocpd.table.cell import shorten_apart
from tests.conftest import private

_GOLDEN = Path(__file__).with_name("short_names.txt")


def golden() -> Iterator[tuple[str, str, str]]:
    """Yield (short name, family, full name) of the file."""
    text = re.sub(r"^#.*\n", "", _GOLDEN.read_text("utf-8"), flags=re.MULTILINE)
    for block in text.strip().split("\n\n"):
        short, family, full = block.strip().split("\n")
        yield short, family.removeprefix("    "), full.removeprefix("    ")


FULL_NAMES = [full for *_, full in golden()]


def test_what_kernels_are_called() -> None:
    assert [tuple(kernel_name(full)) for full in FULL_NAMES] == [(full, *rest) for *rest, full in golden()]


@pytest.mark.parametrize("name", ["fusion 12", "=cmd|' /C calc'!A0", "f<4> tail", "my kernel (fast)", "kernel_4l"])
def test_names_that_are_no_functions_stay(name: str) -> None:
    assert (kernel_name(name).short, bare_name(name)) == (name, name)


@pytest.mark.parametrize(
    ("full", "bare"),
    [
        ("void at::native::(anonymous namespace)::f<(E)1, a::b<2> >(int, c<3>) [clone .kd]", "f"),
        ("std::enable_if<(1>0), void>::type <unnamed>::g<decltype(a->b)>(int)", "g"),
        ("void f<at::add(int)::[lambda() (instance 2)]::operator ()() const::[lambda(float)]>(int)", "f"),
        ("void f<x(int)::{lambda(int)#1}>(x(int)::{lambda(int)#1})", "f"),
        ("operator<<(foo, bar)", "operator<<"),
        ("bool ns::operator< <int>(A<int>)", "operator<"),
        ("void X<1>::operator()(int) const", "operator()"),
        ("X::operator bool() const", "operator bool"),
        ("unsigned long my_operator(int)", "my_operator"),
        ("void at::native::cut_off_here<4, at::nat", "cut_off_here"),
        ("triton_poi_fused_add_3.kd", "triton_poi_fused_add_3"),
    ],
)
def test_bare_names_of_functions(full: str, bare: str) -> None:
    assert (bare_name(full), bare_name(bare)) == (bare, bare)


@pytest.mark.parametrize(
    ("one", "other", "are_kin"),
    [
        ("batched_matrix_core_128x128x16_IGLP<128u>(int)", "batched_matrix_core_128x128x16<128u>(int)", True),
        ("Cijk_Alik_Bljk_BBS_BH_MT128x64x32_SN_GSU1", "Cijk_Alik_Bljk_BBS_BH_MT256x64x32_SN_GSU4", True),
        ("Cijk_Alik_Bljk_BBS_BH_MT128x64x32_SN", "Cijk_Ailk_Bljk_BBS_BH_MT128x64x32_SN", False),
        ("Cijk_Alik_Bljk_BBS_BH_MT128x64x32_SN", "Cijk_Alik_Bljk_HHS_BH_MT128x64x32_SN", False),
        ("triton_poi_fused_add_3", "triton_poi_fused_add_17", True),
        ("triton_poi_fused_add_3", "triton_red_fused_add_3", False),
        ("void f<float, 64>(int)", "void f<float, 128>(int)", True),
        ("void f<float, 64>(int)", "void f<double, 64>(int)", False),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_32x32_nn", True),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_tn", False),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "ncclKernel_AllReduce_TREE_LL_Sum_float(y)", True),
    ],
)
def test_families(one: str, other: str, are_kin: bool) -> None:
    assert (kernel_name(one).family == kernel_name(other).family) is are_kin


def test_what_tells_alike_ones_apart_is_shown() -> None:
    assert list(short_names(["void f<64, 2>(int)", "void f<64, 4>(int)", "g"]).values()) == [
        "f<64, 2>",
        "f<64, 4>",
        "g",
    ]
    gemm = "Cijk_Alik_Bljk_BBS_BH_MT64x64x32_SN_{}_GRVW8_{}"
    names = [gemm.format("GSU1", "WS64"), gemm.format("GSU4", "WS64")]
    head = "GEMM Cijk_Alik_Bljk bf16 MT64x64x32"
    assert list(short_names(names).values()) == [f"{head} [GSU1]", f"{head} [GSU4]"]
    one = next(name for name in FULL_NAMES if "vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add" in name)
    other = next(
        name for name in FULL_NAMES if "manual_unroll<128, 8, at::native::gpu_kernel_impl_nocast<at::nati" in name
    )
    assert len(set(short_names([one, other]).values())) == 2


_PIECES = st.sampled_from(
    (
        *(
            "void ",
            "at::native::",
            "f",
            "gemm",
            "Cijk_Alik_Bljk_BBS_BH",
            "_MT64x64",
            "x32",
            "_SN",
            "<",
            ">",
            "(",
            ")",
            ", ",
        ),
        *("64", "1", "128u", "float", "c10::BFloat16", "::", "_kernel", "elementwise_kernel<", "{lambda()#1}", ".kd"),
        *(
            " [clone .kd]",
            "_Z",
            "1f",
            "I",
            "Li2E",
            "E",
            "ncclDevKernel_",
            "Generic",
            "…",
            "[1]",
            " ~ab",
            "\ud800",
            "\n",
        ),
    )
)
_BUILT = st.lists(_PIECES, min_size=1, max_size=12).map("".join)
_CHANGED = st.builds(
    lambda name, at, text: name[: at % len(name)] + text + name[at % len(name) + 1 :],
    st.sampled_from([name for name in FULL_NAMES if len(name) < 600]),
    st.integers(0, 600),
    st.sampled_from("abc019_<>,"),
)
_SETS = st.lists(st.one_of(_BUILT, _CHANGED, st.text(max_size=40)), unique=True, max_size=30)


@given(_SETS)
def test_no_two_look_alike(names: list[str]) -> None:
    short = short_names(names)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert short == short_names(reversed(names))


@given(st.lists(st.text("ab…~0", min_size=1, max_size=60), unique=True, max_size=40), st.integers(8, 40))
def test_texts_that_are_cut_stay_apart(texts: list[str], width: int) -> None:
    cut = shorten_apart(texts, width)
    assert len(set(cut)) == len(texts)
    assert all(short == text for text, short in zip(texts, cut, strict=True) if len(text) <= width) or "~" in "".join(
        cut
    )
    assert max(map(len, cut), default=0) <= width


@given(st.lists(_PIECES, max_size=14).map("".join))
def test_any_text_is_read_as_a_name(name: str) -> None:
    assert take_apart(readable(name))


def test_names_of_the_kernels_of_real_files(tmp_path: Path) -> None:
    """A few thousand, each source together: no two alike, and what is on a terminal fits."""
    sources = [_of_rocprofv3(), _of_rpd(tmp_path), _of_kineto(), _of_rocprofv3_json()]
    assert [len(names) for names in sources] == [183, 33, 293, 495]
    for names in sources:
        short = short_names(names)
        assert len(set(short.values())) == len(names)
        assert max(map(len, short.values())) <= 90
        assert not any(re.search(r"^void |\(anonymous|std::enable_if|lambda", text) for text in short.values())
        narrow = shorten_apart(list(short.values()), 36)
        assert len(set(narrow)) == len(names)
        assert max(map(len, narrow)) <= 36


def test_categories_are_those_of_full_names() -> None:
    """A short name is for eyes: what it would be taken for is another thing."""
    names = [name for name in FULL_NAMES if load(None).of(kernel_name(name).short) != load(None).of(name)]
    assert names


def _of_rocprofv3() -> set[str]:
    names: set[str] = set()
    for path in (*private("rocprofv3/*.db", 12), *private("rocprofv3-other/*.db", 1)):
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as base:
            tables = base.execute(
                "SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_info_kernel_symbol_*'"
            ).fetchall()
            for (table,) in tables:
                names.update(name for (name,) in base.execute(f'SELECT display_name FROM "{table}"'))
    return names


def _of_rpd(folder: Path) -> set[str]:
    (packed,) = private("rpd/mytrace.rpd.gz", 1)
    path = folder / "mytrace.rpd"
    with gzip.open(packed) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    sql = "SELECT DISTINCT string FROM rocpd_op O JOIN rocpd_string S ON S.id = O.description_id WHERE string <> ''"
    with closing(sqlite3.connect(path)) as base:
        return {name for (name,) in base.execute(sql)}


def _of_kineto() -> set[str]:
    names: set[str] = set()
    for path in private("kineto/*.json.gz", 6):
        with gzip.open(path) as source:
            events = json.load(source)["traceEvents"]
        names.update(event["name"] for event in events if event.get("cat") in ("kernel", "Kernel"))
    return names


def _of_rocprofv3_json() -> set[str]:
    """Every twentieth of the kernels that were loaded."""
    (path,) = private("rocprofv3-json/*.json.gz", 1)
    with gzip.open(path) as source:
        symbols = json.load(source)["rocprofiler-sdk-tool"][0]["kernel_symbols"]
    return set(sorted({symbol["formatted_kernel_name"] for symbol in symbols})[::20])
