"""How the package may grow: one subject a file, small functions, one meaning per class name, no circles of imports.

Docstrings are read here too, so that modules are parsed once.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_words import NOWHERE

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "rocpd").rglob("*.py"))
}
MODULES = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in SOURCES}

MOST_LINES_OF_A_FILE = 800
MOST_LINES_OF_A_FUNCTION = 50


_CLAUSE = re.compile(r"What (?!if\b)[^?]*$")  # in place of a noun


@pytest.fixture(scope="module")
def nodes() -> Iterator[dict[str, list[ast.AST]]]:
    """All nodes of each module; to search so many for garbage takes longer than to make them."""
    gc.disable()
    yield {path: [*ast.walk(ast.parse(text))] for path, text in SOURCES.items()}
    gc.enable()


def test_a_file_is_one_subject() -> None:
    """A longer file has several; a shorter one is no reason to divide a subject."""
    lines = {path: text.count("\n") for path, text in SOURCES.items()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES_OF_A_FILE} == {}


def test_functions_are_short(nodes: dict[str, list[ast.AST]]) -> None:
    """The signature of a command is left out: it lists the options."""
    long = []
    for path, of_module in nodes.items():
        for node in of_module:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0].lineno if path.startswith("rocpd/cli/") else node.lineno
                if (node.end_lineno or first) - first >= MOST_LINES_OF_A_FUNCTION:
                    long.append(f"{path}:{node.name}")
    assert long == []


def test_a_class_name_means_one_thing(nodes: dict[str, list[ast.AST]]) -> None:
    names = Counter(
        node.name
        for of_module in nodes.values()
        for node in ast.iter_child_nodes(of_module[0])
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_imports_make_no_circles(nodes: dict[str, list[ast.AST]]) -> None:
    """Imports inside of functions and for type checkers count. The facade `rocpd` may name everything."""
    imports = {name: set(_imported(nodes[path])) - {"rocpd"} for name, path in MODULES.items() if name != "rocpd"}
    assert [name for name in imports if name in _reached(name, imports)] == []


def _imported(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def _reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        new = imports[ahead.pop()] - reached
        reached |= new
        ahead += new
    return reached


def test_only_facts_choose_between_all_rows_and_selected_ones(nodes: dict[str, list[ast.AST]]) -> None:
    """Columns of facts say what a window does to them; an analysis that chose for itself could contradict another."""
    choosing = [
        f"{path}:{node.lineno}"
        for path, of_module in nodes.items()
        if path.startswith(("rocpd/summary/", "rocpd/advice/", "rocpd/report/", "rocpd/chart/"))
        for node in of_module
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args
        if node.func.attr in ("whole", "unwindowed")
    ]
    assert choosing == []


def _docstrings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a module, those of constants included."""
    for node in nodes:
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def test_docstrings(nodes: dict[str, list[ast.AST]]) -> None:
    known = re.compile("|".join(NOWHERE.values()))
    texts = ((path, line, text) for path, of_module in nodes.items() for line, text in _docstrings(of_module))
    assert [f"{path}:{line}" for path, line, text in texts if any(map(known.search, text.splitlines()))] == []


def test_docstrings_begin_with_a_noun_or_verb(nodes: dict[str, list[ast.AST]]) -> None:
    texts = ((path, line, text) for path, of_module in nodes.items() for line, text in _docstrings(of_module))
    firsts = ((path, line, text.partition("\n")[0]) for path, line, text in texts)
    assert [f"{path}:{line}: {first}" for path, line, first in firsts if _CLAUSE.match(first)] == []


@pytest.mark.parametrize("text", ["What a file holds.", "What is read:\nrows"])
def test_clauses_are_found(text: str) -> None:
    module = ast.parse(f'ROWS = 1\n"""{text}"""\n')
    assert [text for _, text in _docstrings([*ast.walk(module)]) if _CLAUSE.match(text.partition("\n")[0])] == [text]


def test_values_are_made_by_frozen() -> None:
    """`dataclasses` takes four times as long to make them, in each process."""
    made = [path for path, text in SOURCES.items() if "@dataclass(frozen" in text]
    assert made == []


def test_lines_of_the_recorder_are_as_long_as_those_of_the_package() -> None:
    """120 columns, which ruff says of Python alone."""
    paths = [path for ending in ("cpp", "h", "c", "S") for path in (ROOT / "sdk_tool").glob(f"[!b]*/**/*.{ending}")]
    assert len(paths) > 100
    long = [
        f"{path}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > 120
    ]
    assert long == []
