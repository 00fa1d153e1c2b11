"""Tests of `rocpd.summary`."""
