"""Requests to GitHub or GitLab for the scripts here: one comment that is kept up to date, and digests of reviewed plans.

    host.py comment FILE JSON        put FILE on the pull request, over the comment with the same first line; where the report or plan
                                     in JSON states that nothing changes, only over an existing comment
    host.py suggest JSON             add each edit of the check's report in JSON to the pull request as a suggested change (GitHub)
    host.py publish TARGET PLAN      note the digest of the plan file on the pull request's newest commit
    host.py approved TARGET COMMIT   print the digest that was noted on the pull request that made COMMIT
    host.py propose BRANCH BASE FILE make a pull request of the branch for BASE, with FILE as its text, or replace that text
    host.py note FILE COMMIT         put FILE on the commit, as a new comment

A digest is noted as a commit status, which users cannot edit. Needs Python alone.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Any, Final, Protocol

_PAGE: Final = 100
_TIMEOUT_S: Final = 30.0

_MAX_SUGGESTIONS: Final = 20
"""The most suggested changes of a report, so that a large change does not bury its reviewers."""


class HostError(Exception):
    """The host refuses, gives no answer, or has not what is asked for."""


class Host(Protocol):
    """A code host with pull requests."""

    def put_comment(self, body: str, *, may_be_new: bool) -> None:
        """Write `body` over our comment on the pull request with the same first line, or, if that may be, as a new one."""

    def add_note(self, body: str, commit: str) -> None:
        """Write `body` as a comment on a commit."""

    def propose_branch(self, branch: str, base: str, title: str, body: str) -> None:
        """Make a pull request of `branch` for `base`; if there is one, replace its text."""

    def suggest(self, edits: list[Any]) -> None:
        """Add each edit to the pull request as a suggested change, unless it exists."""

    def publish(self, name: str, digest: str) -> None:
        """Note `digest` under `name` on the newest commit of the pull request."""

    def get_reviewed_digest(self, name: str, commit: str) -> str | None:
        """Return the last digest under `name` on the pull request that was merged as `commit`, or None if there is no digest."""


class GitHub:
    """GitHub, or a GitHub Enterprise Server."""

    def __init__(self, token: str) -> None:
        variables = os.environ
        address = f"{variables['GITHUB_API_URL']}/repos/{variables['GITHUB_REPOSITORY']}"
        self._api = _Api(address, {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"})
        self._run = f"{variables['GITHUB_SERVER_URL']}/{variables['GITHUB_REPOSITORY']}/actions/runs/{variables['GITHUB_RUN_ID']}"

    @property
    def _pull_request(self) -> Any:
        return json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))["pull_request"]

    def put_comment(self, body: str, *, may_be_new: bool) -> None:
        """See `Host`."""
        comments = f"/issues/{self._pull_request['number']}/comments"
        for old_comment in self._api.list_entries(comments):
            # Only a bot's: anybody may write a comment with that line.
            if old_comment["user"]["type"] == "Bot" and _first_line(old_comment["body"]) == _first_line(body):
                self._api.ask("PATCH", f"/issues/comments/{old_comment['id']}", {"body": body})
                return
        if may_be_new:
            self._api.ask("POST", comments, {"body": body})

    def add_note(self, body: str, commit: str) -> None:
        """See `Host`."""
        self._api.ask("POST", f"/commits/{commit}/comments", {"body": body})

    def propose_branch(self, branch: str, base: str, title: str, body: str) -> None:
        """See `Host`."""
        owner = os.environ["GITHUB_REPOSITORY"].partition("/")[0]
        for pull_request in self._api.list_entries("/pulls", state="open", head=f"{owner}:{branch}"):
            if pull_request["head"]["ref"] == branch:
                self._api.ask("PATCH", f"/pulls/{pull_request['number']}", {"body": body})
                return
        self._api.ask("POST", "/pulls", {"title": title, "head": branch, "base": base, "body": body})

    def suggest(self, edits: list[Any]) -> None:
        """See `Host`."""
        head = self._pull_request["head"]["sha"]
        comments = f"/pulls/{self._pull_request['number']}/comments"
        known_bodies = {
            comment["body"] for comment in self._api.list_entries(comments) if comment["user"]["type"] == "Bot"
        }
        for edit in edits[:_MAX_SUGGESTIONS]:
            body = _render_suggestion(edit)
            if body in known_bodies or not self._has_lines(edit, head):
                continue
            place = {"path": edit["file"], "line": edit["end_line"], "side": "RIGHT"}
            if edit["line"] != edit["end_line"]:
                place |= {"start_line": edit["line"], "start_side": "RIGHT"}
            try:
                self._api.ask("POST", comments, {"body": body, "commit_id": head, **place})
            except HostError as error:
                # A line that the pull request does not show takes no comment.
                print(f"suggest: {edit['file']}:{edit['line']}: {error}", file=sys.stderr)

    def _has_lines(self, edit: Any, head: str) -> bool:
        """Return whether the newest commit has the lines of an edit: a check of its merge may see others."""
        content = self._api.ask("GET", f"/contents/{urllib.parse.quote(edit['file'])}", ref=head)["content"]
        lines = base64.b64decode(content).decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        old_lines: list[str] = edit["old_lines"]
        return lines[edit["line"] - 1 : edit["end_line"]] == old_lines

    def publish(self, name: str, digest: str) -> None:
        """See `Host`."""
        status = {"state": "success", "context": name, "description": digest, "target_url": self._run}
        self._api.ask("POST", f"/statuses/{self._pull_request['head']['sha']}", status)

    def get_reviewed_digest(self, name: str, commit: str) -> str | None:
        """See `Host`."""
        for pull_request in self._api.list_entries(f"/commits/{commit}/pulls"):
            if pull_request["merged_at"] and pull_request["merge_commit_sha"] == commit:
                for status in self._api.list_entries(f"/commits/{pull_request['head']['sha']}/statuses"):
                    if status["context"] == name and status["creator"]["type"] == "Bot":
                        return str(status["description"])
        return None


class GitLab:
    """GitLab. Only comments and statuses of the token's own user count."""

    def __init__(self, token: str) -> None:
        api = os.environ["CI_API_V4_URL"]
        header = {"PRIVATE-TOKEN": token}
        self._me = _Api(api, header).ask("GET", "/user")["id"]
        self._api = _Api(f"{api}/projects/{os.environ['CI_PROJECT_ID']}", header)

    def put_comment(self, body: str, *, may_be_new: bool) -> None:
        """See `Host`."""
        notes = f"/merge_requests/{os.environ['CI_MERGE_REQUEST_IID']}/notes"
        for old_comment in self._api.list_entries(notes):
            if old_comment["author"]["id"] == self._me and _first_line(old_comment["body"]) == _first_line(body):
                self._api.ask("PUT", f"{notes}/{old_comment['id']}", {"body": body})
                return
        if may_be_new:
            self._api.ask("POST", notes, {"body": body})

    def add_note(self, body: str, commit: str) -> None:
        """See `Host`."""
        self._api.ask("POST", f"/repository/commits/{commit}/comments", {"note": body})

    def propose_branch(self, branch: str, base: str, title: str, body: str) -> None:
        """See `Host`."""
        for merge_request in self._api.list_entries("/merge_requests", state="opened", source_branch=branch):
            self._api.ask("PUT", f"/merge_requests/{merge_request['iid']}", {"description": body})
            return
        values = {"title": title, "source_branch": branch, "target_branch": base, "description": body}
        self._api.ask("POST", "/merge_requests", values)

    def suggest(self, edits: list[Any]) -> None:
        """Do nothing: the report in the comment has the edits as a diff."""

    def publish(self, name: str, digest: str) -> None:
        """See `Host`."""
        # In a pipeline of merged results, the commit exists only on the host.
        commit = os.environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or os.environ["CI_COMMIT_SHA"]
        status = {"state": "success", "name": name, "description": digest, "target_url": os.environ["CI_JOB_URL"]}
        self._api.ask("POST", f"/statuses/{commit}", status)

    def get_reviewed_digest(self, name: str, commit: str) -> str | None:
        """See `Host`."""
        for merged in self._api.list_entries(f"/repository/commits/{commit}/merge_requests"):
            merge_commits = {merged["merge_commit_sha"], merged["squash_commit_sha"], merged["sha"]}
            if merged["state"] == "merged" and commit in merge_commits:
                statuses = self._api.list_entries(
                    f"/repository/commits/{merged['sha']}/statuses", all="true", name=name
                )
                ours = [entry for entry in statuses if entry["author"]["id"] == self._me and entry["name"] == name]
                if ours:
                    return str(max(ours, key=lambda each: int(each["id"]))["description"])
        return None


