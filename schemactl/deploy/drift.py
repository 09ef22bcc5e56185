"""Drift of versions, tombstones and numbers, and Git's version nearest to an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from schemactl.broker.upload import put
from schemactl.comparison.changes import last_tombstone, unstamped, upload
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Outcome
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import WITHOUT_SCHEMA, Commit, SchemaInfo, SchemaVersion, live, next_number
from schemactl.core.wording import day, format_version, moment, numbers
from schemactl.declare.target_numbers import AcceptanceReason, NumberEntry, TargetNumbers
from schemactl.drift.differences import Advice, DriftItem, DriftKind, held_state, listed
from schemactl.formats import problems
from schemactl.formats.type_spec import changes, line_changes
from schemactl.plan.refusals import lost_schemas
from schemactl.plan.registry_state import RegistryState
from schemactl.plan.selection import without_namespaces
from schemactl.target_numbers.apart import TopicApart
from schemactl.target_numbers.pairs import NumberPair, pair_up


class VersionDrift:
    """Compares each topic's list of versions."""

    def __init__(
        self,
        git: Catalog,
        state: RegistryState,
        advice: Advice,
        commit: Callable[[str], Commit | None],
        apart: Sequence[TopicApart],
        numbers: TargetNumbers | None,
    ) -> None:
        self.git = without_namespaces(git, state.half_deleted)
        self.retained = state.retained
        self.recorded = numbers.topics if numbers else {}
        self.apart = {topic.name: topic for topic in apart}
        self.topics = state.catalog.topics
        self.spaces = state.catalog.namespaces
        self.advice = advice
        self.commit = commit

    def differences(self) -> Iterator[DriftItem]:
        """Yield the differences of versions, tombstones and numbers, by topic."""
        for name, topic in sorted(self.git.topics.items()):
            apart = self.apart.get(name, TopicApart(name, ()))
            recorded = self.recorded[name].entries if name in self.recorded else {}
            decided = {
                each.registry: _decision(each.registry, recorded) for each in apart.numbers if each.recorded
            }
            found = [*self._topic(name, topic, decided)]
            yield from found
            if not apart.recorded and not apart.unexplained:
                yield self._apart(name, apart)
            elif decided and apart.recorded and not any(each.accepted for each in found):
                yield replace(self._apart(name, apart), accepted=decided[min(decided)])

    def _topic(
        self, name: TopicName, topic: Topic, decided: Mapping[int, AcceptanceReason]
    ) -> Iterator[DriftItem]:
        """Yield the differences in a topic's versions and tombstones; `decided` is what was recorded of a number."""
        there = self.topics.get(name)
        entries = there.versions if there else ()
        pairs = pair_up(git=topic.versions, registry=entries)
        for pair in pairs:
            entry = pair.registry if pair.state == "readable" and pair.git is None else None
            if entry:
                found = self._foreign(name, topic, pair, entry)
                if not topic.versions:
                    found = replace(found, state=held_state(name, entries))
                is_wedge = found.kind is DriftKind.WEDGED  # whatever is recorded of its number
                yield found if is_wedge else replace(found, accepted=decided.get(entry.number))
        if topic.schema is None:
            return
        # Where Git itself has a tombstone, a new generation began.
        ended = last_tombstone(topic.versions)
        if tombstones := [entry.number for entry in entries if entry.info is None and entry.number > ended]:
            known = [decided.get(number) for number in tombstones]
            is_whole = not any(pair.state == "missing" for pair in pairs)
            for found in self._tombstones(name, entries, is_whole=is_whole):
                yield replace(found, accepted=known[-1] if all(known) else None)
        if (entries or (there and not there.deleted)) and name in self.advice.lost:
            yield self._lost(name)
        elif there and entries:
            yield from self._missing(name, pairs, entries)
        elif there and not there.deleted:
            yield self._schema_gone(name, topic)

    def _foreign(self, name: TopicName, topic: Topic, pair: NumberPair, entry: SchemaVersion) -> DriftItem:
        type_name = entry.info.type.name if entry.info else ""
        what = f"v{entry.number} ({type_name}, uploaded {moment(entry.timestamp_ms)} UTC) has content that Git does not know"
        like = nearest(entry, topic.versions)
        if pair.stamp:
            return self._unexplained(name, entry, what, pair.stamp, like)
        rejection = self.advice.rejection(name)
        cause = f"it has no commit's stamp, so `apply` did not upload it. {self._who(name)}"
        if rejection and rejection.wedged_by == entry.number:
            kind, what, fix = DriftKind.WEDGED, rejection.message, rejection.fix
        else:
            problem = (
                next((each.what for each in problems(entry.info, self.advice.origin.release)), "")
                if entry.info
                else ""
            )
            what += f"; no file can declare it: {problem}" if problem and not topic.schema else ""
            kind, fix = DriftKind.FOREIGN_VERSION, self._foreign_fix(name, topic, entry, problem)
        return DriftItem(name, kind, what, cause, fix, version=entry, nearest=like)

    def _foreign_fix(self, name: TopicName, topic: Topic, entry: SchemaVersion, problem: str) -> str:
        """Return what to do about a foreign version; `problem` is why no file can declare it."""
        advice = self.advice
        if name in advice.refusals:
            return advice.blocked(name)
        if topic.schema:
            record = f"{advice.accept(name)}: its messages are then read with its own definition"
            if problem or (entry.info and entry.info.type is not topic.schema.type):
                return record
            return (
                f"{record}\n`schemactl registry get {advice.topic(name)} --version {entry.number} {advice.on}` shows the definition: for "
                "readers that are to know it, write it to the topic's definition, and have that approved, too"
            )
        delete = f"{advice.delete(name, '--allow-delete')}: its messages can then not be read"
        if all(each.info and each.info.type in WITHOUT_SCHEMA for each in live(self.topics[name].versions)):
            delete = f"{advice.delete(name, '--force-delete')}: it describes no message, and keeps typed clients out"
        declare = "" if problem else "approve it: declare it in Git\n"
        return f"{declare}{delete}\nleave it: {advice.accept(name)}"

    def _who(self, name: TopicName) -> str:
        space = self.spaces.get(name.namespace_name)
        allowed = space.policies.is_allow_auto_update_schema if space else None
        who = "The registry does not show who did: a producer or consumer that connected, an upload by hand or another "
        if allowed is False:
            return f"{who}tool. `is_allow_auto_update_schema` is false now: unless that is newer, no producer or consumer did"
        return f"{who}tool; connecting is enough where `is_allow_auto_update_schema` is not false, and here it is not"

    def _unexplained(
        self, name: TopicName, entry: SchemaVersion, what: str, stamp: str, like: SchemaVersion | None
    ) -> DriftItem:
        found = self.commit(stamp)
        if found:
            cause = (
                f"an `apply` uploaded it from commit {found.short} ({day(found)}: {found.subject}), which this clone has, but the "
                "approved history does not: that history was rewritten, or the upload came from another branch"
            )
            fix = (
                "restore that commit in the approved history, with what was approved instead on top of it: "
                f"git switch -c restored {found.short} && git merge --no-ff {quote(self.advice.origin.ref)}, which becomes "
                f"{self.advice.origin.ref} by a plain push; or approve its content again. Until then `apply` refuses to touch the topic, "
                "because Git's numbers can no longer be trusted"
            )
        else:
            cause = (
                f"an `apply` uploaded it from commit {stamp[:9]}, which this clone does not have: the clone is behind, or the "
                "approved history was rewritten"
            )
            fix = (
                "git fetch --all; if no remote has that commit any more, approve the content shown here again"
            )
        return DriftItem(name, DriftKind.UNEXPLAINED_VERSION, what, cause, fix, version=entry, nearest=like)

    def _tombstones(
        self, name: TopicName, entries: Sequence[SchemaVersion], *, is_whole: bool
    ) -> Iterator[DriftItem]:
        """Yield the differences for version numbers that clients can no longer read; a broker may not even list them.

        `is_whole`: every version of Git's is there under a later number.
        """
        held = live(entries)
        first = held[0].number if held else next_number(entries)
        if not first:
            return
        tombstone = next((each for each in reversed(entries) if each.info is None), None)
        when = f" at {moment(tombstone.timestamp_ms)} UTC" if tombstone and tombstone.timestamp_ms else ""
        yield DriftItem(
            name,
            DriftKind.TOMBSTONE,
            f"the schema was deleted{when}: number{'s' if first > 1 else ''} {numbers(range(first))} can no longer be read, and neither can messages written with "
            f"{'it' if first == 1 else 'them'}; the next versions count from {first}",
            "a deletion leaves a tombstone, which takes a number and does not show who deleted",
            f"{self._after_tombstone(name, is_whole=is_whole)}\n{self.advice.start_again(name)}: it deletes everything there, and restores "
            "the numbers from before",
            version=tombstone,
        )

    def _after_tombstone(self, name: TopicName, *, is_whole: bool) -> str:
        if is_whole:
            return f"{self.advice.accept(name)}: messages with those numbers are then rejected"
        return self.advice.bring(
            name, "registers what is missing under new numbers, which are to be recorded then"
        )

    def _missing(
        self, name: TopicName, pairs: Sequence[NumberPair], entries: Sequence[SchemaVersion]
    ) -> Iterator[DriftItem]:
        missing = [
            pair.git
            for pair in pairs
            if pair.git and pair.state == "missing" and not self._is_held(pair.git, entries)
        ]
        if missing:
            rejection = self.advice.rejection(name)
            wedge = rejection.wedged_by if rejection else None
            is_gits = any(pair.git and pair.registry and pair.registry.number == wedge for pair in pairs)
            # A foreign version that wedges the topic is a difference of its own.
            stuck = rejection if wedge is None or is_gits else None
            yield DriftItem(
                name,
                DriftKind.WEDGED if is_gits else DriftKind.MISSING_VERSIONS,
                f"the registry does not have Git's {', '.join(map(format_version, missing))}"
                + (f". {stuck.message}" if stuck else ""),
                "they were never applied, or the broker lost them; it does not show which",
                stuck.fix if stuck else self.advice.bring(name, "registers them"),
            )

    def _is_held(self, version: SchemaVersion, entries: Sequence[SchemaVersion]) -> bool:
        """Whether the registry holds the version as equal to one that it has, so that no upload adds it."""
        answer = put(
            entries, upload(version), CompatibilityStrategy.ALWAYS_COMPATIBLE, self.advice.origin.release
        )
        return answer.outcome is Outcome.UNCHANGED

    def _lost(self, name: TopicName) -> DriftItem:
        return DriftItem(
            name,
            DriftKind.MISSING_VERSIONS,
            f"the registry does not have the recorded number{'s' if len(self.advice.lost[name]) > 1 else ''} "
            f"{numbers(self.advice.lost[name])}",
            "the schema went with a topic that was deleted and created again (connecting is enough for that), or somebody deleted "
            "it by force, or the registry lost it; it does not show which",
            f"{self.advice.rebuild(name)}: it gives every version the number that is recorded; `apply` would give others",
        )

    def _schema_gone(self, name: TopicName, topic: Topic) -> DriftItem:
        retained = self.retained.get(name)
        lost = lost_schemas(name, retained, self.advice) if retained else None
        return DriftItem(
            name,
            DriftKind.MISSING_VERSIONS,
            f"the topic exists without a schema; Git has {listed(topic.versions)}"
            + (f". {lost.message}" if lost else ""),
            "nothing was ever applied, or the schema went with a topic that was deleted and created again (connecting is enough "
            "for that), or somebody deleted it by force; the registry does not show which",
            lost.fix
            if lost
            else self.advice.blocked(name)
            if name in self.advice.refusals
            else f"{self.advice.bring(name, 'registers them')}\n{self.advice.rebuild(name)}: if messages of old versions are still to be "
            "read, it gives them the numbers they had",
        )

    def _apart(self, name: TopicName, apart: TopicApart) -> DriftItem:
        return DriftItem(
            name,
            DriftKind.NUMBERS_APART,
            f"in the registry {apart}, which is not recorded: messages would be misread",
            "something other than `apply` took a number, or versions were applied in another order than Git's",
            self.advice.blocked(name)
            if name in self.advice.refusals
            else f"{self.advice.accept(name)}. `schemactl log {self.advice.topic(name)} {self.advice.on}` shows both numbers",
        )


