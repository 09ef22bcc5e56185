"""Synthetic repositories of topics with a long history, the same for the same arguments.

    python benchmarks/repositories.py FOLDER TOPICS COMMITS NAMESPACES

82 % of the changes edit one to three topics, 6 % a shared definition, 4 % only layout or comments. Another 3 % return to older
content, 2 % rename a file, 1.5 % delete a topic and 1.5 % declare it again. Merges are 15 % of main's commits, of branches with
one to three commits. Half of the topics have their definition in the declaration, half in a separate file, with a reference.
With a skew above 1, topics with a low number change more often, as in real repositories.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

FIRST_COMMIT_S = 1_600_000_000

SIZES = {"small": (200, 2_000, 20), "medium": (2_000, 10_000, 50), "large": (10_000, 50_000, 100)}
"""Topics, commits, namespaces."""

PROJECT = "version: 1\nroots: [topics]\n"

Files = dict[str, str | None]

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Generator:
    """The state of the repository while its history is made up."""

    def __init__(
        self, topics: int, commits: int, namespaces: int, *, skew: float = 1.0, project: str = PROJECT
    ) -> None:
        self.skew = skew
        self.project = project
        self.random = random.Random(1)  # noqa: S311  no secret, but always the same
        self.topics = topics
        self.commits = commits
        self.namespaces = namespaces
        self.shared = max(5, topics // (100 if skew == 1.0 else 10))
        self.version = [0] * topics
        self.newest = [0] * topics
        self.shared_version = [0] * self.shared
        self.comments = [0] * topics
        self.suffix = [""] * topics
        self.declared = [True] * topics
        self.mark = 0

    def write_stream(self) -> Iterator[bytes]:
        """Yield the input of `git fast-import`."""
        first: Files = {"schemactl.yaml": self.project}
        for number in range(self.shared):
            first |= self._make_shared(number)
        for topic in range(self.topics):
            first |= self._list_files(topic)
        yield self._commit("main", "Declare all topics", first)
        tip = self.mark
        while self.mark < self.commits:
            if self.random.random() < 0.15:
                branch: Files = {}
                base = tip
                for _ in range(self.random.choice((1, 1, 2, 3))):
                    change = self._change()
                    branch |= change
                    yield self._commit("side", "Change on a branch", change, start=base)
                    base = self.mark
                yield self._commit("main", "Merge a branch", branch, start=tip, merge=base)
            else:
                yield self._commit("main", "Change", self._change(), start=tip)
            tip = self.mark

    def _change(self) -> Files:
        """Return the changes of one commit, empty if no topic fits its kind of change."""
        kinds: dict[Callable[[int], Files], float] = {
            self._edit_some: 82,
            self._edit_shared: 6,
            self._edit_comment: 4,
            self._revert: 3,
            self._rename: 2,
            self._delete: 1.5,
            self._declare_again: 1.5,
        }
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        return kind(self._choose_topic())

    def _choose_topic(self) -> int:
        if self.skew == 1.0:
            return self.random.randrange(self.topics)
        # The topic of most versions has its definition in a file, with a reference.
        return min(int(self.topics * self.random.random() ** self.skew) ^ 1, self.topics - 1)

    def _edit_some(self, topic: int) -> Files:
        others = {self._choose_topic() for _ in range(self.random.choice((0, 0, 1, 2)))}
        files: Files = {}
        for topic_number in sorted({topic, *others}):
            if self.declared[topic_number]:
                self.newest[topic_number] += 1
                self.version[topic_number] = self.newest[topic_number]
                files |= self._edit(topic_number)
        return files

    def _edit_shared(self, topic: int) -> Files:
        number = (topic if self.skew == 1.0 else self.random.randrange(self.topics)) % self.shared
        self.shared_version[number] += 1
        return self._make_shared(number)

    def _edit_comment(self, topic: int) -> Files:
        self.comments[topic] += 1
        return {self._make_path(topic): self._make_declaration(topic)} if self.declared[topic] else {}

    def _revert(self, topic: int) -> Files:
        self.version[topic] = self.random.randrange(self.newest[topic] + 1)
        return self._edit(topic) if self.declared[topic] else {}

    def _rename(self, topic: int) -> Files:
        before: Files = {self._make_path(topic): None}
        self.suffix[topic] = "" if self.suffix[topic] else "-renamed"
        return before | {self._make_path(topic): self._make_declaration(topic)} if self.declared[topic] else {}

    def _delete(self, topic: int) -> Files:
        if self.skew != 1.0:
            # A topic that changes often is rarely deleted.
            topic = self.random.randrange(self.topics)
        gone = dict.fromkeys(self._list_files(topic)) if self.declared[topic] else {}
        self.declared[topic] = False
        return gone

    def _declare_again(self, _topic: int) -> Files:
        gone = [topic_number for topic_number in range(self.topics) if not self.declared[topic_number]]
        if not gone:
            return {}
        topic = self.random.choice(gone)
        self.declared[topic] = True
        return self._list_files(topic)

    def _edit(self, topic: int) -> Files:
        if topic % 2:
            return {self._definition_path(topic): self._make_definition(topic)}
        return {self._make_path(topic): self._make_declaration(topic)}

    def _list_files(self, topic: int) -> Files:
        files: Files = {self._make_path(topic): self._make_declaration(topic)}
        return files | {self._definition_path(topic): self._make_definition(topic)} if topic % 2 else files

    def _make_folder(self, topic: int) -> str:
        return f"ns{topic % self.namespaces:03d}"

    def _make_path(self, topic: int) -> str:
        return f"topics/{self._make_folder(topic)}/topic-{topic:05d}{self.suffix[topic]}.yaml"

    def _definition_path(self, topic: int) -> str:
        return f"topics/{self._make_folder(topic)}/topic-{topic:05d}.avsc"

    def _make_shared(self, number: int) -> Files:
        record = _record(f"Shared{number}", self.shared_version[number], 3, [])
        return {f"common/shared-{number:03d}.avsc": record}

    def _make_definition(self, topic: int) -> str:
        shared: dict[str, object] = {"name": "shared", "type": f"com.acme.Shared{topic % self.shared}"}
        return _record(f"Topic{topic}", self.version[topic], 6, [shared] if topic % 2 else [])

    def _make_declaration(self, topic: int) -> str:
        lines = [
            f"# Team {topic % 37}{' ' * self.comments[topic]}",
            f"topic: persistent://acme/{self._make_folder(topic)}/topic-{topic:05d}",
            f"partitions: {1 + topic % 8}",
            "schema:",
            "  type: AVRO",
            f"  properties: {{owner: team-{topic % 37}}}",
        ]
        if topic % 2:
            lines += [
                f"  definition: topic-{topic:05d}.avsc",
                f"  references: [../../common/shared-{topic % self.shared:03d}.avsc]",
            ]
        else:
            lines.append("  definition: |")
            lines += [f"    {line}" for line in self._make_definition(topic).splitlines()]
        return "\n".join(lines) + "\n"

    def _commit(
        self, branch: str, subject: str, files: Files, *, start: int | None = None, merge: int | None = None
    ) -> bytes:
        self.mark += 1
        time_s = FIRST_COMMIT_S + 60 * self.mark
        committer = f"committer Dev <dev@acme.example> {time_s} +0000"
        parts = [f"commit refs/heads/{branch}\nmark :{self.mark}\n{committer}\ndata {len(subject)}\n{subject}\n"]
        if start:
            parts.append(f"from :{start}\n")
        if merge:
            parts.append(f"merge :{merge}\n")
        for path, text in files.items():
            parts.append(f"D {path}\n" if text is None else f"M 100644 inline {path}\ndata {len(text)}\n{text}\n")
        return "".join(parts).encode() + b"\n"


def _record(name: str, version: int, fields: int, more: list[dict[str, object]]) -> str:
    """A record that differs with `version`: in its number of fields, and always in a field's doc and default."""
    topic_number: list[dict[str, object]] = [
        {"name": f"field_{number}", "type": ["null", ("string", "long", "double")[number % 3]], "default": None}
        for number in range(fields + version % 20)
    ]
    topic_number.append({"name": "revision", "type": "int", "default": version, "doc": f"Revision {version}."})
    return json.dumps(
        {"type": "record", "name": name, "namespace": "com.acme", "fields": topic_number + more}, indent=2
    )


