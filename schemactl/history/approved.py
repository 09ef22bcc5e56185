"""Which ref is the record of approved schemas, and why one cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from schemactl.errors import HistoryError
from schemactl.history.folders import USUAL, spellings
from schemactl.history.repository import Repository
from schemactl.model import Commit, Project

_STEPS = re.compile(r"[~^]|@\{")
"""Where what follows leads on from a ref (gitrevisions)."""

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)


class UnknownRef(HistoryError):
    """There is no such ref, or which one is meant cannot be told."""


def resolve(repository: Repository, name: str) -> tuple[str, Commit] | None:
    """The ref or commit that `name` stands for, so that git can mistake it for no other, and the commit that it leads to.

    A remote's branch comes before a tag or a branch that is called the same. None: there is none.

    Raises:
        UnknownRef: several refs have this name.
    """
    match = _STEPS.search(name)
    ref, steps = (name[: match.start()], name[match.start() :]) if match else (name, "")
    for group in [[ref]] if _ID.fullmatch(ref) or not ref else spellings(ref):
        found = {each: tip for each in group if (tip := repository.commit(each + steps))}
        if len(found) > 1:
            raise UnknownRef(
                f"{name!r} may be any of {', '.join(found)}",
                fix=f"write the full name, as {next(iter(found))}",
            )
        for each, tip in found.items():
            return each + steps, tip
    return None


def approved(repository: Repository, project: Project, ref: str | None = None) -> tuple[str, Commit | None]:
    """The ref whose first-parent history is the record, as people write it, and its tip.

    `ref`, else what the project file names, else the default branch of the remote, else the branch main or master. The
    tip is None when the repository has no commit and no remote to fetch one from, or was fetched none: nothing has been
    approved yet.

    Raises:
        UnknownRef: there is no such ref, or there are several; says the command that repairs it.
        HistoryError: the history behind it is not everybody's; likewise.
    """
    name = ref or project.approved
    candidates = [name, *_own_branch(repository, name)] if name else _candidates(repository)
    for candidate in candidates:
        if found := resolve(repository, candidate):
            if repository.partial:
                repository.partial.refuse_without_trees()
            return _short(candidate), found[1]
    refs = repository.run("for-each-ref", "--format=%(refname:short)").decode("utf-8", "replace").split()
    remotes = _remotes(repository)
    if (
        not refs
        and repository.commit("HEAD") is None
        and (not remotes or _is_empty(repository.common_directory / "FETCH_HEAD"))
    ):
        return name or "main", None
    if name:
        raise UnknownRef(
            f"there is no ref {name!r} in this repository, and the approved history is read from it",
            fix=_advice(
                name, refs, remotes, where="with --base" if ref else "as `approved:` in the project file"
            ),
        )
    raise UnknownRef(
        "no ref is known to hold the approved history: no remote has told its default branch, and there is no main or master",
        fix=f"name it as `approved:` in {project.path}; {_those(refs, remotes)}",
    )


def _own_branch(repository: Repository, name: str) -> list[str]:
    """What other clones call `origin/main` is `main` in the bare repository that they are clones of."""
    _, _, branch = name.removeprefix("refs/remotes/").partition("/")
    return [f"refs/heads/{branch}"] if branch and repository.top is None else []


def _candidates(repository: Repository) -> list[str]:
    """The refs to try when none is named, the best first."""
    defaults = sorted(
        repository.default_branches, key=lambda name: not name.startswith("refs/remotes/origin/")
    )
    if len(defaults) > 1 and not defaults[0].startswith("refs/remotes/origin/"):
        names = " and ".join(_short(name) for name in defaults)
        raise UnknownRef(
            f"several remotes have a default branch ({names}), and none of them is called origin",
            fix="name the one that records what was approved as `approved:` in schemactl.yaml",
        )
    # A checkout in CI often has origin/main without the note that this is the default branch.
    return [*defaults[:1], *USUAL]


def refuse_shallow(repository: Repository) -> None:
    """Nothing, where the history goes back to the first commit.

    Raises:
        HistoryError: it is cut off; says the command that repairs it.
    """
    if repository.shallow:
        raise HistoryError(
            "this clone is shallow: its history is cut off, and version numbers are counted from the first commit",
            fix="`git fetch --unshallow`; in a GitHub workflow give actions/checkout `fetch-depth: 0`",
        )


def _is_empty(file: Path) -> bool:
    """Whether there is such a file with nothing in it, as a fetch leaves FETCH_HEAD when the remote has no branch."""
    return file.is_file() and not file.stat().st_size


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def _remotes(repository: Repository) -> dict[str, tuple[str, ...]]:
    """The remotes with the refspecs they are fetched by."""
    own = repository.common_directory / "config"
    if own.is_file() and b"[remote" not in own.read_bytes().lower():
        return {}
    # GitPython's import is felt, so it happens only where something has to be explained.
    from git import Repo

    with Repo(repository.common_directory) as opened, opened.config_reader() as settings:
        return {
            remote.name: tuple(
                str(spec) for spec in settings.get_values(f'remote "{remote.name}"', "fetch", "")
            )
            for remote in opened.remotes
        }


def _advice(name: str, refs: Sequence[str], remotes: dict[str, tuple[str, ...]], *, where: str) -> str:
    remote, _, branch = name.removeprefix("refs/remotes/").partition("/")
    if branch and remote in remotes:
        # A clone of a single branch does not keep others, even when it fetches them.
        everything = any(f"refs/heads/*:refs/remotes/{remote}/*" in spec for spec in remotes[remote])
        keep = "" if everything else f"git remote set-branches --add {remote} {branch} && "
        first = ""
        if branch in refs and not any(ref.startswith(f"{remote}/") for ref in refs):
            first = f"; when nothing was pushed there yet, `git push {remote} {branch}`"
        return f"`{keep}git fetch {remote} {branch}`{first}"
    near = get_close_matches(name, refs, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}name another one {where}; {_those(refs, remotes)}"


def _those(refs: Sequence[str], remotes: dict[str, tuple[str, ...]]) -> str:
    shown = ", ".join(refs[:8]) + (f" and {len(refs) - 8} more" if len(refs) > 8 else "")
    if refs:
        return f"this repository has {shown}"
    return "this repository has no ref yet: `" + " && ".join(f"git fetch {name}" for name in remotes) + "`"
