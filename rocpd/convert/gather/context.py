"""Values that the parts of a rank's event model share while it is made: names, agents, threads, the time line.

Events are read together with their columns of `rocpd_event`, and JSON documents by event. Does not decide which events
are shown. Rows with invalid timestamps are counted here and reported once for all ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from rocpd.base import NULL, Flags, Ints, by_key
from rocpd.convert.deliver import Placement
from rocpd.convert.model import Annotation, RankEvents, Slices, Track, TrackKind, optional
from rocpd.convert.options import AgentIndex, ConvertOptions
from rocpd.facts.columns import Piece, Select, all_texts, read_all
from rocpd.federate.result import decoded
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules import kernel_categories
from rocpd.schema.rules.categories import NOT_DRAWN
from rocpd.schema.rules.events import GPUS, valid_start, valid_times

Columns = dict[str, Ints]


def events(reader: RankReader, base: str, names: Sequence[str]) -> Columns:
    """Read columns of whole numbers of an event table in row order, with `category_id` and `stack_id` of the event."""
    chosen = select_events(base, names)
    return dict(zip(chosen.numbers, read_all(reader, chosen).numbers, strict=True))


def calls(reader: RankReader, rows: Columns) -> Columns:
    """Return the rows of regions, except those that repeat operations or are frames of samples."""
    others = [number for (number,) in reader.rows(NOT_DRAWN)]
    return select(rows, ~np.isin(rows["category_id"], others)) if others else rows


def select_events(base: str, names: Sequence[str], texts: Sequence[str] = ()) -> Select:
    """Return the statement for columns of whole numbers and of texts, and the event's `category_id` and `stack_id`."""
    items = ", ".join(f'T."{name}" AS "{name}"' for name in dict.fromkeys(("id", *names, *texts)))
    sql = f"SELECT {items}, E.category_id, E.stack_id FROM {base} T LEFT JOIN rocpd_event E ON E.id = T.event_id"
    return Select(sql, (*names, "category_id", "stack_id"), texts=tuple(texts), base=base)


def select(columns: Columns, which: Flags | Ints) -> Columns:
    """Return the rows of all columns that flags or row numbers choose."""
    return {name: values[which] for name, values in columns.items()}


def documents(reader: RankReader, column: str, where: str) -> dict[int, str]:
    """Return event id -> JSON text of a column of `rocpd_event`, without empty ones; `where` is SQL on its columns."""
    # SQLite tests in this order, and the document lies at the end of the row, so few rows should be read that far.
    sql = (
        f"SELECT id, {column} FROM rocpd_event WHERE {where} AND {column} NOT IN ('{{}}', '[]', '') AND id IS NOT NULL"
    )
    return {event: decoded(text) or "" for event, text in reader.rows(sql)}


_TIMES = ("start", "end", "timestamp")


class Damage(Counter[tuple[str, str]]):
    """Counts of rows that cannot be shown as they are, by (one of these texts, kind of rows in the plural)."""

    CLAMPED = "invalid timestamps, no end or one before the start: shown with zero length"
    LEFT_OUT = "invalid timestamps, no start or not above 0: left out"
    NO_EVENT = "counter values of no dispatch or sample: left out"
    NO_VALUE = "counter values that are no numbers: left out"
    NO_NUMBER = "values that are no numbers: taken as unknown"
    UNKNOWN_FREE = "frees of memory whose allocation is not in the trace: not in the memory counters"

    def add_odd(self, base: str, odd: Counter[str]) -> None:
        """Add counts of values that should be numbers and are not, by column of a table; times count as times."""
        for column, count in odd.items():
            if column not in _TIMES:
                self[Damage.NO_NUMBER, f"{base.removeprefix('rocpd_')}.{column}"] += count

    @staticmethod
    def report(parts: Iterable[Damage], note: Callable[[str], None]) -> None:
        """Note the counts of several ranks together."""
        counted = sum(parts, Counter[tuple[str, str]]()).items()
        kinds = by_key((what, f"{kind}: {count}") for (what, kind), count in counted)
        for what, counts in kinds.items():
            note(f"{what} ({', '.join(counts)})")


