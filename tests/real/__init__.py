"""Tests on the twelve files that rocprofv3 wrote; skipped where they are absent."""
