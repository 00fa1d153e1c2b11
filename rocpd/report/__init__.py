"""Reports: the results of analyses, arranged for people. Runs no SQL, and calculates nothing beyond the tables.

```text
SECTIONS ─► material (each rank is read once) ─► Report ─► writers: html, md, pdf, xlsx, ipynb
```
"""