def _decision(number: int, recorded: Mapping[int, NumberEntry]) -> AcceptanceReason:
    """Return why a recorded number is accepted; a number without an entry is covered by the next entry, or else the last."""
    later = (each for listed, each in sorted(recorded.items()) if listed >= number)
    return next(later, recorded[max(recorded)]).decision


def nearest(entry: SchemaVersion, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """Return the version with the fewest differences from `entry`, the newest of several; None if there is none."""
    best: tuple[float, SchemaVersion] | None = None
    for version in versions:
        if entry.info and version.info:
            count = _distance(old=version.info, new=entry.info)
            if best is None or count <= best[0]:
                best = count, version
    return best[1] if best else None


def differences(*, old: SchemaInfo, new: SchemaInfo) -> list[tuple[str, str]]:
    """Return the differences, each with a sign (`+`, `-`, `~`): of fields, or of lines where no field differs."""
    try:
        found = list(changes(old=unstamped(old), new=unstamped(new)))
    except InvalidSchema:
        found = []
    if found:
        return found
    text = line_changes(old=old, new=new)[2:]
    return [(line[0], line[1:].strip()) for line in text if line[:1] in "+-"]


def _distance(*, old: SchemaInfo, new: SchemaInfo) -> float:
    # Another type is another schema, however alike the texts are.
    return float("inf") if old.type is not new.type else len(differences(old=old, new=new))
