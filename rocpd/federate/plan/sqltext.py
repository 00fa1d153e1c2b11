"""Parses statements with sqlglot, and prints trees as SQL.

A statement is taken apart only if printing the entire tree returns the user's own words. Otherwise it is left alone: a
parser that knows another dialect better than SQLite must not change the meaning of a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from rocpd.federate.plan.steps import Unfaithful
from rocpd.schema.quote import quote_name

PARAMETER = "rocpd_p"
"""Positional parameters `?` become `:rocpd_p0`, `:rocpd_p1` …: their order must survive when a statement is split."""

_NOISE = {"AS", "INNER", "OUTER", "ASC", ";"}
_SYNONYMS = {"!=": "<>", "==": "=", "INT": "INTEGER"}


class _Dialect(SQLite):
    """SQLite without sqlglot's knowledge of functions: other functions are printed as they were written."""

    class Parser(SQLite.Parser):  # type: ignore[valid-type, misc] # sqlglot makes it at run time
        FUNCTIONS = {  # noqa: RUF012 (as sqlglot has it)
            name: SQLite.Parser.FUNCTIONS[name] for name in ("COUNT", "SUM", "AVG", "MIN", "MAX")
        }
        FUNCTION_PARSERS = {"CAST": SQLite.Parser.FUNCTION_PARSERS["CAST"]}  # noqa: RUF012

        def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
            """Keep a comma distinct from CROSS JOIN, which makes SQLite join in the written order."""
            is_comma = self._curr.token_type is TokenType.COMMA
            join: exp.Join | None = super()._parse_join(*args, **options)
            if is_comma and join is not None:
                join.set("kind", None)
            return join


class _Generator(SQLite.Generator):  # type: ignore[misc, valid-type] # sqlglot builds it at run time
    """Prints `x IS NOT NULL`, `x NOT IN (…)`, `x NOT LIKE y` in this order of words, which sqlglot would change."""

    def not_sql(self, expression: exp.Not) -> str:
        inner = expression.this
        for kind, word in (
            (exp.Is, "IS"),
            (exp.In, "IN"),
            (exp.Between, "BETWEEN"),
            (exp.Like, "LIKE"),
            (exp.Glob, "GLOB"),
        ):
            if type(inner) is kind:
                left = self.sql(inner, "this")
                rest = self.sql(inner)[len(left) :].strip()
                if rest.startswith(word):
                    tail = rest[len(word) :]
                    return f"{left} IS NOT{tail}" if word == "IS" else f"{left} NOT {word}{tail}"
        return str(super().not_sql(expression))


class _Qualifying(_Generator):
    """Prints columns with the name of their source, in lower case."""

    def __init__(self, owner: Callable[[exp.Column], str]) -> None:
        super().__init__(dialect=_SQLITE, normalize_functions=False)
        self._owner = owner

    def column_sql(self, expression: exp.Column) -> str:
        owner, name = self._owner(expression), quote_name(expression.name.lower())
        return f"{quote_name(owner)}.{name}" if owner else name


_SQLITE = SQLite()
_DIALECT = _Dialect()


def text_of(tree: exp.Expr) -> str:
    """Print a tree as SQLite's SQL."""
    return _printed(_Generator(dialect=_SQLITE, normalize_functions=False), tree)


def qualified_text_of(tree: exp.Expr, owner: Callable[[exp.Column], str]) -> str:
    """Print a tree with its columns as `"source"."name"`, in lower case.

    Args:
        tree: the tree, which stays unchanged.
        owner: returns the name of a column's source, or "" for a column without source.
    """
    return _printed(_Qualifying(owner), tree)


def _printed(generator: _Generator, tree: exp.Expr) -> str:
    """Print a tree without changing it: it is copied if it holds queries, which sqlglot rearranges."""
    return str(generator.generate(tree, copy=tree.find(exp.Query) is not None))


def alias_of(name: str) -> exp.TableAlias | None:
    """Return the alias of a source in a statement; None where the name is empty."""
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True)) if name else None


def table_of(name: str, alias: str) -> exp.Table:
    """Return a table under an alias."""
    return exp.Table(this=exp.to_identifier(name), alias=alias_of(alias))


def parts_of(node: exp.Expr) -> set[str]:
    """Return the names of the parts that a node has; sqlglot also lists absent parts."""
    return {name for name, value in node.args.items() if value}


def name_parameters(sql: str) -> tuple[str, int]:
    """Return `sql` with a name for each `?`, in order, and their number."""
    if "?" not in sql:
        return sql, 0
    tokens = [token for token in _tokens(sql) if token.token_type is TokenType.PLACEHOLDER]
    pieces, last = [], 0
    for number, token in enumerate(tokens):
        pieces += [sql[last : token.start], f":{PARAMETER}{number}"]
        last = token.end + 1
    return "".join([*pieces, sql[last:]]), len(tokens)


def read_select(sql: str) -> exp.Query:
    """Parse one SELECT, or several joined by UNION and the like.

    Raises:
        Unfaithful: it is another statement, or its printed form is not the same word by word.
    """
    tokens = _tokens(sql)
    try:
        trees = [tree for tree in _DIALECT.parser().parse(tokens, sql) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        raise Unfaithful("sqlglot cannot read it") from error
    if len(trees) != 1 or not isinstance(trees[0], (exp.Select, exp.SetOperation)):
        raise Unfaithful("not one SELECT")
    tree = trees[0]
    if list(_words(tokens)) != list(_words(_tokens(text_of(tree)))):
        raise Unfaithful("sqlglot would change its words")
    for node in tree.walk():
        node._meta = None  # the places of words in `sql`: most of the memory that copies of a tree would take
    return tree


def _tokens(sql: str) -> list[Token]:
    try:
        return sqlglot.tokenize(sql, read="sqlite")
    except SqlglotError as error:
        raise Unfaithful("sqlglot cannot read it") from error


def _words(tokens: Iterable[Token]) -> Iterator[str]:
    """Yield the words of a statement without optional ones; names and text keep their case."""
    previous: Token | None = None
    for token in tokens:
        if (
            previous
            and previous.token_type is TokenType.NUMBER
            and previous.end + 1 == token.start
            and token.text[0].isalnum() | (token.text[0] == "_")
        ):
            raise Unfaithful("a number followed by letters")
        previous = token
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            yield f"{token.token_type.name == 'STRING'}:{token.text}"
        elif token.text.upper() not in _NOISE:
            yield _SYNONYMS.get(token.text.upper(), token.text.upper())
