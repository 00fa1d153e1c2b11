"""Writes the redacted files of a job: new ones, in which hosts, users, paths and secrets have other names.

Durations, ids and counts stay, so every analysis gives the same numbers; numbers that identify a machine change, and in
strict files times and addresses. No page is copied, as no old text may survive, and raw files never change. A file is
not delivered if a search of its bytes, and so of every page and column, finds a replaced text.

Known before anything is replaced: the rule of each column, and hosts, machines, users, secrets, GUIDs, kernels and
markers of all ranks. These are replaced in all columns, not only in their own. Columns without a rule, in tables of the
contract or not, are texts or documents. In strict files the names of kernels and markers keep only the properties that
analyses use: a kernel keeps its category, a collective its operation, and kernels of one function stay together; a
marker keeps the number and order of its numbers, and the marker of a step, whose words are few and known, stays.
"""

from __future__ import annotations

import contextlib
import mmap
import re
import tomllib
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, TypeAlias

from rocpd.base import InputError, OutputError, Progress, UsageError, frozen
from rocpd.base.output import folder_complete_or_nothing
from rocpd.base.sqlite import READWRITE, apsw, writing
from rocpd.base.texts import json_object
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.run.rank_reader import RankReader
from rocpd.redact.options import Clue, Level, RedactOptions
from rocpd.redact.secrets import names_secret
from rocpd.redact.strict import Strict, allowed, is_listed, is_public
from rocpd.redact.texts import NOT_TELLING, InJob, Pseudonyms, Redactor, decoded, may_stay
from rocpd.schema.load import TABLES, table
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import RankTables, create_view_text, select_text, views_over
from rocpd.schema.rules.events import MEASURED, PC_SAMPLES, POINTS, SPANS
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.schema.rules.kernel_names import without_instrumentation, without_kd
from rocpd.schema.rules.steps import STEP_MARKER
from rocpd.schema.versions import suffix_of

Rule: TypeAlias = Callable[[Redactor, str], str]


def _named(kind: Clue, *, but: tuple[str, ...] = ("",)) -> Rule:
    """Return the rule for texts that are of a kind as a whole; texts in `but` stay."""
    return lambda redactor, text: text if kind in redactor.keep or text in but else redactor.pseudonyms.of(kind, text)


def plain(redactor: Redactor, text: str) -> str:
    """Redact a text, or the strings of a JSON document."""
    return redactor.document(text) if text[:1] in ("{", "[") else redactor.text(text)


def _name(redactor: Redactor, text: str) -> str:
    return redactor.name(text)


_OF_NAMES = {
    "rocpd_string": ("string",),
    "rocpd_arg": ("type",),
    "rocpd_info_agent": ("name", "product_name"),
    "rocpd_info_kernel_symbol": ("kernel_name", "display_name"),
    "rocpd_info_queue": ("name",),
    "rocpd_info_stream": ("name",),
    "rocpd_info_pmc": ("name", "symbol"),
    "rocpd_memory_access": ("isa_instruction", "architecture"),
    "rocpd_disassembly_data": ("instruction",),
    "rocpd_pc_sampling": ("instruction", "instruction_type", "stall_reason"),
}
"""Table -> columns with names of functions and other public things."""

RULES: Mapping[tuple[str, str], Rule] = MappingProxyType(
    {
        ("rocpd_info_node", "hostname"): _named(Clue.HOST),
        ("rocpd_info_node", "machine_id"): _named(Clue.MACHINE),
        ("rocpd_info_node", "domain_name"): _named(Clue.HOST, but=("", "(none)")),
        ("rocpd_info_process", "command"): lambda redactor, text: redactor.command(text),
        ("rocpd_info_process", "environment"): lambda redactor, text: redactor.environment(text),
        ("rocpd_metadata", "tag"): lambda redactor, text: redactor.tag(text),
        ("rocpd_arg", "name"): lambda redactor, text: redactor.argument(text),
        ("rocpd_arg", "value"): lambda redactor, text: redactor.value(text),
        ("rocpd_metadata", "value"): lambda redactor, text: redactor.value(text),
        ("rocpd_memory_access", "code"): lambda _redactor, _text: "",
        **{(base, column): _name for base, columns in _OF_NAMES.items() for column in columns},
    }
)
"""(table, column) -> rule for its texts."""