def list_proto_commits(topics: int, commits: int, project: str) -> Iterator[Files]:
    """Yield the files of each commit of `.proto` topics: one topic gets a field, or every fortieth commit their common file."""
    counts = [1] * topics
    common_count = 1
    files: Files = {"schemactl.yaml": project, "protos/common.proto": _make_message("common", "Common", common_count)}
    for topic in range(topics):
        lines = [
            f"topic: persistent://acme/protos/t{topic:02d}",
            "schema:",
            "  type: PROTOBUF_NATIVE",
            f"  definition: ../protos/t{topic:02d}.proto",
            f"  message: acme.T{topic:02d}",
            "  references: [../protos/common.proto]",
        ]
        files[f"topics/t{topic:02d}.yaml"] = "\n".join(lines) + "\n"
        files[f"protos/t{topic:02d}.proto"] = _make_message(f"t{topic:02d}", f"T{topic:02d}", 1)
    yield files
    for number in range(1, commits):
        if number % 40 == 0:
            common_count += 1
            yield {"protos/common.proto": _make_message("common", "Common", common_count)}
        else:
            topic = number % topics
            counts[topic] += 1
            path = f"protos/t{topic:02d}.proto"
            yield {path: _make_message(f"t{topic:02d}", f"T{topic:02d}", counts[topic])}


