"""A check stops at its time limit with one error, regardless of its current step, and leaves no partial results."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from fork_server import COMMAND_LINE, start_program
from scratch import ENVIRONMENT, Scratch, record, write_declaration
from waiting import assert_soon

import schemactl
from schemactl.cli import main
from schemactl.core.deadline import Deadline, run_within
from schemactl.core.errors import SchemactlError

pytestmark = pytest.mark.slow

FINE, ERROR, USAGE = 0, 1, 64
GIT = shutil.which("git") or "git"
LONG_S = 300
"""The duration of the slow operation, in seconds; a test that waits for its end fails."""

LIMITS_S = (1, 4, 12, 36)
"""The time limits of a command, in seconds; on a busy machine, a test needs a longer one until the command is at its slow operation."""


@pytest.fixture
def changed_repository(tmp_path: Path) -> Scratch:
    """Approve a topic with one version, and change a definition on a branch."""
    scratch_repository = Scratch(tmp_path / "r")
    scratch_repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\ntargets: {local: {registry: 'sqlite:registry.db'}}\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": record("id"),
        }
    )
    scratch_repository.git("checkout", "-q", "-b", "work")
    scratch_repository.write({"topics/orders.avsc": record("id", note=0)})
    scratch_repository.git("commit", "-qam", "note")
    return scratch_repository


class Run(NamedTuple):
    """A program that ended, with its exit code, its output and its duration in seconds."""

    code: int
    out: str
    err: str
    took_s: float


def run(scratch: Scratch, *arguments: str, program: str = COMMAND_LINE, path: Path | None = None) -> Run:
    """Run `program` in a separate process; `path` is the first folder of executables."""
    places = [str(path)] if path else []
    variables = {"PATH": os.pathsep.join([*places, os.environ["PATH"]])}
    begun_s = time.monotonic()
    with start_program(scratch.path, program, *arguments, environment=ENVIRONMENT | variables, limit_s=None) as started:
        code = started.wait(within_s=LONG_S / 2)
        return Run(code, started.read_out(), started.read_err(), time.monotonic() - begun_s)


def slow_git(folder: Path, command: str, *, ignores: str = "") -> Path:
    """Make a folder with a git that hangs on that command; its file `pid` has the process id."""
    folder.mkdir()
    script = folder / "git"
    script.write_text(
        f'#!/bin/sh\nfor word in "$@"; do\n  if [ "$word" = {command} ]; then\n    {ignores}\n    echo $$ > {folder}/pid\n'
        f'    exec sleep {LONG_S}\n  fi\ndone\nexec {GIT} "$@"\n'
    )
    script.chmod(0o755)
    return folder


def is_gone(folder: Path) -> bool:
    """Return whether the hanging git has ended."""
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("ignores", ["", "trap '' TERM"], ids=["", "deaf"])
@pytest.mark.parametrize(
    ("command", "arguments"), [("log", ()), ("cat-file", ("--base", "main")), ("diff-index", ("--staged",))]
)
def test_a_git_that_hangs_is_given_up_and_ended(
    changed_repository: Scratch, tmp_path: Path, command: str, arguments: tuple[str, ...], ignores: str
) -> None:
    folder = slow_git(tmp_path / "slow", command, ignores=ignores)
    for limit_s in LIMITS_S:
        done = run(changed_repository, "check", *arguments, "--timeout", str(limit_s), path=folder)
        if (folder / "pid").exists():
            break
    assert done.code == ERROR
    assert done.out == ""
    assert done.err.startswith(f"schemactl: gave up after {limit_s} s while ")
    assert "\n  Fix: give it more time with `--timeout SECONDS`" in done.err
    assert "Traceback" not in done.err
    assert done.took_s < LONG_S / 3
    assert is_gone(folder)


def test_a_check_that_is_interrupted_in_the_declared_files_has_saved_the_history(
    changed_repository: Scratch, tmp_path: Path
) -> None:
    slow_attributes, slow_log = slow_git(tmp_path / "attributes", "check-attr"), slow_git(tmp_path / "log", "--reverse")
    variables = {"PATH": f"{slow_attributes}{os.pathsep}{os.environ['PATH']}"}
    environment = ENVIRONMENT | variables
    with start_program(
        changed_repository.path, COMMAND_LINE, "check", environment=environment, limit_s=None
    ) as interrupted:
        assert_soon((slow_attributes / "pid").exists, wanted=True, within_s=LONG_S / 2)
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait(within_s=LONG_S / 2) not in (FINE, ERROR)
    assert run(changed_repository, "check", path=slow_log).code == FINE
    assert not (slow_log / "pid").exists()


def test_the_early_exit_ends_in_time_too(changed_repository: Scratch, tmp_path: Path) -> None:
    assert run(changed_repository, "check", "--staged").code == FINE
    folder = slow_git(tmp_path / "slow", "diff-index")
    program = f"import schemactl.core.deadline\nschemactl.core.deadline.DEFAULT_S = 1.0\n{COMMAND_LINE}"
    done = run(changed_repository, "check", "--staged", program=program, path=folder)
    assert done.code == ERROR
    assert done.err.startswith("schemactl: gave up after 1 s while looking at the index")
    assert is_gone(folder)


def test_a_call_that_hears_nothing_ends_with_the_process(changed_repository: Scratch) -> None:
    # A thread that waits for a lock in C code does not handle signals.
    deaf = (
        "import ctypes, schemactl.core.deadline, schemactl.declare.reader\n"
        "schemactl.core.deadline._HARD_S = 1.0\n"
        "lock = ctypes.create_string_buffer(64)\n"
        "schemactl.declare.reader.read = lambda *_, **__: [ctypes.PyDLL(None).pthread_mutex_lock(lock) for _ in range(2)]\n"
    )
    for limit_s in LIMITS_S:
        done = run(changed_repository, "check", "--timeout", str(limit_s), program=deaf + COMMAND_LINE)
        if "gave up" not in done.err:
            break
    assert done.code == ERROR
    assert f"Timeout (0:00:{limit_s + 1:02})!" in done.err
    assert done.took_s < LONG_S / 3


def test_a_check_that_was_given_up_leaves_nothing_half_done(changed_repository: Scratch) -> None:
    for number in range(1500):
        changed_repository.commit({"topics/orders.avsc": record("id", f"f{number}")}, branch="work")
    changed_repository.git("reset", "-q", "--hard")
    changed_repository.git("branch", "-f", "main", "work")
    whole = run(changed_repository, "check")
    assert whole.code == FINE
    shutil.rmtree(changed_repository.cache)
    given_up = 0
    for seconds in ("0.001", "0.05", "0.1", "0.2", "0.4"):
        done = run(changed_repository, "check", "--timeout", seconds)
        given_up += done.code == ERROR
        if done.code == ERROR:
            assert done.out == ""
            assert done.err.startswith(f"schemactl: gave up after {seconds} s while ")
            assert "Traceback" not in done.err
        cache = changed_repository.cache
        names = [path.name for path in cache.iterdir()] if cache.exists() else []
        assert all(name.startswith(("history-", "valid-")) for name in names)
    assert given_up
    again = run(changed_repository, "check")
    assert (again.code, again.out) == (whole.code, whole.out)


def test_outside_of_the_main_thread_time_is_checked_between_steps(
    changed_repository: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    arguments = ["-C", str(changed_repository.path), "check", "--timeout", "0.000001"]
    thread = threading.Thread(target=lambda: codes.append(main(arguments)))
    thread.start()
    thread.join()
    assert codes == [ERROR]
    assert "gave up after 1e-06 s while" in capsys.readouterr().err


def test_the_python_api_says_so_in_a_problem(changed_repository: Scratch) -> None:
    with pytest.raises(SchemactlError, match="gave up after 1e-06 s while"):
        schemactl.check(changed_repository.path, timeout_s=0.000001)


def test_no_alarm_is_left_behind(changed_repository: Scratch) -> None:
    before = signal.getsignal(signal.SIGALRM)
    assert main(["-C", str(changed_repository.path), "check", "--timeout", "100"]) == FINE
    assert main(["-C", str(changed_repository.path), "check", "--timeout", "0.000001"]) == ERROR
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon", "1e9"])
def test_a_senseless_time_limit_is_wrong_usage(
    changed_repository: Scratch, capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-C", str(changed_repository.path), "check", f"--timeout={seconds}"])
    assert ended.value.code == USAGE
    assert "argument --timeout: expected a number of seconds between 0 and" in capsys.readouterr().err


def test_an_import_is_not_left_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.3)\nis_whole = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def import_and_sleep(_: Deadline) -> None:
        import_module("slow_module")
        time.sleep(LONG_S)

    with pytest.raises(SchemactlError, match=r"gave up after 0\.05 s"):
        run_within(0.05, import_and_sleep)
    assert sys.modules["slow_module"].is_whole


@pytest.mark.parametrize("limit_s", [1e-06, 0.1, 0.2])
@pytest.mark.parametrize("command", ["check", "plan", "drift", "status"])
def test_report_files_have_the_time_limit_instead_of_an_earlier_report(
    changed_repository: Scratch, command: str, limit_s: float
) -> None:
    file = changed_repository.path / "report.json"
    file.write_text("of an earlier run")
    done = run(changed_repository, command, "--format", f"json={file}", "--timeout", str(limit_s))
    assert file.read_text() != "of an earlier run"
    if done.code == ERROR:
        assert "gave up after" in file.read_text()


def test_the_report_of_a_failed_lint_is_marked_as_of_lint(changed_repository: Scratch) -> None:
    changed_repository.write({"schemactl.yaml": "version: 2\n"})
    done = run(changed_repository, "lint", "--format", "markdown=lint.md")
    assert done.code == ERROR
    first_line, *_ = (changed_repository.path / "lint.md").read_text().splitlines()
    assert first_line == "<!-- schemactl:report:lint -->"


def test_a_report_file_that_cannot_be_written_hides_neither_the_error_nor_another_report(
    changed_repository: Scratch,
) -> None:
    folder = changed_repository.path
    (folder / "file").write_text("")
    (folder / "report.sarif").write_text("of an earlier run")
    outputs = ("--format", "json=file/report.json", "--format", "sarif=report.sarif")
    done = run(changed_repository, "check", "--base", "nope", *outputs)
    assert done.code == ERROR
    assert "no ref 'nope'" in done.err
    assert "file/report.json" in done.err
    assert "no ref 'nope'" in (folder / "report.sarif").read_text()


def test_standard_output_has_one_report(changed_repository: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "GITHUB_STEP_SUMMARY", str(changed_repository.path))
    done = run(changed_repository, "check", "--format", "github")
    assert done.code == ERROR
    assert "cannot write the step's summary" in done.err
    assert "could not decide" not in done.out


def test_the_status_of_a_project_that_cannot_be_read_has_the_problem(changed_repository: Scratch) -> None:
    changed_repository.write({"schemactl.yaml": "version: 1\nroots: [topics]\ntargts: {}\n"})
    done = run(changed_repository, "status", "--format", "json")
    [status] = json.loads(done.out)["targets"]
    assert (done.code, status["problem"] in done.err) == (ERROR, True)
