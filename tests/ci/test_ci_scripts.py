"""Pull requests from the first check to the apply, by the scripts that the action and the component run."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from command import schemactl
from estate import ORDERS
from scratch import ENVIRONMENT, Scratch, record, write_declaration

from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Scope

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STRING = "topic: shop/sales/notes\nschema: {type: STRING}\n"
HOSTS = ("github", "gitlab")
TOKEN = "secret-of-the-job"  # noqa: S105  of nobody
BOT = {"id": 41, "type": "Bot"}


class CodeHost:
    """A code host with one repository and one pull request: the REST paths of GitHub and GitLab for comments, statuses and merges.

    Attributes:
        comments: of the pull request.
        statuses: by commit, the newest first.
        merged: the pull requests that were merged, as the host's API says it.
        notes: the comments on commits, by commit.
        proposed: the open pull requests that scripts made.
        suggestions: the comments on lines of the pull request.
        contents: the files of its newest commit, by path.
        url: of the API.
    """

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.merged: list[dict[str, Any]] = []
        self.notes: dict[str, list[str]] = {}
        self.proposed: list[dict[str, Any]] = []
        self.suggestions: list[dict[str, Any]] = []
        self.contents: dict[str, bytes] = {}
        self.url = ""

    def answer_request(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        """Return the response of the API.

        Raises:
            KeyError: if the API has no such path.
        """
        for path_method, pattern, act in _PATHS:
            if path_method == method and (match := re.fullmatch(pattern, path)):
                response = act(self, body, *match.groups())
                if not isinstance(response, list):
                    return response
                size, page = int(query["per_page"][0]), int(query["page"][0])
                return response[size * (page - 1) : size * page]
        raise KeyError(f"{method} {path}")

    def add_comment(self, body: Any) -> Any:
        """Add a comment of the bot, and return it."""
        self.comments.append({"id": 100 + len(self.comments), "user": BOT, "author": BOT, **body})
        return self.comments[-1]

    def edit_comment(self, body: Any, number: str) -> Any:
        """Replace the text of a comment, and return it."""
        (comment,) = (comment for comment in self.comments if comment["id"] == int(number))
        comment.update(body)
        return comment

    def add_note(self, body: Any, commit: str) -> Any:
        """Add a comment on a commit, and return it."""
        self.notes.setdefault(commit, []).append(body.get("body") or body["note"])
        return body

    def add_pull_request(self, body: Any) -> Any:
        """Add a pull request, and return it."""
        branch = body.get("head") or body["source_branch"]
        self.proposed.append({**body, "number": 2, "iid": 2, "head": {"ref": branch}})
        return self.proposed[-1]

    def edit_pull_request(self, body: Any, number: str) -> Any:
        """Replace the text of a pull request, and return it."""
        (pull_request,) = (request for request in self.proposed if request["number"] == int(number))
        pull_request.update(body)
        return pull_request

    def add_suggestion(self, body: Any) -> Any:
        """Add a comment of the bot on lines, and return it."""
        self.suggestions.append({"user": BOT, **body})
        return self.suggestions[-1]

    def get_content(self, _body: Any, path: str) -> Any:
        """Return a file of the newest commit."""
        return {"content": base64.encodebytes(self.contents[path]).decode()}

    def add_status(self, body: Any, commit: str, creator: dict[str, Any] = BOT) -> Any:
        """Add a status of a commit, and return it."""
        statuses = self.statuses.setdefault(commit, [])
        statuses.insert(0, {**body, "id": len(statuses), "creator": creator, "author": creator})
        return statuses[0]


_Act = Callable[..., Any]
_GITHUB, _GITLAB = "/repos/acme/schemas", "/projects/7"
_PATHS: list[tuple[str, str, _Act]] = [
    ("GET", f"{_GITHUB}/issues/1/comments", lambda host, _: host.comments),
    ("POST", f"{_GITHUB}/issues/1/comments", CodeHost.add_comment),
    ("PATCH", rf"{_GITHUB}/issues/comments/(\d+)", CodeHost.edit_comment),
    ("GET", f"{_GITHUB}/pulls/1/comments", lambda host, _: host.suggestions),
    ("POST", f"{_GITHUB}/pulls/1/comments", CodeHost.add_suggestion),
    ("GET", rf"{_GITHUB}/contents/(.+)", CodeHost.get_content),
    ("POST", rf"{_GITHUB}/statuses/(\w+)", CodeHost.add_status),
    ("GET", rf"{_GITHUB}/commits/(\w+)/statuses", lambda host, _, commit: host.statuses.get(commit, [])),
    ("GET", rf"{_GITHUB}/commits/\w+/pulls", lambda host, _: host.merged),
    ("POST", rf"{_GITHUB}/commits/(\w+)/comments", CodeHost.add_note),
    ("GET", f"{_GITHUB}/pulls", lambda host, _: host.proposed),
    ("POST", f"{_GITHUB}/pulls", CodeHost.add_pull_request),
    ("PATCH", rf"{_GITHUB}/pulls/(\d+)", CodeHost.edit_pull_request),
    ("POST", rf"{_GITLAB}/repository/commits/(\w+)/comments", CodeHost.add_note),
    ("GET", f"{_GITLAB}/merge_requests", lambda host, _: host.proposed),
    ("POST", f"{_GITLAB}/merge_requests", CodeHost.add_pull_request),
    ("PUT", rf"{_GITLAB}/merge_requests/(\d+)", CodeHost.edit_pull_request),
    ("GET", "/user", lambda _host, _body: BOT),
    ("GET", f"{_GITLAB}/merge_requests/1/notes", lambda host, _: host.comments),
    ("POST", f"{_GITLAB}/merge_requests/1/notes", CodeHost.add_comment),
    ("PUT", rf"{_GITLAB}/merge_requests/1/notes/(\d+)", CodeHost.edit_comment),
    ("POST", rf"{_GITLAB}/statuses/(\w+)", CodeHost.add_status),
    ("GET", rf"{_GITLAB}/repository/commits/(\w+)/statuses", lambda host, _, commit: host.statuses.get(commit, [])),
    ("GET", rf"{_GITLAB}/repository/commits/\w+/merge_requests", lambda host, _: host.merged),
]


@contextmanager
def run_code_host() -> Iterator[CodeHost]:
    """Serve a code host on the loopback interface that accepts requests with TOKEN."""
    host = CodeHost()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            is_authorized = TOKEN in (self.headers.get("PRIVATE-TOKEN"), (self.headers.get("Authorization") or "")[7:])
            try:
                code, response = (
                    (200, host.answer_request(self.command, url.path, parse_qs(url.query), body))
                    if is_authorized
                    else (403, {})
                )
            except KeyError as error:
                code, response = 404, {"message": str(error)}
            data = json.dumps(response).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = handle_one  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        host.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield host
        finally:
            server.shutdown()
            thread.join()


class Ended(NamedTuple):
    """The exit code and output of a job."""

    code: int
    text: str


class Team:
    """A bare repository that is the host's, with a pull request, a code host, and the registry that both sides share.

    Attributes:
        host: GitHub's or GitLab's API.
        origin: the bare repository.
        work: a clone to work in.
    """

    def __init__(self, folder: Path, host: CodeHost) -> None:
        self.host = host
        self.origin = Scratch(folder / "origin.git", bare=True)
        self.work = Scratch(folder / "work")
        self._folder = folder
        self._jobs = 0
        self.registry = folder / "registry.db"
        project = f'version: 1\ntargets: {{prod: {{registry: "sqlite:{self.registry}"}}}}\n'
        self.work.commit(
            {
                "schemactl.yaml": project,
                "namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
                "namespaces/orders.yaml": write_declaration(),
                "namespaces/orders.avsc": record("id"),
            }
        )
        self.work.flush()
        self.work.git("remote", "add", "origin", str(self.origin.path))
        self.work.git("push", "-q", "origin", "main")

    def add_commit(self, files: dict[str, str]) -> str:
        """One more commit of the pull request, and the merge that the host makes of it; the commit's id."""
        self.work.git("fetch", "-q", "origin")
        if "topic" not in self.work.git("branch"):
            self.work.git("switch", "-q", "-c", "topic", "origin/main")
        self.work.git("switch", "-q", "topic")
        self._add(files)
        head = self.work.git("rev-parse", "HEAD").strip()
        self.work.git("switch", "-q", "--detach", "origin/main")
        self.work.git("merge", "-q", "--no-ff", "-m", "Merge", "topic")
        self.work.git("push", "-q", "-f", "origin", "topic", "HEAD:refs/pull/1/merge")
        return head

    def approve(self, files: dict[str, str]) -> str:
        """A commit on main; its id."""
        self.work.git("fetch", "-q", "origin")
        self.work.git("switch", "-q", "--detach", "origin/main")
        return self._push_files(files)

    def squash_and_merge(self, **also: str) -> str:
        """Squash the pull request onto main with the additional changes `also`, and return the id of the commit."""
        head = self.work.git("rev-parse", "topic").strip()
        self.work.git("fetch", "-q", "origin")
        self.work.git("switch", "-q", "--detach", "origin/main")
        self.work.git("merge", "-q", "--squash", "topic")
        commit = self._push_files({f"namespaces/{name}.yaml": text for name, text in also.items()})
        self.host.merged = [
            {
                "merged_at": "2026-11-23",
                "merge_commit_sha": commit,
                "squash_commit_sha": commit,
                "state": "merged",
                "head": {"sha": head},
                "sha": head,
            }
        ]
        return commit

    def _push_files(self, files: dict[str, str]) -> str:
        self._add(files)
        self.work.git("push", "-q", "origin", "HEAD:refs/heads/main")
        return self.work.git("rev-parse", "HEAD").strip()

    def _add(self, files: dict[str, str]) -> None:
        self.work.write(files)
        self.work.git("add", ".")
        self.work.git("commit", "-q", "--allow-empty", "-m", "Change")

    def list_numbers(self, topic: str = "orders") -> list[int]:
        """The numbers that the registry has of a topic."""
        if not self.registry.exists():
            return []
        name = replace(ORDERS, topic=topic)
        with closing(EmbeddedRegistry(str(self.registry))) as registry:
            stored_topic = registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)
        return [version.number for version in stored_topic.versions] if stored_topic else []

    def clone(self, ref: str) -> Path:
        """Make the clone of the host's runner, which has only one commit."""
        self._jobs += 1
        path = self._folder / f"job-{self._jobs}"
        clone = Scratch(path)
        clone.git("remote", "add", "origin", f"file://{self.origin.path}")
        clone.git("fetch", "-q", "--no-tags", "--depth=1", "origin", f"+{ref}:refs/remotes/job")
        clone.git("checkout", "-q", "--detach", "refs/remotes/job")
        return path

    def on_github(
        self,
        run: str,
        *,
        head: str = "",
        commit: str = "",
        fork: bool = False,
        digest: str = "",
        to: str = "",
        target: str | None = None,
    ) -> Ended:
        """The shell steps of action.yml, one after the other, until one fails."""
        path = self.clone(commit or "refs/pull/1/merge")
        temporary = path.with_name(f"{path.name}-temporary")
        (temporary / "schemactl/bin").mkdir(parents=True)
        for name, program in (("python3", sys.executable), ("schemactl", Path(sys.executable).with_name("schemactl"))):
            (temporary / "schemactl/bin" / name).symlink_to(program)
        event = temporary / "event.json"
        source = "stranger/schemas" if fork else "acme/schemas"
        event.write_text(
            json.dumps({"pull_request": {"number": 1, "head": {"sha": head, "repo": {"full_name": source}}}})
        )
        expression_values = {
            "inputs.run": run,
            "inputs.target": ("" if run == "check" else "prod") if target is None else target,
            "inputs.to": to,
            "inputs.directory": ".",
            "inputs.comment": "true",
            "inputs.digest": digest,
            "inputs.token": TOKEN,
            "runner.temp": str(temporary),
            "github.sha": commit,
            "github.base_ref || github.event.merge_group.base_ref": "" if commit else "main",
            "steps.python.outputs.python-path": sys.executable,
            # The result of GitHub.
            "(inputs.run == 'apply' || inputs.run == 'drift' || inputs.to != '' || github.event.pull_request.head.repo.full_name == github.repository) && inputs.token || ''": ""
            if fork
            else TOKEN,
        }

        def fill_expressions(text: str) -> str:
            for expression, value in expression_values.items():
                text = text.replace(f"${{{{ {expression} }}}}", value)
            assert "${{" not in text, text
            return text

        said = ""
        for step in ACTION["runs"]["steps"]:
            if "run" not in step:
                continue
            variables = {name: fill_expressions(value) for name, value in step.get("env", {}).items()}
            done = self._run_step(
                step["run"],
                path,
                **self._on_github,
                GITHUB_EVENT_PATH=str(event),
                GITHUB_OUTPUT=str(temporary / "output"),
                GITHUB_STEP_SUMMARY=str(temporary / "summary.md"),
                **variables,
            )
            said += done.text
            if done.code:
                return Ended(done.code, said)
        return Ended(0, said)

    def on_host(self, *arguments: str, folder: Path | None = None) -> Ended:
        """Run host.py with these arguments in `folder`, the folder of the project."""
        event = self._folder / "event.json"
        event.write_text('{"pull_request": {"number": 1, "head": {"sha": "abc"}}}')
        return self._run_step(
            shlex.join([sys.executable, str(ROOT / "ci/host.py"), *arguments]),
            folder or self._folder,
            **self._on_github,
            GITHUB_EVENT_PATH=str(event),
            SCHEMACTL_TOKEN=TOKEN,
        )

    @property
    def _on_github(self) -> dict[str, str]:
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_API_URL": self.host.url,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": "acme/schemas",
            "GITHUB_RUN_ID": "9",
        }

    def on_gitlab(self, run: str, *, head: str = "", commit: str = "", fork: bool = False, digest: str = "") -> Ended:
        """The script of the component's job."""
        jobs = list(yaml.safe_load_all((ROOT / "templates/schemactl.yml").read_text()))[1]
        path = self.clone(commit or "refs/heads/topic")
        home = path.with_name(f"{path.name}-home")
        home.mkdir()
        lines = [*jobs[".schemactl"]["before_script"], *jobs[f"schemactl-{run}"]["script"]]
        script = "\n".join(["set -e", *lines]).replace("/opt/schemactl/ci", str(ROOT / "ci"))
        return self._run_step(
            script,
            path,
            GITLAB_CI="true",
            HOME=str(home),
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            CI_API_V4_URL=self.host.url,
            CI_PROJECT_ID="7",
            CI_PROJECT_DIR=str(path),
            CI_PROJECT_PATH="stranger/schemas" if fork else "acme/schemas",
            CI_JOB_URL="https://gitlab.example/job/9",
            CI_COMMIT_SHA=commit or head,
            **({} if commit else {"CI_MERGE_REQUEST_IID": "1"}),
            CI_MERGE_REQUEST_PROJECT_PATH="acme/schemas",
            CI_MERGE_REQUEST_PROJECT_URL=f"file://{self.origin.path.with_suffix('')}",
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
            SCHEMACTL_FOLDER=".",
            SCHEMACTL_BASE="main",
            SCHEMACTL_TARGET="prod",
            SCHEMACTL_REPORTS=str(path / "schemactl-reports"),
            SCHEMACTL_TOKEN="" if fork else TOKEN,
            SCHEMACTL_DIGEST=digest,
        )

    def on_gitlab_script(self, name: str) -> Ended:
        """A script in a scheduled pipeline of the default branch."""
        path = self.clone("refs/heads/main")
        home = path.with_name(f"{path.name}-home")
        home.mkdir()
        return self._run_step(
            f"{ROOT}/ci/history.sh && {ROOT}/ci/{name}",
            path,
            GITLAB_CI="true",
            HOME=str(home),
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            CI_API_V4_URL=self.host.url,
            CI_PROJECT_ID="7",
            CI_PROJECT_PATH="acme/schemas",
            SCHEMACTL_BASE="main",
            SCHEMACTL_TARGET="prod",
            SCHEMACTL_REPORTS=str(path.with_name(f"{path.name}-reports")),
            SCHEMACTL_TOKEN=TOKEN,
        )

    def _run_step(self, script: str, path: Path, **variables: str) -> Ended:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=path,
            env=ENVIRONMENT | {"CI": "true"} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        return Ended(done.returncode, done.stdout)


