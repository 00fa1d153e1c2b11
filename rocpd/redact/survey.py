"""Facts that are known before anything is replaced: how each column is redacted, and hosts, machines, users, secrets,
GUIDs, kernels and markers of all ranks. They are replaced wherever they stand, not only in the columns that they come
from.

All columns without a rule, of tables of the contract or not, are texts or documents. In strict files the names of
kernels and markers say what analyses go by, and nothing else: a kernel keeps its category, that of a collective what it
does, and kernels of one function stay together; a marker keeps how many numbers it has and their order, and that of a
step, whose words are few and known, stays.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TypeAlias

from rocpd.base.documents import json_object
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.redact.options import Clue
from rocpd.redact.secrets import names_secret
from rocpd.redact.strict import is_listed, is_public
from rocpd.redact.texts import NOT_TELLING, Pseudonyms, Redactor, may_stay
from rocpd.schema.quote import quote_name
from rocpd.schema.rules.events import MEASURED, PC_SAMPLES, POINTS, SPANS
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.schema.rules.kernel_names import without_instrumentation, without_kd
from rocpd.schema.rules.steps import STEP_MARKER

Rule: TypeAlias = Callable[[Redactor, str], str]


def _named(kind: Clue, *, but: tuple[str, ...] = ("",)) -> Rule:
    """Return the rule that a text as a whole is of a kind, unless it is one that says nothing."""
    return lambda redactor, text: text if kind in redactor.keep or text in but else redactor.pseudonyms.of(kind, text)


def plain(redactor: Redactor, text: str) -> str:
    """Redact a text, or the strings of a JSON document."""
    return redactor.document(text) if text[:1] in ("{", "[") else redactor.text(text)


def _name(redactor: Redactor, text: str) -> str:
    return redactor.name(text)


def _value(redactor: Redactor, text: str) -> str:
    return redactor.value(text)


RULES: Mapping[tuple[str, str], Rule] = MappingProxyType(
    {
        ("rocpd_info_node", "hostname"): _named(Clue.HOST),
        ("rocpd_info_node", "machine_id"): _named(Clue.MACHINE),
        ("rocpd_info_node", "domain_name"): _named(Clue.HOST, but=("", "(none)")),
        ("rocpd_info_process", "command"): lambda redactor, text: redactor.command(text),
        ("rocpd_info_process", "environment"): lambda redactor, text: redactor.environment(text),
        ("rocpd_metadata", "tag"): lambda redactor, text: redactor.tag(text),
        ("rocpd_arg", "name"): lambda redactor, text: redactor.argument(text),
        **dict.fromkeys(
            (
                ("rocpd_arg", "value"),
                ("rocpd_metadata", "value"),
            ),
            _value,
        ),
        **dict.fromkeys(
            (
                ("rocpd_string", "string"),
                ("rocpd_arg", "type"),
                ("rocpd_info_agent", "name"),
                ("rocpd_info_agent", "product_name"),
                ("rocpd_info_kernel_symbol", "kernel_name"),
                ("rocpd_info_kernel_symbol", "display_name"),
                ("rocpd_info_queue", "name"),
                ("rocpd_info_stream", "name"),
                ("rocpd_info_pmc", "name"),
                ("rocpd_info_pmc", "symbol"),
                ("rocpd_memory_access", "isa_instruction"),
                ("rocpd_memory_access", "architecture"),
                ("rocpd_disassembly_data", "instruction"),
                ("rocpd_pc_sampling", "instruction"),
                ("rocpd_pc_sampling", "instruction_type"),
                ("rocpd_pc_sampling", "stall_reason"),
            ),
            _name,
        ),
        ("rocpd_memory_access", "code"): lambda _redactor, _text: "",
    }
)
"""(table, column) -> how its texts are redacted."""

NUMBERS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("rocpd_info_node", "hash"): "{column} * 0", ("rocpd_info_agent", "uuid"): "{column} * 0"}
)
"""Numbers that identify a machine or a device, and that no analysis reads -> what stands there."""


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
"""Table, column, and whether it holds times or addresses: strict files count these from the least of the job."""


def rule(base: str, column: str) -> Rule:
    """Return how the texts of a column are redacted."""
    return RULES.get((base, column), plain)


_COLLECTIVES = ("AllReduce", "AllGather", "ReduceScatter", "AllToAll", "SendRecv", "Broadcast", "Reduce")
_COLLECTIVE = re.compile(r"(?i)all_?(?:reduce|gather|to_?all)|reduce_?scatter|send_?recv|broadcast|reduce")
_DIGITS = re.compile(r"\d+")
_STEP = re.compile(STEP_MARKER)
_FEW_SIGNS = re.compile(
    r"[\[(<{#* ]{0,4}[A-Za-z_ -]{1,40}[ _#:=.-]{0,4}\d{0,9}(?: ?(?:/|of) ?\d{1,9})?[\])>}#*: ]{0,4}"
)
_MOST_DIGITS = 300
_FUNCTION = re.compile(r"[^(<]*")


def kernel_names(symbols: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Return name -> name in its place.

    Args:
        symbols: of all ranks: the names of one kernel, the one for people first and the linker's second.

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
    """Return the category of a kernel as a name that has this category, too; of a collective with what it does.

    >>> _kind("GEMM", "gemm"), _kind("communication", "my_all_gather<half>"), _kind("communication", "msccl")
    ('GEMM', 'ncclAllGather', 'nccl')
    """
    if not is_communication(category):
        return category
    done = _COLLECTIVE.search(display)
    return "nccl" + next(
        (name for name in _COLLECTIVES if done and name.lower() == done[0].replace("_", "").lower()), ""
    )


def _function(display: str) -> str:
    """Return the bare name of a function.

    >>> _function("void at::native::add<float>(int)"), _function("gemm")
    ('at::native::add', 'gemm')
    """
    match = _FUNCTION.match(display)
    return (match[0] if match else display).split(" ")[-1] or display


def marker_names(texts: Iterable[str], pseudonyms: Pseudonyms) -> dict[str, str]:
    """Return text of a marker -> text in its place; not those of public interfaces.

    >>> texts = ["step 1", "step 2", "load shard 12 of 9", "load shard 9 of 9", "forward", "forward aloud"]
    >>> marker_names(texts, Pseudonyms())  # doctest: +NORMALIZE_WHITESPACE
    {'forward': 'marker-aaa', 'forward aloud': 'marker-aab', 'load shard 9 of 9': 'marker-aac 1',
     'load shard 12 of 9': 'marker-aac 2', 'step 1': 'step 1', 'step 2': 'step 2'}
    """
    own = [text for text in sorted(set(texts), key=_by_form) if not is_listed(text)]
    return {text: _step(text) or pseudonyms.of_form(Clue.MARKER, text) for text in own}


def _by_form(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text without its numbers, and these, by which texts that differ in numbers alone are in order."""
    return _DIGITS.sub("#", text), tuple(int(digits[:_MOST_DIGITS]) for digits in _DIGITS.findall(text))


