"""Owns rules of the field, each once: what is a marker, which times are valid, which agent an operation belongs to …

Rules are SQL conditions and functions on numpy columns that say the same. Never reads a database.
"""
