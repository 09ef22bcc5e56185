"""Format the phrases that all reports share: counts, version ranges, dates, policies, obligations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from schemactl.core.findings import Breakage, Waiver
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Level, Policies
from schemactl.core.schema import Commit, SchemaVersion
from schemactl.core.terminal import on_one_line

_YEAR_10000_MS = 253_402_300_800_000


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return `1 topic` or `3,000 topics`; `plural` is required if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_ranges(values: Iterable[int]) -> str:
    """Return version numbers in order, each once, with runs as ranges: `0-3, 5`."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def format_version_numbers(values: Sequence[int]) -> str:
    """Return `version 3` or `versions 0-3, 5`."""
    return f"version{'s' if len(set(values)) > 1 else ''} {format_ranges(values)}"


def describe_broken_versions(values: Sequence[int]) -> str:
    """Return `Version 3 breaks too.` or `Versions 0-3 break too.`."""
    return f"{format_version_numbers(values).capitalize()} break{'' if len(set(values)) > 1 else 's'} too."


def get_name_type(name: NamespaceName | TopicName) -> str:
    """Return `namespace` or `topic`."""
    return "namespace" if isinstance(name, NamespaceName) else "topic"


def describe_policy_origin(level: Level) -> str:
    """Return the origin of a policy: topic, namespace, or default; or of the strategy of the kinds of a topic."""
    return {
        "kinds": "`kinds_compatibility` of the topic",
        "topic": "set by the topic",
        "namespace": "set by its namespace",
        "default": "the default of schemactl.yaml",
    }[level]


def format_policies(policies: Policies) -> dict[str, str]:
    """Return the managed policies by name, as texts in the style of the YAML files."""
    return {name: format_policy_value(value) for name, value in policies.managed().items()}


def format_policy_value(value: object) -> str:
    """Return the value of a policy as text in the style of the YAML files."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {format_policy_value(part)}' for key, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(format_policy_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_time(timestamp_ms: int | None) -> str:
    """Return the time of an upload in UTC, `2026-03-02 09:15:00`, or `-` if it is unknown or out of range."""
    if timestamp_ms is None or not 0 <= timestamp_ms < _YEAR_10000_MS:
        return "-"
    return f"{datetime.fromtimestamp(timestamp_ms // 1000, tz=UTC):%Y-%m-%d %H:%M:%S}"


def format_day(commit: Commit) -> str:
    """Return the day of a commit in UTC, `2026-03-02`, limited to 1970-01-01 and 9999-12-31."""
    seconds = min(max(commit.time_s, 0), _YEAR_10000_MS // 1000 - 1)
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()


def format_version(version: SchemaVersion) -> str:
    """Return `version 3 (9f2c1abcd, 2026-03-02)`, or `version 3` without a commit; with the kind of events first, if it has one."""
    details = [version.kind] if version.kind else []
    if version.commit:
        details += [version.commit.short, format_day(version.commit)]
    return f"version {version.number} ({', '.join(details)})" if details else f"version {version.number}"


def describe_obligation(
    topic: TopicName,
    *,
    strategy: CompatibilityStrategy,
    level: Level,
    breakage: Breakage,
    number: int | None,
    existing: Sequence[SchemaVersion],
    against: Sequence[int],
) -> str:
    """Return the requirement of a strategy in sentences, with the versions that break and the versions that do not."""
    old_version = next(version for version in existing if version.number == breakage.against)
    # Readers may distinguish a definition from a version that the registry considers equal.
    new = "the new schema" if number in (None, breakage.against) else f"version {number}"
    if breakage.direction == "old_reads_new":
        requirement = f"consumers still on {format_version(old_version)} must read messages of {new}"
    elif breakage.direction == "both":
        requirement = f"{new} and {format_version(old_version)} must read each other's messages"
    else:
        requirement = f"{new} must read messages written with {format_version(old_version)}"
    sentence = f"{topic} is {strategy} ({describe_policy_origin(level)}): {requirement}."
    other_versions = [value for value in against if value != breakage.against]
    if other_versions:
        sentence += f" {describe_broken_versions(other_versions)}"
    if strategy.name.endswith("_TRANSITIVE"):
        unaffected = [
            version.number for version in existing if version.info is not None and version.number not in against
        ]
        if unaffected:
            sentence += f" {format_version_numbers(unaffected).capitalize()} {'are' if len(unaffected) > 1 else 'is'} not affected."
    return sentence


def describe_waiver(waiver: Waiver) -> str:
    """Return `waived by team-orders until 2027-01-31: no message has it`."""
    return f"waived by {on_one_line(waiver.owner)} until {waiver.until}: {on_one_line(waiver.reason)}"


def format_partitions(count: int | None) -> str:
    """Return `3 partitions`, or `not partitioned`."""
    return "not partitioned" if count is None else format_count(count, "partition")


def describe_partitions(count: int | None) -> str:
    """Return `has 3 partitions`, or `is not partitioned`."""
    return f"{'is' if count is None else 'has'} {format_partitions(count)}"


def describe_value(value: Any) -> str:
    """Describe a YAML value for a message: `the number 3`, `a list`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {shorten(str(value))}"
    if isinstance(value, str) and value:
        return f"the text `{shorten(value)}`"
    return {type(None): "nothing", str: "an empty text", list: "a list", dict: "a mapping"}[type(value)]


def shorten(text: str) -> str:
    """Return a text cut to 60 characters, with unprintable characters escaped."""
    text = text if len(text) <= 60 else text[:57] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
