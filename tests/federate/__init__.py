"""Tests of the engine, one file per stage."""
