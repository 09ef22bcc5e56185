"""What the environment says of the build server's run that a command belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from schemactl.json_values import Json


class _Server(NamedTuple):
    """The variables of a build server: one that is always set, who started the run, and the parts of its address."""

    name: str
    always: str
    actor: str
    url: tuple[str, ...]


_SERVERS: Final = (
    _Server(
        "github",
        "GITHUB_ACTIONS",
        "GITHUB_ACTOR",
        ("GITHUB_SERVER_URL", "/", "GITHUB_REPOSITORY", "/actions/runs/", "GITHUB_RUN_ID"),
    ),
    _Server("gitlab", "GITLAB_CI", "GITLAB_USER_LOGIN", ("CI_JOB_URL",)),
    _Server(
        "azure",
        "TF_BUILD",
        "BUILD_REQUESTEDFOR",
        ("SYSTEM_COLLECTIONURI", "SYSTEM_TEAMPROJECT", "/_build/results?buildId=", "BUILD_BUILDID"),
    ),
    _Server("jenkins", "JENKINS_URL", "BUILD_USER_ID", ("BUILD_URL",)),
)


def ci_run(environment: Mapping[str, str] = os.environ) -> Json | None:
    """Return the `server`, the `actor` who started the run, and its `url`; None: this is no build server's run that we know."""
    for server in _SERVERS:
        if environment.get(server.always):
            # A part that is no variable's name stands for itself.
            parts = [environment.get(part, "" if part.isupper() else part) for part in server.url]
            return {
                "server": server.name,
                "actor": environment.get(server.actor, ""),
                "url": "".join(parts) if all(parts) else "",
            }
    return None
