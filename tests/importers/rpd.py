"""Builds small RPD files as the tracer writes them, of each of its schemas."""

from __future__ import annotations

from pathlib import Path

import apsw

SESSION = 1 << 32
"""Ids of one session of the tracer begin here."""

_COMMON = """
CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag, value);
CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string);
CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id, op_id);
CREATE TABLE rocpd_monitor (id INTEGER PRIMARY KEY, deviceType, deviceId, monitorType, start, "end", value);
INSERT INTO rocpd_string VALUES (1, '');
"""
_API = 'CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, "end", apiName_id, args_id{});'
_OP = """CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId{}, start, "end", description_id,
    opType_id);"""
_SIZES = "gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, privateSegmentSize"
_FENCES = "kernelArgAddress DEFAULT '', aquireFence DEFAULT '', releaseFence DEFAULT '', codeObject_id DEFAULT ''"
_SCHEMAS = {
    1: f"""{_API.format("")} {_OP.format(", completionSignal DEFAULT ''")}
CREATE TABLE rocpd_kernelop (op_ptr_id INTEGER PRIMARY KEY, {_SIZES}, kernelName_id, {_FENCES});
CREATE TABLE rocpd_copyop (op_ptr_id INTEGER PRIMARY KEY, size, src, dst, sync, pinned);
""",
    2: f"""{_API.format("")} {_OP.format(", completionSignal DEFAULT ''")}
CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, stream, {_SIZES}, kernelName_id, {_FENCES});
CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, stream, size, width, height, kind, dst, src, dstDevice,
    srcDevice, sync, pinned);
CREATE TABLE rocpd_barrierop (op_ptr_id INTEGER PRIMARY KEY, signalCount, aquireFence, releaseFence);
CREATE TABLE rocpd_stackframe (id INTEGER PRIMARY KEY, api_ptr_id, depth, name_id);
CREATE TABLE ext_autogradapi (api_ptr_id INTEGER PRIMARY KEY, autogradName_id, seq, op_id, sizes, input_op_ids);
""",
    3: f"""{_API.format(", domain_id, category_id")} {_OP.format("")}
CREATE TABLE rocpd_ustring (id INTEGER PRIMARY KEY, string);
CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, stream, {_SIZES}, kernelName_id);
CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, stream, size, width, height, kind, dst, src, dstDevice,
    srcDevice, sync, pinned);
CREATE TABLE rocpd_counter (id INTEGER PRIMARY KEY, value REAL, op_id, name_id);
CREATE TABLE rocpd_stackframe (id INTEGER PRIMARY KEY, api_ptr_id, depth, name_id);
INSERT INTO rocpd_metadata (tag, value) VALUES ('gpu_stride', '1000'), ('pid_stride', '10000000');
INSERT INTO rocpd_ustring VALUES (1, '');
""",
}


