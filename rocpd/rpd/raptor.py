"""RAPTOR's tables in Python: `from rocpd.rpd import RaptorParser`. Numbers are those of `rocpd raptor`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    import pandas as pd

    from rocpd.federate.select.window import Window
    from rocpd.session import Session
    from rocpd.summary.reading import Reading


class RaptorParser:
    """Tables of a trace as data frames of pandas, for a region of interest that can be changed.

    The columns are RAPTOR's; `docs/from-rpd.md` explains where and why numbers differ. Tables are calculated on
    demand.

    Args:
        rpd_file: any trace or folder that rocpd reads.
        category_json: RAPTOR's file of categories; None: the categories of rocpd.
        prekernel_seq: number of preceding kernels that distinguish a kernel; 0: none.
        roi_start: start of the region, in the forms of `set_roi_from_str`.
        roi_end: its end.

    Raises:
        InputError: a file can't be used.
    """

    def __init__(
        self,
        rpd_file: str | Path,
        category_json: str | Path | None = None,
        prekernel_seq: int = 2,
        roi_start: str | None = None,
        roi_end: str | None = None,
    ) -> None:
        import rocpd

        self.category_json, self.prekernel_seq = category_json, prekernel_seq
        self._whole = rocpd.connect([rpd_file])
        self._session: Session = self._whole
        self.set_roi_from_str(roi_start, roi_end)

    def set_roi_from_str(self, roi_start: str | None, roi_end: str | None = None) -> None:
        """Choose the region: 12.5 (ms), 3us, +3us, -1s (from the end), 40%, or a pattern of kernels: their first start.

        Raises:
            UsageError: it is no time, and no kernel matches.
        """
        from rocpd.cli.summary import edge
        from rocpd.federate.select.window import Window

        self._within(Window(edge(self._whole, roi_start), edge(self._whole, roi_end)))

    def set_full_roi(self) -> None:
        """Take the whole trace."""
        self.set_roi_from_str(None)

    def set_auto_roi(self) -> None:
        """Choose the region between the first start and the last end of the hottest kernel."""
        from rocpd.federate.select.window import Window

        self._within(Window(auto_roi=True))

    def get_op_df(self) -> pd.DataFrame:
        """Return each operation, in order of time."""
        return self._session.summary("op-trace").df()

    def get_top_df(self) -> pd.DataFrame:
        """Return kernels by the kernels before them, and gaps, by time."""
        return self._table("raptor-top")

    get_pretty_top_df = get_top_df

    def get_category_df(self) -> pd.DataFrame:
        """Return the time of each category, which is the index, and idle time as `_GPU_Idle`."""
        return self._table("raptor-categories").set_index("Category")

    def get_variability_df(self) -> pd.DataFrame:
        """Return the time above the shortest runs, `by_comm` and `by_non_comm`."""
        return self._table("raptor-variability").set_index("Variability")

    def print_op_trace(self, outfile: TextIO | None = None) -> None:
        """Write each operation as a line, to stdout unless a file is given."""
        from rocpd.summary.kernels.op_trace import raptor

        (outfile or sys.stdout).writelines(raptor(self._reading()))

    op_df, top_df, category_df = property(get_op_df), property(get_top_df), property(get_category_df)
    variability_df = property(get_variability_df)

    def close(self) -> None:
        """Close the trace."""
        self._whole.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _within(self, window: Window) -> None:
        self._session = self._whole.within(window) if window else self._whole

    def _reading(self) -> Reading:
        from rocpd.facts.rank import Options
        from rocpd.summary.reading import Reading

        categories = None if self.category_json is None else Path(self.category_json)
        return Reading(self._session, Options(categories=categories, sequence=self.prekernel_seq))

    def _table(self, name: str) -> pd.DataFrame:
        from rocpd.summary.kernels.variability import raptor

        return next(table for table in raptor(self._reading()) if table.name == name).df()
