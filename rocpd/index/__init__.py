"""The columnar index: a copy of the readable views of each rank as Parquet, which answers statements faster.

An index is never the truth: an entry counts only while its source file is unchanged, and it answers a statement only
where the answer is SQLite's own. Raw files are not touched, and nothing is written beside them.
"""