NUMBERS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("rocpd_info_node", "hash"): "{column} * 0", ("rocpd_info_agent", "uuid"): "{column} * 0"}
)
"""Numbers that identify a machine or a device, and that no analysis reads -> their replacement."""


_ADDRESSES = {
    "rocpd_memory_copy": ("dst_address", "src_address"),
    "rocpd_memory_allocate": ("address",),
    "rocpd_info_code_object": ("load_base", "load_delta"),
    "rocpd_info_kernel_symbol": ("kernel_object",),
    "rocpd_memory_page": ("start_address", "end_address"),
}
_TIMES = {
    **dict.fromkeys(SPANS, ("start", "end")),
    **dict.fromkeys((*POINTS, *PC_SAMPLES), ("timestamp",)),
    "rocpd_info_process": ("start", "end", "init", "fini"),
    "rocpd_info_thread": ("start", "end"),
}
_COUNTED_ANEW = [
    (base, column, is_time)
    for is_time, tables in ((True, _TIMES), (False, _ADDRESSES))
    for base, columns in tables.items()
    for column in columns
]
"""Table, column, and whether it holds times or addresses: in strict files they count from the least of the job."""


def rule(base: str, column: str) -> Rule:
    """Return the rule for the texts of a column."""
    return RULES.get((base, column), plain)


_COLLECTIVES = ("AllReduce", "AllGather", "ReduceScatter", "AllToAll", "SendRecv", "Broadcast", "Reduce")
_COLLECTIVE = re.compile(r"(?i)all_?(?:reduce|gather|to_?all)|reduce_?scatter|send_?recv|broadcast|reduce")
_DIGITS = re.compile(r"\d+")
_STEP = re.compile(STEP_MARKER)
_FEW_SIGNS = re.compile(
    r"[\[(<{#* ]{0,4}[A-Za-z_ -]{1,40}[ _#:=.-]{0,4}\d{0,9}(?: ?(?:/|of) ?\d{1,9})?[\])>}#*: ]{0,4}"
)
_MOST_DIGITS = 300


def kernel_names(symbols: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Return name -> new name.

    Args:
        symbols: names of each kernel of all ranks, the name for people first and the linker's second.

    >>> kernel_names([("void gemm<float>(float*)", "_Z4gemmIfE.kd"), ("void gemm<half>(half*)", "_Z4gemmIhE.kd")])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'void gemm<float>(float*)': 'GEMM_001<1>', '_Z4gemmIfE.kd': 'GEMM_001_1.kd', '_Z4gemmIfE': 'GEMM_001_1',
     'void gemm<half>(half*)': 'GEMM_001<2>', '_Z4gemmIhE.kd': 'GEMM_001_2.kd', '_Z4gemmIhE': 'GEMM_001_2'}
    """
    categories = load(None)
    functions: dict[tuple[str, str], str] = {}
    variants: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for display, mangled, *others in sorted(set(symbols)):
        category = categories.of(display)
        if is_communication(category) and all(not name or is_public(name) for name in (display, mangled, *others)):
            continue
        function = _function(display)
        short = functions.setdefault((function, category), f"{_kind(category, display)}_{len(functions) + 1:03}")
        known = variants.setdefault(short, [])
        if display not in known:
            known.append(display)
        number = known.index(display) + 1
        names[display] = short if display == function else f"{short}<{number}>"
        linked = f"{short}_{number}"
        names.setdefault(mangled, linked + (".kd" if mangled.endswith(".kd") else ""))
        names.setdefault(without_kd(mangled), linked)
        for other in others:
            names.setdefault(other, short if without_kd(other) == function else names[display])
    return {name: new for name, new in names.items() if name}


def _kind(category: str, display: str) -> str:
    """Return the category of a kernel as a name that has this category, too; for a collective with its operation.

    >>> _kind("GEMM", "gemm"), _kind("communication", "my_all_gather<half>"), _kind("communication", "msccl")
    ('GEMM', 'ncclAllGather', 'nccl')
    """
    if not is_communication(category):
        return category
    done = _COLLECTIVE.search(display)
    spelt = done[0].replace("_", "").lower() if done else ""
    return "nccl" + next((name for name in _COLLECTIVES if name.lower() == spelt), "")


def _function(display: str) -> str:
    """Return the bare name of a function.

    >>> _function("void at::native::add<float>(int)"), _function("gemm")
    ('at::native::add', 'gemm')
    """
    return re.split(r"[(<]", display, maxsplit=1)[0].split(" ")[-1] or display


def marker_names(texts: Iterable[str], pseudonyms: Pseudonyms) -> dict[str, str]:
    """Return text of a marker -> new text; without texts of public interfaces.

    >>> texts = ["step 1", "step 2", "load shard 12 of 9", "load shard 9 of 9", "forward", "forward aloud"]
    >>> marker_names(texts, Pseudonyms())  # doctest: +NORMALIZE_WHITESPACE
    {'forward': 'marker-aaa', 'forward aloud': 'marker-aab', 'load shard 9 of 9': 'marker-aac 1',
     'load shard 12 of 9': 'marker-aac 2', 'step 1': 'step 1', 'step 2': 'step 2'}
    """
    private = [text for text in sorted(set(texts), key=_by_form) if not is_listed(text)]
    return {text: _step(text) or pseudonyms.of_form(Clue.MARKER, text) for text in private}


def _by_form(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text without its numbers, and its numbers, as a sort key for texts that differ only in numbers."""
    return _DIGITS.sub("#", text), tuple(int(digits[:_MOST_DIGITS]) for digits in _DIGITS.findall(text))


