"""One format, one file: a function (Report, path) that writes it. `REPORT_FORMATS` is the table of contents."""

from __future__ import annotations

from collections.abc import Mapping

from rocpd.base import UsageError, frozen


@frozen
class ReportFormat:
    """One format.

    Args:
        ending: ending of its files.
        doc: one line for people.
        home: `module:function` that takes a `Report` and a path.
        needs: packages that have to be installed, as pip names them.
    """

    ending: str
    doc: str
    home: str
    needs: tuple[str, ...] = ()


_WORKBOOK = ("xlsxwriter", "resvg_py", "font_roboto")

REPORT_FORMATS: Mapping[str, ReportFormat] = {
    form.ending: form
    for form in (
        ReportFormat(".html", "a page that stands alone", "rocpd.report.writers.html:write_html"),
        ReportFormat(".md", "Markdown", "rocpd.report.writers.markdown:write_markdown"),
        ReportFormat(".pdf", "pages to print", "rocpd.report.writers.pdf:write_pdf", ("fpdf", "font_roboto")),
        ReportFormat(".xlsx", "a workbook", "rocpd.report.writers.xlsx:write_xlsx", _WORKBOOK),
        ReportFormat(".ipynb", "a Jupyter notebook", "rocpd.report.writers.markdown:write_notebook"),
    )
}
"""Ending -> format."""


def format_of(name: str) -> ReportFormat:
    """Return the format for the name of a file.

    Raises:
        UsageError: no format has its ending.
    """
    fitting = [form for ending, form in REPORT_FORMATS.items() if name.lower().endswith(ending)]
    if not fitting:
        raise UsageError(f"-o {name}: its ending says no format", f"one of {', '.join(REPORT_FORMATS)}")
    return fitting[0]
