"""Look up the installed version, entry points of other packages, and the CI run that a command belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoints
from typing import Final, NamedTuple
from urllib.parse import quote

from schemactl.core.errors import Source
from schemactl.core.json_values import Json

DISTRIBUTION: Final = "pulsar-schemactl"
"""The name of the distribution; the package and the command are `schemactl`."""

CONFLICTING_DISTRIBUTION: Final = "schemactl"
"""An unrelated distribution whose package and command have the same names."""

_URL_PATTERN: Final = re.compile(r"https?://[\w.:-]+(?:/[\w.~%+-]*)*")

_COMMIT_PATTERN: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class _BuildServer(NamedTuple):
    """A build server.

    Attributes:
        name: the name in a result file.
        always: a variable that is always set.
        actor: the variable with the user who started the run.
        run: the parts of the address of the run: variables and literal texts.
        repository: the parts of the address of the repository, or () if the server does not show files.
        commit: the variable with the commit.
        line: the template of the rest of the address of a line in a file.
        commit_page: the template of the rest of the address of a commit.
    """

    name: str
    always: str
    actor: str
    run: tuple[str, ...]
    repository: tuple[str, ...] = ()
    commit: str = ""
    line: str = ""
    commit_page: str = "/commit/{commit}"


_BUILD_SERVERS: Final = (
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
        "/-/commit/{commit}",
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


def get_version() -> str:
    """Return the version of this installation."""
    return metadata.version(DISTRIBUTION)


def has_conflicting_distribution() -> bool:
    """Return whether CONFLICTING_DISTRIBUTION is installed too, so that the two have overwritten each other's files."""
    try:
        metadata.distribution(CONFLICTING_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return False
    return True


@cache
def get_home_page() -> str:
    """Return the address of the documentation or the home page in the distribution's metadata, or ""."""
    addresses = metadata.metadata(DISTRIBUTION).get_all("Project-URL") or []
    address_by_label = dict(address.split(", ", 1) for address in addresses)
    return address_by_label.get("Documentation") or address_by_label.get("Homepage") or ""


def get_page_address(page: str) -> str:
    """Return the address of a page of the documentation, such as `rules/TYPE_MISMATCH`, or "" if the distribution names no site."""
    # Read the Docs redirects `page` to the default version.
    return f"{get_home_page().rstrip('/')}/page/{page}.html" if get_home_page() else ""


@cache  # the lookup reads the metadata of every installed package
def list_entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group in all installed packages."""
    return metadata.entry_points(group=group)


def get_ci_run(environment: Mapping[str, str] = os.environ) -> Json | None:
    """Return the `server`, the `actor` who started the run, and its `url`, or None outside of a known build server."""
    for server in _BUILD_SERVERS:
        if environment.get(server.always):
            actor = environment.get(server.actor, "")
            return {"server": server.name, "actor": actor, "url": _join_address(server.run, environment)}
    return None


def get_line_link(source: Source) -> str:
    """Return the address of a line of a file in the current commit of a build server, or ""."""
    for server in _BUILD_SERVERS:
        if os.environ.get(server.always):
            address, commit = _join_address(server.repository, os.environ), os.environ.get(server.commit, "")
            if _URL_PATTERN.fullmatch(address) and _COMMIT_PATTERN.fullmatch(commit):
                path = quote(source.path, errors="backslashreplace")
                return address + server.line.format(commit=commit, path=path, line=source.line)
    return ""


def get_commit_link(commit: str) -> str:
    """Return the address of a commit on the host of a build server, or ""."""
    for server in _BUILD_SERVERS:
        if os.environ.get(server.always):
            address = _join_address(server.repository, os.environ)
            if _URL_PATTERN.fullmatch(address) and _COMMIT_PATTERN.fullmatch(commit):
                return address + server.commit_page.format(commit=commit)
    return ""


def _join_address(parts: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """Join the parts of an address, or return "" if a variable is not set."""
    values = [environment.get(part, "" if part.isupper() else part) for part in parts]
    return "".join(values) if all(values) else ""