class RpdBuilder:
    """Fills one RPD file; methods return the ids of their rows, `close` completes it."""

    def __init__(self, path: Path, schema: int = 2) -> None:
        self.path, self.schema = path, schema
        self.connection = apsw.Connection(str(path))
        self.connection.execute("BEGIN")
        self.connection.execute(_COMMON + _SCHEMAS[schema])
        self._add("rocpd_metadata", tag="schema_version", value=str(schema))

    def api(
        self, name: str, start: int, end: int, args: str = "", *, pid: int = 7, tid: int = 8, domain: str = "hip",
        category: str = "",
    ) -> int:  # fmt: skip
        """Add a call."""
        texts = "rocpd_ustring" if self.schema == 3 else "rocpd_string"
        more = {}
        if self.schema == 3:
            more = {"domain_id": self.string(domain), "category_id": self.string(category)}
        number = self._count("rocpd_api") + 1 + SESSION
        return self._add("rocpd_api", id=number, pid=pid, tid=tid, start=start, end=end,
                         apiName_id=self.string(name), args_id=self.string(args, texts), **more)  # fmt: skip

    def op(
        self, start: int, end: int, name: str = "", kind: str = "KernelExecution", *, api: int | None = None,
        gpu: int = 2, queue: int = 0,
    ) -> int:  # fmt: skip
        """Add an operation, of a call where one is given."""
        number = self._count("rocpd_op") + 1 + SESSION
        operation = self._add("rocpd_op", id=number, gpuId=gpu, queueId=queue, sequenceId=0, start=start, end=end,
                              description_id=self.string(name), opType_id=self.string(kind))  # fmt: skip
        if api is not None:
            self._add("rocpd_api_ops", api_id=api, op_id=operation)
        return operation

    def launch(
        self, api: int, name: str, grid: tuple[int, int, int], block: tuple[int, int, int], stream: str = "0x0"
    ) -> None:
        """Add what is known of a launch: of its call, in schema 1 of its operation."""
        sizes = dict(zip(_SIZES.split(", "), (*grid, *block, 0, 0), strict=True))
        if self.schema == 1:
            self._add("rocpd_kernelop", op_ptr_id=api, kernelName_id=self.string(name), **sizes)
        else:
            self._add("rocpd_kernelapi", api_ptr_id=api, stream=stream, kernelName_id=self.string(name), **sizes)

    def kernel(self, name: str, start: int, end: int, *, gpu: int = 2, pid: int = 7, tid: int = 8) -> int:
        """Add a kernel of one block of 64, launched 10 ns before it starts by a call of 5 ns; return its call."""
        call = self.api("hipLaunchKernel", start - 10, start - 5, pid=pid, tid=tid)
        operation = self.op(start, end, name, api=call, gpu=gpu)
        self.launch(operation if self.schema == 1 else call, name, (2, 1, 1), (64, 1, 1))
        return call

    def copy(self, api: int, size: int | str, kind: int, *, source: int = 0, to: int = 0, **more: object) -> None:
        """Add what a call copies."""
        facts = {"stream": "0x0", "width": "", "height": "", "dst": "0x20", "src": "0x10", "sync": 0, "pinned": 0}
        self._add("rocpd_copyapi", api_ptr_id=api, size=size, kind=kind, srcDevice=source, dstDevice=to,
                  **(facts | more))  # fmt: skip

    def frames(self, api: int, *names: str) -> None:
        """Add stack frames of a call, the innermost first."""
        for depth, name in enumerate(names):
            self._add("rocpd_stackframe", api_ptr_id=api, depth=depth, name_id=self.string(name))

    def monitor(self, device: int, start: int, end: int, value: str, kind: str = "sclk") -> None:
        """Add a value of a monitor."""
        self._add(
            "rocpd_monitor", deviceType="gpu", deviceId=device, monitorType=kind, start=start, end=end, value=value
        )

    def add(self, table: str, **values: object) -> int:
        """Add any row."""
        return self._add(table, **values)

    def string(self, text: str, table: str = "rocpd_string") -> int:
        """Return the id of a text."""
        row = self.connection.execute(f"SELECT id FROM {table} WHERE string = ?", (text,)).fetchone()
        return int(row[0]) if row else self._add(table, string=text)

    def close(self) -> Path:
        """Complete the file; return its path."""
        self.connection.execute("COMMIT")
        self.connection.close()
        return self.path

    def _add(self, table: str, **values: object) -> int:
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))
        return self.connection.last_insert_rowid()

    def _count(self, table: str) -> int:
        ((count,),) = self.connection.execute(f"SELECT COUNT(*) FROM {table}")
        return int(str(count))


