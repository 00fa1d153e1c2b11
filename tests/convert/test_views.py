"""What the columns of views are made of: every column of every view, and the joins that are left out."""

from __future__ import annotations

import pytest

from rocpd.convert.formats.tables import known_views
from rocpd.convert.views import Item, Kind, Lookup, shape
from rocpd.schema.load import view


@pytest.mark.parametrize("name", [name for name in known_views() if name != "markers"])
def test_every_column_of_a_view_is_known(name: str) -> None:
    assert [item.name for item in shape(name).items] == [column.name for column in view(name).columns]


def test_names_are_looked_up_by_id() -> None:
    kernels = shape("kernels")
    name, start = kernels.item("name"), kernels.item("START")
    assert name == Item(
        "name", Kind.TEXT, "K.kernel_id", "kernel name", "", Lookup("rocpd_info_kernel_symbol", "display_name")
    )
    assert (start.sql, start.kind, start.unit, start.lookup) == ("K.start", Kind.INTEGER, "ns", None)
    assert kernels.item("category").sql == "E.category_id"
    assert shape("regions").item("extdata").document
    assert shape("counters_collection").item("value").kind is Kind.REAL
    assert shape("kernel_symbols").item("demangled_kernel_name").kind is Kind.TEXT
    assert shape("kernel_symbols").item("kernel_address").kind is Kind.INTEGER
