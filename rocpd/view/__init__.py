"""Shows a job in a browser: a server for this machine alone, whose first page is the report.

Owns who is let in, how long an answer may take, and the pages. Never reads a rank itself: the report, SQL and traces
are made by their own packages, in processes that can be stopped.
"""
