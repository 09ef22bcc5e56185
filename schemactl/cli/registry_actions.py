"""The actions of `schemactl registry` on one topic: get, list, put, delete, test."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from schemactl import formats
from schemactl.broker.checkers import known_to
from schemactl.cli.context import Context
from schemactl.cli.schema_file import read_schema
from schemactl.cli.selection import find, target_of
from schemactl.cli.show import definition_value, print_definition
from schemactl.comparison.changes import Contents, stamp
from schemactl.comparison.compatibility import judge
from schemactl.core.errors import (
    NEGATIVE,
    InvalidSchema,
    NotPermitted,
    RegistryError,
    SchemaRejected,
    UsageError,
)
from schemactl.core.findings import Answer, Breakage, Outcome
from schemactl.core.json_values import breakage_value
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.core.wording import moment, numbers, versions
from schemactl.deploy.apply import restore_left
from schemactl.registry.interface import Registry

_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class _RegistryTopic:
    """A topic in its current state in a registry.

    Attributes:
        declared: its declared name.
        name: its name on the target.
        stored: every version that the registry holds.
        checkers: the optional checkers of the brokers' configuration.
    """

    args: argparse.Namespace
    context: Context
    registry: Registry
    target: str
    declared: TopicName
    name: TopicName
    stored: tuple[SchemaVersion, ...]
    checkers: tuple[str, ...]

    @property
    def live(self) -> tuple[SchemaVersion, ...]:
        return live(self.stored)

    def show(self, text: str, **facts: Any) -> None:
        """Print the report, as `text` or the `facts` as JSON."""
        if self.args.format == "text":
            self.context.report(text)
        else:
            self.context.report_json(target=self.target, topic=str(self.name), **facts)


def _get(place: _RegistryTopic) -> int:
    found = _version(place, place.args.version)
    info = found.info
    if info is None:
        raise RegistryError(
            f"version {found.number} of {place.name} is a tombstone: it marks a deletion, and has no schema"
        )
    if place.args.format == "json":
        place.show("", **_facts(found))
        return 0
    place.context.say(f"{place.name}: {_headline(found)}")
    print_definition(info, place.name)
    return 0


def _list(place: _RegistryTopic) -> int:
    current = {version.number for version in place.live}
    lines = [f"{place.name} in {place.target}"]
    for version in reversed(place.stored):
        hidden = "" if version.number in current or version.info is None else ", hidden by a later tombstone"
        lines.append(f"  {_headline(version)}{hidden}")
    if not place.stored:
        lines.append("  no schema")
    place.show("\n".join(lines), versions=[_facts(version) for version in place.stored], live=sorted(current))
    return 0


def _put(place: _RegistryTopic) -> int:
    info = read_schema(place.args, place.context, place.declared)
    _warn(place, info)
    # Who may only produce can neither see nor repair that.
    with suppress(NotPermitted):
        _restore(place)
    before = {version.number for version in place.stored}
    try:
        number = place.registry.put_schema(place.name, info)
    except SchemaRejected as rejection:
        text = f"{place.name}: {rejection.outcome}, nothing was stored\n  the registry answers: {_first_line(rejection.what)}"
        place.show(text, stored=False, version=None, outcome=rejection.outcome, message=rejection.what)
        return NEGATIVE
    stored = number not in before
    done = "stored as" if stored else "nothing was stored: it equals"
    text = f"{place.name}: {done} version {number} in {place.target}"
    if not stored and place.live and place.live[-1].number != number:
        text += f"; latest is still version {place.live[-1].number}"
    place.show(text, stored=stored, version=number, outcome="ok" if stored else "unchanged")
    return 0


def _test(place: _RegistryTopic) -> int:
    info = read_schema(place.args, place.context, place.declared)
    asked = place.registry.test_schema(place.name, info)
    strategy = place.registry.strategy(place.name)
    verdict = judge(place.stored, info, strategy, place.registry.release, checkers=place.checkers)
    upload, breakages = verdict.broker, verdict.data
    good = upload.version is not None and asked.outcome is Outcome.OK
    if good:
        done = "stores it as" if upload.outcome is Outcome.OK else "stores nothing, it equals"
        lines = [f"{place.name}: compatible under {strategy}; an upload {done} version {upload.version}"]
    else:
        lines = _rejection(place, strategy, asked, upload)
    # A type that is used twice breaks at one place of the definition.
    broken = list(dict.fromkeys(map(_broken, breakages)))
    lines += [f"  {each}" for each in broken[:_MOST_SHOWN]]
    if len(broken) > _MOST_SHOWN:
        lines.append(f"  and {len(broken) - _MOST_SHOWN} more; --format json has them all")
    place.show(
        "\n".join(lines),
        strategy=strategy.value,
        compatibility=_answer(asked),
        upload=_answer(upload),
        data=[breakage_value(breakage) for breakage in breakages],
    )
    return 0 if good else NEGATIVE


def _rejection(
    place: _RegistryTopic, strategy: CompatibilityStrategy, asked: Answer, upload: Answer
) -> list[str]:
    no = upload if upload.version is None else asked
    lines = [
        f"{place.name}: {no.outcome.value} under {strategy}",
        f"  the registry answers: {_first_line(no.message)}",
    ]
    if asked.outcome is Outcome.OK:
        lines.append("  its compatibility endpoint would answer that it is compatible: an upload checks more")
    elif upload.version is not None:
        lines.append(f"  an upload would still get version {upload.version}, which has the same content")
    return lines


def _broken(breakage: Breakage) -> str:
    found, old = breakage.incompatibility, f"version {breakage.against}"
    who = {
        "new_reads_old": f"the new schema cannot read {old}",
        "old_reads_new": f"{old} cannot read the new schema",
        "both": f"neither {old} nor the new schema can read the other's messages",
    }[breakage.direction]
    return f"{found.rule} at {found.pointer or 'the top'}: {who}"


def _restore(place: _RegistryTopic) -> None:
    """Restore the topic's own strategy if a killed `apply` left another."""
    for line in restore_left(place.registry, [place.name]):
        place.context.say(line)