@pytest.fixture
def hosted_team(tmp_path: Path) -> Iterator[Team]:
    with run_code_host() as host:
        yield Team(tmp_path, host)


def read_first_lines(team: Team) -> list[str]:
    """The first lines of the comments."""
    return [host_comment["body"].split("\n")[0] for host_comment in team.host.comments]


def plan(team: Team, kind: str = "github") -> dict[str, Any]:
    """The status that the plan of the pull request leaves."""
    head = team.add_commit({"namespaces/orders.avsc": record("id", note=0)})
    planned = getattr(team, f"on_{kind}")("plan", head=head)
    assert planned.code == 0, planned.text
    (status,) = team.host.statuses[head]
    return status


@pytest.mark.parametrize("kind", HOSTS)
def test_what_was_reviewed_is_applied_after_a_squash(hosted_team: Team, kind: str) -> None:
    digest = plan(hosted_team, kind)["description"]
    assert read_first_lines(hosted_team) == ["<!-- schemactl:report:plan prod -->"]
    assert digest in hosted_team.host.comments[0]["body"]
    commit = hosted_team.squash_and_merge()
    # Others merge before the job begins.
    hosted_team.approve({"namespaces/notes.yaml": STRING})
    applied = getattr(hosted_team, f"on_{kind}")("apply", commit=commit)
    assert applied.code == 0, applied.text
    assert (hosted_team.list_numbers(), hosted_team.list_numbers("notes")) == ([0, 1], [])
    (record_of_it,) = hosted_team.work.path.parent.glob("**/result.json")
    result = json.loads(record_of_it.read_text())
    assert (result["outcome"], result["plan"], result["ci"]["server"]) == ("applied", digest, kind)
    if kind == "github":
        # Run again, there is nothing to do.
        hosted_team.host.merged = []
        assert hosted_team.on_github("apply", commit=commit).code == 0


