"""Advice: what costs time or hides it, what to do about it, and what could not be looked at.

Rules (`rules/`, by subject; `registry.RULES` has their order) judge the tables of analyses; none reads a rank. What a
rule returns is a `rocpd.summary.findings.Finding`. That nothing was found is never said to be good: it is said which
rules looked, and which could not.
"""
