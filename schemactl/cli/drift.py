"""`drift`: find the differences between a registry and the approved history, and accept them with `--accept`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_command_timeout, add_options, add_parallel
from schemactl.cli.report_files import (
    TargetDocument,
    add_formats,
    make_target_reports,
    parse_outputs,
    write_error_reports,
    write_target_reports,
)
from schemactl.cli.target_selection import (
    ChosenTarget,
    OpenTarget,
    OpenTargets,
    Stop,
    TargetSelection,
    add_targets,
    load_catalog,
    open_targets,
    run_for_each_target,
)
from schemactl.cli.topic_selection import add_filters, parse_namespaces
from schemactl.cli.waive import parse_last_day
from schemactl.core import names as topic_names
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import CHANGES, NEGATIVE, SchemactlError, UsageError
from schemactl.core.names import Named, NamespaceName, TargetNames, TopicName
from schemactl.core.project import Target
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_count, format_version_numbers
from schemactl.report import TARGET_FORMATS

if TYPE_CHECKING:
    from schemactl.declare.target_numbers import AcceptanceReason, TargetNumbers, TopicNumbers
    from schemactl.deploy.broker_configuration import BrokerDifference
    from schemactl.deploy.drift import DriftReport
    from schemactl.deploy.drift_items import AppliedHistory, DriftItem
    from schemactl.deploy.refusals import Awaited, AwaitedBy
    from schemactl.deploy.registry_state import RegistryState
    from schemactl.deploy.status import LastApply
    from schemactl.deploy.steps import Plan
    from schemactl.deploy.version_numbers import TopicMismatches
    from schemactl.registry.interface import Registry, Scope


# `schemactl drift`.


def configure_drift(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `drift`."""
    parser.description = (
        "Compare a registry with the approved history and show the differences: foreign versions, missing ones, "
        "deletions, policies, partitions; with the likely cause and what to do next. Differences that the target's "
        "approved numbers file accepts are listed separately. Changes nothing in the registry. "
        "Exits with 100 when version numbers differ from Git's and no numbers file records it: messages would be misread."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl drift --target prod\n"
        "  schemactl drift --target prod --unmanaged            also what Git never declared\n"
        "  schemactl drift --all-targets                        side by side\n"
        "  schemactl drift --target prod --unmanaged --summary  one line for each kind\n"
        "  schemactl drift --target prod --detailed-exitcode    2: something differs\n"
        "  schemactl drift --target prod --accept --reason 'uploaded by hand'    record it: no drift any more\n"
        "  schemactl drift --target prod --accept --reason 'of team B' --unmanaged --topic 'b/**' --until 2027-06-30\n"
        "  schemactl drift --target prod --format json > numbers.json    keep it: `schemactl rebuild` reads it\n"
    )
    add_targets(parser)
    add_filters(parser)
    add_options(parser, "--unmanaged: also namespaces and topics that Git never declared")
    add_formats(parser, TARGET_FORMATS)
    add_parallel(parser)
    add_command_timeout(parser)
    add_options(
        parser,
        "--summary: only the sums: one line for each kind of difference",
        "--detailed-exitcode: exit with 2 when something differs",
        "--accept: record the meaning of each version number and the other accepted differences in the target's "
        "numbers file; commit the file",
        "--reason TEXT: why; requires --accept",
        "--owner NAME: the responsible person or team; requires --accept (default: the topic's `owner`)",
        "--until YYYY-MM-DD: the last day, in UTC, on which it is accepted, at most 366 days ahead; an accepted "
        "version number has no last day; requires --accept",
    )