class _Api:
    """JSON from below one address, with a header that says who asks."""

    def __init__(self, address: str, headers: dict[str, str]) -> None:
        self._address = address
        self._headers = headers
        self._opener = urllib.request.build_opener(_NoRedirect)

    def ask(self, method: str, path: str, body: object = None, **query: str) -> Any:
        """Return the response. Raise HostError if the request fails or is rejected."""
        url = self._address + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310  the host's own address
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            said = error.read(300).decode("utf-8", "replace")
            raise HostError(f"{method} {path} was answered with {error.code}: {said}") from error
        except (OSError, ValueError) as error:
            raise HostError(f"{method} {path}: {error}") from error

    def list_entries(self, path: str, **query: str) -> Iterator[Any]:
        """Yield the entries of a list, of all pages."""
        page = 1
        while page_entries := self.ask("GET", path, per_page=str(_PAGE), page=str(page), **query):
            yield from page_entries
            if len(page_entries) < _PAGE:
                return
            page += 1


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to the host's own address and to no other."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow nothing."""


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0].strip()


def _render_suggestion(edit: Any) -> str:
    """Return the body of a comment with a suggested change."""
    text = "\n".join(edit["new_lines"])
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"schemactl: this edit makes the fix.\n\n{fence}suggestion\n{text}\n{fence}"


