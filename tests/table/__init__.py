"""Tests of `rocpd.table`."""
