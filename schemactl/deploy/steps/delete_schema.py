"""The step that deletes the schema of a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from schemactl.core.errors import RegistryError, StalePlan
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaVersion, get_live_versions
from schemactl.core.wording import format_ranges, format_version_numbers
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.steps.step import ApplyContext, Phase, PredictedState, Step, StepSign
from schemactl.registry.interface import Registry, Scope


@dataclass(frozen=True, slots=True)
class DeleteSchema(Step):
    """Delete the schema of a topic; the topic and its messages stay.

    With `force`, numbering starts again at 0. Otherwise a tombstone takes the next number. Clients can no longer read `versions`.
    `unreadable`: whether retained messages become unreadable, which the user allows.
    """

    name: TopicName
    versions: tuple[int, ...]
    force: bool
    unreadable: bool = False
    sign: ClassVar[StepSign] = "-"

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "delete_schema"

    def describe(self) -> str:
        """See `Step.describe`."""
        return f"{self.name}: delete the schema{' and its numbering' if self.force else ''}"

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """See `Step.list_lines`."""
        consequence = "numbering starts again at 0" if self.force else "a tombstone takes the next number"
        plural = "s" if len(self.versions) > 1 else ""
        yield "-", f"version{plural} {format_ranges(self.versions)} no longer readable; {consequence}"
        if self.unreadable:
            yield "!", f"messages that the topic retains become unreadable (allowed: {self.name})"

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`."""
        facts: dict[str, object] = {"versions": self.versions, "force": self.force}
        return facts | {"unreadable": True} if self.unreadable else facts

    @property
    def is_deletion(self) -> bool:
        """See `Step.is_deletion`."""
        return True

    @property
    def needs(self) -> Permissions:
        """See `Step.needs`."""
        names, nothing = frozenset({self.name}), frozenset[TopicName]()
        return Permissions(
            delete=nothing if self.force else names,
            force_delete=names if self.force else nothing,
            unreadable=names if self.unreadable else nothing,
        )

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        if self.force:
            state.versions[self.name.schema_id] = ()
        else:
            state.add_version(self.name, SchemaVersion(state.get_next_number(self.name), None))

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        # A soft delete appends a tombstone each time, so it must not be repeated after a faster apply.
        registered = context.registry.read(Scope(frozenset(), frozenset({self.name})))
        topic = registered.topics.get(self.name)
        if topic is None or (topic.schema is None and not self.force):
            return
        added = [version.number for version in get_live_versions(topic.versions) if version.number not in self.versions]
        if added:
            raise StalePlan(
                f"{self.name}: its schema is not deleted: another client uploaded {format_version_numbers(added)} since the plan was made",
                fix="look at a new plan: schemactl plan",
            )
        if not self.unreadable:
            expect_empty(self.name, context.registry)
        context.registry.delete_schema(self.name, force=self.force)

    @property
    def phase(self) -> Phase:
        """See `Step.phase`."""
        return "deletions"


def expect_empty(name: TopicName, registry: Registry) -> None:
    """Raise RegistryError if messages are retained: they may have been written since the plan was made."""
    if reason := registry.describe_retained_messages(name):
        raise RegistryError(f"{name}: its schema is not deleted: {reason}", fix="look at a new plan: schemactl plan")