def _step(text: str) -> str | None:
    """Return the text of a step without what PyTorch adds to it; None where it is no step, or has more than its words.

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
_SMALL = 4096  # times and addresses up to here are none
_LEAST = 3  # characters of what is replaced in the middle of any text


def survey(
    session: Federation, pseudonyms: Pseudonyms, keep: Collection[str]
) -> tuple[Mapping[str, Clue], Mapping[str, str]]:
    """Look at all ranks, and give hosts and machines names in their order; variables in `keep` give nothing away.

    Returns:
        text that identifies -> what it is; GUID of a rank -> the one that it gets, in the same order, so that ranks
        keep their numbers.
    """
    known: dict[str, Clue] = {}
    for rank in session.ranks:
        for text, kind in _of_rank(session.reader(rank.number).whole(), keep):
            if text not in NOT_TELLING and len(text) >= _LEAST:
                known.setdefault(text, kind)
    for kind in (Clue.HOST, Clue.MACHINE):
        pseudonyms.in_order(kind, [text for text, of in known.items() if of is kind])
    guids = sorted({rank.guid for rank in session.ranks})
    fresh = sorted(str(uuid.uuid4()) for _ in guids)
    return known, dict(zip(guids, fresh, strict=True))


def kernels_and_markers(session: Federation, pseudonyms: Pseudonyms, keep: Collection[str]) -> dict[str, str]:
    """Return names of kernels and texts of markers -> what stands in their place in strict files; those of kinds in
    `keep` are their own.
    """
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
    own = {text: text for text in markers} if Clue.MARKER in keep else marker_names(markers, pseudonyms)
    return {**own, **names}


def _measured_kernels(session: Federation) -> set[str]:
    """Return the names of kernels that runs with instrumentation measured, which find those of a trace."""
    return {
        str(kernel)
        for rank in session.ranks
        for base in sorted(MEASURED)
        if "kernel" in rank.tables.get(base, ())
        for (kernel,) in session.reader(rank.number).whole().rows(f"SELECT DISTINCT kernel FROM {base}")  # noqa: S608
        if isinstance(kernel, str)
    }


def shifts(session: Federation, keep: Collection[str]) -> tuple[dict[tuple[str, str], str], int]:
    """Return (table, column) -> expression in place of times and, unless pointers stay, addresses, which count from the
    least of the job, and what is taken from times in documents [ns].
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
    """Return the least of the values of an expression that are no small numbers."""
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
