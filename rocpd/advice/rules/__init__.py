"""The rules, one a file; `rocpd.advice.registry.RULES` has them in order."""
