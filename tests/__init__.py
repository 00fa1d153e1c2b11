"""Tests: a mirror of the package, tiny databases built in code, laws that must hold for any of them."""