def test_what_was_not_reviewed_is_not_applied(hosted_team: Team) -> None:
    """Contents change, also with a status of another user, another registry, or no plan; a person may approve the shown plan."""
    status = plan(hosted_team)
    commit = hosted_team.squash_and_merge(notes=STRING)
    shown_digest = schemactl(hosted_team.work.path, "plan").out.rpartition("Digest: ")[2].strip()
    head = hosted_team.host.merged[0]["head"]["sha"]
    hosted_team.host.add_status(status | {"description": shown_digest}, head, {"id": 9, "type": "User"})
    refused = hosted_team.on_github("apply", commit=commit)
    assert refused.code == 4, refused.text
    assert f"its digest is {shown_digest}, approved was {status['description']}" in refused.text
    hosted_team.host.merged = []
    unknown = hosted_team.on_host("approved", "prod", commit)
    assert unknown.code == 1
    assert "no plan for prod was reviewed" in unknown.text
    with closing(EmbeddedRegistry(str(hosted_team.registry))) as registry:
        registry.create_namespace(ORDERS.namespace_name)
    assert hosted_team.on_github("apply", commit=commit, digest=shown_digest).code == 4
    hosted_team.registry.unlink()
    assert hosted_team.on_github("apply", commit=commit, digest=shown_digest).code == 0
    assert (hosted_team.list_numbers(), hosted_team.list_numbers("notes")) == ([0, 1], [0])


