"""The rules, a file for each subject; `rocpd.advice.registry.RULES` has them in order."""