def run_drift(args: argparse.Namespace, context: Context) -> int:
    """Print the drift of each target.

    Return 100 if messages would be decoded with the wrong schema, 2 if something differs and --detailed-exitcode is set, else 0.
    """
    if args.accept and args.summary:
        raise UsageError("--summary cannot be combined with --accept", fix="remove one of them")
    if args.accept:
        TargetSelection.of(args).expect_one("--accept", "schemactl drift --target {} --accept --reason TEXT".format)
        return _accept_drift(args, context)
    for option in ("reason", "owner", "until"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} requires --accept")
    from schemactl.deploy.geo_replication import replicated
    from schemactl.report.drift import make_drift_document, make_drift_report, make_short_drift_report

    outputs = parse_outputs(args.format, TARGET_FORMATS)
    if args.summary and any(name == "json" for name, _ in outputs):
        raise UsageError(
            "--summary cannot be combined with --format json, which has every difference", fix="remove --summary"
        )
    selection = TargetSelection.of(args)
    with (
        write_error_reports("drift", selection, outputs, context),
        open_targets(selection, context, prints_notes=False) as targets,
    ):
        last_applies = {target.name: read_last_apply(target.place, (), target.context) for target in targets.targets}
        scope = DriftScope(args.topic, args.namespace, unmanaged=args.unmanaged, last_applies=last_applies)
        results = find_drifts(targets, scope)
        namespaces = replicated(report for report in results.values() if not isinstance(report, SchemactlError))
        has_json = any(name == "json" for name, _ in outputs)

        def make_document(report: DriftReport) -> tuple[TargetDocument, int]:
            target_report = make_short_drift_report(report) if args.summary else make_drift_report(report, namespaces)
            # The JSON has the version numbers of every topic.
            document = target_report, make_drift_document(report, namespaces) if has_json else {}
            return document, _exit_code(report, detailed=args.detailed_exitcode)

        documents, codes = make_target_reports("drift", results, make_document)
        write_target_reports(documents, outputs, context)
        for target in targets.targets:
            result = results.get(target.name)
            if not (result is None or isinstance(result, SchemactlError)) and result.differences:
                target.context.note(*_note_unapproved_record(target))
    return targets.exit_code(codes)


def _note_unapproved_record(target: OpenTarget) -> Iterator[str]:
    """Yield a note if the numbers file of the working tree differs from the approved one, which `drift` compares with."""
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.numbers_file import read_numbers
    from schemactl.history.target_history import numbers_of

    place, repository = target.place, target.context.repository
    if repository.top is None:
        return
    try:
        record = read_numbers(WorktreeFiles(place.top), place.project, place.target)
    except SchemactlError:
        return
    if record is not None and record != numbers_of(place.target, place.project, repository, target.approved):
        yield f"{record.path} in the working tree differs from the approved one, and counts once it is merged"


def _exit_code(report: DriftReport, *, detailed: bool) -> int:
    if any(not topic.recorded for topic in report.number_mismatches):
        return NEGATIVE
    return CHANGES if report.has_drift and detailed else 0


# The drift of targets.


@dataclass(frozen=True, slots=True)
class DriftScope:
    """The topics to compare.

    Attributes:
        topics: globs of topic names; empty for all topics.
        namespaces: names of namespaces; empty for all namespaces.
        unmanaged: whether to include topics and namespaces that Git never declared.
        last_applies: the last apply of each target by name, as far as result files record it.
    """

    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    unmanaged: bool = False
    last_applies: Mapping[str, LastApply | None] = field(default_factory=dict)


def find_drifts(
    targets: OpenTargets,
    scope: DriftScope,
    *,
    awaited: Callable[[OpenTarget, Collection[str], Plan], Mapping[TopicName, Awaited]] = lambda *_: {},
    stop: Stop | None = None,
) -> dict[str, DriftReport | SchemactlError]:
    """Return the drift of each target by name, or the error that prevented it; see `run_for_each_target`.

    `awaited` returns the topics of a target's plan that wait for other targets; it gets the names of the targets that have responded.
    """
    observed_targets: set[str] = set()

    def observe(request: DriftRequest) -> tuple[Catalog, RegistryState]:
        observation = request.observe()
        observed_targets.add(request.target.name)
        return observation

    return run_for_each_target(
        targets,
        lambda target: DriftRequest.of(target, scope),
        observe,
        lambda request, observation: request.report(*observation, partial(awaited, request.target, observed_targets)),
        stop=stop,
    )