def _step(text: str) -> str | None:
    """Return the text of a step without PyTorch's additions; None if it is no step, or has further words.

    >>> _step("step 7, seq = 3, sizes = [[8]]"), _step("[iteration 3/100]"), _step("forward"), _step("step" + "!" * 99)
    ('step 7', '[iteration 3/100]', None, None)
    """
    shown = text.partition(", ")[0]
    return shown if _STEP.search(text) and _FEW_SIGNS.fullmatch(shown) else None


_USER_VARIABLES = re.compile(r"USER|LOGNAME|ACCOUNT|OWNER")
_HOST_VARIABLES = re.compile(r"HOST|NODE|ADDR|SERVER|DOMAIN|CLUSTER")
_NAME = re.compile(r"[A-Za-z][\w.\-]*")
_FORMS = ("formatted_kernel_name", "demangled_kernel_name", "truncated_kernel_name")
_MARKERS = (
    "SELECT DISTINCT json_extract(extdata, '$.message') FROM rocpd_event WHERE json_valid(extdata)",
    "SELECT DISTINCT name FROM markers",
)
_WITH_TIMES = ("rocpd_event", "rocpd_pmc_event")  # in their documents
_START = "CASE WHEN json_valid(extdata) THEN json_extract(extdata, '$.start') END"
_SMALL = 4096  # smaller numbers are neither times nor addresses
_LEAST_TEXTS = 3  # least length of texts that are replaced inside of other texts [characters]


def survey(
    session: Federation, pseudonyms: Pseudonyms, keep: Collection[str]
) -> tuple[Mapping[str, Clue], Mapping[str, str]]:
    """Read all ranks, and name hosts and machines in their order; variables in `keep` count as harmless.

    Returns:
        identifying text -> its kind; GUID of a rank -> its new GUID, in the same order, so that ranks keep their
            numbers.
    """
    known: dict[str, Clue] = {}
    for rank in session.ranks:
        for text, kind in _of_rank(session.reader(rank.number).whole(), keep):
            if text not in NOT_TELLING and len(text) >= _LEAST_TEXTS:
                known.setdefault(text, kind)
    for kind in (Clue.HOST, Clue.MACHINE):
        pseudonyms.in_order(kind, [text for text, of in known.items() if of is kind])
    guids = sorted({rank.guid for rank in session.ranks})
    return known, dict(zip(guids, sorted(str(uuid.uuid4()) for _ in guids), strict=True))


def kernels_and_markers(session: Federation, pseudonyms: Pseudonyms, keep: Collection[str]) -> dict[str, str]:
    """Return names of kernels and texts of markers -> their replacements in strict files; kinds in `keep` stay."""
    symbols: set[tuple[str, ...]] = set()
    markers: set[str] = set()
    for rank in session.ranks:
        reader = session.reader(rank.number).whole()
        symbols.update(_texts(reader, "kernel_symbols", "display_name", "kernel_name", *_FORMS))
        markers.update(str(text) for sql in _MARKERS for (text,) in reader.rows(sql) if text)
    measured = _measured_kernels(session)
    known = {without_instrumentation(display): display for display, *_ in sorted(symbols)}
    if Clue.KERNEL in keep:
        names = {name: name for every in [*symbols, measured] for name in (*every, *map(without_kd, every)) if name}
    else:
        names = kernel_names({*symbols, *((kernel, "") for kernel in measured if kernel not in known)})
        names |= {kernel: names[known[kernel]] for kernel in measured if known.get(kernel) in names}
    of_markers = {text: text for text in markers} if Clue.MARKER in keep else marker_names(markers, pseudonyms)
    return {**of_markers, **names}


