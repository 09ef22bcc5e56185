"""Look up the installed version, entry points of other packages, and the CI run that a command belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Final, NamedTuple
from urllib.parse import quote

from schemactl.core.errors import Source
from schemactl.core.json_values import Json

DISTRIBUTION: Final = "pulsar-schemactl"
"""What installers call it; the package and the command are `schemactl`."""

OTHER: Final = "schemactl"
"""A distribution that has nothing to do with this one, with a package and a command of the same names."""


def version() -> str:
    """Return the version of this installation."""
    from importlib import metadata

    return metadata.version(DISTRIBUTION)


def is_shared() -> bool:
    """Return whether the other distribution is installed here, too: each has written over files of the other."""
    from importlib import metadata

    try:
        metadata.distribution(OTHER)
    except metadata.PackageNotFoundError:
        return False
    return True


def home() -> str:
    """Return the address where the project is at home, as the distribution says; "": it says none."""
    from importlib import metadata

    addresses = metadata.metadata(DISTRIBUTION).get_all("Project-URL") or []
    found = dict(each.split(", ", 1) for each in addresses)
    return found.get("Documentation") or found.get("Homepage") or ""


# Entry points of other packages; each group is looked up once


@cache  # every installed package is looked at
def of_other_packages(group: str) -> EntryPoints:
    """Return the entry points of `group`."""
    return entry_points(group=group)


# The run of a build server

_ADDRESS: Final = re.compile(r"https?://[\w.:-]+(?:/[\w.~%+-]*)*")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class _BuildServer(NamedTuple):
    """A build server.

    Attributes:
        name: what it is called in a result file.
        always: a variable that is always set.
        actor: the variable that says who started the run.
        run: the parts of the run's address; one that is no variable's name stands for itself.
        repository: those of the repository's address; none: files are shown nowhere.
        commit: the variable that says which commit is built.
        line: what follows the repository's address for a line of a file.
    """

    name: str
    always: str
    actor: str
    run: tuple[str, ...]
    repository: tuple[str, ...] = ()
    commit: str = ""
    line: str = ""


_SERVERS: Final = (
    _BuildServer(
        "github",
        "GITHUB_ACTIONS",
        "GITHUB_ACTOR",
        ("GITHUB_SERVER_URL", "/", "GITHUB_REPOSITORY", "/actions/runs/", "GITHUB_RUN_ID"),
        ("GITHUB_SERVER_URL", "/", "GITHUB_REPOSITORY"),
        "GITHUB_SHA",
        "/blob/{commit}/{path}#L{line}",
    ),
    _BuildServer(
        "gitlab",
        "GITLAB_CI",
        "GITLAB_USER_LOGIN",
        ("CI_JOB_URL",),
        ("CI_PROJECT_URL",),
        "CI_COMMIT_SHA",
        "/-/blob/{commit}/{path}#L{line}",
    ),
    _BuildServer(
        "azure",
        "TF_BUILD",
        "BUILD_REQUESTEDFOR",
        ("SYSTEM_COLLECTIONURI", "SYSTEM_TEAMPROJECT", "/_build/results?buildId=", "BUILD_BUILDID"),
        ("BUILD_REPOSITORY_URI",),
        "BUILD_SOURCEVERSION",
        "?path=/{path}&version=GC{commit}&line={line}&lineEnd={line}&lineStartColumn=1&lineEndColumn=1",
    ),
    _BuildServer("jenkins", "JENKINS_URL", "BUILD_USER_ID", ("BUILD_URL",)),
)


def ci_run(environment: Mapping[str, str] = os.environ) -> Json | None:
    """Return the `server`, the `actor` who started the run, and its `url`; None: no known build server runs this."""
    for server in _SERVERS:
        if environment.get(server.always):
            actor = environment.get(server.actor, "")
            return {"server": server.name, "actor": actor, "url": _address(server.run, environment)}
    return None


def line_link(source: Source) -> str:
    """Return the address of a line of a file in the commit that is built; "": none is known."""
    for server in _SERVERS:
        if os.environ.get(server.always):
            address, commit = _address(server.repository, os.environ), os.environ.get(server.commit, "")
            if _ADDRESS.fullmatch(address) and _COMMIT.fullmatch(commit):
                path = quote(source.path, errors="backslashreplace")
                return address + server.line.format(commit=commit, path=path, line=source.line)
    return ""


def _address(parts: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """Return the address that is made of `parts`; "" where a variable is not set."""
    values = [environment.get(part, "" if part.isupper() else part) for part in parts]
    return "".join(values) if all(values) else ""
