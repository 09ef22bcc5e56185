"""The documentation's first page, followed to the letter: from nothing to a Delta table, and to one with a column more."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Final

import pytest
import shop
from console import Console
from spark_release import STREAMS_OUT

PAGE: Final = Path(__file__).parent.parent.parent / "docs/tutorial/delta-table.md"

pytestmark = [STREAMS_OUT, pytest.mark.live]


class Reader:
    """A reader who follows the page in an empty folder."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.folder = folder
        self.console = console
        self.environment = shop.make_environment()
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{self.environment['PATH']}"
        self.printed: dict[str, str] = {}
        """The last output of each command."""

    def follow(self, page: str) -> None:
        """Everything is typed, and every file written; the page says before each what it is called."""
        for name, block in re.findall(r"(?:`([^`\n]+\.\w+)`[^`]*?:\n\n)?((?:    .*\n|\n(?=    ))+)", page):
            text = re.sub("^    ", "", block, flags=re.MULTILINE)
            if name:
                (self.folder / name).write_text(text, encoding="utf-8")
            for command, output in re.findall(r"^\$ (.+)\n((?:(?!\$ |>>> ).*\n?)*)", text, re.MULTILINE):
                for part in command.split(" && "):
                    self.run_command(part)
                printed = [" ".join(line.split()) for line in self.printed.get(command, "").splitlines()]
                for line in filter(None, (" ".join(line.split()) for line in output.splitlines())):
                    pattern = ".*".join(map(re.escape, line.split("...")))
                    assert any(re.fullmatch(pattern, other) for other in printed), (command, line, printed)
            if ">>>" in text:
                with chdir(self.folder):
                    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
                    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0

    def run_command(self, command: str) -> None:
        """The command does not fail."""
        program, *arguments = shlex.split(command)
        match program, arguments:
            case (("python3" | "." | "pip"), _):
                """The environment of the tests is one in which all that was done."""
            case "python", []:
                """The commands of the session follow."""
            case "cd", [folder]:
                self.folder /= folder
            case "export", [setting]:
                name, _, value = setting.partition("=")
                self.environment[name] = value
            case "git", ["init", folder]:
                shop.git(self.folder, "init", "-q", "-b", "main", folder)
            case "git", _:
                shop.git(self.folder, *arguments)
            case "schemactl", _:
                done = self.console.schemactl(self.folder, *arguments, environment=self.environment)
                assert done.returncode == 0, done.stderr
                self.printed[command] = done.stdout
            case _:
                assert program == "python"
                self.printed[command] = subprocess.run(
                    [sys.executable, *arguments],
                    cwd=self.folder,
                    env=self.environment,
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                ).stdout


@pytest.fixture(scope="module")
def page_reader(tmp_path_factory: pytest.TempPathFactory, spark_console: Console) -> Reader:
    """Somebody who has followed the page up to the job."""
    new_reader = Reader(tmp_path_factory.mktemp("tutorial"), spark_console)
    new_reader.follow(PAGE.read_text(encoding="utf-8").partition("\n## 5.")[0])
    return new_reader


def test_the_commands_lead_to_a_table_with_a_column_more(page_reader: Reader) -> None:
    landed = [out for command, out in page_reader.printed.items() if command.startswith("schemactl spark land")]
    assert len(landed) == 2


def test_the_job_lands_the_same(page_reader: Reader) -> None:
    page_reader.follow("## 5." + PAGE.read_text(encoding="utf-8").partition("\n## 5.")[2])
    assert page_reader.printed["python job.py"] == "1998 rows, 2 rejected\n"