def _measured_kernels(session: Federation) -> set[str]:
    """Return the names of kernels that instrumented runs measured; analyses match them with those of a trace."""
    return {
        str(kernel)
        for rank in session.ranks
        for base in sorted(MEASURED)
        if "kernel" in rank.tables.get(base, ())
        for (kernel,) in session.reader(rank.number).whole().rows(f"SELECT DISTINCT kernel FROM {base}")  # noqa: S608
        if isinstance(kernel, str)
    }


def shifts(session: Federation, keep: Collection[str]) -> tuple[dict[tuple[str, str], str], int]:
    """Return (table, column) -> expression that replaces times and, unless pointers stay, addresses, which count from
    the least of the job; and the offset that is subtracted from times in documents [ns].
    """
    least = {True: 1 << 62, False: 1 << 62}
    for rank in session.ranks:
        reader = session.reader(rank.number).whole()
        for base, column, is_time in _COUNTED_ANEW:
            if column in rank.tables.get(base, ()):
                least[is_time] = min(least[is_time], _least(reader, base, quote_name(column)))
        for base in _WITH_TIMES:
            if "extdata" in rank.tables.get(base, ()):
                least[True] = min(least[True], _least(reader, base, _START))
    anew = {
        is_time: f"CASE WHEN {{column}} > {_SMALL} THEN {{column}} - {first - 2 * _SMALL} ELSE {{column}} END"
        for is_time, first in least.items()
    }
    changed = [each for each in _COUNTED_ANEW if each[-1] or Clue.POINTER not in keep]
    return {(base, column): anew[is_time] for base, column, is_time in changed}, least[True] - 2 * _SMALL


def _least(reader: RankReader, base: str, value: str) -> int:
    """Return the least value of an expression, without small numbers."""
    sql = f"SELECT MIN({value}) FROM {base} WHERE typeof({value}) = 'integer' AND {value} > {_SMALL}"  # noqa: S608
    [(least,)] = reader.rows(sql)
    return 1 << 62 if least is None else int(least)


def _of_rank(reader: RankReader, keep: Collection[str]) -> Iterator[tuple[str, Clue]]:
    for host, machine, domain in _texts(reader, "rocpd_info_node", "hostname", "machine_id", "domain_name"):
        yield host, Clue.HOST
        yield host.split(".")[0], Clue.HOST
        yield domain, Clue.HOST
        yield machine, Clue.MACHINE
    for environment, extdata in _texts(reader, "rocpd_info_process", "environment", "extdata"):
        yield from _of_environment(environment, keep)
        yield str((json_object(extdata) or {}).get("boot_id", "")), Clue.MACHINE


def _texts(reader: RankReader, base: str, *columns: str) -> Iterable[tuple[str, ...]]:
    items = ", ".join(f'CAST("{column}" AS BLOB)' for column in columns)
    for row in reader.rows(f"SELECT {items} FROM {base}"):  # noqa: S608 (names of the contract)
        yield tuple(bytes(cell or b"").decode("utf-8", "replace") for cell in row)


def _of_environment(text: str, keep: Collection[str]) -> Iterator[tuple[str, Clue]]:
    for name, value in ((name, str(value)) for name, value in (json_object(text) or {}).items()):
        if name in keep:
            continue
        if names_secret(name):
            yield value, Clue.SECRET
        elif name == "HOME":
            yield PurePosixPath(value).name, Clue.USER
        elif _NAME.fullmatch(value) and not may_stay(name):
            if _USER_VARIABLES.search(name):
                yield value, Clue.USER
            elif _HOST_VARIABLES.search(name):
                yield value, Clue.HOST


Counts: TypeAlias = Counter[tuple[str, str]]
"""(table, column) -> number of replaced texts."""

Numbers: TypeAlias = Mapping[tuple[str, str], str]
"""(table, column) -> SQL expression that replaces a number; `{column}` stands for its quoted name."""

_DISTINCT = ("rocpd_string", "string")  # the only column whose texts the schema requires to be distinct
_EMPTY = ("", "{}", "[]")
"""Texts without content, which most rows have."""