@dataclass(frozen=True, slots=True)
class DriftRequest:
    """The input for the drift of one target.

    Attributes:
        target: the target.
        scope: the topics to compare.
        approved: the approved catalog up to the target's position, by declared names.
        everything: the approved catalog beyond that position as well; empty unless the scope has unmanaged topics.
        numbers: the record of the target's version numbers.
    """

    target: OpenTarget
    scope: DriftScope
    approved: Catalog
    everything: Catalog
    numbers: TargetNumbers | None

    @classmethod
    def of(cls, target: OpenTarget, scope: DriftScope, numbers: TargetNumbers | None = None) -> DriftRequest:
        """Return the request for `target`; `numbers` replaces the approved record of its version numbers."""
        from schemactl.deploy.target_catalog import rename_numbers

        approved = target.approved
        recorded = rename_numbers(numbers, target.names) if numbers else target.numbers
        everything = approved.full_history.catalog if scope.unmanaged else Catalog()
        if not (scope.topics or scope.namespaces):
            approved.read_ahead(approved.catalog.topics)
        return cls(target, scope, load_catalog(approved.catalog), load_catalog(everything), recorded)

    def observe(self) -> tuple[Catalog, RegistryState]:
        """Return the selected part of Git by the target's names, and the state of the registry, which takes long to read."""
        from schemactl.deploy.registry_state import read_registry_state
        from schemactl.deploy.target_catalog import find_scope, rename_catalog, select_known_part
        from schemactl.registry.interface import Scope

        scope, names, registry = self.scope, self.target.names, self.target.registry
        unmanaged = Scope(frozenset(), frozenset())
        if scope.unmanaged:
            unmanaged = _read_unmanaged(registry, rename_catalog(self.everything, names), scope, names)
        selected = select_known_part(
            self.approved,
            topics=scope.topics,
            namespaces=scope.namespaces,
            known=_map_selectable_names(unmanaged.topics, names),
            known_namespaces=_map_selectable_names(unmanaged.namespaces, names),
        )
        git = rename_catalog(selected, names)
        declared = _add_topic_settings(find_scope(git), git)
        return git, read_registry_state(registry, _add_selected(declared, unmanaged, scope, names), git=git)

    def report(self, git: Catalog, state: RegistryState, awaited: AwaitedBy = lambda _: {}) -> DriftReport:
        """Return the drift between `git` and the state of the registry; `awaited` as for `make_plan`."""
        from schemactl.deploy.drift import find_drift
        from schemactl.deploy.planner import make_plan
        from schemactl.deploy.steps import Permissions

        target, scope = self.target, self.scope
        expected = target.add_registered_versions(git, state.catalog)
        plan = make_plan(
            state,
            expected,
            origin=target.origin,
            permissions=Permissions(),
            waivers=target.waivers,
            numbers=self.numbers,
            awaited=awaited,
        )
        unreadable = target.find_unreadable(scope.topics, scope.namespaces)
        plan = replace(plan, unreadable=unreadable, brokers=target.compare_brokers(state, git, self.numbers))
        return find_drift(
            expected,
            state,
            plan,
            commit=target.context.repository.commit,
            today=datetime.now(UTC).date(),
            numbers=self.numbers,
            is_whole=scope.unmanaged and not (scope.topics or scope.namespaces),
            applied=self._find_applied(expected, state.catalog),
            defaults=target.place.project.defaults,
        )

    def _find_applied(self, git: Catalog, registered: Catalog) -> AppliedHistory | None:
        """Return the state that Git had approved at the newest commit that left a trace, or None without any trace.

        The traces are the newest version of each topic, which was approved by some commit, and the result of the last complete apply
        from this folder.
        """
        from schemactl.comparison.changes import VersionIndex, get_upload_commit
        from schemactl.core.schema import get_live_versions
        from schemactl.history.target_history import read_effective

        target = self.target
        approved, names, place = target.approved, target.names, target.place
        commit_ids = set()
        for name, topic in git.topics.items():
            newest = get_live_versions(registered.topics[name].versions)[-1:] if name in registered.topics else ()
            for entry in newest:
                version = (
                    VersionIndex(topic.versions).find(entry.info)
                    if entry.info and not get_upload_commit(entry.info)
                    else None
                )
                commit_ids.add(
                    get_upload_commit(entry.info) or (version.commit.id if version and version.commit else "")
                )
        last_apply = self.scope.last_applies.get(target.name)
        if last_apply and last_apply.outcome == "applied":
            commit_ids.add(last_apply.commit)
        steps = {
            step: commit_id
            for commit_id in filter(None, commit_ids)
            if (step := approved.find_step(commit_id)) is not None
        }
        if not steps:
            return None
        catalog = read_effective(
            target.context.repository, place.project, place.target, at=steps[max(steps)], whole=approved.full_history
        ).catalog

        def find_declared(name: NamespaceName | TopicName) -> Namespace | Topic | None:
            declared = names.declared(name)
            return catalog.get(declared) if declared else None

        return find_declared


