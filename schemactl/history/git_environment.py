"""The environment and options of every git process: it reads only the repository that was found, and starts no other program.

The settings of a repository can name programs for git to run (hooks, a file system monitor, an ssh command, credential
helpers). No commit can set them, as git takes no folder for a bare repository that GIT_DIR does not name, and nothing that is asked
of git here needs them, so every command but a fetch runs without. The early exit of the hook starts git, too, so this module imports next to nothing.
"""

from __future__ import annotations

import os

_ALWAYS = (
    *("--no-pager", "-c", "safe.bareRepository=explicit"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
)
_NO_PASSWORD = ("-c", "core.askPass=", "-c", "credential.helper=")

OPTIONS = (*_ALWAYS, "-c", "core.sshCommand=false", *_NO_PASSWORD)
"""Options for every command but a fetch, given before the command's name."""

VARIABLES = {
    # Replace refs are one clone's private view of history.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # In a partial clone any command would fetch a missing object by itself. Git before 2.45 knows only the protocols.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_LITERAL_PATHSPECS": "1",
}
"""Variables for every command but a fetch, besides the caller's environment."""

FETCH = (*_ALWAYS, "-c", "fetch.negotiationAlgorithm=noop")
"""Options for a fetch of objects by id: it reaches the remote as the user's own does, by ssh command and credential helpers."""

BARE_FETCH = (*FETCH, "-c", "core.sshCommand=ssh", *_NO_PASSWORD, "-c", "core.alternateRefsCommand=true")
"""Options for a fetch into a bare repository, which may be an unpacked archive of anybody, settings included."""

_FETCH_PROTOCOLS = "file:http:https:ssh"

RAW = (
    *("--raw", "-z", "--no-abbrev", "--no-renames", "--no-relative", "--ignore-submodules=none"),
    *("-O/dev/null", "--no-ext-diff", "--no-textconv"),
)
"""Options for differences in one form, whatever the user's settings."""

DIFF_INDEX = ("diff-index", "--cached", "--ita-invisible-in-index", *RAW)
"""The command for what of the index differs from a tree. What `git add -N` noted is not in the index yet."""


def pinned(own: str, top: str | None) -> dict[str, str]:
    """Return the variables that bind git to the Git folder `own` and the working tree `top` (None: bare), both absolute."""
    return {"GIT_DIR": own, "GIT_WORK_TREE": top} if top is not None else {"GIT_DIR": own}


def fetch_variables() -> dict[str, str]:
    """Return the variables for a fetch; the caller's environment may allow other protocols."""
    kept = {name: value for name, value in VARIABLES.items() if name != "GIT_NO_LAZY_FETCH"}
    return {**kept, "GIT_ALLOW_PROTOCOL": os.environ.get("GIT_ALLOW_PROTOCOL", _FETCH_PROTOCOLS)}
