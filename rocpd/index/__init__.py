"""The columnar index: the readable views of each rank once more, as Parquet, from which statements are answered faster.

An index never is the truth: an entry counts only while the file that it was made of is what it was, and a statement is
answered from it only where the answer is SQLite's own. Raw files are not touched, and nothing is written beside them.
"""
