"""Owns writing traces by AMD's interface: one value that says where to and how, and a function for each format."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rocpd.convert import FORMATS, endings_of
from rocpd.convert.options import ConvertOptions
from rocpd.option import options_of
from rocpd.output import destination
from rocpd.session import Session

_WHERE = {"output_path": None, "output_file": None, "force": False}


class OutputConfig(SimpleNamespace):
    """Where outputs go and how events are shown: `output_path`, `output_file`, `force` and the options of formats.

    >>> OutputConfig(output_file="mine").update(kernel_rename=True).kernel_rename
    True
    """

    def __init__(self, *, strict: bool = True, **values: object) -> None:
        super().__init__(**_WHERE, **{option.name: option.default for option in options_of(ConvertOptions)})
        self.update(strict=strict, **values)

    def update(self, *, strict: bool = True, **values: object) -> OutputConfig:
        """Set attributes; return the same object.

        Raises:
            KeyError: `strict`, and there is no such attribute.
        """
        for name, value in values.items():
            if hasattr(self, name):
                setattr(self, name, value)
            elif strict:
                raise KeyError(f"output_config does not have {name} attribute")
        return self


def write_csv(connection: Session, config: OutputConfig | None = None, **values: object) -> bool:
    """Write CSV files; True when they are there. Errors are raised: see `Session.convert`."""
    return _write("csv", connection, config, values)


def write_perfetto(connection: Session, config: OutputConfig | None = None, **values: object) -> bool:
    """Write a Perfetto trace; True when it is there. Errors are raised: see `Session.convert`."""
    return _write("pftrace", connection, config, values)


def write_otf2(connection: Session, config: OutputConfig | None = None, **values: object) -> bool:
    """Write an OTF2 archive; True when it is there. Errors are raised: see `Session.convert`."""
    return _write("otf2", connection, config, values)


def _write(form: str, connection: Session, config: OutputConfig | None, values: dict[str, Any]) -> bool:
    chosen = OutputConfig(**values) if config is None else config.update(**values)
    entry = FORMATS[form]
    folder = None if chosen.output_path is None else Path(chosen.output_path)
    target = destination(chosen.output_file, folder, endings_of([entry]))
    entry.write(connection, ConvertOptions.at(target, chosen.force, **entry.values(vars(chosen))))
    return True
