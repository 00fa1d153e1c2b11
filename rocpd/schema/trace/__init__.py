"""The only way to write a rank: `TraceWriter` takes things and batches of columns, and links their rows.

>>> import tempfile
>>> from pathlib import Path
>>> from rocpd.schema.trace.events import Events, KernelDispatches, Regions
>>> from rocpd.schema.trace.infos import KernelInfo, NodeInfo, ProcessInfo
>>> from rocpd.schema.trace.writer import TraceWriter
>>> from rocpd.schema.write import create
>>> with tempfile.TemporaryDirectory() as folder:
...     with create(Path(folder) / "rank.db", "00003fdc-92cb-72cb-9169-c7e541b1fcdf") as file:
...         trace = TraceWriter(file, NodeInfo(machine_id="66a03841", hostname="node0"), ProcessInfo(16))
...         gemm = trace.register(KernelInfo(display_name="gemm"))
...         calls = Events("HIP_RUNTIME_API", stack_id=[1, 2])
...         calls = trace.write(Regions(start=[10, 30], end=[20, 40], name="hipLaunchKernel", tid=16, event=calls))
...         launched = Events(stack_id=[1, 2])
...         work = KernelDispatches(start=[25, 45], end=[28, 49], agent_id=1, kernel_id=gemm, event=launched)
...         print(list(calls.events), list(trace.write(work).events))
[1, 2] [3, 4]
"""
