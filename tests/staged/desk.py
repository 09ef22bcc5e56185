"""A working tree for tests of the hook, and the two ways to check what is staged in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scratch import ENVIRONMENT, Scratch

from schemactl import cli, staged


class Desk:
    """A working tree where work goes on, without anybody's Git settings."""

    def __init__(
        self, scratch: Scratch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.scratch = scratch
        self.path = scratch.path
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        for name in [*os.environ]:
            if name.startswith("GIT_"):
                monkeypatch.delenv(name)
        for name, value in ENVIRONMENT.items():
            if name.startswith("GIT_"):
                monkeypatch.setenv(name, value)
        scratch.flush()
        self.enter(self.path)

    def enter(self, folder: Path) -> None:
        """Work goes on in that folder."""
        self.monkeypatch.chdir(folder)
        self.path = folder

    def git(self, *arguments: str) -> str:
        """What git prints, here."""
        return self.scratch.git("-C", str(self.path), *arguments)

    def stage(self, path: str, content: str | None) -> None:
        """The file is staged so."""
        target = self.path / path
        if content is None:
            self.git("rm", "-q", path)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        self.git("add", path)

    def work_out(self) -> tuple[int, str]:
        """The complete check: its exit code, and its report."""
        self.capsys.readouterr()
        code = cli.main(["check", "--staged"])
        return code, self.capsys.readouterr().out.rstrip("\n")

    def holds(self) -> str:
        """The answer on sight, which there is, and which is that of the complete check."""
        seen = staged.answer()
        assert seen is not None
        assert self.work_out() == (0, seen)
        return seen

    def process(self) -> tuple[str, set[str], int]:
        """What a process of its own says on sight, the modules it has then, and how many git processes it started."""
        script = (
            "import sys\n"
            "from schemactl import staged\n"
            "print(staged.answer())\n"
            "print('\\n'.join(sys.modules), file=sys.stderr)\n"
        )
        trace = self.scratch.path.parent / "trace"
        trace.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=self.path,
            env={**os.environ, "GIT_TRACE2_EVENT": str(trace)},
            capture_output=True,
            text=True,
            check=True,
        )
        started = sum(json.loads(line)["event"] == "start" for line in trace.read_text().splitlines())
        return done.stdout.rstrip("\n"), set(done.stderr.splitlines()), started
