"""`promote`: move a target along the approved history."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.target_selection import add_trust, choose_target
from schemactl.core.catalog import Catalog
from schemactl.core.errors import HistoryError, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.comparison.changes import Change
    from schemactl.core.findings import Waiver
    from schemactl.core.project import Project, Target
    from schemactl.core.schema import Commit
    from schemactl.deploy.promotion import Promotion
    from schemactl.history.approved_history import History, Position
    from schemactl.history.git import Repository


def configure_promote(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `promote`."""
    parser.description = (
        "Move a target to another commit of the approved first-parent line: show the changes between the two "
        "commits (versions, policies, waivers, deletions), move the local branch or tag that the target's "
        "`promoted` names, and print the push that publishes it. Pushes nothing, and contacts no registry. The "
        "next plan for the target ends at that commit."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl promote prod --to origin/main --dry-run    what would come with it?\n"
        "  schemactl promote prod --to 3fa1c20de                not further than that commit\n"
        "  schemactl promote prod --to origin/promoted/stage    as far as stage is\n"
        "  schemactl promote prod --to 81c0ffee1 --back         to an older commit: a registry keeps its versions\n"
    )
    parser.add_argument("target", metavar="TARGET", help="one of the approved project file's targets, with `promoted`")
    add_options(parser, "--to REF: a commit of the approved first-parent line, by any name", required=True)
    add_options(
        parser,
        "--dry-run: move nothing",
        "--back: move to an older commit, although registries keep the versions they have",
    )
    add_trust(parser)
    add_format(parser)


def run_promote(args: argparse.Namespace, context: Context) -> int:
    """Print what comes with the move, and move the branch or tag of the target.

    Raises:
        SchemactlError: if --to is not a commit of the approved line, or is older and --back is not set.
    """
    from schemactl.history.approved_history import read_history
    from schemactl.report.changes_json import render_promotion_json
    from schemactl.report.promotion import render_promotion_text

    chosen = choose_target(args.target, context)
    target = chosen.target
    if target.promoted is None:
        raise UsageError(
            f"{target.name} has no `promoted`, so it always follows the tip of the approved history",
            fix=f"name a branch in {chosen.project.path}: targets: {{{target.name}: {{promoted: origin/promoted/{target.name}}}}}",
        )
    repository = context.repository
    whole = read_history(repository, chosen.project, progress=context.reading_history())
    new_position = whole.resolve_position(args.to, "with --to")
    promotion = _make_promotion(repository, chosen.project, target, whole, new_position)
    pointer = _Pointer.from_promoted(repository, target.promoted)
    push = pointer.push_command(repository, promotion)
    is_text = args.format == "text"
    if is_text:
        context.report(render_promotion_text(promotion, color=context.color))
    is_refused = promotion.is_back and not args.back and not args.dry_run
    is_moved = not (args.dry_run or is_refused) and pointer.move(repository, promotion)
    if not is_text:
        print(render_promotion_json(promotion, moved=is_moved, push=push))
    elif args.dry_run:
        context.report(f"\nThe {pointer} was not moved (--dry-run).")
    elif not is_refused:
        outcome = f"The {pointer} {'was moved' if is_moved else 'is already there'}"
        lines = [f"{outcome}, here. Publish it: {push}" if push else f"{outcome}."]
        if pointer.is_tag:
            fetch = f"git fetch --force {quote(pointer.remote or 'origin')} tag {quote(pointer.name)}"
            lines.append(f"Fetching does not move tags: elsewhere, `{fetch}`.")
        context.report("\n".join(["", *lines]))
    if is_refused:
        raise SchemactlError(
            f"{args.to} is older than the position of {target.name}; {target.name} was not moved",
            fix="merge a commit that reverts the wrong change, and promote that; or move it with --back",
        )
    return 0