@frozen
class NewIdentity:
    """The old and the new suffix and GUID of a rank."""

    old: Rank
    guid: str

    @property
    def suffix(self) -> str:
        """Suffix of the new tables."""
        return suffix_of(self.guid)

    def in_text(self, text: str) -> str:
        """Return a text with the new suffix and GUID in place of the old ones, in all their spellings."""
        old = self.old.plain_guid
        text = text.replace(self.old.suffix, self.suffix).replace(self.old.guid, self.guid).replace(old, self.guid)
        return text.replace(old.replace("-", ""), self.guid.replace("-", ""))


@dataclass(eq=False)
class RankCopy:
    """Copies one rank into an open, empty database.

    Args:
        connection: connection to this database; the rank's file is attached to it.
        tables: tables of the rank, in the schema `source`.
        identity: the new suffix and GUID of the rank.
        redactor: replaces texts.
        numbers: expressions that replace numbers.
        counts: filled in: the replaced texts of each column.
    """

    connection: apsw.Connection
    tables: RankTables
    identity: NewIdentity
    redactor: Redactor
    numbers: Numbers
    counts: Counts = field(default_factory=Counter)
    _functions: list[Callable[[Any], str]] = field(default_factory=list)
    _columns: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection.create_scalar_function("redacted", self._redacted, 2, deterministic=True)

    def write(self) -> None:
        """Write all tables with their rows and indexes, and the views."""
        self.connection.execute("BEGIN")
        texts: Any = self.connection.execute(
            "SELECT tbl_name, type, sql FROM source.sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL "
            "ORDER BY type DESC"
        ).fetchall()
        for base in self.tables.columns:
            of_table = [(kind, sql) for table, kind, sql in texts if table == base + self.tables.suffix]
            self.connection.execute(self._definition(base, [sql for kind, sql in of_table if kind == "table"]))
            self.connection.execute(f"INSERT INTO main.{self._new_name(base)} {self._select(base)}")
            for sql in (self.identity.in_text(sql) for kind, sql in of_table if kind == "index"):
                if not self.redactor.is_strict and self.redactor.text(sql) == sql:
                    self.connection.execute(sql)
        self._write_views()
        self.connection.execute("COMMIT")

    def count(self) -> None:
        """Count the texts to replace."""
        for base in self.tables.columns:
            for _ in self.connection.execute(self._select(base)):
                pass

    def _definition(self, base: str, texts: Sequence[str]) -> str:
        """Return the statement that creates a table: the file's own, or a plain one if that may give something away."""
        for text in map(self.identity.in_text, texts):
            if not self.redactor.is_strict and self.redactor.text(text) == text:
                return text
        types = {column.name: column.declaration.split()[0] for column in table(base).columns} if base in TABLES else {}
        if base not in self.tables.keyless:
            types["id"] = "INTEGER PRIMARY KEY"
        columns = (f"{quote_name(name)} {types.get(name, '')}" for name in self.tables.columns[base])
        return f"CREATE TABLE {self._new_name(base)} ({', '.join(columns)})"

    def _write_views(self) -> None:
        columns = dict(self.tables.columns)
        tables = RankTables(self.identity.suffix, columns)
        for base in columns:
            self.connection.execute(create_view_text(base, f"SELECT * FROM {self._new_name(base)}"))  # noqa: S608
        for name in views_over(columns):
            self.connection.execute(create_view_text(name, select_text(name, [tables])))

    def _new_name(self, base: str) -> str:
        return quote_name(base + self.identity.suffix)

    def _select(self, base: str) -> str:
        items = ", ".join(self._expression(base, column) for column in self.tables.columns[base])
        return f"SELECT {items} FROM {self.tables.rows(base)}"  # noqa: S608 (quoted names)

    def _expression(self, base: str, column: str) -> str:
        name = quote_name(column)
        if column == "guid":
            return quote_text(self.identity.guid)
        number = self.numbers.get((base, column), "{column}").replace("{column}", name)
        key = len(self._columns)
        self._columns.append((base, column))
        redact: Callable[[str], str] = partial(rule(base, column), self.redactor)
        if (base, column) == _DISTINCT:
            redact = _distinct(redact)
        self._functions.append(lru_cache(1 << 16)(lambda raw: redact(self._decoded(raw))))
        empty = ", ".join(map(quote_text, _EMPTY))
        return (
            f"CASE typeof({name}) WHEN 'text' THEN CASE WHEN {name} IN ({empty}) THEN {name} "
            f"ELSE redacted({key}, CAST({name} AS BLOB)) END WHEN 'blob' THEN redacted({key}, {name}) ELSE {number} END"
        )

    def _decoded(self, raw: bytes) -> str:
        return self.identity.in_text(decoded(raw))

    def _redacted(self, *cells: Any) -> str:
        key, raw = cells
        text: str = self._functions[key](raw)
        if text.encode() != raw:
            self.counts[self._columns[key]] += 1
        return text