def read_last_apply(place: ChosenTarget, results: Sequence[str], context: Context) -> LastApply | None:
    """Return the target's last apply from its newest result file, if there is one; warn about a file that cannot be read.

    `results` are result files, of any target, and folders with a file `TARGET.json` for each target; without them, the project's own
    folder counts.
    """
    from schemactl.cli.apply_results import read_result, result_path
    from schemactl.deploy.status import ResultOfOtherTarget

    name = place.target.name
    paths = [Path(context.directory, result) for result in results]
    files = [result_path(path, name, "") if path.is_dir() else path for path in paths]
    last_applies = []
    for path in files or [result_path(place.folder, name)]:
        try:
            result = read_result(path, name)
        except ResultOfOtherTarget as error:
            if path not in paths:
                context.say(f"warning: {error}")
        except ValueError as error:
            context.say(f"warning: {error}")
        else:
            last_applies += [result[0]] if result else []
    return max(last_applies, key=lambda last_apply: last_apply.time_s, default=None)


def _map_selectable_names(registered: Iterable[Named], names: TargetNames) -> dict[Named, Named]:
    """Map the names by which `--topic` and `--namespace` select undeclared topics or namespaces to their names on the target.

    These are the name that Git would declare and, where Git has no such namespace, the name on the target.
    """
    names_on_target = {}
    for name in registered:
        declared = names.declared(name)
        if declared is not None:
            names_on_target[declared] = name
        if not names.has(name.namespace_name):
            names_on_target[name] = name
    return names_on_target


def _read_unmanaged(registry: Registry, git: Catalog, scope: DriftScope, names: TargetNames) -> Scope:
    """Return the namespaces and topics of the registry that Git never declared."""
    from schemactl.deploy.target_catalog import find_scope
    from schemactl.registry.interface import Scope

    namespaces = parse_namespaces(scope.namespaces)
    if namespaces is not None:
        namespaces = frozenset(names.to_target(name) if names.has(name) else name for name in namespaces)
    declared, registered = find_scope(git), registry.everything(namespaces)
    managed_ids = {name.schema_id for name in git.topics}
    topics = frozenset(name for name in registered.topics if name.schema_id not in managed_ids)
    return Scope(registered.namespaces - declared.namespaces, topics)


def _add_topic_settings(scope: Scope, git: Catalog) -> Scope:
    """Return `scope` with the settings that a namespace declares and each of its topics may override."""
    from schemactl.core.policies import SETTINGS

    settings = dict(scope.settings)
    for name, topic in git.topics.items():
        space = git.namespaces.get(name.namespace_name)
        if space and not topic.deleted:
            overridable = {setting for setting in space.policies.settings if SETTINGS[setting].topic_path}
            if overridable:
                settings[name] = settings.get(name, frozenset()) | overridable
    return replace(scope, settings=settings)


