"""Compare each topic's list of versions in a registry with the approved history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from schemactl.broker.upload import VersionList, find_blocking_version
from schemactl.comparison.changes import get_upload_commit, last_tombstone, make_upload, remove_upload_properties
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Outcome
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import WITHOUT_SCHEMA, Commit, SchemaInfo, SchemaVersion, get_live_versions, get_next_number
from schemactl.core.wording import format_day, format_ranges, format_time, format_version
from schemactl.declare.target_numbers import AcceptanceReason, NumberEntry, TargetNumbers
from schemactl.deploy.drift_items import (
    Advice,
    AppliedHistory,
    DriftItem,
    format_versions,
    make_accepted_state,
    make_blocked_topic_item,
    was_never_applied,
)
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.refusals import refuse_lost_schemas
from schemactl.deploy.registry_state import RegistryState
from schemactl.deploy.version_lists import NumberPair, pair_up
from schemactl.deploy.version_numbers import TopicMismatches
from schemactl.formats import find_problems, get_record_name
from schemactl.formats.part_changes import diff_definitions, list_changes


@dataclass(frozen=True, slots=True)
class VersionDrift:
    """Compares each topic's list of versions.

    Attributes:
        git: the approved history, by the target's names, without half-deleted namespaces.
        state: the state of the registry.
        commit: returns the commit with an id, if this clone has it.
        number_mismatches: the topics whose version numbers in the registry are not Git's.
        numbers: the target's numbers file, or None.
        applied: the state that Git had approved at the last `apply` that left a trace, or None without any trace.
    """

    git: Catalog
    state: RegistryState
    advice: Advice
    commit: Callable[[str], Commit | None]
    number_mismatches: Sequence[TopicMismatches]
    numbers: TargetNumbers | None
    applied: AppliedHistory | None

    def find_differences(self) -> Iterator[DriftItem]:
        """Yield the differences of versions, tombstones and numbers, by topic."""
        mismatches_by_name = {topic.name: topic for topic in self.number_mismatches}
        for name, topic in sorted(self.git.topics.items()):
            mismatches = mismatches_by_name.get(name, TopicMismatches(name, ()))
            recorded_topic = self.numbers.topics.get(name) if self.numbers else None
            recorded = recorded_topic.entries if recorded_topic else {}
            decided = {
                number.registry: _find_decision(number.registry, recorded)
                for number in mismatches.numbers
                if number.recorded
            }
            items = [*self._compare_topic(name, topic, decided)]
            yield from items
            if not mismatches.recorded and not mismatches.unexplained:
                yield self._make_mismatch_item(name, mismatches)
            elif decided and mismatches.recorded and not any(item.accepted for item in items):
                yield replace(self._make_mismatch_item(name, mismatches), accepted=decided[min(decided)])

    def _compare_topic(
        self, name: TopicName, topic: Topic, decided: Mapping[int, AcceptanceReason]
    ) -> Iterator[DriftItem]:
        """Yield the differences in a topic's versions and tombstones; `decided` maps each recorded number to the reason of its acceptance."""
        registered = self.state.catalog.topics.get(name)
        entries = registered.versions if registered else ()
        pairs = pair_up(git=topic.versions, registry=entries)
        for pair in pairs:
            entry = pair.registry if pair.state == "readable" and pair.git is None else None
            if entry:
                item = self._make_foreign_item(name, topic, pair, entry)
                if not topic.versions:
                    item = replace(item, state=make_accepted_state(name, entries))
                is_blocked = item.kind is DriftKind.WEDGED  # a recorded number does not change that
                yield item if is_blocked else replace(item, accepted=decided.get(entry.number))
        if topic.schema is None:
            return
        # Where Git itself has a tombstone, a new generation began.
        ended = last_tombstone(topic.versions)
        if tombstones := [entry.number for entry in entries if entry.info is None and entry.number > ended]:
            decisions = [decided.get(number) for number in tombstones]
            is_whole = not any(pair.state == "missing" for pair in pairs)
            for item in self._compare_tombstones(name, entries, is_whole=is_whole):
                yield replace(item, accepted=decisions[-1] if all(decisions) else None)
        if (entries or (registered and not registered.deleted)) and name in self.advice.lost:
            lost = self.advice.lost[name]
            yield DriftItem(
                name,
                DriftKind.MISSING_VERSIONS,
                f"the registry does not have the recorded number{'s' if len(lost) > 1 else ''} {format_ranges(lost)}",
                "the schema was deleted together with its topic, which was then created again (a connecting client is "
                "enough for that), or was deleted by force, or the registry lost it; the registry does not show which",
                f"{self.advice.format_rebuild(name)}: it gives every version its recorded number; `apply` would give other numbers",
            )
        elif registered and entries:
            yield from self._compare_missing_versions(name, pairs, entries)
        elif registered and not registered.deleted:
            retained = self.state.retained.get(name)
            refusal = refuse_lost_schemas(name, retained, self.advice) if retained else None
            if refusal:
                fix = refusal.fix
            elif name in self.advice.refusals:
                fix = self.advice.advise_to_unblock(name)
            else:
                fix = (
                    f"{self.advice.advise_to_apply(name, 'registers them')}\n{self.advice.format_rebuild(name)}: if messages of old versions are "
                    "still to be read, it gives them the numbers they had"
                )
            yield DriftItem(
                name,
                DriftKind.MISSING_VERSIONS,
                f"the topic exists without a schema; Git has {format_versions(topic.versions)}"
                + (f". {refusal.message}" if refusal else ""),
                "nothing was ever applied, or the schema was deleted together with its topic, which was then created "
                "again (a connecting client is enough for that), or was deleted by force; the registry does not show which",
                fix,
                # Without a trace of an apply, the topic may have been deleted and created again.
                is_pending=refusal is None and self.applied is not None and was_never_applied(name, self.applied),
            )

    def _make_foreign_item(self, name: TopicName, topic: Topic, pair: NumberPair, entry: SchemaVersion) -> DriftItem:
        if topic.kind_names and entry.info:
            entry = replace(entry, kind=topic.find_kind_key(get_record_name(entry.info)))
        type_name = entry.info.type.name if entry.info else ""
        owner = f" of the kind {entry.kind}" if entry.kind else " of no kind" if topic.kind_names else ""
        message = f"v{entry.number} ({type_name}{owner}, uploaded {format_time(entry.timestamp_ms)} UTC) has content that Git does not know"
        most_similar = _find_most_similar(entry, [version for version in topic.versions if version.kind == entry.kind])
        if pair.stamp:
            return self._make_unexplained_item(name, entry, message, pair.stamp, most_similar)
        rejection = self.advice.find_rejection(name)
        namespace = self.state.catalog.namespaces.get(name.namespace_name)
        are_updates_off = namespace is not None and namespace.policies.is_allow_auto_update_schema is False
        cause = (
            "it has no property `schemactl.commit`, so `apply` did not upload it. The registry does not show who did: a producer or "
            "consumer that connected, an upload by hand or another tool"
        ) + (
            ". `is_allow_auto_update_schema` is false now: unless that is newer, no producer or consumer did"
            if are_updates_off
            else "; connecting is enough where `is_allow_auto_update_schema` is not false, and here it is not"
        )
        if rejection and rejection.blocked_by == entry.number:
            kind, message, fix = DriftKind.WEDGED, rejection.message, rejection.fix
        elif not topic.schema and find_blocking_version([entry], self.advice.origin.release):
            return make_blocked_topic_item(
                name, entry, self.advice, fix=f"leave it: {self.advice.advise_to_accept(name)}", state=None
            )
        else:
            problem = (
                next((reason.message for reason in find_problems(entry.info, self.advice.origin.release)), "")
                if entry.info
                else ""
            )
            message += f"; no file can declare it: {problem}" if problem and not topic.schema else ""
            kind, fix = DriftKind.FOREIGN_VERSION, self._advise_on_foreign_version(name, topic, entry, problem)
        return DriftItem(name, kind, message, cause, fix, version=entry, most_similar=most_similar)

    def _advise_on_foreign_version(self, name: TopicName, topic: Topic, entry: SchemaVersion, problem: str) -> str:
        """Return what to do about a foreign version; `problem` is why no file can declare it."""
        advice = self.advice
        if name in advice.refusals:
            return advice.advise_to_unblock(name)
        if topic.schema:
            declared_kind = topic.get_kind(entry.kind)
            effect = "its messages are then decoded with its own definition"
            if topic.kinds and not entry.kind:
                effect = "readers then reject its messages, which are of no declared kind"
            record = f"{advice.advise_to_accept(name)}: {effect}"
            type_ = declared_kind.schema.type if declared_kind else topic.schema.type
            if problem or (entry.info and entry.info.type is not type_):
                return record
            if topic.kinds and declared_kind is None:
                return (
                    f"{record}\n`schemactl registry get {advice.quote_topic(name)} --version {entry.number} {advice.target_option}` "
                    "shows the definition: if it is "
                    "another kind of event, declare it with a key under `schemas`, and merge that"
                )
            return (
                f"{record}\n`schemactl registry get {advice.quote_topic(name)} --version {entry.number} {advice.target_option}` shows the definition: to "
                "adopt it, add it to the topic's definition, and merge that"
            )
        delete = f"{advice.format_delete(name, '--allow-delete')}: its messages can then not be read"
        if all(
            version.info and version.info.type in WITHOUT_SCHEMA
            for version in get_live_versions(self.state.catalog.topics[name].versions)
        ):
            delete = f"{advice.format_delete(name, '--force-delete')}: it does not describe messages, and keeps typed clients out"
        declare = "" if problem else "approve it: declare it in Git\n"
        return f"{declare}{delete}\nleave it: {advice.advise_to_accept(name)}"

    def _make_unexplained_item(
        self, name: TopicName, entry: SchemaVersion, message: str, stamp: str, most_similar: SchemaVersion | None
    ) -> DriftItem:
        commit = self.commit(stamp)
        if commit:
            cause = (
                f"an `apply` uploaded it from commit {commit.short} ({format_day(commit)}: {commit.subject}), which this clone has, but the "
                "approved history does not: that history was rewritten, or the upload came from another branch"
            )
            fix = (
                "restore that commit in the approved history, and merge the current approved branch on top of it: "
                f"git switch -c restored {commit.short} && git merge --no-ff {quote(self.advice.origin.ref)}, then "
                f"push this as {self.advice.origin.ref} without force; or approve its content again. Until then "
                "`apply` refuses to touch the topic, "
                "because Git's numbers can no longer be trusted"
            )
        else:
            cause = (
                f"an `apply` uploaded it from commit {stamp[:9]}, which this clone does not have: the clone is behind, or the "
                "approved history was rewritten"
            )
            fix = "git fetch --all; if no remote has that commit any more, approve the content shown here again"
        return DriftItem(
            name, DriftKind.UNEXPLAINED_VERSION, message, cause, fix, version=entry, most_similar=most_similar
        )

    def _compare_tombstones(
        self, name: TopicName, entries: Sequence[SchemaVersion], *, is_whole: bool
    ) -> Iterator[DriftItem]:
        """Yield the differences for version numbers that clients can no longer read; a broker may not even list them.

        `is_whole`: whether each version of Git is registered under a later number.
        """
        readable = get_live_versions(entries)
        first = readable[0].number if readable else get_next_number(entries)
        if not first:
            return
        tombstone = next((entry for entry in reversed(entries) if entry.info is None), None)
        when = f" at {format_time(tombstone.timestamp_ms)} UTC" if tombstone and tombstone.timestamp_ms else ""
        fix = (
            f"{self.advice.advise_to_accept(name)}: messages with those numbers are then rejected"
            if is_whole
            else self.advice.advise_to_apply(
                name, "registers the missing versions under new numbers; record these afterwards"
            )
        )
        # A broker shows nothing from before a tombstone: without later versions, it is unknown who had registered the hidden ones.
        start_again = (
            f"{self.advice.format_restart(name)}: it deletes everything there, and restores the numbers from before"
        )
        is_recorded = self.numbers is not None and name in self.numbers.topics
        if not is_recorded and readable and not any(get_upload_commit(entry.info) for entry in readable):
            start_again = (
                "leave the registry unchanged: `apply` did not register these versions, so they never had Git's "
                "numbers, and `rebuild` would make the messages with their numbers unreadable"
            )
        yield DriftItem(
            name,
            DriftKind.TOMBSTONE,
            f"the schema was deleted{when}: number{'s' if first > 1 else ''} {format_ranges(range(first))} can no "
            "longer be read, and neither can messages written with "
            f"{'it' if first == 1 else 'them'}; the next versions count from {first}",
            "a deletion leaves a tombstone, which uses a number and does not show who deleted the schema",
            f"{fix}\n{start_again}",
            version=tombstone,
        )

    def _compare_missing_versions(
        self, name: TopicName, pairs: Sequence[NumberPair], entries: Sequence[SchemaVersion]
    ) -> Iterator[DriftItem]:
        missing = []
        registered = VersionList(entries, self.advice.origin.release)
        for pair in pairs:
            if pair.git and pair.state == "missing":
                answer = registered.put(make_upload(pair.git), CompatibilityStrategy.ALWAYS_COMPATIBLE)
                # If the registry treats the version as equal to another, an upload would not add it.
                if answer.outcome is not Outcome.UNCHANGED:
                    missing.append(pair.git)
        if missing:
            holder = self.applied(name) if self.applied else None
            applied_numbers = {version.number for version in holder.versions} if isinstance(holder, Topic) else set()
            rejection = self.advice.find_rejection(name)
            blocked_by = rejection.blocked_by if rejection else None
            is_gits = any(pair.git and pair.registry and pair.registry.number == blocked_by for pair in pairs)
            # A foreign version that blocks the topic is a separate difference.
            stuck = rejection if blocked_by is None or is_gits else None
            yield DriftItem(
                name,
                DriftKind.WEDGED if is_gits else DriftKind.MISSING_VERSIONS,
                f"the registry does not have Git's {', '.join(map(format_version, missing))}"
                + (f". {stuck.message}" if stuck else ""),
                "they were never applied, or the broker lost them; the registry does not show which",
                stuck.fix if stuck else self.advice.advise_to_apply(name, "registers them"),
                # All of them were approved after something was last applied.
                is_pending=self.applied is not None
                and applied_numbers.isdisjoint(version.number for version in missing),
            )

    def _make_mismatch_item(self, name: TopicName, mismatches: TopicMismatches) -> DriftItem:
        return DriftItem(
            name,
            DriftKind.NUMBERS_APART,
            f"in the registry {mismatches}, which is not recorded: messages would be misread",
            "something other than `apply` took a number, or versions were applied in another order than Git's",
            self.advice.advise_to_unblock(name)
            if name in self.advice.refusals
            else f"{self.advice.advise_to_accept(name)}. `schemactl log {self.advice.quote_topic(name)} {self.advice.target_option}` shows both numbers",
        )


