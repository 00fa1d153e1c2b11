"""Writes the head of docs/advise.md: rules, thresholds and when rules can't look, from the code."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent / "advise.md"

EXAMPLE = "\n## Example\n"
"""Where the part of the page starts that people write; what is above comes from the code."""

_ABOUT = """# Advice

`rocpd advise job` says what costs time, how much of a step that may be, and what to do about it. Rules look at the
tables of [analyses](analyses.md), in one pass over the ranks; each finding has

- the numbers that it rests on, with rank, agent, step and the window of the time line, and the command that shows them;
- **what it gains**: the job is replayed without the problem ([`rocpd whatif`](whatif.md)); how much shorter a step gets
  then is the gain, and `gain` below the finding has the bounds and the command that replays it again. Where nobody can
  do that as a whole, such as launches that cost nothing, or communication that nothing is left to hide behind, it is
  `up to` that much. Where no replay can say it, in a part of the trace, or without steps, it is `up to` a share of the
  step of the critical rank, the one that the others wait for, or else the one that communicates least. Where it may be
  twice as much or more, as with communication whose partners are not known, it is given by its bounds: `1 to 14 %`.
  Gains do not add up: two findings may be about the same time;
- on which other ranks it is so, where the finding names the critical rank;
- what to do, as far as the recording does not rule it out, with a page that explains it;
- how sure it is: `certain` follows from what was recorded, `likely` is not chance, a `hint` may have other reasons.

Findings come in the order of what they gain, by the middle of bounds where these are given. Changes of the program,
such as other overlap, count half: they seldom gain all that they may, while a rank, a step or a clock that is slower
than its equals can become as they are. What the recording lacks comes first, since it limits all others. What another
finding causes is reported with that one: a straggler is why the others wait. Every answer ends with the rules that
found nothing and those that **could not look**, with the option that records what they need. That nothing was found
does not mean that nothing is wrong. The exit code is 0 either way; gates are what [`rocpd diff`](cli.md#rocpd-diff) is
for.

Of separate runs, which are not one job, one is judged, and ranks are not compared. Windows and filters are those of
`rocpd summary`: `rocpd advise job --step 16` is about one step.

## Rules

| rule | asks | fires when |
|---|---|---|
"""

_THRESHOLDS = """
`rocpd advise --list` prints the first two columns, `rocpd advise --explain RULE` one rule.

## Thresholds

`--thresholds FILE` takes a TOML file with other values: a table for each rule.

```toml
[all]
least_percent = 1.0

[gpu.starved]
least_idle_percent = 5.0
```

| rule | threshold | value | what it is |
|---|---|---:|---|
"""

_UNABLE = """
## When rules can't look

Options are those of the profiler that recorded the trace: of a trace of PyTorch's profiler the arguments of
`torch.profiler`, of Nsight Systems those of `nsys`; what a profiler can't record is only said to be missing. Those of
rocprofv3:

| rules | without |
|---|---|
"""

_OTHERS = """
Some rules find out later that they can't: that calls and kernels are not linked, that too few steps or collectives
repeat, that there is one rank. The answer says so.

## Rules of other packages

A package adds rules through the entry point group `rocpd.rules`: each entry point names a `rocpd.advice.rule.Rule`.
Its `look` takes a `rocpd.advice.case.Case`, whose `rows(table)` are those of any table of an analysis that its `needs`
name, divided by rank, and returns `rocpd.summary.findings.Finding` objects, or raises `CannotLookError`. A rule of ours
can't be replaced.

## JSON

`--format json` and `Advice.document()` have this form; `version` changes when a reader of the old form would fail.

| key | meaning |
|---|---|
| `version` | 1 |
| `job.text` | what it is, in a line |
| `job.ranks`, `job.runs` | numbers of the ranks with GPU work; how many jobs the inputs are |
| `job.critical_rank` | whose step gains are a share of |
| `job.step_ns`, `job.has_steps` | how long its step takes; without steps: its whole time |
| `findings` | in order; each with the keys below |
| `rule`, `text`, `confidence` | |
| `gain_percent` | null: it costs no time, or nobody can say how much |
| `gain_low_percent`, `gain_high_percent` | its bounds; null: it is not replayed, and at most that |
| `regained_by` | the command that replays the job without it |
| `rank`, `agent`, `step`, `start_ns`, `end_ns` | where, with times from the start of the time line; null: unknown |
| `evidence` | numbers by names that end in their unit |
| `shown_by`, `action`, `reference` | command, what to do, page |
| `explains` | findings that it is the cause of, with the same keys |
| `gains_little` | findings below the threshold `least_percent`, of rules that have no other, with the same keys |
| `found_nothing` | ids of rules |
| `could_not_look` | each with `rule` and `reason` |
"""


def advice_page() -> str:
    """Return docs/advise.md: the head from the code, then the example as it stands."""
    from rocpd.advice.registry import RULES, fires
    from rocpd.advice.rule import ALL, COMMON

    parts = [_ABOUT]
    parts += [f"| `{rule.id}` | {rule.asks} | {fires(rule)} |\n" for rule in RULES]
    parts.append(_THRESHOLDS)
    every = [(ALL, COMMON), *((rule.id, rule.thresholds) for rule in RULES)]
    parts += [f"| `{id}` | `{each.name}` | {each.value:g} | {each.doc} |\n" for id, some in every for each in some]
    parts.append(_UNABLE)
    without: dict[str, list[str]] = {}
    for rule in RULES:
        for reason in dict.fromkeys(need.text() for need in rule.needs):
            without.setdefault(reason, []).append(f"`{rule.id}`")
    parts += [f"| {', '.join(ids)} | {reason} |\n" for reason, ids in without.items()]
    parts.append(_OTHERS)
    written = PAGE.read_text(encoding="utf-8").partition(EXAMPLE)[2] if PAGE.exists() else ""
    return "".join([*parts, EXAMPLE, written])
