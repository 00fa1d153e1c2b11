"""`rocpd hang`: who is missing in a job that no longer goes on."""

from __future__ import annotations

import json
from typing import Annotated

from rocpd.base.errors import Exit
from rocpd.base.frozen import frozen
from rocpd.base.option import Option
from rocpd.base.visible import as_data, visible
from rocpd.cli import tables
from rocpd.cli.diagnostics import clear_bars, note
from rocpd.cli.options import Inputs, TableOptions
from rocpd.live import AFTER_S
from rocpd.table import CONSOLE

_JSON = "json"
_FORMS = {CONSOLE: ".txt", _JSON: ".json"}


@frozen
class HangOptions:
    """When a job hangs."""

    after: Annotated[
        float,
        Option("Seconds without progress after which a group is stuck.", "S", least=0, most=86_400, is_plain=True),
    ] = AFTER_S
    format: Annotated[str, tables.format_option("Format:", _FORMS.keys)] = ""


def hang(inputs: Inputs, asked: HangOptions, output: TableOptions) -> int:
    """Say whether a job hangs, which rank is missing, and who waits.

    For a job whose recorder keeps what has begun and not ended beside each database, while it runs or after it was
    killed. Ends with 1 where it hangs, and with 4 where that is not recorded.

    Examples:
        rocpd hang job/
        rocpd hang job/ --format json
    """
    from rocpd.live.hang import Hanging
    from rocpd.live.hang import hang as answer_of
    from rocpd.session import connect

    form, path = tables.form_and_path(asked.format, output, _FORMS)
    with connect(inputs.paths or None, skip_bad=inputs.skip_bad, on_note=note) as session:
        answer = answer_of(session, asked.after)
    clear_bars()
    with tables.open_output(path, output) as out:
        if form == _JSON:
            as_data(out).write(json.dumps(answer.document(), indent=1, ensure_ascii=False) + "\n")
        else:
            out.writelines(f"{visible(line)}\n" for line in answer.lines)
    codes = {Hanging.YES: Exit.FAILED, Hanging.UNKNOWN: Exit.UNCLEAR}
    return codes.get(answer.verdict, Exit.GOOD)