def _find_decision(number: int, recorded: Mapping[int, NumberEntry]) -> AcceptanceReason:
    """Return why a recorded number is accepted; a number without an entry is covered by the next entry, or else the last."""
    later = (entry for listed, entry in sorted(recorded.items()) if listed >= number)
    return next(later, recorded[max(recorded)]).decision


def _find_most_similar(entry: SchemaVersion, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """Return the version with the fewest differences from `entry`, the newest of several, or None without versions."""
    best: tuple[float, SchemaVersion] | None = None
    for version in versions:
        if entry.info and version.info:
            # Another type is another schema, however similar the texts are.
            is_same_type = version.info.type is entry.info.type
            count = len(list_differences(old=version.info, new=entry.info)) if is_same_type else float("inf")
            if best is None or count <= best[0]:
                best = count, version
    return best[1] if best else None


def list_differences(*, old: SchemaInfo, new: SchemaInfo) -> list[tuple[str, str]]:
    """Return the differences, each with a sign (`+`, `-`, `~`): of fields, or of lines where no field differs."""
    try:
        field_changes = list(list_changes(old=remove_upload_properties(old), new=remove_upload_properties(new)))
    except InvalidSchema:
        field_changes = []
    if field_changes:
        return field_changes
    text = diff_definitions(old=old, new=new)[2:]
    return [(line[0], line[1:].strip()) for line in text if line[:1] in "+-"]