class Context:
    """One rank while its events are gathered."""

    def __init__(
        self,
        reader: RankReader,
        placement: Placement,
        options: ConvertOptions,
        damage: Damage,
        titles: Mapping[str, str],
    ) -> None:
        self.reader = reader
        self.placement = placement
        self.events = events = RankEvents(reader.rank.number, placement.label, placement.about)
        self.options = options
        self.damage = damage
        self.titles = titles
        self.kernel_categories = kernel_categories.load(None)
        self.strings = {i: text for i, text in all_texts(reader).items() if text is not None}
        events.agents = _agent_labels(reader, options.agent_index_value or AgentIndex.TYPE_RELATIVE, "{} {}")
        self._agents_of_counters = _agent_labels(reader, options.agent_index_value or AgentIndex.RELATIVE, "{} [{}]")
        events.gpus = [number for (number,) in reader.rows(GPUS)]
        self._threads: dict[int, int] = {}
        for row in reader.rows("SELECT id, tid, name FROM rocpd_info_thread"):
            self._add_thread(*row)

    def read(self, select: Select, reader: RankReader | None = None, damage: Damage | None = None) -> Piece:
        """Read rows, by `reader` if given; counts values that should be numbers and are not."""
        odd = Counter[str]()
        piece = read_all(reader or self.reader, select, odd)
        (self.damage if damage is None else damage).add_odd(select.base or "", odd)
        return piece

    def read_events(self, base: str, names: Sequence[str]) -> Columns:
        """Read columns of an event table as `events` does; counts values that should be numbers and are not."""
        chosen = select_events(base, names)
        return dict(zip(chosen.numbers, self.read(chosen).numbers, strict=True))

    def slices(self, rows: Columns, category: str, kind: Ints | None, annotations: Sequence[Annotation]) -> Slices:
        """Return rows with `track` and `name` as slices.

        Args:
            rows: the rows.
            category: category of rows without one.
            kind: as in `Slices`.
            annotations: annotations beside the stack id.
        """
        categories, stack = self.categories(rows["category_id"], category), rows["stack_id"]
        columns = (*annotations, optional("stack_id", stack))
        return Slices(rows["track"], rows["start"], rows["end"], rows["name"], categories, stack, kind, columns)

    def _add_thread(self, number: int, tid: object, name: object) -> None:
        if tid is not None and not isinstance(tid, int):
            self.damage.add_odd("rocpd_info_thread", Counter(tid=1))
        if isinstance(tid, int):
            title = str(name) if name else f"thread {tid}"
            known = title if str(tid) in title else f"{title} ({tid})"
            track = Track(title, TrackKind.THREAD, known, tid=tid, nests=True)
            self._threads[number] = self.events.tracks.index(("tid", tid), track)

    def thread(self, number: int) -> int:
        """Return the track of a thread by its id in rocpd_info_thread; `thread ?` if it is unknown."""
        if number in self._threads:
            return self._threads[number]
        return self.events.tracks.index("thread ?", Track("thread ?", TrackKind.THREAD, nests=True))

    def agent(self, number: int) -> str:
        """Return the name of an agent by its id: `GPU 1`, `Agent 2`, or with a `?` if it is unknown."""
        return self.events.agents.get(number, "agent ?" if number == NULL else f"agent ? (id {number})")

    def agent_track(
        self, key: Hashable, agent: int, kind: TrackKind, title: str, unit: str | None = None, line: int | None = None
    ) -> int:
        """Return the index of a track of an agent, known by `key` among its tracks."""
        track = Track(f"{self.agent(agent)} · {title}", kind, title, unit=unit, agent=agent, line=line)
        return self.events.tracks.index((key, agent), track)

    def counter_track(self, agent: int, counter: str) -> str:
        """Return the name of a counter's track in AMD's traces: `Agent [2] PMC SQ_WAVES`."""
        return f"{self._agents_of_counters.get(agent, self.agent(agent))} PMC {counter}"

    def names(self, ids: Ints, texts: Mapping[int, str]) -> Ints:
        """Return the numbers of names for ids of `texts`."""
        return self.events.names.codes(ids, lambda i: texts.get(i) or "?")

    def categories(self, ids: Ints, default: str) -> Ints:
        """Return the numbers of categories for string ids, `default` for unknown ids."""
        return self.events.categories.codes(ids, lambda i: self.strings.get(i) or default)

    def on_time_line(self, columns: Columns, kind: str, damage: Damage | None = None) -> Columns:
        """Return the rows with `start` and `end` on the common time line; counts rows that have to change.

        Rows without a valid start, or from before the time line, are left out; rows without a valid end end where they
        start.

        Args:
            columns: rows with `start` [ns] and, for events that last, `end` [ns].
            kind: name of the rows, in the plural.
            damage: gets the counts, in place of `self.damage`.
        """
        damage = self.damage if damage is None else damage
        shift = self.placement.shift
        keep = valid_start(columns["start"]) & valid_start(shift.to_line(columns["start"]))
        if not np.all(keep):
            damage[Damage.LEFT_OUT, kind] += int(np.count_nonzero(~keep))
            columns = select(columns, keep)
        result = columns | {"start": shift.to_line(columns["start"])}
        if "end" in columns:
            valid = valid_times(columns["start"], columns["end"])
            damage[Damage.CLAMPED, kind] += int(np.count_nonzero(~valid))
            result["end"] = shift.to_line(np.where(valid, columns["end"], columns["start"]))
        return result


def _agent_labels(reader: RankReader, how: AgentIndex, form: str) -> dict[int, str]:
    """Return id -> name of the agents: `Agent` or the type, and the index, formatted by `form`."""
    labels = {}
    for number, kind, index in reader.rows(f"SELECT id, type, {how.column} FROM rocpd_info_agent"):
        word = (kind or "Agent") if how.has_type else "Agent"
        labels[number] = form.format(word, number if index is None else index)
    return labels