def _add_selected(declared: Scope, unmanaged: Scope, scope: DriftScope, names: TargetNames) -> Scope:
    """Return `declared` together with the part of `unmanaged` that the user selected."""
    from schemactl.registry.interface import Scope

    names_on_target = _map_selectable_names(unmanaged.topics, names)
    included = [pattern for pattern in scope.topics if not pattern.startswith("!")]
    excluded = [pattern.removeprefix("!") for pattern in scope.topics if pattern.startswith("!")]
    topics = unmanaged.topics
    if included or scope.namespaces:
        selected = topic_names.select_topics(names_on_target, included, scope.namespaces)
        topics = frozenset(names_on_target[name] for name in selected)
    # A topic has up to two names here: it is left out under both if it is left out under one.
    topics -= {
        names_on_target[name]
        for pattern in excluded
        for name in topic_names.find_matching_topics(pattern, names_on_target)
    }
    namespaces = unmanaged.namespaces & {name.namespace_name for name in topics}
    if scope.namespaces:
        selectable = _map_selectable_names(unmanaged.namespaces, names)
        namespaces |= {on_target for name, on_target in selectable.items() if str(name) in scope.namespaces}
    elif not scope.topics:
        namespaces |= unmanaged.namespaces
    return Scope(declared.namespaces | namespaces, declared.topics | topics, declared.settings)


# `schemactl drift --accept`.


def _accept_drift(args: argparse.Namespace, context: Context) -> int:
    """Write the accepted differences to the target's numbers file; return 100 if some cannot be accepted, else 0."""
    from schemactl.core.catalog import select_part
    from schemactl.declare.numbers_writer import write_numbers
    from schemactl.declare.target_numbers import AcceptanceReason
    from schemactl.history.target_history import numbers_of

    if not (args.reason or "").strip():
        raise UsageError("--accept needs a reason for the record: --reason TEXT")
    if args.owner is not None and not args.owner.strip():
        raise UsageError(
            "--owner is empty: it names the person or team that is responsible for the accepted differences"
        )
    today = datetime.now(UTC).date()
    decision = AcceptanceReason(
        args.reason.strip(),
        (args.owner or "").strip(),
        today,
        parse_last_day(args.until, today) if args.until else None,
    )
    repository = context.repository
    with open_targets(TargetSelection.of(args), context) as targets:
        [open_target] = targets.targets
        place, approved = open_target.place, open_target.approved
        if repository.top is None:
            raise UsageError("a bare repository has no working tree to record in", fix="work in a clone of it")
        target = place.target
        recorded = numbers_of(target, place.project, repository, approved)
        old_numbers = _read_old_numbers(place, recorded)
        last_applies = {target.name: read_last_apply(place, (), context)}
        scope = DriftScope(args.topic, args.namespace, unmanaged=args.unmanaged, last_applies=last_applies)
        request = DriftRequest.of(open_target, scope, old_numbers)
        report = request.report(*request.observe())
        git = select_part(approved.full_history.catalog, args.topic, args.namespace)
        acceptance = _accept_numbers(git, report.registered, old_numbers, target, decision)
        _accept_states(acceptance, report, decision, git, target)
        if not (args.topic or args.namespace):
            _accept_brokers(acceptance, report, decision)
        numbers = acceptance.numbers
        written_paths = write_numbers(numbers, Path(place.top)) if numbers != old_numbers else []
        is_approved = numbers == recorded or not (recorded or numbers.topics or numbers.accepted or numbers.brokers)
        _print_acceptance(acceptance, written_paths, target, is_approved=is_approved)
    return NEGATIVE if acceptance.left_out else 0


@dataclass(slots=True)
class _Acceptance:
    """The differences to record, and the differences that cannot be accepted.

    Attributes:
        old_numbers: the record so far.
        numbers: the new record.
        changed: the topics whose numbers are recorded again.
        left_out: topics with a version from a commit that the approved history does not have.
        accepted: other differences that are accepted from now on.
        brokers: settings of the brokers that are accepted from now on.
        removed: names whose acceptance is removed, because the registry does not match it any longer.
        repairable: differences that cannot be accepted, because they can be repaired.
        unnamed: namespaces of the target that have no declared name, so that no file can name them.
    """

    old_numbers: TargetNumbers
    numbers: TargetNumbers
    changed: list[TopicMismatches] = field(default_factory=list)
    left_out: list[TopicMismatches] = field(default_factory=list)
    accepted: list[DriftItem] = field(default_factory=list)
    brokers: list[BrokerDifference] = field(default_factory=list)
    removed: list[NamespaceName | TopicName] = field(default_factory=list)
    repairable: list[DriftItem] = field(default_factory=list)
    unnamed: set[NamespaceName] = field(default_factory=set)


