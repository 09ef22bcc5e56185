"""The environment and options of every git process: it reads only the repository that was found, and starts no other program.

The settings of a repository can name programs for git to run: hooks, a file system monitor, an ssh command, credential helpers. A
commit cannot set them, as git does not use a bare repository that GIT_DIR does not name. Only a fetch needs them, so every other
command runs without them.

The early exit of the hook starts git as well, so this module imports next to nothing.
"""

from __future__ import annotations

import os

_ALWAYS = (
    *("--no-pager", "-c", "safe.bareRepository=explicit"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
)
_NO_PASSWORD = ("-c", "core.askPass=", "-c", "credential.helper=")

OPTIONS = (*_ALWAYS, "-c", "core.sshCommand=false", *_NO_PASSWORD)
"""Options for every command except a fetch, before the command's name."""

VARIABLES = {
    # Replace refs are one clone's private view of history.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # In a partial clone every command would fetch missing objects by itself. Git before 2.45 knows only the second variable.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_LITERAL_PATHSPECS": "1",
    # Otherwise `git log` writes each commit to a pipe by itself.
    "GIT_FLUSH": "0",
}
"""Variables for every command except a fetch, in addition to the caller's environment."""

FETCH = (*_ALWAYS, "-c", "fetch.negotiationAlgorithm=noop")
"""Options for a fetch of objects by id, with the ssh command and credential helpers of the user."""

BARE_FETCH = (*FETCH, "-c", "core.sshCommand=ssh", *_NO_PASSWORD, "-c", "core.alternateRefsCommand=true")
"""Options for a fetch into a bare repository, which may be an unpacked archive with foreign settings."""

_FETCH_PROTOCOLS = "file:http:https:ssh"

RAW = (
    *("--raw", "-z", "--no-abbrev", "--no-renames", "--no-relative", "--ignore-submodules=none"),
    *("-O/dev/null", "--no-ext-diff", "--no-textconv"),
)
"""Options for differences in the same format for all settings of a user."""

DIFF_INDEX = ("diff-index", "--cached", "--ita-invisible-in-index", *RAW)
"""The command that lists the differences between the index and a tree, without files of `git add -N`."""


def pin_repository(own: str, top: str | None) -> dict[str, str]:
    """Return the variables that bind git to the Git folder `own` and the working tree `top` (None for bare), absolute paths."""
    return {"GIT_DIR": own, "GIT_WORK_TREE": top} if top is not None else {"GIT_DIR": own}


def fetch_variables() -> dict[str, str]:
    """Return the variables for a fetch; the caller's environment may allow other protocols."""
    variables = {name: value for name, value in VARIABLES.items() if name != "GIT_NO_LAZY_FETCH"}
    return {**variables, "GIT_ALLOW_PROTOCOL": os.environ.get("GIT_ALLOW_PROTOCOL", _FETCH_PROTOCOLS)}
