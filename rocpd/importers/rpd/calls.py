"""Calls, markers and operators of one process of an RPD file, with their arguments and stack frames."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence

from rocpd.base.frozen import frozen
from rocpd.base.types import Row
from rocpd.importers import words
from rocpd.importers.rpd.tables import RpdProcess, RpdTables
from rocpd.schema.rules.categories import TORCH_OPERATOR, TRACER
from rocpd.schema.trace.events import MARK, MARKER_RANGE, Events, Regions, message_json
from rocpd.schema.trace.writer import TraceWriter

_TRACERS = frozenset({"BLOCKING", "hcc_activity_callback", "rpdflush", "rpdstart", "rpdstop", "setPythonTrace"})
_TRACERS_END = "Table::writeRows"
_MARKERS = frozenset({"roctx", "nvtx"})
_OPERATORS = frozenset({"function", "backward_function"})
_APIS = ("hip", "hsa_", "cuda", "cu", "__hip")
_LAUNCH = ("stream", "gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ", "groupSegmentSize",
           "privateSegmentSize")  # fmt: skip
_COPY = ("stream", "size", "width", "height", "kind", "dst", "src", "dstDevice", "srcDevice", "sync", "pinned")
_COPY_TYPES = ("hipStream_t", *["size_t"] * 3, "hipMemcpyKind", "void*", "void*", "int", "int", "bool", "bool")
_OF_TABLES = 100  # position of the first argument that stands in a table of its own, not in the text of the call
_AUTOGRAD = ("seq", "op_id", "sizes", "input_op_ids")


@frozen
class GraphLaunch:
    """A call that launched a graph: stream and executable graph, None where the file does not say."""

    stream: str | None
    graph: int | None


@frozen
class _Call:
    """A call as written: a region's name and category, JSON of its event, its arguments, those of RPD's tables."""

    name: str
    category: str
    extdata: str = "{}"
    arguments: Sequence[words.Argument] = ()
    of_tables: Sequence[words.Argument] = ()


def write_calls(
    trace: TraceWriter, tables: RpdTables, process: RpdProcess, step: Callable[[int], None]
) -> dict[int, GraphLaunch]:
    """Write the calls of a process; their ids and stack ids are those of the file.

    Args:
        trace: the file.
        tables: of the RPD file.
        process: whose.
        step: called with the number of calls written.

    Returns:
        id of a call that launched a graph -> what it launched.
    """
    graphs: dict[int, GraphLaunch] = {}
    frames = _Frames(trace, tables, process)
    for batch in tables.in_batches(_statement(tables), (process.first, process.last, process.recorded)):
        calls = [_call(row, graphs) for row in batch]
        ids, tids, starts, ends = zip(*(row[:4] for row in batch), strict=True)
        events = Events(
            [call.category for call in calls],
            stack_id=ids,
            extdata=[call.extdata for call in calls],
            call_stack=[frames.of(number) for number in ids] if frames.exist else None,
        )
        names = [call.name for call in calls]
        rows = trace.write(Regions(id=ids, tid=tids, start=starts, end=ends, name=names, event=events))
        words.write_arguments(trace, rows.events, [call.arguments for call in calls])
        words.write_arguments(trace, rows.events, [call.of_tables for call in calls], _OF_TABLES)
        step(len(batch))
    return graphs


def _statement(tables: RpdTables) -> str:
    """Return the SELECT of the calls of a process with all that is known of each."""
    texts = "rocpd_ustring" if tables.schema == 3 else "rocpd_string"
    launch = [tables.column("rocpd_kernelapi", "K", name) for name in _LAUNCH]
    copy = [tables.column("rocpd_copyapi", "C", name) for name in _COPY]
    autograd = [tables.column("ext_autogradapi", "G", name) for name in _AUTOGRAD]
    joins = []
    domain, kind, kernel, operator = "NULL", "NULL", "NULL", "NULL"
    if tables.schema == 3:
        domain, kind = "D.string", "Y.string"
        joins += ["LEFT JOIN rocpd_string D ON D.id = A.domain_id", "LEFT JOIN rocpd_string Y ON Y.id = A.category_id"]
    if launch[0] != "NULL":
        kernel = "KN.string"
        joins.append("LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = A.id")
        joins.append("LEFT JOIN rocpd_string KN ON KN.id = K.kernelName_id")
    if copy[0] != "NULL":
        joins.append("LEFT JOIN rocpd_copyapi C ON C.api_ptr_id = A.id")
    if autograd[0] != "NULL":
        operator = "GN.string"
        joins.append("LEFT JOIN ext_autogradapi G ON G.api_ptr_id = A.id")
        joins.append("LEFT JOIN rocpd_string GN ON GN.id = G.autogradName_id")
    items = [domain, kind, kernel, *launch, *copy, operator, *autograd]
    return f"""SELECT A.id, A.tid, A.start, A."end", N.string, S.string, {", ".join(items)}
        FROM rocpd_api A LEFT JOIN rocpd_string N ON N.id = A.apiName_id LEFT JOIN {texts} S ON S.id = A.args_id
        {" ".join(joins)} WHERE A.id BETWEEN ? AND ? AND A.pid = ? ORDER BY A.id"""


def _call(row: Row, graphs: dict[int, GraphLaunch]) -> _Call:
    number, _, start, end, name, text, domain, kind, kernel = row[:9]
    launch, copy, operator, autograd = row[9:18], row[18:29], row[29], row[30:]
    name, text = name or "", text or ""
    if operator is not None:
        return _Call(operator, TORCH_OPERATOR, arguments=list(words.facts_of_operator(*autograd)))
    category = _category(name, domain, kind, start == end)
    if category in (MARKER_RANGE, MARK):
        return _marker(name, text, category, domain)
    if category == TORCH_OPERATOR:
        return _Call(name, category, arguments=words.facts_in_json(text))
    arguments = _known_arguments(text)
    if arguments is None:
        arguments, extdata = (), json.dumps({"args": text}, ensure_ascii=False)
    else:
        extdata = "{}"
    if "GraphLaunch" in name:
        values = {what: value for _, what, value in arguments}
        graphs[number] = GraphLaunch(values.get("stream"), words.whole(values.get("graphExec")))
    of_tables: list[words.Argument] = []
    if launch[0] is not None:
        of_tables += _of_launch(kernel, *launch)
    if copy[0] is not None:
        of_tables += _of_copy(copy)
    return _Call(name, category, extdata, arguments, of_tables)


_known_arguments = functools.lru_cache(maxsize=4096)(lambda text: words.arguments_of(text) if text else ())


@functools.lru_cache(maxsize=4096)
def _category(name: str, domain: str | None, kind: str | None, is_mark: bool) -> str:
    """Return the category of a call: by its domain and category, or where files have none by its name."""
    if domain == "rpd_tracer" or name in _TRACERS or name.endswith(_TRACERS_END):
        return TRACER
    if domain == "torch" and kind in _OPERATORS:
        return TORCH_OPERATOR
    if name.startswith(_APIS):
        return words.api_category(name)
    if domain and domain not in _MARKERS and kind != "user_scope":
        return f"{domain}_{kind}".upper() if kind else f"{domain}_API".upper()
    return MARK if is_mark else MARKER_RANGE


def _marker(name: str, text: str, category: str, domain: str | None) -> _Call:
    """Return a marker; `rangePush` of the Python wrapper has its text as the name of the call."""
    is_roctx = name == "UserMarker" or domain in _MARKERS
    operator = words.operator_in(text) if is_roctx else None
    if operator:
        return _Call(operator[0], TORCH_OPERATOR, arguments=operator[1])
    function = "roctxMarkA" if category == MARK else "roctxThreadRangeA"
    if is_roctx:
        return _Call(function, category, _message(text))
    return _Call(function, category, _message(name), _known_arguments(text) or ())


_message = functools.lru_cache(maxsize=4096)(message_json)


def _of_launch(kernel: str, stream: str, *sizes: int) -> Iterator[words.Argument]:
    yield "string", "kernel", kernel or ""
    yield "dim3", "grid", "{}, {}, {}".format(*sizes[:3])
    yield "dim3", "workgroup", "{}, {}, {}".format(*sizes[3:6])
    yield "uint32_t", "groupSegmentSize", str(sizes[6])
    yield "uint32_t", "privateSegmentSize", str(sizes[7])
    yield "hipStream_t", "stream", stream


def _of_copy(values: Sequence[object]) -> Iterator[words.Argument]:
    for kind, name, value in zip(_COPY_TYPES, _COPY, values, strict=True):
        if value not in (None, ""):
            yield kind, name, str(value)


class _Frames:
    """Stack frames, read in the order of calls beside these."""

    def __init__(self, trace: TraceWriter, tables: RpdTables, process: RpdProcess) -> None:
        self.exist = tables.count("rocpd_stackframe") > 0
        self._texts: dict[int | None, str] = {}
        self._store = trace.string
        self._rows: Iterator[Row] = iter(())
        if self.exist:
            self._rows = tables.query(
                """SELECT F.api_ptr_id, F.name_id, S.string FROM rocpd_stackframe F
                LEFT JOIN rocpd_string S ON S.id = F.name_id
                WHERE F.api_ptr_id IN (SELECT id FROM rocpd_api WHERE id BETWEEN ? AND ? AND pid = ?)
                ORDER BY F.api_ptr_id, F.depth, F.id""",
                (process.first, process.last, process.recorded),
            )
        self._next: Row | None = next(self._rows, None)

    def of(self, call: int) -> str:
        """Return the frames of a call as a JSON array, the innermost first; calls come in the order of their ids."""
        frames = []
        while self._next is not None and self._next[0] <= call:
            _, name, text = self._next
            if name not in self._texts:
                self._texts[name] = json.dumps(text or "", ensure_ascii=False)
                self._store(text or "")  # so that `rocpd_stackframe` has an id for it
            frames.append(self._texts[name])
            self._next = next(self._rows, None)
        return f"[{', '.join(frames)}]" if frames else "{}"