def test_a_merge_does_not_move_a_target_that_is_promoted(hosted_team: Team) -> None:
    project = (hosted_team.work.path / "schemactl.yaml").read_text().replace("}}", ", promoted: refs/tags/prod}}")
    hosted_team.approve({"schemactl.yaml": project})
    hosted_team.work.git("tag", "prod")
    hosted_team.work.git("push", "-q", "origin", "prod")
    commit = hosted_team.approve({"namespaces/orders.avsc": record("id", note=0)})
    refused = hosted_team.on_github("apply", commit=commit)
    assert refused.code == 1, refused.text
    assert "1 later commit not planned" in refused.text
    assert "1 version to register" in refused.text


@pytest.mark.parametrize(
    ("run", "variables", "said"),
    [
        ("deploy", {}, "write check, plan, apply, promote or drift"),
        ("check", {"SCHEMACTL_BASE": ""}, "after a merge there is `run: apply`"),
        ("promote", {}, "name the commit and the approved digest"),
        ("promote", {"SCHEMACTL_TO": "main", "SCHEMACTL_DIGEST": "sha256:0"}, "name the target"),
        ("drift", {}, "name the target"),
        ("plan", {"SCHEMACTL_BASE": "refs/heads/main"}, "with: {run: plan, target: prod}"),
        ("apply", {}, "name the target"),
    ],
)
def test_a_wrong_input_of_the_action_is_one_line(run: str, variables: dict[str, str], said: str) -> None:
    expression_values = {
        "SCHEMACTL_BASE": "main",
        "SCHEMACTL_TARGET": "",
        "SCHEMACTL_TO": "",
        "SCHEMACTL_DIGEST": "",
        "SCHEMACTL_TOKEN": TOKEN,
        "SCHEMACTL_REPORTS": "none",
    }
    done = subprocess.run(
        [ROOT / "ci/github.sh", run],
        env=ENVIRONMENT | expression_values | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (64, "", 1)
    assert said in done.stderr


@pytest.mark.parametrize("kind", HOSTS)
def test_a_fork_is_checked_and_gets_nothing_else(hosted_team: Team, kind: str) -> None:
    run = getattr(hosted_team, f"on_{kind}")
    head = hosted_team.add_commit({"namespaces/orders.avsc": record("id", "needed")})
    assert run("check", head=head, fork=True).code == 100
    if kind == "github":
        assert "nothing is planned for a fork" in hosted_team.on_github("plan", head=head, fork=True).text
    assert (hosted_team.host.comments, hosted_team.host.statuses) == ([], {})
    assert not hosted_team.registry.exists()


def test_there_is_one_comment_where_schemas_change_and_those_of_others_stay(hosted_team: Team) -> None:
    body = "<!-- schemactl:report:check -->\nmine"
    others = [{"id": number, "user": {"type": "User"}, "body": body} for number in range(100)]
    others.append({"id": 150, "user": BOT, "body": body.replace("check", "plan prod")})
    hosted_team.host.comments += others
    report = hosted_team.work.path / "report.json"
    for files in ({"README.md": "No schema."}, {"namespaces/orders.avsc": record("id", "needed")}):
        assert hosted_team.host.comments == others
        checked = hosted_team.on_github("check", head=hosted_team.add_commit(files))
    assert checked.code == 100
    *before, ours = hosted_team.host.comments
    assert before == others
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in ours["body"]
    hosted_team.work.write({"check.md": "<!-- schemactl:report:check -->\nfine", "report.json": '{"topics": []}'})
    assert hosted_team.on_host("comment", str(report.with_name("check.md")), str(report)).code == 0
    assert hosted_team.host.comments == [*others, ours]
    assert ours["body"].endswith("\nfine")


def test_each_project_of_a_repository_has_a_comment_and_a_digest_of_its_own(hosted_team: Team) -> None:
    body = "<!-- schemactl:report:check -->\nfine"
    hosted_team.work.write(
        {"shop/check.md": body, "shop/report.json": '{"topics": [1]}', "shop/plan.json": '{"digest": "sha256:1"}'}
    )
    hosted_team.work.write(
        {
            "web data/check.md": body,
            "web data/report.json": '{"topics": [1]}',
            "web data/plan.json": '{"digest": "sha256:2"}',
        }
    )
    for name in ("shop", "web data", "shop"):
        folder = hosted_team.work.path / name
        assert hosted_team.on_host("comment", "check.md", "report.json", folder=folder).code == 0
        assert hosted_team.on_host("publish", "prod", "plan.json", folder=folder).code == 0
    assert [comment["body"].split("\n")[0] for comment in hosted_team.host.comments] == [
        "<!-- schemactl:report:check in shop -->",
        "<!-- schemactl:report:check in web%20data -->",
    ]
    digests = {status["context"]: status["description"] for status in hosted_team.host.statuses["abc"]}
    assert digests == {"schemactl plan prod in shop": "sha256:1", "schemactl plan prod in web%20data": "sha256:2"}


def declare_position(team: Team) -> None:
    """Give the target its own position, which does not exist yet."""
    project = (team.work.path / "schemactl.yaml").read_text().replace("}}", ", promoted: origin/promoted/prod}}")
    team.approve({"schemactl.yaml": project})


def read_digest(team: Team) -> str:
    """Return the digest that the last plan told the next job."""
    outputs = sorted(team.work.path.parent.glob("job-*-temporary/output"), key=lambda path: path.stat().st_mtime_ns)
    return dict(line.split("=", 1) for line in outputs[-1].read_text().splitlines())["digest"]


def test_a_promotion_shows_the_plan_and_applies_it_by_its_digest(hosted_team: Team) -> None:
    declare_position(hosted_team)
    commit = hosted_team.approve({"namespaces/orders.avsc": record("id", note=0)})
    overview = hosted_team.on_github("plan", commit=commit, to="origin/main", target="")
    assert (overview.code, "2 versions to register" in overview.text) == (0, True), overview.text
    planned = hosted_team.on_github("plan", commit=commit, to="origin/main")
    assert planned.code == 0, planned.text
    digest = read_digest(hosted_team)
    assert digest in hosted_team.host.notes[commit][0]
    assert "prod was never promoted" in planned.text

    other = hosted_team.on_github("promote", commit=commit, to="origin/main", digest="sha256:0")
    assert (other.code, hosted_team.list_numbers()) == (4, []), other.text
    assert "approved was sha256:0; nothing was changed" in other.text
    assert "promoted/prod" not in hosted_team.origin.git("branch")

    promoted = hosted_team.on_github("promote", commit=commit, to="origin/main", digest=digest)
    assert promoted.code == 0, promoted.text
    assert hosted_team.list_numbers() == [0, 1]
    assert hosted_team.origin.git("rev-parse", "promoted/prod").strip() == commit
    # The next one finds the target there, and has nothing to do.
    again = hosted_team.on_github("plan", commit=commit, to=commit)
    assert (again.code, "No changes" in again.text) == (0, True), again.text


def test_a_promotion_goes_to_an_approved_commit_only(hosted_team: Team) -> None:
    declare_position(hosted_team)
    head = hosted_team.add_commit({"namespaces/orders.avsc": record("id", note=0)})
    refused = hosted_team.on_github("plan", commit="refs/heads/main", to=head)
    assert refused.code == 1, refused.text
    assert hosted_team.on_github("plan", commit="refs/heads/main", to="origin/none").code == 64


@pytest.mark.parametrize("kind", HOSTS)
def test_what_a_registry_has_and_git_does_not_becomes_one_pull_request(hosted_team: Team, kind: str) -> None:
    assert schemactl(hosted_team.work.path, "apply", "-y").code == 0

    def run_drift() -> Ended:
        if kind == "github":
            return hosted_team.on_github("drift", commit="refs/heads/main")
        return hosted_team.on_gitlab_script("drift.sh")

    quiet = run_drift()
    assert (quiet.code, hosted_team.host.proposed) == (0, []), quiet.text
    with closing(EmbeddedRegistry(str(hosted_team.registry))) as registry:
        foreign = SchemaInfo(SchemaType.AVRO, record("id", by_hand=0).encode())
        registry.put_schema(ORDERS, foreign)
    for _ in range(2):
        proposed = run_drift()
        assert proposed.code == 0, proposed.text
    (pull_request,) = hosted_team.host.proposed
    assert "foreign version" in (pull_request.get("body") or pull_request["description"])
    assert pull_request["title"] == "Record what prod has and Git does not"
    files = hosted_team.origin.git("diff", "--name-only", "main", "schemactl/drift-prod").split()
    assert "numbers/prod.yaml" in files


def test_edits_of_the_report_are_suggested_once_where_the_commit_has_their_lines(hosted_team: Team) -> None:
    text = record("id", "needed")
    head = hosted_team.add_commit({"namespaces/orders.avsc": text})
    hosted_team.host.contents["namespaces/orders.avsc"] = text.replace("\n", "\r\n").encode()
    for _ in range(2):
        assert hosted_team.on_github("check", head=head).code == 100
        (suggestion,) = hosted_team.host.suggestions
    assert (suggestion["path"], suggestion["line"], suggestion["commit_id"]) == ("namespaces/orders.avsc", 1, head)
    assert '```suggestion\n{"type": "record"' in suggestion["body"]
    assert '"default": ' in suggestion["body"]
    hosted_team.host.suggestions.clear()
    hosted_team.host.contents["namespaces/orders.avsc"] = b"{}\n"
    hosted_team.on_github("check", head=head)
    assert hosted_team.host.suggestions == []
