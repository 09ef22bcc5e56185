"""Real repositories for tests, made in one `git fast-import` each, and what to declare in them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from schemactl.history.store import repository_folder

Files = Mapping[str, str | bytes | None]
"""Path to content; None deletes. A pair of other mode is written with `Scratch.git`."""

_CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("GIT_") and name not in ("CI", "PYTHONDONTWRITEBYTECODE")
}
ENVIRONMENT = {
    **_CLEAN,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}
"""Without what the caller's hook, shell or CI says about Git, and without anybody's settings."""

FIRST_COMMIT_S = 1_700_000_000


class Scratch:
    """A repository under construction. Commits wait until something asks git about them."""

    def __init__(self, path: Path, *, object_format: str = "sha1", bare: bool = False) -> None:
        self.path = path
        self._marks = 0
        self._stream = b""
        self._streamed: set[str] = set()
        path.mkdir(parents=True)
        shutil.copytree(_make_empty_repository(object_format, bare=bare), path, dirs_exist_ok=True)

    @classmethod
    def open_existing(cls, path: Path) -> Scratch:
        """The repository that is at `path` already."""
        scratch = cls.__new__(cls)
        scratch.path, scratch._marks, scratch._stream, scratch._streamed = path, 0, b"", set()
        return scratch

    def commit(
        self,
        files: Files = {},  # noqa: B006  never written to
        message: str = "change",
        *,
        branch: str = "main",
        start: int | None = None,
        merge: int | None = None,
    ) -> int:
        """One more commit on `branch` with these changes; its mark. `start` puts the branch at that mark first."""
        self._marks += 1
        subject = message.encode()
        lines = [
            b"commit refs/heads/%s" % branch.encode(),
            b"mark :%d" % self._marks,
            b"committer Ada <ada@example.com> %d +0000" % (FIRST_COMMIT_S + self._marks),
            b"data %d\n%s" % (len(subject), subject),
        ]
        if start is not None:
            lines.append(b"from :%d" % start)
        elif branch not in self._streamed and self._has_branch(branch):
            # fast-import goes on with a branch by itself only when it made it in the same run.
            lines.append(b"from refs/heads/%s^0" % branch.encode())
        self._streamed.add(branch)
        if merge is not None:
            lines.append(b"merge :%d" % merge)
        for path, content in files.items():
            name = _quote_path(path)
            if content is None:
                lines.append(b"D " + name)
            else:
                data = content.encode() if isinstance(content, str) else content
                lines.append(b"M 100644 inline %s\ndata %d\n%s" % (name, len(data), data))
        self._stream += b"\n".join(lines) + b"\n\n"
        return self._marks

    def uncommit(self) -> None:
        """Undo the last commit, and keep its changes staged."""
        self.git("reset", "-q", "--soft", "HEAD^")

    def configure_author(self) -> None:
        """Make Ada the author of commits by programs other than `git` here."""
        with (self.path / ".git/config").open("a") as config:
            config.write("[user]\n\tname = Ada\n\temail = ada@shop.example\n")

    def flush(self) -> None:
        """Write all commits to the repository, and check out HEAD."""
        if not self._stream:
            return
        stream, self._stream = self._stream, b""
        self._streamed.clear()
        if any((self._git_directory / "refs/heads").iterdir()):
            self._import(stream)
        else:
            self._begin(stream)
        if not self.bare:
            # HEAD may name a branch that has no commit yet.
            self._run(["reset", "-q", "--hard"], check=False)

    def _has_branch(self, name: str) -> bool:
        """Return whether the repository has the branch; git runs only if it packed its references."""
        if (self._git_directory / "refs/heads" / name).exists():
            return True
        return (self._git_directory / "packed-refs").exists() and bool(self._run(["branch", "--list", name]))

    def _import(self, stream: bytes) -> None:
        marks = f"--export-marks={self._marks_file}"
        mark_options = [f"--import-marks={self._marks_file}"] if self._marks_file.exists() else []
        self._run([*_QUICK, "fast-import", "--quiet", "--force", *mark_options, marks], stream)

    def _begin(self, stream: bytes) -> None:
        """Import into a repository without commits, as a copy of a template from the third equal start on."""
        settings = (self._git_directory / "config").read_bytes()
        name = hashlib.sha256(settings + b"\0" + stream).hexdigest()
        template = Path(_make_template_folder().name, name)
        if (template / "marks").exists():
            shutil.copytree(template, self._git_directory, dirs_exist_ok=True)
            return
        self._import(stream)
        if template.exists():
            for part in ("objects", "refs", "logs"):
                if (self._git_directory / part).exists():
                    shutil.copytree(self._git_directory / part, template / part)
            shutil.copy(self._marks_file, template)
        else:
            template.mkdir()

    @property
    def bare(self) -> bool:
        """Whether there is no working tree."""
        return not (self.path / ".git").exists()

    @property
    def cache(self) -> Path:
        """The folder of schemactl's cache for the repository."""
        return cache_of(self._git_directory)

    @property
    def _git_directory(self) -> Path:
        return self.path if self.bare else self.path / ".git"

    @property
    def _marks_file(self) -> Path:
        return self._git_directory / "marks"

    def id(self, mark: int) -> str:
        """The full id of the commit with this mark."""
        self.flush()
        marks = dict(line.split() for line in self._marks_file.read_text().splitlines())
        return marks[f":{mark}"]

    def git(self, *arguments: str, check: bool = True, **variables: str) -> str:
        """The output of one git command here, after all commits are made."""
        self.flush()
        return self._run(arguments, check=check, variables=variables)

    def write(self, files: Files) -> None:
        """These files are in the working tree."""
        self.flush()
        for path, content in files.items():
            target = self.path / path
            if content is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    def _run(
        self, arguments: Sequence[str], data: bytes = b"", *, check: bool = True, variables: Mapping[str, str] = {}
    ) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env={**ENVIRONMENT, **variables},
            input=data,
            capture_output=True,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode()}")
        return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


