"""Rules of the field, each once, in SQL and in numpy: valid times, markers, steps, launches, categories, names.

Pure: they read no file.
"""