def _make_message(file: str, name: str, fields: int) -> str:
    lines = ['syntax = "proto3";', "package acme;"]
    if file != "common":
        lines.append('import "common.proto";')
    lines.append(f"message {name} {{")
    if file != "common":
        lines.append("  Common common = 1000;")
    lines += [f"  string field_{number} = {number};" for number in range(1, fields + 5)]
    return "\n".join([*lines, "}", ""])


def make_protos(folder: Path, topics: int, commits: int, *, project: str = PROJECT) -> None:
    """`folder` is a repository of `.proto` topics with that much history on main."""
    folder.mkdir(parents=True)
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], env=ENVIRONMENT, check=True)
    stream = []
    for number, files in enumerate(list_proto_commits(topics, commits, project)):
        committer = f"committer Dev <dev@acme.example> {FIRST_COMMIT_S + 60 * number} +0000"
        stream.append(f"commit refs/heads/main\n{committer}\ndata 6\nChange\n")
        stream += [f"M 100644 inline {path}\ndata {len(text or '')}\n{text}\n" for path, text in files.items()]
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(stream).encode(), env=ENVIRONMENT, check=True)
    subprocess.run([*git, "reset", "--quiet", "--hard", "main"], env=ENVIRONMENT, check=True)


def make(
    folder: Path, topics: int, commits: int, namespaces: int, *, skew: float = 1.0, project: str = PROJECT
) -> None:
    """`folder` is a packed repository with that much history on main."""
    folder.mkdir(parents=True)

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=folder, env=ENVIRONMENT, check=True)

    git("init", "--quiet", "--initial-branch=main")
    importing = subprocess.Popen(["git", "fast-import", "--quiet"], cwd=folder, env=ENVIRONMENT, stdin=subprocess.PIPE)
    with importing:
        if importing.stdin is None:
            raise SystemExit("git fast-import reads nothing")
        for commit in Generator(topics, commits, namespaces, skew=skew, project=project).write_stream():
            importing.stdin.write(commit)
        importing.stdin.close()
        if importing.wait():
            raise SystemExit("git fast-import failed")
    git("update-ref", "-d", "refs/heads/side")
    git("reset", "--quiet", "--hard", "main")
    # Without a commit-graph, as a fresh clone is.
    git("-c", "gc.writeCommitGraph=false", "gc", "--quiet")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit("usage: python benchmarks/repositories.py FOLDER TOPICS COMMITS NAMESPACES")
    make(Path(sys.argv[1]), *map(int, sys.argv[2:]))
