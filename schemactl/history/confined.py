"""What every git process is given, so that it reads the one repository that was found, and starts nothing but itself.

The settings of a repository can name programs for git to run. They are the user's own, for no commit can hold them; what
is asked of git here needs none of them all the same. The hook starts git, too, so this module imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_ALWAYS = ("--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")

OPTIONS = (
    *_ALWAYS,
    *("-c", "core.sshCommand=false", "-c", "core.askPass=", "-c", "credential.helper="),
)
"""For every command but a fetch, before its name."""

VARIABLES = {
    # Replace refs are one clone's private view of history.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # What a partial clone lacks would be fetched by whatever command meets it first: older Git knows only the protocols.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}
"""For every command but a fetch, besides the caller's environment."""

FETCH = (*_ALWAYS, "-c", "fetch.negotiationAlgorithm=noop", "fetch")
"""A fetch of objects whose ids are known, which gets at the remote as the user's own does: by the clone's ssh command and credential helpers."""

BARE_FETCH = (
    *FETCH[:-1],
    *("-c", "core.sshCommand=ssh", "-c", "core.askPass=", "-c", "credential.helper="),
    *("-c", "core.alternateRefsCommand=true", "fetch", "--upload-pack=git-upload-pack"),
)
"""A fetch in a bare repository, which is what anybody's archive may unpack to, its settings included."""

_FETCHED_BY = "file:http:https:ssh"


def fetch_variables(caller: Mapping[str, str]) -> dict[str, str]:
    """For a fetch, besides the `caller`'s environment, which may name other protocols."""
    kept = {name: value for name, value in VARIABLES.items() if name != "GIT_NO_LAZY_FETCH"}
    return {**kept, "GIT_ALLOW_PROTOCOL": caller.get("GIT_ALLOW_PROTOCOL", _FETCHED_BY)}


def pinned(own: str, top: str | None) -> dict[str, str]:
    """The variables by which git reads the repository whose folder is `own`, with the working tree `top` (None: bare).

    Both are absolute.
    """
    return {"GIT_DIR": own, "GIT_WORK_TREE": top} if top is not None else {"GIT_DIR": own}
