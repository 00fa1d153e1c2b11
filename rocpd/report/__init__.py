"""Reports: what analyses say of a job, arranged for people to read. Runs no SQL, calculates nothing that tables lack.

```text
SECTIONS ─► material (each rank is read once) ─► Report ─► writers: html, md, pdf, xlsx, ipynb
```
"""