_QUICK = ("-c", "core.fsync=none", "-c", "fastimport.unpackLimit=0")
"""Settings of git for temporary repositories: nothing waits for the disk, and objects stay in one pack."""


@cache
def _make_template_folder() -> TemporaryDirectory[str]:
    """Repositories that others are copies of, sooner made than by git."""
    return TemporaryDirectory()


@cache
def _make_empty_repository(object_format: str, *, bare: bool) -> Path:
    """A repository without commits."""
    path = Path(_make_template_folder().name, f"{object_format}-{bare}")
    path.mkdir()
    options = ["-b", "main", f"--object-format={object_format}", *(["--bare"] if bare else [])]
    # The samples of hooks are left out.
    subprocess.run(["git", "init", "-q", "--template=", *options], cwd=path, env=ENVIRONMENT, check=True)
    for folder in ("hooks", "info"):
        (path if bare else path / ".git").joinpath(folder).mkdir()
    return path


def cache_of(git_directory: Path) -> Path:
    """Return the folder of schemactl's cache for the repository with this common Git folder."""
    return Path(repository_folder(git_directory) or "")


def _quote_path(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape").replace(b"\\", rb"\\").replace(b'"', rb"\"")
    return b'"' + raw.replace(b"\n", rb"\n") + b'"'


def write_declaration(topic: str = "shop/sales/orders", definition: str = "orders.avsc", more: str = "") -> str:
    """The declaration of an AVRO topic."""
    return f"topic: {topic}\nschema:\n  type: AVRO\n  definition: {definition}\n{more}"


def record(*fields: str, doc: str = "", name: str = "Order", indent: int | None = None, **default: Any) -> str:
    """An Avro record of string fields, and int fields with a default."""
    each = [{"name": field, "type": "string"} for field in fields]
    each += [{"name": field, "type": "int", "default": value} for field, value in default.items()]
    about = {"doc": doc} if doc else {}
    return json.dumps({"type": "record", "name": name, **about, "fields": each}, indent=indent)
