"""Make links into the web pages of a repository: commits, files, lines, history, and the editor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True)
class RepositoryLinks:
    """The web pages of a repository; without a URL, each link is "".

    Attributes:
        url: the address of the repository, such as `https://github.com/acme/schemas`, or "".
        ref: the branch that `history` and `edit` show.
    """

    url: str
    ref: str = "main"

    @property
    def _prefix(self) -> str:
        """The start of the paths below the repository: GitLab's have a separator."""
        return f"{self.url}/-" if "gitlab" in self.url else self.url

    def commit(self, commit_id: str) -> str:
        """Return the page of a commit."""
        return f"{self._prefix}/commit{'s' if 'bitbucket' in self.url else ''}/{commit_id}" if self.url else ""

    def file(self, path: str, line: int | None = None, at: str = "") -> str:
        """Return the page of a file at a commit, by default of the branch, and of one line of it."""
        if not self.url:
            return ""
        kind = "src" if "bitbucket" in self.url else "blob"
        mark = "#lines-" if "bitbucket" in self.url else "#L"
        return f"{self._prefix}/{kind}/{at or self.ref}/{quote(path)}{f'{mark}{line}' if line else ''}"

    def history(self, path: str) -> str:
        """Return the page with the commits of a file."""
        return f"{self._prefix}/commits/{self.ref}/{quote(path)}" if self.url else ""

    def edit(self, path: str) -> str:
        """Return the page that edits a file, or "" if the host has no such page."""
        return f"{self._prefix}/edit/{self.ref}/{quote(path)}" if self.url and "bitbucket" not in self.url else ""


def find_web_address(remote: str) -> str:
    """Return the address of the web pages of a remote's URL, or "" for a path or an unknown form."""
    remote = remote.strip()
    if match := re.fullmatch(r"(?:ssh://)?[\w.-]+@([\w.-]+)(?::\d+/|[:/])(.+?)(?:\.git)?/?", remote):
        return f"https://{match[1]}/{match[2].lstrip('/')}"
    # Credentials in the URL are not for readers.
    if match := re.fullmatch(r"(https?)://(?:[^/@]*@)?([^/?#\s]+)/([^?#\s]+?)(?:\.git)?/?", remote):
        return f"{match[1]}://{match[2]}/{match[3]}"
    return ""