def _read_old_numbers(place: ChosenTarget, recorded: TargetNumbers | None) -> TargetNumbers:
    """Return the record in the working tree, which may not be approved yet, else the approved one, else an empty one."""
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.numbers_file import numbers_path, read_numbers
    from schemactl.declare.reader import in_roots
    from schemactl.declare.target_numbers import TargetNumbers

    target, project = place.target, place.project
    try:
        path = numbers_path(project, target)
    except ValueError as error:
        raise UsageError(
            f"the target {target.name!r} has no numbers file: {error}",
            fix=f"name one in {project.path}: targets: {{...: {{numbers: numbers/prod.yaml}}}}",
        ) from None
    if in_roots(path, project):
        raise UsageError(
            f"{path} would be read as a declaration: it lies in one of the roots of {project.path}",
            fix="name a file elsewhere, or in a hidden folder, as `numbers:` of the target: .numbers/prod.yaml",
        )
    working_tree_numbers = read_numbers(WorktreeFiles(place.top), project, target)
    return working_tree_numbers or recorded or TargetNumbers(target.name, path)


def _accept_numbers(
    git: Catalog, registry: Catalog, old_numbers: TargetNumbers, target: Target, decision: AcceptanceReason
) -> _Acceptance:
    """Return an acceptance of the version numbers that differ from Git's."""
    from schemactl.declare.numbers_writer import record_versions
    from schemactl.deploy.target_catalog import select_applicable
    from schemactl.deploy.version_numbers import find_topic_mismatches

    topics: dict[TopicName, TopicNumbers] = dict(old_numbers.topics)
    acceptance = _Acceptance(old_numbers, old_numbers)
    for name, topic in sorted(select_applicable(git).topics.items()):
        registered = registry.topics.get(target.names.to_target(name))
        entries = registered.versions if registered else ()
        old_record = old_numbers.topics.get(name)
        # Other spellings of a version are recorded as well, since a generated package knows them only from this record.
        mismatches = find_topic_mismatches(
            topic, entries, old_record, twin_versions=git.twin_versions(name), spellings=True
        )
        if mismatches.recorded:
            continue
        if mismatches.unexplained:
            acceptance.left_out.append(replace(mismatches, name=name))
            continue
        reason = replace(decision, owner=decision.owner or git.metadata(name).owner)
        new_record = record_versions(topic.versions, entries, old_record, reason)
        topics.pop(name, None)
        if new_record:
            topics[name] = new_record
        acceptance.changed.append(replace(mismatches, name=name))
    acceptance.numbers = replace(old_numbers, topics=topics)
    return acceptance


def _accept_states(
    acceptance: _Acceptance, report: DriftReport, decision: AcceptanceReason, git: Catalog, target: Target
) -> None:
    """Add the other drift to the acceptance: each name with a new difference, with all its differences that can be accepted."""
    from schemactl.declare.target_numbers import join_acceptances
    from schemactl.deploy.drift_items import DriftKind

    accepted = dict(acceptance.numbers.accepted)
    declared_names = {target.names.to_target(name): name for name in accepted}
    for name in report.unused:
        del accepted[declared_names[name]]
        acceptance.removed.append(declared_names[name])
    # The version numbers are accepted already, or left out.
    kinds_of_numbers = (
        DriftKind.FOREIGN_VERSION,
        DriftKind.UNEXPLAINED_VERSION,
        DriftKind.TOMBSTONE,
        DriftKind.NUMBERS_APART,
    )
    items_by_name: dict[NamespaceName | TopicName, list[DriftItem]] = {}
    for item in report.items:
        if item.state:
            items_by_name.setdefault(item.name, []).append(item)
        elif item.accepted is None and not item.is_pending and item.kind not in kinds_of_numbers:
            acceptance.repairable.append(item)
    for name, items in items_by_name.items():
        new_items = [item for item in items if item.accepted is None]
        declared_name: NamespaceName | TopicName | None = target.names.declared(name)
        if declared_name is None:
            acceptance.unnamed.add(name.namespace_name)
        elif new_items or declared_name in acceptance.removed:
            reason = replace(decision, owner=decision.owner or git.metadata(declared_name).owner)
            accepted[declared_name] = join_acceptances([item.state for item in items if item.state], reason)
            acceptance.accepted += new_items
    acceptance.numbers = replace(acceptance.numbers, accepted=accepted)