def _find_project_folder() -> str:
    """Return the folder of the project, quoted and relative to the top of the repository; "" at the top."""
    here = Path.cwd()
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    folder = here.relative_to(top).as_posix()
    return "" if folder == "." else urllib.parse.quote(folder)


def _name_project(body: str) -> str:
    """Return a comment whose first line also names the project, if that is below the top: each project has its own comments."""
    folder = _find_project_folder()
    first, line_break, rest = body.partition("\n")
    return (
        f"{first.removesuffix(' -->')} in {folder} -->{line_break}{rest}" if folder and first.endswith(" -->") else body
    )


def _says_something(path: Path) -> bool:
    """Return whether a check's report, or a plan, is worth a comment: most pull requests change no schema. Without a plan, why is."""
    if not path.exists():
        return True
    report = json.loads(path.read_bytes())
    keys = ("topics", "policies", "findings", "waivers", "steps", "left_out", "misread", "numbers_apart")
    return any(report.get(key) for key in keys)


def _find_host() -> Host | None:
    """Return the host that runs this, or None without permission to write, as in a pull request of a fork."""
    token = os.environ.get("SCHEMACTL_TOKEN")
    if not token:
        return None
    return GitLab(token) if "GITLAB_CI" in os.environ else GitHub(token)


def main(command: str, *arguments: str) -> int:
    """Do one of the commands above, and return the exit code."""
    if command in ("comment", "suggest") and os.environ.get("SCHEMACTL_COMMENT") == "false":
        return 0
    try:
        host = _find_host()
        if host is None:
            print(f"{command}: there is no token here, so nothing is asked of the host", file=sys.stderr)
            return 1 if command == "approved" else 0
        if command == "comment":
            body, report = map(Path, arguments)
            text = _name_project(body.read_bytes().decode("utf-8", "replace"))
            host.put_comment(text, may_be_new=_says_something(report))
            return 0
        if command == "propose":
            branch, base, path = arguments
            title = f"Record what {branch.partition('drift-')[2]} has and Git does not"
            host.propose_branch(branch, base, title, Path(path).read_text(encoding="utf-8", errors="replace"))
            return 0
        if command == "note":
            host.add_note(_name_project(Path(arguments[0]).read_text(encoding="utf-8", errors="replace")), arguments[1])
            return 0
        if command == "suggest":
            host.suggest(json.loads(Path(arguments[0]).read_bytes()).get("edits", []))
            return 0
        target, argument = arguments
        folder = _find_project_folder()
        name = f"schemactl plan {target}" + (f" in {folder}" if folder else "")
        if command == "publish":
            host.publish(name, json.loads(Path(argument).read_bytes())["digest"])
            return 0
        if digest := host.get_reviewed_digest(name, argument):
            print(digest)
            return 0
        print(
            f"no plan for {target} was reviewed on a pull request that was merged as {argument[:9]}; nothing was changed\n"
            "  Fix: read the plan above, and run this by hand with its digest",
            file=sys.stderr,
        )
    except HostError as error:
        print(f"{command}: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