def server(path: Path, schema: int = 2) -> Path:
    """Make the trace of two processes on two GPUs with all that RPD can hold, ties and damage included."""
    rpd = RpdBuilder(path, schema)
    for pid, gpu, tid in ((7, 2, 2**31 + 8), (9, 3, 9)):
        marker = rpd.api("UserMarker", 1000, 5000, "step", pid=pid, tid=tid, domain="roctx", category="range")
        rpd.api("UserMarker", 3000, 6000, "crosses step", pid=pid, tid=tid, domain="roctx", category="range")
        rpd.api("UserMarker", 1500, 1500, "a mark", pid=pid, tid=tid, domain="roctx", category="mark")
        calls = [rpd.kernel(name, 2000 + 100 * n, 2050 + 100 * n, gpu=gpu, pid=pid, tid=tid)
                 for n, name in enumerate(["gemm", "relu", "gemm"])]  # fmt: skip
        rpd.kernel("tie", 2000, 2050, gpu=gpu, pid=pid, tid=tid)
        rpd.kernel("ends before it starts", 2600, 2590, gpu=gpu, pid=pid, tid=tid)
        rpd.api("ApiTable::writeRows", 2700, 2800, "count=3 | remaining=0", pid=pid, tid=tid, domain="rpd_tracer")
        rpd.api("hipMalloc", 900, 950, "ptr=0x10 | size=0x400", pid=pid, tid=tid)
        filling = rpd.api("hipMemsetAsync", 2900, 2910, pid=pid, tid=tid)
        rpd.op(2920, 2930, "", "FillBuffer", api=filling, gpu=gpu)
        waiting = rpd.api("hipStreamWaitEvent", 2940, 2941, pid=pid, tid=tid)
        rpd.op(2941, 2990, "", "Barrier", api=waiting, gpu=gpu)
        for number in range(2):
            text = "graphExec = 0x77 | stream = 0x5000"
            launch = rpd.api("hipGraphLaunch", 3000 + 500 * number, 3010 + 500 * number, text, pid=pid, tid=tid)
            for n in range(3):
                start = 3100 + 500 * number + 100 * n
                rpd.op(start, start + 40, f"node{n}", "Task", api=launch, gpu=gpu, queue=1)
        copying = rpd.api("hipMemcpyAsync", 4500, 4510, pid=pid, tid=tid)
        rpd.op(4520, 4560, "", "CopyHostToDevice", api=copying, gpu=gpu)
        if schema > 1:
            rpd.copy(copying, 4096, 1)
            plane = rpd.api("hipMemcpy2DAsync", 4600, 4610, pid=pid, tid=tid)
            rpd.op(4620, 4640, "", "CopyDeviceToDevice", api=plane, gpu=gpu)
            rpd.copy(plane, "", 3, width=64, height=32)
            peer = rpd.api("hipMemcpyPeerAsync", 4700, 4710, pid=pid, tid=tid)
            rpd.op(4720, 4760, "", "CopyDeviceToDevice", api=peer, gpu=gpu)
            rpd.copy(peer, 512, 3, source=0, to=1)
            blocking = rpd.api("hipMemcpy", 4800, 4850, pid=pid, tid=tid)  # no operation
            rpd.copy(blocking, 8, 2)
            captured = rpd.api("hipLaunchKernel", 4900, 4910, pid=pid, tid=tid)  # no operation
            rpd.launch(captured, "node0", (4, 1, 1), (32, 2, 1), "0x5000")
            rpd.frames(calls[0], "hipLaunchKernel", "forward()", "main")
        rpd.op(4990, 4995, "lost", gpu=gpu)
        rpd.monitor(gpu - 2, 1000, 2000, "800")
        rpd.monitor(gpu - 2, 2000, 5000, "1700")
        if schema == 2:
            rpd.add("ext_autogradapi", api_ptr_id=marker, autogradName_id=rpd.string("aten::mm"), seq=5, op_id=3,
                    sizes="[[2, 3], [3, 4]]", input_op_ids="")  # fmt: skip
        text = '{"seq":6,"op_id":4,"sizes":[[1]]}' if schema == 3 else "aten::add, seq = 6, op_id = 4, sizes = [[1]]"
        name = "aten::add" if schema == 3 else "UserMarker"
        rpd.api(name, 1600, 1700, text, pid=pid, tid=tid, domain="torch", category="function")
    if schema == 3:
        for n, name in enumerate(["SQ_WAVES", "GRBM_COUNT"]):
            rpd.add("rocpd_counter", value=1.5 + n, op_id=SESSION + 1, name_id=rpd.string(name))
    return rpd.close()