def _accept_brokers(acceptance: _Acceptance, report: DriftReport, decision: AcceptanceReason) -> None:
    """Add the settings of the brokers that differ from the project file to the acceptance, unless all of them are accepted already."""
    comparison = report.plan.brokers
    if comparison is None or comparison.problem or not (comparison.drift or comparison.unused):
        return
    acceptance.brokers += comparison.drift
    acceptance.numbers = replace(acceptance.numbers, brokers=comparison.accept(decision))


def _print_acceptance(
    acceptance: _Acceptance, written_paths: Sequence[str], target: Target, *, is_approved: bool
) -> None:
    """Print the recorded differences, the differences that cannot be accepted, and the next step."""
    path = acceptance.numbers.path
    if acceptance.changed:
        print(f"Recorded the version numbers of {target.name} in {path}:")
        for topic in acceptance.changed:
            _print_numbers(topic, acceptance)
    if acceptance.accepted or acceptance.brokers:
        print(f"Accepted for {target.name} in {path}, until it changes:")
    for item in acceptance.accepted:
        print(f"  {on_one_line(str(item.name))}: {item.kind}: {item.message}")
    for difference in acceptance.brokers:
        print(f"  brokers: {on_one_line(difference.message)}")
    for name in acceptance.removed:
        print(f"Removed from {path}, because the registry has changed: the accepted state of {on_one_line(str(name))}")
    if written_paths:
        print("\n".join(["Wrote:", *(f"  {written_path}" for written_path in written_paths)]))
    elif not acceptance.left_out:
        differs = "all differences from Git's are recorded" if acceptance.numbers.topics else "they equal Git's"
        print(f"Nothing was written. The version numbers of {target.name} need no record: {differs}.")
    if not is_approved:
        print(f"Next: commit {path} and the files that it names, and merge them; readers use them after the merge.")
    for topic in acceptance.left_out:
        print(
            f"Not accepted: {on_one_line(str(topic.name))}: {topic}: it was rewritten, or this clone is behind.\n"
            f"  Next: `schemactl drift --target {quote(target.name)}` shows how to bring it back."
        )
    for namespace in sorted(acceptance.unnamed):
        print(
            f"Not accepted: {namespace}: the `tenants` and `namespaces` of {target.name} have no declared name for it.\n"
            f"  Fix: add `{namespace}: {namespace}` to its `namespaces`, the name to declare first"
        )
    if acceptance.repairable:
        kinds = ", ".join(sorted({item.kind for item in acceptance.repairable}))
        print(
            f"Not accepted: {format_count(len(acceptance.repairable), 'difference')} that can be repaired ({kinds}).\n"
            f"  Next: `schemactl drift --target {quote(target.name)}` shows how."
        )


def _print_numbers(topic: TopicMismatches, acceptance: _Acceptance) -> None:
    """Print the recorded numbers of a topic, and which of its messages will be rejected."""
    print(f"  {on_one_line(str(topic.name))}: {topic}")
    old_record = acceptance.old_numbers.topics.get(topic.name)
    new_record = acceptance.numbers.topics.get(topic.name)
    entries = new_record.entries.items() if new_record else ()
    rejected = [number for number, entry in entries if entry.git is None and entry.foreign is None]
    if rejected:
        print(
            f"    messages of {format_version_numbers(rejected)} will be rejected: the registry does not show what wrote them"
        )
    old_entries = [(number, old_record.entries.get(number)) for number in rejected] if old_record else []
    forgotten = [number for number, entry in old_entries if entry and (entry.git is not None or entry.foreign)]
    if forgotten:
        print(
            f"    the record of {format_version_numbers(forgotten)} was removed, because the registry may have lost "
            "its version list and started a new one. If it did not, add `git` or `foreign` next to `deleted: true` "
            "again, so that their messages can be decoded"
        )
