"""The command line as people and scripts meet it: exit codes, streams, help, and wrong usage, where each message suggests a correction.

All messages of wrong usage are in `usage_messages.txt`; `python tests/cli/test_command_line.py` writes that file again.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import command
import pytest
import shop
from command import process
from scratch import ENVIRONMENT

from schemactl import cli
from schemactl.cli.parser import COMMANDS, EVERYDAY, GROUPS
from schemactl.cli.target_selection import select_exit_code
from schemactl.core.errors import ExitCode
from schemactl.core.terminal import count_columns, format_table, wrap_text

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the example's repository. No test changes it."""
    return shop.make(tmp_path_factory.mktemp("usage"))


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert shop.run(Path(), "--version").out == f"schemactl {version('pulsar-schemactl')}\n"


def test_a_reader_that_goes_away_is_no_traceback(shop_folder: Path) -> None:
    command = f"{sys.executable} -m schemactl log --all | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=shop_folder, capture_output=True, text=True, check=False)
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
    now_s = [5.0]
    monkeypatch.setattr("schemactl.cli.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = cli.Context(".").progress("reading", "commits")
    progress(1, total)
    assert capsys.readouterr().err == ""
    now_s[0] = 6.0
    progress(2, total)
    line = capsys.readouterr().err
    assert line.startswith("\r\x1b[K")
    assert line.endswith(f"reading: {words}")
    assert ("\u2501" in line) == (total is not None)
    progress(9, 9)
    assert capsys.readouterr().err == "\r\x1b[K"


@pytest.mark.parametrize(("choice", "is_colored"), [("always", True), ("never", False), ("auto", False)])
def test_colors_are_printed_on_request_or_on_a_terminal(shop_folder: Path, choice: str, *, is_colored: bool) -> None:
    assert ("\x1b[" in shop.run(shop_folder, "--color", choice, "diff", "orders@0", "orders@1").out) is is_colored


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
        "    cli.load_command = lambda name: Stopped\n"
        "sys.argv = ['schemactl', 'check']\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, where], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "schemactl: interrupted\n")


def test_a_topic_that_is_still_declared_is_not_deleted(shop_folder: Path) -> None:
    for flag in ("--allow-delete", "--force-delete"):
        done = shop.run(shop_folder, "plan", "--target", "local", flag, "shop/sales/orders", code=64)
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


CLOSED_STREAMS = {
    "a page is printed to nobody": ("docs check-report >&-", 0, ""),
    "a check is printed to nobody": ("check >&-", 0, ""),
    "a check says nothing on standard error": ("check --verbose 2>&-", 0, ""),
    "nobody can confirm an apply": ("apply --target local <&-", 64, "standard input is not a terminal"),
    "requests that cannot arrive are none": ("compare <&-", 0, ""),
    "messages that cannot arrive are none": ("decode --jsonl <&-", 0, ""),
    "structs that cannot arrive are none": ("struct <&-", 0, ""),
}
"""A command line with a stream that the process is started without, its exit code, and a part of standard error."""


@pytest.mark.parametrize(("line", "code", "words"), CLOSED_STREAMS.values(), ids=CLOSED_STREAMS)
def test_a_stream_that_is_closed_is_an_empty_one(shop_folder: Path, line: str, code: int, words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -P -m schemactl {line}"],
        cwd=shop_folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stdout + done.stderr) == (code, False), done.stderr
    assert words in done.stderr


GOLDEN = Path(__file__).parent / "usage_messages.txt"

COMMANDS_THAT_FAIL = (
    "chekc",
    "-C spark nonsense",
    "check --formt json",
    "check --format jsn",
    "check --topic ordrs",
    "check --stag",
    "waive abcd --reasn x",
    "waive abcd --reason x",
    "check --namespace shop/sale",
    "log ordrs",
    "log orders@99",
    "log orders@x",
    "log shop/sles/orders",
    "log 'order*'",
    "log 'x*'",
    "show oders@1",
    "diff orders paymnts",
    "explain NAME_MISMATHC",
    "plan prod",
    "plan local",
    "apply local",
    "plan --target locl",
    "plan --topic nothing*",
    "plan show",
    "plan show plan.json --topic orders",
    "plan --allow-delete 'order*'",
    "drift --target prod",
    "generate --topic 'nothing*'",
    "decode orders --read-as 5",
    "decode orders --hex 00",
    "lsp --version",
    "land orders",
    "topic shop/sales/returns",
    "admit orders orders",
    "spark decode orders --messages x --out y",
    "spark land orders --refused x",
    "spark lnd orders",
    "registry gt orders",
    "admit prodcer orders",
    "completion fsh",
    "compare --pulsar 4.1",
    "check --staged --base main",
    "check --format sarif=",
    "check --format text --format json",
    "-C no-such-folder check",
    "init extra",
    "check orders",
    "drift local",
    "import http://localhost:8080",
    "promote --target prod --to main",
    "new topic sals/refunds",
    "log",
    "rollout ordrs",
    "rollout nothing",
    "apply --parallel 65",
    "spark land orders --messages x --out y --files-at-once 0",
    "generate --recursion-depth -1",
    "check --format=--",
    "check --topic=--",
    "check --timeout=--",
    "-C=-- check",
)


def read_message(folder: Path, line: str) -> str:
    """Return the message on standard error, which a line on the usage may precede."""
    printed = command.schemactl(folder, *shlex.split(line), code=64)
    assert printed.out == ""
    return printed.err.rstrip("\n")


def render_screens(folder: Path) -> str:
    return "\n".join(f"$ schemactl {line}\n{read_message(folder, line)}\n" for line in COMMANDS_THAT_FAIL)


def test_every_message_of_wrong_usage_is_as_it_was(shop_folder: Path) -> None:
    assert render_screens(shop_folder) == GOLDEN.read_text(encoding="utf-8")


def read_help(*words: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        return shop.run(Path(), *words, "--help").out


def test_the_help_has_every_command_in_its_group() -> None:
    help_text = read_help("--all")
    for group in GROUPS:
        block = help_text.partition(f"\n{group}: ")[2].partition("\n\n")[0]
        names = [line.split()[0] for line in block.splitlines()[1:] if not line.startswith("   ")]
        assert names == [name for name, entry in COMMANDS.items() if entry.group == group]
    assert "usage: schemactl [OPTION]... COMMAND" in help_text


@pytest.mark.parametrize("words", [(), ("help",), ("-q",), ("help", "-q")])
def test_the_first_help_has_the_everyday_commands(words: tuple[str, ...], shop_folder: Path) -> None:
    help_text = shop.run(shop_folder, *words).out
    assert help_text == read_help()
    names = re.findall(
        r"^  ([a-z-]+) {3,}[a-z]", help_text.partition("everyday commands:")[2].partition("options:")[0], re.MULTILINE
    )
    assert names == list(EVERYDAY)


@pytest.mark.parametrize(
    ("words", "help_name"), [("help plan", "plan"), ("help registry get", "registry get"), ("-q help spark", "spark")]
)
def test_help_with_a_command_is_the_help_of_the_command(words: str, help_name: str, shop_folder: Path) -> None:
    assert shop.run(shop_folder, *words.split()).out == read_help(*help_name.split())


@pytest.mark.parametrize(
    "words",
    [
        "new topic shop/sales/a --type avro",
        "new topic shop/sales/b --type protobuf-native",
        "new namespace shop/b --strategy full_transitive",
    ],
)
def test_types_and_strategies_may_be_in_lower_case(words: str, tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    shop.run(folder, *words.split())
    new_paths = shop.git(folder, "ls-files", "--others", "--exclude-standard").split()
    assert re.search("AVRO|PROTOBUF_NATIVE|FULL_TRANSITIVE", "".join((folder / path).read_text() for path in new_paths))


@pytest.mark.parametrize(
    "words",
    [
        ("--all",),
        *((name,) for name in COMMANDS),
        ("registry", "get"),
        ("spark", "land"),
        ("spark", "verify"),
        ("new", "topic"),
        (),
    ],
)
def test_help_wraps_and_ends_with_examples(words: tuple[str, ...]) -> None:
    help_text = read_help(*words)
    # Only the help of the command line has the groups of commands.
    assert ("\ndeploy: " in help_text) == (words == ("--all",))
    assert help_text.rpartition("\n\n")[2].startswith("examples:\n  schemactl ")
    description = help_text.partition("\n\n")[2].partition("\n\n")[0]
    assert max(map(len, description.splitlines())) <= 80
    commands = [line for line in help_text.splitlines() if line.startswith("  schemactl ")]
    assert not [line for line in commands if len(line) > 80 and "  " in line.strip()]
    if len(words) > 1:
        assert all(line.startswith(f"  schemactl {' '.join(words)} ") for line in commands)


def run_in_terminal(folder: Path, columns: int, *words: str) -> list[str]:
    """Return the lines that a terminal with this number of columns shows."""
    leader, follower = pty.openpty()
    environment = {**shop.make_environment(), "COLUMNS": str(columns), "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", "schemactl", *words],
        cwd=folder,
        env=environment,
        stdout=follower,
        stderr=subprocess.PIPE,
        check=True,
    )
    assert done.stderr == b""
    os.close(follower)
    output = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(leader, 1 << 16):
            output += chunk
    os.close(leader)
    return output.decode().splitlines()


@pytest.mark.parametrize(
    ("columns", "words"),
    [(80, ("plan", "--topic", "orders")), (80, ("log", "orders", "--target", "local")), (60, ("log", "orders"))],
)
def test_reports_fit_the_terminal(shop_folder: Path, columns: int, words: tuple[str, ...]) -> None:
    lines = run_in_terminal(shop_folder, columns, *words)
    assert lines
    assert max(map(len, lines)) <= columns


def test_elsewhere_nothing_is_shortened() -> None:
    rows = [("A", "B"), ("x" * 200, "1")]
    assert format_table(rows) == ["A" + " " * 201 + "B", "x" * 200 + "  1"]
    assert format_table(rows, width=20)[1] == "xxxxxxxx…xxxxxxxx  1"
    assert wrap_text("word " * 50, None) == "word " * 50


def test_columns_are_aligned_as_a_terminal_shows_wide_characters_and_marks() -> None:
    rows = [("shop/注文", "チーム", "3"), ("shop/orders", "e\u0301quipe", "4"), ("shop/♥\ufe0f", "[red]:smile:", "50")]
    lines = format_table(rows, numeric={2})
    assert lines == [
        "shop/注文    チーム         3",
        "shop/orders  e\u0301quipe         4",
        "shop/♥\ufe0f       [red]:smile:  50",
    ]
    assert {count_columns(line) for line in lines} == {29}


def test_a_shortened_cell_keeps_wide_characters_and_marks_whole() -> None:
    assert format_table([("注文" * 9, "1")], width=12) == ["注文…注文  1"]
    assert format_table([("注文" * 9, "1")], width=13) == ["注文…注文   1"]
    assert format_table([("e\u0301" * 20, "1")], width=12) == ["e\u0301" * 4 + "…" + "e\u0301" * 4 + "  1"]


def test_a_row_that_fits_the_terminal_is_not_broken() -> None:
    rows = [("v1", "8c3a850d0", "हिन्दी में ऑर्डर की स्थिति जोड़ी गई और नया क्षेत्र"), ("v2", "9d4b961e1", "cafe\u0301 " * 9)]
    table = "\n".join(format_table(rows, width=50))
    assert wrap_text(table, 50) == table


def test_a_long_line_is_broken_with_its_indentation() -> None:
    assert wrap_text("  ~ one two three", 12) == "  ~ one two\n    three"
    assert wrap_text("\x1b[32mone\x1b[0m two", 7) == "\x1b[32mone\x1b[0m two"


def test_a_command_is_not_broken_so_that_it_can_be_pasted() -> None:
    command = "schemactl waive 4ee94166e8ab --until 2027-01-31"
    assert wrap_text(f"  To approve it: {command}", 20) == f"  To approve it:\n    {command}"
    assert wrap_text(f"Next: `{command}`, then merge", 20) == f"Next:\n  `{command}`,\n  then merge"
    assert wrap_text("an `unpaired one two three", 12) == "an `unpaired\n  one two\n  three"


def test_a_plan_file_is_shown_without_asking_anybody(shop_folder: Path, tmp_path: Path) -> None:
    done = shop.run(shop_folder, "plan", "--out", f"{tmp_path}/")
    assert shop.run(shop_folder, "plan", "show", f"{tmp_path}/plan.json").out == done.out


def test_the_target_may_stand_in_the_environment(
    shop_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCHEMACTL_TARGET", "locl")
    assert cli.main(["-C", str(shop_folder), "plan"]) == 64
    assert "SCHEMACTL_TARGET=locl: schemactl.yaml has local; did you mean local?" in capsys.readouterr().err
    assert cli.main(["-C", str(shop_folder), "plan", "--target", "local", "-v"]) == 0
    assert "target: local (sqlite:" in capsys.readouterr().err
    assert cli.main(["-C", str(shop_folder), "check"]) == 0


def test_debug_shows_git_commands_and_where_a_problem_comes_from(shop_folder: Path) -> None:
    done = process(shop_folder, "--debug", "log", "ordrs")
    assert done.code == 64
    assert "debug: " in done.err
    assert " s: git " in done.err.replace("/usr/bin/", "")
    assert "Traceback" in done.err


def test_the_worst_of_several_exit_codes_counts() -> None:
    assert [*ExitCode] == [64, 1, 3, 4, 100, 2, 0]
    assert select_exit_code([0, 2, 100]) == 100
    assert select_exit_code([]) == 0


def test_design_lists_every_exit_code() -> None:
    design = (Path(__file__).parents[2] / "DESIGN.md").read_text(encoding="utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \| ", design, re.MULTILINE)] == sorted(ExitCode)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        GOLDEN.write_text(render_screens(shop.make(Path(place))), encoding="utf-8")
