"""Owns reading statements with sqlglot and writing parts of them back; only when the way back is faithful.

A statement is taken apart only if printing the whole tree gives the user's own words again. Otherwise it is left
alone: a parser that knows another dialect better than SQLite must not change what a statement means.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

PARAMETER = "rocpd_p"
"""Positional parameters `?` become `:rocpd_p0`, `:rocpd_p1` …: their order must survive being taken apart."""

_NOISE = {"AS", "INNER", "OUTER", "ASC", ";"}
_SAME = {"!=": "<>", "==": "=", "INT": "INTEGER"}


class _Dialect(SQLite):
    """SQLite without sqlglot's knowledge of functions: what it does not know, it prints as it was."""

    class Parser(SQLite.Parser):  # type: ignore[valid-type, misc] # sqlglot makes it at run time
        FUNCTIONS = {  # noqa: RUF012 (as sqlglot has it)
            name: SQLite.Parser.FUNCTIONS[name] for name in ("COUNT", "SUM", "AVG", "MIN", "MAX")
        }
        FUNCTION_PARSERS = {"CAST": SQLite.Parser.FUNCTION_PARSERS["CAST"]}  # noqa: RUF012


class Unfaithful(Exception):  # noqa: N818 (a reason, not a failure)
    """The statement can't be taken apart; the text says why."""


class _Generator(SQLite.Generator):  # type: ignore[misc, valid-type] # sqlglot builds it at run time
    """SQLite's words for what sqlglot would turn around: `x IS NOT NULL`, `x NOT IN (…)`, `x NOT LIKE y`."""

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


def text_of(tree: exp.Expr) -> str:
    """Print a tree as SQLite's SQL."""
    return str(_Generator(dialect="sqlite", normalize_functions=False).generate(tree))


def name_parameters(sql: str) -> tuple[str, int]:
    """Give `sql` with `?` named in order, and how many there were."""
    tokens = [token for token in _tokens(sql) if token.token_type is TokenType.PLACEHOLDER]
    pieces, last = [], 0
    for number, token in enumerate(tokens):
        pieces += [sql[last : token.start], f":{PARAMETER}{number}"]
        last = token.end + 1
    return "".join([*pieces, sql[last:]]), len(tokens)


def read_select(sql: str) -> exp.Query:
    """Parse one SELECT, or some that are joined by UNION and the like.

    Raises:
        Unfaithful: it is something else, or its printed form is not the same statement word by word.
    """
    try:
        trees = sqlglot.parse(sql, read=_Dialect)
    except (SqlglotError, RecursionError) as error:
        raise Unfaithful("sqlglot cannot read it") from error
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1 or not isinstance(found[0], (exp.Select, exp.SetOperation)):
        raise Unfaithful("not one SELECT")
    tree = found[0]
    if list(_words(sql)) != list(_words(text_of(tree))):
        raise Unfaithful("sqlglot would change its words")
    return tree


def _tokens(sql: str) -> list[Token]:
    try:
        return sqlglot.tokenize(sql, read="sqlite")
    except SqlglotError as error:
        raise Unfaithful("sqlglot cannot read it") from error


def _words(sql: str) -> Iterator[str]:
    """The words of a statement without those that mean nothing; names and text keep their case."""
    before: Token | None = None
    for token in _tokens(sql):
        if (
            before
            and before.token_type is TokenType.NUMBER
            and before.end + 1 == token.start
            and token.text[0].isalnum() | (token.text[0] == "_")
        ):
            raise Unfaithful("a number with letters behind it")
        before = token
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            yield f"{token.token_type.name == 'STRING'}:{token.text}"
        elif token.text.upper() not in _NOISE:
            yield _SAME.get(token.text.upper(), token.text.upper())
