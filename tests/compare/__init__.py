"""Tests of `rocpd.compare`."""