def _distinct(redact: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function with different answers for different texts: a number is added to a repeated answer."""
    given: dict[str, str] = {}

    def redacted(text: str) -> str:
        answer = name = redact(text)
        number = 1
        while given.setdefault(answer, text) != text:
            number += 1
            answer = f"{name} #{number}"
        return answer

    return redacted


_SOUGHT = frozenset({Clue.HOST, Clue.MACHINE, Clue.USER, Clue.SECRET, Clue.MAIL, Clue.URL, Clue.GUID, Clue.RULE})
_LEAST = 4  # shorter texts occur in other words by chance


def sought(replaced: Iterable[tuple[Clue, str]]) -> dict[str, Clue]:
    """Return the texts that no file may hold, with their kinds; of two texts, one in the other, only the shorter."""
    kinds = {text: kind for kind, text in replaced if kind in _SOUGHT and len(text) >= _LEAST}
    shortest: dict[str, Clue] = {}
    for text in sorted(kinds, key=len):
        if not any(other in text for other in shortest):
            shortest[text] = kinds[text]
    return shortest


def find_texts(path: Path, texts: Iterable[str]) -> list[str]:
    """Return the texts that a file holds anywhere, as words."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [text for text in texts if _is_word_in(content, text.encode())]


def _is_word_in(content: mmap.mmap, text: bytes) -> bool:
    at = content.find(text)
    while at >= 0:
        around = content[max(at - 1, 0) : at] + content[at + len(text) : at + len(text) + 1]
        if not any(byte < 128 and chr(byte).isalnum() for byte in around):
            return True
        at = content.find(text, at + 1)
    return False


def column_with(path: Path, text: str) -> str:
    """Return the table and column of a file that hold a text, for an error message."""
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        for (name_of_table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            table = str(name_of_table)
            for column in [str(row[1]) for row in connection.execute(f"PRAGMA table_info({quote_name(table)})")]:
                name = quote_name(column)
                sql = f"SELECT 1 FROM {quote_name(table)} WHERE instr({name}, ?) LIMIT 1"  # noqa: S608 (quoted names)
                if connection.execute(sql, (text,)).fetchall():
                    return f"{table}.{column}"
    return "a text of the schema"


def redact(
    session: Federation, folder: Path, options: RedactOptions, force: bool = False, progress: Progress | None = None
) -> Counts:
    """Write `rank0.db` … into a new folder, one file per rank.

    Args:
        session: the job; with a window or filters only the selected events are written.
        folder: the new folder.
        options: kinds of values to replace.
        force: replace a folder that an earlier run wrote.
        progress: called with (ranks done, ranks in all).

    Returns:
        (table, column) -> number of replaced texts.

    Raises:
        UsageError: the file of rules cannot be used, or a kind to keep would be replaced all the same.
        OutputError: the folder exists or cannot be written, or a file still holds a text that should be replaced; then
            nothing is written.
    """
    redactor, numbers, guids = _prepare(session, options)
    identities = [NewIdentity(rank, guids[rank.guid]) for rank in session.ranks]
    with contextlib.ExitStack() as stack:
        temporary = None if options.dry_run else stack.enter_context(folder_complete_or_nothing(folder, force))
        counts = _copies(session, identities, redactor, numbers, temporary, progress)
        # Users known only from a path, and other texts found during the first pass, are replaced everywhere.
        learned = _left(temporary, identities, redactor.pseudonyms)
        if any(text not in redactor.known and kind is not Clue.GUID for text, kind in learned.items()):
            counts = _copies(session, identities, redactor.knowing(learned), numbers, temporary, progress)
        if temporary:
            for text, kind in _left(temporary, identities, redactor.pseudonyms).items():
                raise _still_there(temporary, text, kind)
    return counts


def _prepare(session: Federation, options: RedactOptions) -> tuple[Redactor, Numbers, Mapping[str, str]]:
    """Return the redactor of texts, the replacements of numbers, and GUID of a rank -> its new GUID."""
    options.check()
    pseudonyms = Pseudonyms()
    known, guids = survey(session, pseudonyms, options.keep)
    rules, keep = _rules(options.rules), frozenset(options.keep)
    for guid in guids.values():
        pseudonyms.given.update((guid, suffix_of(guid)))
    if options.level is Level.SHARE:
        return Redactor(pseudonyms, known, keep, rules), NUMBERS, guids
    anew, before = shifts(session, keep)
    in_job = InJob(kernels_and_markers(session, pseudonyms, keep), before)
    return Strict(pseudonyms, known, keep, rules, in_job), {**NUMBERS, **anew}, guids


def _rules(path: Path | None) -> Mapping[str, str]:
    if path is None:
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))["replace"]
        return {str(pattern): str(word) for pattern, word in content.items()}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        hint = 'it holds [replace] and lines "REGEX" = "word"'
        raise UsageError(f"{path}: not a file of rules: {error}", hint) from error


