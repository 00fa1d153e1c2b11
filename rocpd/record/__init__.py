"""Records this process or a command: ranges and marks, into one rocpd database per process.

>>> from rocpd import record
>>> with record.Recorder("out"):
...     with record.range("step"):
...         squares = [number**2 for number in (1, 2, 3)]

Imports nothing heavy: a program may keep its ranges where it is not recorded.
"""

from rocpd.record.marks import correlate, mark, range
from rocpd.record.recorder import Recorder, Status

__all__ = ["Recorder", "Status", "correlate", "mark", "range"]
