"""Links into the files of a change, where a build server says in its environment where these are shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from schemactl.errors import Source

_ADDRESS = re.compile(r"https?://[\w.:-]+(?:/[\w.~%+-]*)*")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class _Host(NamedTuple):
    """The variables of a code host: one that is always set, the parts of a repository's address, the commit, and a line of a file."""

    always: str
    address: tuple[str, ...]
    commit: str
    line: str


_HOSTS = (
    _Host(
        "GITHUB_ACTIONS",
        ("GITHUB_SERVER_URL", "/", "GITHUB_REPOSITORY"),
        "GITHUB_SHA",
        "/blob/{commit}/{path}#L{line}",
    ),
    _Host("GITLAB_CI", ("CI_PROJECT_URL",), "CI_COMMIT_SHA", "/-/blob/{commit}/{path}#L{line}"),
    _Host(
        "TF_BUILD",
        ("BUILD_REPOSITORY_URI",),
        "BUILD_SOURCEVERSION",
        "?path=/{path}&version=GC{commit}&line={line}&lineEnd={line}&lineStartColumn=1&lineEndColumn=1",
    ),
)


def line_link(source: Source, environment: Mapping[str, str] = os.environ, *, commit: str = "") -> str:
    """Return the address of a line of a file as `commit` has it, by default the commit that is built; "": none is known."""
    for host in _HOSTS:
        if environment.get(host.always):
            parts = [environment.get(part, "" if part.isupper() else part) for part in host.address]
            address, of = "".join(parts), commit or environment.get(host.commit, "")
            if all(parts) and _ADDRESS.fullmatch(address) and _COMMIT.fullmatch(of):
                path = quote(source.path, errors="backslashreplace")
                return address + host.line.format(commit=of, path=path, line=source.line)
    return ""