def _make_promotion(
    repository: Repository, project: Project, target: Target, whole: History, new_position: Position
) -> Promotion:
    """Return the move of `target` from its current position to the new one."""
    from schemactl.checks.rollout import find_version_effects
    from schemactl.comparison.changes import VersionsMissing
    from schemactl.deploy.promotion import Promotion, find_changes_between
    from schemactl.history.approved_history import read_waivers_of_commit
    from schemactl.history.target_history import view_on_target

    try:
        old_commit = whole.resolve_promoted_position(target).commit
    except HistoryError:
        # The target was not promoted yet, or is at a commit outside of the approved line.
        old_commit = None
    after = view_on_target(repository, whole.view_until(new_position), project, target)
    before = None
    if old_commit:
        old_history = whole.view_until(new_position._replace(commit=old_commit))
        before = view_on_target(repository, old_history, project, target)
    is_back = before is not None and before.commits > after.commits
    older, newer = (after, before) if before and is_back else (before, after)
    changes = find_changes_between(older.catalog if older else Catalog(), newer.catalog)
    commits = abs(after.commits - before.commits) if before else after.commits
    versions = [
        (change.name, version)
        for change in changes
        if isinstance(change, VersionsMissing)
        for version in change.versions
    ]
    waivers = cache(lambda commit: read_waivers_of_commit(repository, project, commit))
    targets_behind = []
    for name in target.after:
        try:
            position = whole.resolve_promoted_position(project.targets[name])
        except HistoryError:
            is_behind = True
        else:
            is_behind = whole.view_until(position).commits < after.commits
        if is_behind:
            targets_behind.append(name)
    effects = find_version_effects([] if is_back else versions, newer.catalog, project.defaults, waivers, target.name)
    return Promotion(
        target.name,
        target.promoted or "",
        old_commit,
        new_position.commit,
        commits,
        is_back,
        changes,
        tuple(_find_added_waivers(repository, project, older, newer, changes)),
        tuple(targets_behind),
        effects,
    )


def _find_added_waivers(
    repository: Repository, project: Project, older: History | None, newer: History, changes: Iterable[Change]
) -> Iterator[Waiver]:
    """Yield the waivers that were added between two positions, even if they were removed again."""
    from schemactl.comparison.changes import VersionsMissing
    from schemactl.history.approved_history import read_waivers_of_commit

    known_waivers = {*read_waivers_of_commit(repository, project, older.tip)} if older and older.tip else set()
    commits: dict[Commit, None] = {}
    for change in changes:
        if isinstance(change, VersionsMissing):
            commits |= dict.fromkeys(version.commit for version in change.versions if version.commit)
    for commit in (*commits, newer.tip):
        for waiver in read_waivers_of_commit(repository, project, commit) if commit else ():
            if waiver not in known_waivers:
                known_waivers.add(waiver)
                yield waiver


class _Pointer(NamedTuple):
    """The local branch or tag behind a target's `promoted`, and the remote on which it is published."""

    ref: str
    remote: str | None

    @classmethod
    def from_promoted(cls, repository: Repository, promoted: str) -> _Pointer:
        """Return the local ref for the `promoted` of a target; for a remote branch, the local branch of the same name."""
        from schemactl.history.approved_history import resolve_shared

        resolved = resolve_shared(repository, promoted)
        ref = resolved[0] if resolved else promoted
        remotes = sorted(repository.remotes, key=lambda remote: (remote != "origin", remote))
        default_remote = remotes[0] if remotes and repository.top else None
        if ref.startswith(("refs/heads/", "refs/tags/")):
            return cls(ref, default_remote)
        name = ref.removeprefix("refs/remotes/")
        # Clones call a bare repository `origin`.
        for remote in remotes if repository.top else ["origin"]:
            if name.startswith(f"{remote}/"):
                return cls(f"refs/heads/{name.removeprefix(f'{remote}/')}", remote if repository.top else None)
        return cls(f"refs/heads/{name}", default_remote)

    @property
    def is_tag(self) -> bool:
        return self.ref.startswith("refs/tags/")

    @property
    def name(self) -> str:
        return self.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")

    def __str__(self) -> str:
        return f"{'tag' if self.is_tag else 'branch'} {self.name}"

    def push_command(self, repository: Repository, promotion: Promotion) -> str | None:
        """Return the command that publishes the move, or None without a remote."""
        if self.remote is None:
            return None
        remote = quote(self.remote)
        if self.is_tag:
            return f"git push --force {remote} {quote(self.ref)}"
        published = repository.commit(f"refs/remotes/{self.remote}/{self.name}")
        lease = ""
        if published and (promotion.is_back or promotion.before is None):
            # The push is not a fast-forward; the lease protects a move that someone else has published meanwhile.
            lease = f"--force-with-lease={quote(self.name)}:{published.id} "
        return f"git push {lease}{remote} {quote(self.name)}"

    def move(self, repository: Repository, promotion: Promotion) -> bool:
        """Move the ref to the new position; return False if it was there already."""
        before, after = repository.commit(self.ref), promotion.after
        if before and before.id == after.id:
            return False
        folder = repository.run("for-each-ref", "--format=%(worktreepath)", self.ref).decode("utf-8", "replace").strip()
        if folder:
            raise SchemactlError(
                f"the branch {self.name} is checked out in {folder}, whose files would stay behind",
                fix=f"git -C {quote(folder)} switch --detach",
            )
        message = f"schemactl promote {promotion.target}"
        repository.run("update-ref", "-m", message, self.ref, after.id, before.id if before else "0" * len(after.id))
        return True
