"""Forms of a kernel's name: one that is missing or empty gives way to the name for people."""

from __future__ import annotations

import pytest

from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


@pytest.mark.parametrize(("form", "empty"), [("mangled", "''"), ("truncated", "''"), ("truncated", "NULL")])
def test_a_form_without_text_is_the_display_name(form: str, empty: str, open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("(anonymous namespace)::fill()", 1, 4)
    kernels = "rocpd_info_kernel_symbol{uuid}"
    trace.sql(f"UPDATE {kernels} SET kernel_name = ''")
    trace.sql(f"UPDATE {kernels} SET extdata = json_set(extdata, '$.truncated_kernel_name', {empty})")
    session = open_job(trace)
    assert cells(session, "kernels", "name", kernel_names=form) == ["(anonymous namespace)::fill()"]
