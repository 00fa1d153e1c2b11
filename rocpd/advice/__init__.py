"""Advice: what costs time or hides it, what to do about it, and what could not be looked at.

Rules (`rules/`, by subject; `registry.RULES` has their order) judge the tables of analyses; none reads a rank. A rule
returns `rocpd.summary.findings.Finding`. No rule says that all is well: advice lists the rules that looked and found
nothing, and those that could not look.
"""