def _delete(place: _RegistryTopic) -> int:
    if place.args.allow_delete or place.args.force_delete:
        _restore(place)
    stored = place.stored
    if not stored:
        # A delete of nothing is not nothing: a broker writes a tombstone, and the first version would be 1.
        raise RegistryError(f"{place.name} has no schema in {place.target}; nothing was deleted")
    held = versions([version.number for version in stored])
    current = [version.number for version in place.live]
    if place.args.force_delete:
        place.registry.delete_schema(place.name, force=True)
        text = f"{place.name}: {held} destroyed in {place.target}; the next upload is version 0"
        place.show(text, destroyed=[version.number for version in stored], tombstone=None)
        return 0
    if place.args.allow_delete:
        if not current:
            raise RegistryError(
                f"the schemas of {place.name} are deleted already, by tombstone {stored[-1].number}"
            )
        if why := place.registry.retained(place.name):
            raise RegistryError(
                f"the schema of {place.name} cannot be hidden: {why}, whose numbers {place.target} would no longer answer",
                fix="let consumers read them, and retention remove them",
            )
        number = place.registry.delete_schema(place.name)
        text = f"{place.name}: {versions(current)} hidden by tombstone {number} in {place.target}"
        place.show(text, hidden=current, tombstone=number)
        return 0
    raise UsageError(
        f"deleting the schema of {place.name} in {place.target} needs a flag: its live versions are "
        f"{numbers(current) or 'none'}, and messages that carry their numbers can then no longer be decoded",
        fix=f"--allow-delete hides them behind a tombstone, number {stored[-1].number + 1}; --force-delete destroys {held} "
        "for good, and numbering starts again at 0",
    )


_ACTIONS = {"get": _get, "list": _list, "put": _put, "delete": _delete, "test": _test}


def run_action(args: argparse.Namespace, context: Context) -> int:
    """Do what `args` ask for, and return the exit code of `registry`."""
    with _opened(args, context) as place:
        return _ACTIONS[args.action](place)


@contextmanager
def _opened(args: argparse.Namespace, context: Context) -> Iterator[_RegistryTopic]:
    chosen = target_of(args.target, context)
    target = chosen.target
    declared = _name(args, chosen.project, context)
    name = target.names.there(declared)
    with closing(chosen.open(context)) as registry:
        stored = registry.versions(name)
        checkers = known_to(registry.release, chosen.project.defaults.checkers)
        yield _RegistryTopic(args, context, registry, target.name, declared, name, stored, checkers)


def _name(args: argparse.Namespace, project: Project, context: Context) -> TopicName:
    """Return the topic; a declared one need not be named in full. Actions that write accept no globs."""
    text, globs = args.topic, args.action not in ("put", "delete")
    if ("://" in text or text.count("/") == 2) and not (globs and set(text) & set("*?[")):
        try:
            return TopicName.parse(text)
        except ValueError as error:
            raise UsageError(str(error)) from None
    return find(text, context.approved(project).catalog, globs=globs).name


def _warn(place: _RegistryTopic, info: SchemaInfo) -> None:
    """Warn on standard error if Git does not declare the schema that is uploaded."""
    topic = place.context.approved().catalog.topics.get(place.declared)
    if topic is None or topic.deleted:
        place.context.say(
            f"warning: Git does not declare {place.declared}: `apply` does not touch it, and only `drift --unmanaged` shows it"
        )
        return
    try:
        formats.identity(info)
    except InvalidSchema:
        return  # the registry will say so
    if Contents(topic.versions).find(info) is None:
        place.context.say(
            f"warning: this schema is no approved version of {place.declared}; if it is stored, version numbers will "
            "differ from Git's. Declare it, merge it, and run `schemactl apply`"
        )


def _version(place: _RegistryTopic, number: int | None) -> SchemaVersion:
    stored = place.stored
    if not stored:
        raise RegistryError(f"{place.name} has no schema in {place.target}")
    if number is None:
        if place.live:
            return place.live[-1]
        raise RegistryError(
            f"the schemas of {place.name} were deleted by tombstone {stored[-1].number}",
            fix="--version N shows an older one, if the registry still has it",
        )
    for version in stored:
        if version.number == number:
            return version
    known = numbers([version.number for version in stored])
    raise RegistryError(f"{place.name} has no version {number} in {place.target}: there is {known}")


def _headline(version: SchemaVersion) -> str:
    what = version.info.type.name if version.info else "tombstone"
    commit = stamp(version.info)
    origin = f", from commit {commit[:9]}" if commit else ""
    return f"version {version.number}, {what}, {moment(version.timestamp_ms)}{origin}"


def _facts(version: SchemaVersion) -> dict[str, Any]:
    what = definition_value(version.info) if version.info else {"deleted": True}
    return {"version": version.number, **what, "timestamp_ms": version.timestamp_ms}


def _answer(answer: Answer) -> dict[str, Any]:
    return {"outcome": answer.outcome.value, "version": answer.version, "message": answer.message or None}


def _first_line(message: str) -> str:
    return message.partition("\n")[0].strip().rstrip(":")
