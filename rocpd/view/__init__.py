"""Shows a job in a browser: a server for this machine alone, whose first page is the report.

Decides who is admitted and how long an answer may take, and serves the pages. Of the ranks it reads only outlines, for
the first picture: the report, SQL and traces are made by their own packages, in processes that can be stopped.
"""
