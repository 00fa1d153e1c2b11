"""Owns the SELECTs of analyses, which stand in `sql/`, one file each, over the tables of one rank."""

from __future__ import annotations

import functools
from importlib.resources import files

from rocpd.facts.frames import PYTHON_FUNCTION
from rocpd.facts.sampled import NO_SENTINEL, OWN_SAMPLE
from rocpd.schema.rules.agents import copy_agent_sql
from rocpd.schema.rules.categories import IS_CALL, TORCH_OPERATOR
from rocpd.schema.rules.markers import marker_categories
from rocpd.schema.rules.memory import IS_SCRATCH, NOT_SCRATCH
from rocpd.schema.text import strip_comments

_RULES = {
    "marker_categories": marker_categories(),
    "copy_agent": copy_agent_sql(),
    "is_scratch": IS_SCRATCH,
    "not_scratch": NOT_SCRATCH,
    "is_call": IS_CALL,
    "operator": TORCH_OPERATOR,
    "own_sample": OWN_SAMPLE,
    "no_sentinel": NO_SENTINEL,
    "python_function": PYTHON_FUNCTION,
}


@functools.cache
def statement(name: str) -> str:
    """Return the text of a `.sql` file without comments; rules of `rocpd.trace` take the places of `{{…}}`."""
    text = strip_comments((files("rocpd.facts") / "sql" / f"{name}.sql").read_text(encoding="utf-8"))
    for rule, condition in _RULES.items():
        text = text.replace(f"{{{{{rule}}}}}", condition)
    return text
