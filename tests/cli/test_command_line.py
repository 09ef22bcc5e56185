"""The command line as people and scripts meet it: exit codes, streams, help."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import shop

from schemactl import cli

pytestmark = pytest.mark.slow


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert shop.run(Path(), "--version").out == f"schemactl {version('pulsar-schemactl')}\n"


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    command = f"{sys.executable} -m schemactl log --all | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_outside_of_a_repository_the_next_step_is_named(tmp_path: Path) -> None:
    done = shop.run(tmp_path, "check", code=1)
    assert "git" in done.err.lower()


def test_a_new_project_is_checked_approved_and_applied(tmp_path: Path) -> None:
    shop.git(tmp_path, "init", "-q", "-b", "main")
    shop.run(tmp_path, "init")
    shop.run(tmp_path, "check")
    shop.git(tmp_path, "add", ".")
    shop.git(tmp_path, "commit", "-q", "-m", "Declare our schemas")
    shop.run(tmp_path, "plan", "--target", "local", "--detailed-exitcode", code=2)
    shop.run(tmp_path, "apply", "--target", "local", "--auto-approve")
    shop.run(tmp_path, "plan", "--target", "local", "--detailed-exitcode")
    assert shop.git(tmp_path, "status", "--porcelain") == ""


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "schemactl.yaml").write_text("mine\n")
    shop.run(tmp_path, "init", code=1)
    assert (tmp_path / "schemactl.yaml").read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["schemactl.yaml"]


@pytest.mark.parametrize(("total", "words"), [(9, "2 of 9 commits"), (None, "2 commits")])
def test_long_work_keeps_a_line_on_the_terminal_that_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], total: int | None, words: str
) -> None:
    now_s = [0.0]
    monkeypatch.setattr("schemactl.cli.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = cli.Context(".").progress("reading", "commits")
    progress(1, total)
    assert capsys.readouterr().err == ""
    now_s[0] = 1.0
    progress(2, total)
    assert capsys.readouterr().err == f"\r\x1b[Kreading: {words}"
    progress(9, 9)
    assert capsys.readouterr().err == "\r\x1b[K"


@pytest.mark.parametrize(("choice", "coloured"), [("always", True), ("never", False), ("auto", False)])
def test_colours_only_when_wanted_or_on_a_terminal(tmp_path: Path, choice: str, *, coloured: bool) -> None:
    folder = shop.make(tmp_path)
    shop.edit(folder / shop.ORDERS, shop.STATUS, shop.WITHOUT_SHIPPED)
    assert ("\x1b[" in shop.run(folder, "--color", choice, "check", code=100).out) is coloured


def test_a_report_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    (folder / "taken").write_text("a file, not a folder")
    done = shop.run(folder, "check", "--format", "json=taken/report.json", code=1)
    assert "cannot write" in done.err


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("where", ["command", "start"])
def test_an_interrupt_ends_without_a_traceback(tmp_path: Path, where: str) -> None:
    script = (
        "import os, signal, sys\n"
        # Whoever runs the tests in the background may have told them to ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from schemactl.__main__ import main\n"
        "class Stopped:\n"
        "    configure = staticmethod(lambda parser: None)\n"
        "    run = find_spec = staticmethod(lambda *args: os.kill(os.getpid(), signal.SIGINT))\n"
        "if sys.argv[1] == 'start':\n"
        "    sys.meta_path.insert(0, Stopped)\n"
        "else:\n"
        "    from schemactl import cli\n"
        "    cli.load = lambda name: Stopped\n"
        "sys.argv = ['schemactl', 'check']\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, where], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "schemactl: interrupted\n")


def test_a_topic_that_is_still_declared_is_not_deleted(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    for flag in ("--allow-delete", "--force-delete"):
        done = shop.run(folder, "plan", "--target", "local", flag, "shop/sales/orders", code=64)
        assert "is still declared" in done.err


def test_global_options_may_stand_behind_the_command(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    done = shop.run(tmp_path, "check", "-C", str(folder), "--quiet")
    assert done.err == ""
    shop.run(tmp_path, "new", "topic", "shop/sales/returns", "-C", str(folder))
    assert (folder / "namespaces/sales/returns.yaml").exists()


def test_an_output_that_is_full_is_one_line(tmp_path: Path) -> None:
    command = f"{sys.executable} -m schemactl explain --all > /dev/full"
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "schemactl: No space left on device\n")


def test_a_pinned_reader_that_is_no_version_stops_generate_with_one_error(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    shop.edit(folder / "namespaces/sales/orders/orders.yaml", "partitions: 4\n", "partitions: 4\nreader: 77\n")
    assert "READER_VERSION_UNKNOWN" in shop.run(folder, "check", code=100).out
    shop.git(folder, "commit", "-q", "-a", "--no-verify", "-m", "Pin a reader that is not there")
    done = shop.run(folder, "generate", code=1)
    assert "names no version" in done.err
