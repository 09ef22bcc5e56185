"""Sentences that all reports share: counts, version ranges, dates, policies, obligations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from schemactl.core.findings import Breakage
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Level, Policies
from schemactl.core.schema import Commit, SchemaVersion

# Versions and strategies

_YEAR_10000_MS = 253_402_300_800_000


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 topic` or `3,000 topics`; `plural` is needed if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def numbers(values: Iterable[int]) -> str:
    """Version numbers with runs drawn together: `0-3, 5`."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def versions(values: Sequence[int]) -> str:
    """`version 3` or `versions 0-3, 5`."""
    return f"version{'s' if len(values) > 1 else ''} {numbers(values)}"


def break_too(values: Sequence[int]) -> str:
    """Return `Version 3 breaks too.` or `Versions 0-3 break too.`."""
    return f"{versions(values).capitalize()} break{'' if len(values) > 1 else 's'} too."


def kind_of(name: NamespaceName | TopicName) -> str:
    """Return `namespace` or `topic`."""
    return "namespace" if isinstance(name, NamespaceName) else "topic"


def policy_origin(level: Level) -> str:
    """Return the level that a policy comes from, in words."""
    return {
        "topic": "set by the topic",
        "namespace": "set by its namespace",
        "default": "the default of schemactl.yaml",
    }[level]


def policy_words(policies: Policies) -> dict[str, str]:
    """Return the policies that are managed, by name, each as the YAML files spell it."""
    return {name: policy_word(value) for name, value in policies.managed().items()}


def policy_word(value: object) -> str:
    """Return the value of a policy (a strategy, true or false, a number, names, a mapping) as the YAML files spell it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {policy_word(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(policy_word, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def moment(timestamp_ms: int | None) -> str:
    """Return the time of an upload in UTC, to the second: 2026-03-02 09:15:00; a dash if the registry gives none."""
    if timestamp_ms is None or not 0 <= timestamp_ms < _YEAR_10000_MS:
        return "-"
    return f"{datetime.fromtimestamp(timestamp_ms // 1000, tz=UTC):%Y-%m-%d %H:%M:%S}"


def day(commit: Commit) -> str:
    """Return the commit's day in UTC: 2026-03-02; the first or last day of the calendar for a time beyond it."""
    seconds = min(max(commit.time_s, 0), _YEAR_10000_MS // 1000 - 1)
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()


def format_version(version: SchemaVersion) -> str:
    """`version 3 (9f2c1abcd, 2026-03-02)`; without a commit the number alone."""
    if version.commit is None:
        return f"version {version.number}"
    return f"version {version.number} ({version.commit.short}, {day(version.commit)})"


def obligation(
    topic: TopicName,
    *,
    strategy: CompatibilityStrategy,
    level: Level,
    breakage: Breakage,
    number: int | None,
    existing: Sequence[SchemaVersion],
    against: Sequence[int],
) -> str:
    """Who must read what under the strategy, which versions break and which do not."""
    nearest = next(version for version in existing if version.number == breakage.against)
    # A text that a registry takes for a version it has is still another text to readers.
    new = "the new schema" if number in (None, breakage.against) else f"version {number}"
    if breakage.direction == "old_reads_new":
        must = f"consumers still on {format_version(nearest)} must read messages of {new}"
    elif breakage.direction == "both":
        must = f"{new} and {format_version(nearest)} must read each other's messages"
    else:
        must = f"{new} must read messages written with {format_version(nearest)}"
    sentence = f"{topic} is {strategy} ({policy_origin(level)}): {must}."
    also = [value for value in against if value != breakage.against]
    if also:
        sentence += f" {break_too(also)}"
    if strategy.name.endswith("_TRANSITIVE"):
        fine = [version.number for version in existing if version.info is not None and version.number not in against]
        if fine:
            sentence += f" {versions(fine).capitalize()} {'are' if len(fine) > 1 else 'is'} not affected."
    return sentence


def partitions(count: int | None) -> str:
    """Return `3 partitions`, or `not partitioned`."""
    return "not partitioned" if count is None else counted(count, "partition")


def partitioned(count: int | None) -> str:
    """Return what a topic has: `has 3 partitions`, or `is not partitioned`."""
    return f"{'is' if count is None else 'has'} {partitions(count)}"


# Values and near misses


def found(value: Any) -> str:
    """Return what `value` is, as a person would say it who sees the file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {shortened(str(value))}"
    if isinstance(value, str) and value:
        return f"the text `{shortened(value)}`"
    return {type(None): "nothing", str: "an empty text", list: "a list", dict: "a mapping"}[type(value)]


def shortened(text: str) -> str:
    """`text` fit for one line: at most 60 characters, none that a terminal would obey."""
    text = text if len(text) <= 60 else text[:57] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