def _copies(
    session: Federation,
    identities: Sequence[NewIdentity],
    redactor: Redactor,
    numbers: Numbers,
    folder: Path | None,
    progress: Progress | None,
) -> Counts:
    """Write the file of each rank, over an earlier one; without a folder only count."""
    counts: Counts = Counter()
    width = len(str(max(identity.old.number for identity in identities)))
    for done, identity in enumerate(identities, 1):
        path = folder / f"rank{identity.old.number:0{width}}.db" if folder else None
        if path:
            path.unlink(missing_ok=True)
        counts += _copy(session, identity, redactor, numbers, path)
        if progress:
            progress(done, len(identities))
    return counts


def _copied(tables: RankTables) -> RankTables:
    """Return the tables and columns of strict files: those of the schema, with the listed metadata.

    As times count from the least of the job, a merged window loses its data on the time outside.
    """
    columns = {
        base: tuple(column.name for column in table(base).columns if column.name.lower() in map(str.lower, names))
        for base, names in tables.columns.items()
        if base in TABLES
    }
    tags = ", ".join(map(quote_text, sorted(allowed().tags)))
    listed = f"tag IN ({tags})" if "tag" in columns.get("rocpd_metadata", ()) else "0"
    return replace(tables, columns=columns, only={**tables.only, "rocpd_metadata": listed})


def _copy(
    session: Federation, identity: NewIdentity, redactor: Redactor, numbers: Numbers, path: Path | None
) -> Counts:
    rank = identity.old
    connection = apsw.Connection(str(path or ":memory:"), READWRITE)
    try:
        with as_input_error(rank.opening.path), writing(connection):
            connection.pragma("synchronous", 0)
            connection.pragma("ignore_check_constraints", True)  # rows are copied as they are, not checked
            connection.execute("ATTACH ? AS source", (rank.opening.uri,))
            tables = session.rank_tables(rank.number, "source")
            if redactor.is_strict:
                tables = _copied(tables)
            copy = RankCopy(connection, tables, identity, redactor, numbers)
            if path:
                copy.write()
            else:
                copy.count()
        return copy.counts
    except apsw.ConstraintError as error:  # raised by the file's own tables
        raise InputError(f"{rank.opening.path}: damaged: {error}", "--skip-bad may leave it out") from error
    finally:
        connection.close()


def _left(folder: Path | None, identities: Sequence[NewIdentity], pseudonyms: Pseudonyms) -> dict[str, Clue]:
    """Return the replaced texts that are still in the files; without files, those that may be."""
    guids = [text for identity in identities for text in (identity.old.plain_guid, identity.old.suffix.lstrip("_"))]
    kinds = sought([*pseudonyms.replaced(), *((Clue.GUID, guid) for guid in guids)])
    if folder is None:
        return kinds
    left = {text for path in folder.glob("*.db") for text in find_texts(path, kinds)}
    return {text: kind for text, kind in kinds.items() if text in left}


def _still_there(folder: Path, text: str, kind: Clue) -> OutputError:
    """Return the error about a text that cannot be replaced, such as the name of a column."""
    path = next(path for path in sorted(folder.glob("*.db")) if find_texts(path, [text]))
    return OutputError(
        f"{path.name}: {column_with(path, text)} would hold a {kind} that is replaced elsewhere; nothing is written",
        f"name it in a file for --rules, or leave all of the kind as they are: --keep {kind}",
    )
