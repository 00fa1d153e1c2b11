"""Tests of `rocpd.cli`: what a command line says, where, and with which exit code."""
