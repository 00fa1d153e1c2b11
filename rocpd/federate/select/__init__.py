"""Turns windows, filters and clock offsets into conditions on the rows of each rank. Never changes a time in SQL."""
