"""The tables of an RPD file, which differ between its schemas: processes, GPUs, and data without a place elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from rocpd.base import by_key, frozen
from rocpd.importers.files import SourceTables

_UNKNOWN_STRIDE = 1 << 62
KERNEL_TYPES = ("KernelExecution", "Task", "ConcurrentKernel", "KERNEL_DISPATCH")
"""Types of operations that are kernels: of roctracer, its graphs, CUPTI, and rocprofiler-sdk."""
WITHOUT_CALL = "id NOT IN (SELECT X.op_id FROM rocpd_api_ops X JOIN rocpd_api A ON A.id = X.api_id)"
"""Condition on `rocpd_op`: no call is known for the operation."""


@frozen
class RpdProcess:
    """One process.

    Args:
        recorded: its pid in the file, which includes the node in files merged from several nodes.
        node: number of the node; 0 if there is only one.
        pid: pid of its operating system.
        first, last: first and last id of its calls, among which others may lie.
        start, end: first start and last end of its calls [ns].
        calls: number of calls.
    """

    recorded: int
    node: int
    pid: int
    first: int
    last: int
    start: int
    end: int
    calls: int

    @property
    def key(self) -> str:
        """The key of this process among those of the file."""
        return f"node{self.node}-{self.pid}" if self.node else str(self.pid)


class RpdTables(SourceTables):
    """The tables of an RPD file; temporary tables may be made on the connection to it."""

    BATCH = 8192

    @property
    def schema(self) -> int:
        """RPD's schema, by its tables."""
        return 3 if "rocpd_ustring" in self.columns else 2 if "rocpd_kernelapi" in self.columns else 1

    def count(self, table: str, condition: str = "TRUE") -> int:
        """Return the number of rows of a table that fulfil a condition; 0 if there is no such table."""
        return int(self.query(f"SELECT COUNT(*) FROM {table} WHERE {condition}").get) if table in self.columns else 0

    def processes(self) -> list[RpdProcess]:
        """Return the processes, by node and pid."""
        stride = self._stride("pid_stride")
        calls = self.query('SELECT pid, MIN(id), MAX(id), MIN(start), MAX("end"), COUNT(*) FROM rocpd_api GROUP BY pid')
        processes = (RpdProcess(pid, pid // stride, pid % stride, *facts) for pid, *facts in calls)
        return sorted(processes, key=lambda process: (process.node, process.pid))

    @functools.cached_property
    def gpu_stride(self) -> int:
        """The upper bound of the numbers of GPUs of one node."""
        return self._stride("gpu_stride")

    def _stride(self, tag: str) -> int:
        """Return the distance between numbers of neighbouring nodes in a file merged from several nodes."""
        value = dict(self.metadata()).get(tag, "") if self.schema == 3 else ""
        return int(value) if value.isdecimal() and int(value) else _UNKNOWN_STRIDE

    def metadata(self) -> Iterator[tuple[str, str]]:
        """Yield tag and value of the metadata."""
        if "rocpd_metadata" in self.columns:
            for tag, value in self.query("SELECT tag, value FROM rocpd_metadata ORDER BY id"):
                yield str(tag), str(value)

    @functools.cached_property
    def first_gpu(self) -> int:
        """The smallest number of a GPU: numbers are those of HSA agents, CPUs first; monitors count GPUs from 0."""
        names = ", ".join("?" * len(KERNEL_TYPES))
        sql = f"""SELECT MIN(gpuId % {self.gpu_stride}) FROM rocpd_op
            WHERE opType_id IN (SELECT id FROM rocpd_string WHERE string IN ({names}))"""
        return int(self.query(sql, KERNEL_TYPES).get or 0)

    @functools.cached_property
    def counts_work_items(self) -> bool:
        """Whether grids of `hipLaunchKernel` are in work-items, as in rocprofiler-sdk: all are multiples of blocks."""
        if self.schema < 3:
            return False
        broken = " OR ".join(f"K.grid{d} % MAX(K.workgroup{d}, 1)" for d in "XYZ")
        sql = f"""SELECT 1 FROM rocpd_kernelapi K JOIN rocpd_api A ON A.id = K.api_ptr_id
            JOIN rocpd_string N ON N.id = A.apiName_id WHERE N.string = 'hipLaunchKernel' AND ({broken}) LIMIT 1"""
        return not list(self.query(sql))

    @functools.cached_property
    def second_calls(self) -> int:
        """The number of links to operations that an earlier call launched already: only the first call counts."""
        return int(self.query("SELECT COUNT(*) - COUNT(DISTINCT op_id) FROM rocpd_api_ops").get)

    @functools.cached_property
    def has_counters(self) -> bool:
        """Whether kernels have hardware counters, which are then copied to the temporary table `counter_by_op`."""
        if not self.count("rocpd_counter"):
            return False
        self.query("""CREATE TEMP TABLE counter_by_op AS SELECT C.op_id, N.string AS name, C.value
            FROM rocpd_counter C LEFT JOIN rocpd_string N ON N.id = C.name_id ORDER BY C.id;
            CREATE INDEX temp.counters ON counter_by_op (op_id)""")
        return True

    def owners(self, processes: Sequence[RpdProcess]) -> Mapping[str, Sequence[int]]:
        """Return process -> GPUs, by monitors' numbers, whose monitors go into its file: those no earlier one used."""
        if not self.count("rocpd_monitor"):
            return {}
        keys: dict[int | None, str] = {process.recorded: process.key for process in processes}
        used = self.query("""SELECT DISTINCT O.gpuId, A.pid FROM rocpd_api_ops X
            JOIN rocpd_op O ON O.id = X.op_id JOIN rocpd_api A ON A.id = X.api_id ORDER BY 1, 2""")
        users = {gpu - self.first_gpu: pid for gpu, pid in reversed(list(used))}  # keeps the first process of each
        devices = self.query("SELECT DISTINCT deviceId FROM rocpd_monitor ORDER BY 1")
        return by_key((keys.get(users.get(device), processes[0].key), device) for (device,) in devices)

    def complete(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Make tables and columns that the file lacks available to statements, as temporary views: empty, or NULL."""
        for table, columns in wanted.items():
            known = self.columns.get(table, ())
            if lacking := ", ".join(f'NULL AS "{name}"' for name in columns if name not in known):
                rows = f"SELECT *, {lacking} FROM main.{table}" if known else f"SELECT {lacking} WHERE FALSE"
                self.query(f"CREATE TEMP VIEW {table} AS {rows}")


_NO_CALL = "api_ptr_id NOT IN (SELECT id FROM rocpd_api)"
_FENCES = " OR ".join(f"{name} NOT IN ('', '0x0', 0)" for name in ("aquireFence", "releaseFence"))


def count_losses(tables: RpdTables, processes: int, lose: Callable[[str, int], None]) -> None:
    """Report to `lose` the kinds of lost data and their numbers, for a file with so many processes."""
    lose("second calls of operations", tables.second_calls)
    kinds = [
        ("links to operations that are not there", "rocpd_api_ops", "op_id NOT IN (SELECT id FROM rocpd_op)"),
        ("stack frames without a call", "rocpd_stackframe", _NO_CALL),
        ("launches without a call", "rocpd_kernelapi", _NO_CALL),
        ("copies without a call", "rocpd_copyapi", _NO_CALL),
        ("operators without a call", "ext_autogradapi", _NO_CALL),
        ("facts of barriers", "rocpd_barrierop", "TRUE"),
        ("input signals of operations", "rocpd_op_inputSignals", "TRUE"),
        ("register counts of code objects", "rocpd_kernelcodeobject", "TRUE"),
    ]
    if "completionSignal" in tables.columns.get("rocpd_op", ()):
        kinds.append(("completion signals of operations", "rocpd_op", "completionSignal NOT IN ('', '0x0')"))
    for table in ("rocpd_kernelapi", "rocpd_kernelop"):
        if "aquireFence" in tables.columns.get(table, ()):
            kinds.append(("fences of launches", table, _FENCES))
    if processes > 1:
        kinds.append(("operations without a call, so without a process", "rocpd_op", WITHOUT_CALL))
    for what, table, condition in kinds:
        lose(what, tables.count(table, condition))
