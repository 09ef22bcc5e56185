"""The step that uploads a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Self

from schemactl.comparison.changes import content_identity, make_upload
from schemactl.core.errors import RegistryError
from schemactl.core.findings import Answer
from schemactl.core.json_values import AnswerView, DefinitionView
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion
from schemactl.core.wording import format_day
from schemactl.deploy.drift_kinds import VERSIONS_GONE
from schemactl.deploy.steps.step import ApplyContext, PredictedState, Step, StepSign


@dataclass(frozen=True, slots=True)
class RegisterVersion(Step):
    """Upload Git's `version`, which the registry does not have; the expected `answer` has the number in the registry."""

    name: TopicName
    version: SchemaVersion
    answer: Answer
    repairs: ClassVar = VERSIONS_GONE

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return "register_version"

    def describe(self) -> str:
        """See `Step.describe`."""
        git_number = "" if self.answer.version == self.version.number else f"Git's v{self.version.number} as "
        kind = f" ({self.version.kind})" if self.version.kind else ""
        return f"{self.name}: register {git_number}v{self.answer.version}{kind}"

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """See `Step.list_lines`."""
        version, number = self.version, self.answer.version
        type_ = f" {version.info.type.name}" if version.info else ""
        kind = f" {version.kind}" if version.kind else ""
        commit = f" ({version.commit.short}, {format_day(version.commit)})" if version.commit else ""
        suffix = "" if number == version.number else f", which is Git's v{version.number}"
        yield "+", f"v{version.number}{type_}{kind}{commit}: registers v{number}{suffix}"

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`."""
        return {
            "version": self.version.number,
            "kind": self.version.kind or None,
            "commit": self.version.commit,
            "schema": DefinitionView.from_info(self.version.info) if self.version.info else None,
            "answer": AnswerView.from_answer(self.answer),
        }

    @property
    def new_version(self) -> tuple[TopicName, SchemaVersion]:
        """See `Step.new_version`."""
        return self.name, self.version

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        assert self.answer.version is not None  # noqa: S101  only an accepted upload is a step
        version = SchemaVersion(self.answer.version, make_upload(self.version), self.version.commit)
        state.add_version(self.name, version)

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`. The content is compared by `verify`, once for all uploads to a topic."""
        info = make_upload(self.version, context.properties)
        try:
            number = context.registry.put_schema(self.name, info)
        except RegistryError:
            # Perhaps only the response was lost. A definition with a bad default is rejected when it is repeated, so the stored one counts.
            registered = None
            with suppress(RegistryError):
                registered = context.registry.get_schema(self.name, self.answer.version)
            if registered is None or registered.info is None or not _is_same_content(registered.info, info):
                raise
            number = registered.number
        if number != self.answer.version:
            raise RegistryError(
                f"{self.name}: the registry gave Git's v{self.version.number} the number {number} where {self.answer.version} "
                "was expected: another client is writing to it, or it has schemas of an earlier namespace of this name",
                fix="look at a new plan: schemactl plan",
            )

    @classmethod
    def verify(cls, steps: Sequence[Self], context: ApplyContext) -> None:
        """See `Step.verify`: read the uploaded versions, and raise RegistryError if one has other content."""
        registry = context.registry
        name, numbers = steps[0].name, [step.answer.version for step in steps]
        # One request reads all versions. A topic with many others has few new ones.
        if len(numbers) > 1 and max(number or 0 for number in numbers) < 2 * len(numbers):
            registered = list(registry.versions(name))
        else:
            registered = [version for number in numbers if (version := registry.get_schema(name, number))]
        infos = {version.number: version.info for version in registered}
        for step, number in zip(steps, numbers, strict=True):
            info = None if number is None else infos.get(number)
            if info is None or not _is_same_content(info, make_upload(step.version, context.properties)):
                raise RegistryError(f"{name}: v{number} has other content in the registry than was uploaded")


def _is_same_content(registered: SchemaInfo, uploaded: SchemaInfo) -> bool:
    """Return whether two definitions have the same content, which are parsed only if their texts differ."""
    return registered == uploaded or content_identity(registered) == content_identity(uploaded)
