"""Files are written to their place atomically, and never through a link in a pull request."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import shop
from command import Printed
from scratch import Scratch, record, write_declaration

from schemactl.core.atomic_files import PRIVATE_MODE, find_top_folder, read, reject_links, remove, write
from schemactl.core.errors import SchemactlError

pytestmark = pytest.mark.slow

PROJECT = """\
version: 1
roots: [topics]
targets: {local: {registry: "sqlite:.schemactl/registry.db"}}
generate: {package: shop_schemas, out: generated}
"""
KEPT = "must not be overwritten\n"


class Attacked:
    """A repository whose pull request may bring links, and files outside it that they lead to."""

    def __init__(self, folder: Path) -> None:
        repository = Scratch(folder / "shop")
        repository.commit(
            {"schemactl.yaml": PROJECT, "topics/orders.yaml": write_declaration(), "topics/orders.avsc": record("id")},
            "approved",
        )
        repository.flush()
        self.path = repository.path
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.victim = self.outside / "victim"
        self.victim.write_text(KEPT)

    def add_link(self, name: str, to: Path) -> None:
        """Add a link `name` to the repository that leads to `to`."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(to)

    def run(self, *arguments: str, code: int = 0) -> Printed:
        return shop.run(self.path, *arguments, code=code)

    def is_unharmed(self) -> bool:
        """Return whether nothing was changed or added outside of the repository."""
        return [path.name for path in self.outside.iterdir()] == ["victim"] and self.victim.read_text() == KEPT


@pytest.fixture
def attacked_folder(tmp_path: Path) -> Attacked:
    return Attacked(tmp_path)


WRITERS = {
    "check": (["check", "--format", "sarif=reports/out.sarif"], "reports/out.sarif"),
    "generate": (["generate"], "generated/shop_schemas/__init__.py"),
    "generate --out": (["generate", "--out", "elsewhere"], "elsewhere/shop_schemas/shop/__init__.py"),
    "generate --zip": (["generate", "--zip", "dist/package.zip"], "dist/package.zip"),
    "generate --wheel": (["generate", "--wheel", "--wheel-version", "1.0"], "dist/shop_schemas-1.0-py3-none-any.whl"),
    "plan --out": (["plan", "--target", "local", "--out", "plans/plan.json"], "plans/plan.json"),
    "apply --result": (["apply", "--yes", "--target", "local", "--result", "results/r.json"], "results/r.json"),
    "registry": (["apply", "--yes", "--target", "local"], ".schemactl/registry.db"),
    "registry's log": (["apply", "--yes", "--target", "local"], ".schemactl/registry.db-wal"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_in_place_of_the_file_is_refused_with_its_place(attacked_folder: Attacked, writer: str) -> None:
    arguments, file = WRITERS[writer]
    attacked_folder.add_link(file, attacked_folder.victim)
    done = attacked_folder.run(*arguments, code=1)
    assert attacked_folder.is_unharmed()
    assert f"{file} is a symbolic link: " in done.err
    assert (attacked_folder.path / file).is_symlink()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_linked_folder_is_refused_with_its_place(attacked_folder: Attacked, writer: str) -> None:
    arguments, file = WRITERS[writer]
    folder = file.split("/")[0]
    attacked_folder.add_link(folder, attacked_folder.outside)
    done = attacked_folder.run(*arguments, code=1)
    assert attacked_folder.is_unharmed()
    assert f"{folder} is a symbolic link: " in done.err


def test_without_links_the_files_are_there_and_nothing_beside_them(attacked_folder: Attacked) -> None:
    attacked_folder.run("generate")
    attacked_folder.run("generate", "--zip", "package.zip", "--wheel", "--wheel-version", "1.0")
    attacked_folder.run("plan", "--out", "plan.json")
    assert {path.name for path in attacked_folder.path.iterdir()} - {".git", "topics"} == {
        "schemactl.yaml",
        "generated",
        "package.zip",
        "dist",
        "plan.json",
    }
    assert len(list((attacked_folder.path / "dist").iterdir())) == 1


def test_a_link_that_leads_nowhere_yet_is_refused_too(attacked_folder: Attacked) -> None:
    attacked_folder.add_link("out.sarif", attacked_folder.outside / "new")
    attacked_folder.run("check", "--format", "sarif=out.sarif", code=1)
    assert attacked_folder.is_unharmed()


def test_a_link_in_the_way_of_generate_check_is_refused_and_not_read(attacked_folder: Attacked) -> None:
    attacked_folder.add_link("generated/shop_schemas/__init__.py", Path("/dev/zero"))
    done = attacked_folder.run("generate", "--check", code=1)
    assert "generated/shop_schemas/__init__.py is a symbolic link" in done.err


def test_a_compiled_folder_that_is_a_link_is_left_alone(attacked_folder: Attacked) -> None:
    attacked_folder.run("generate")
    (attacked_folder.outside / "victim").rename(attacked_folder.outside / "victim.pyc")
    attacked_folder.add_link("generated/shop_schemas/shop/sales/__pycache__", attacked_folder.outside)
    (attacked_folder.path / "topics" / "orders.yaml").write_text(write_declaration("shop/other/orders"))
    shop.git(attacked_folder.path, "add", ".")
    shop.git(attacked_folder.path, "commit", "-q", "-m", "moved")
    attacked_folder.run("generate")
    assert (attacked_folder.outside / "victim.pyc").read_text() == KEPT


def test_names_that_a_pull_request_can_foresee_are_never_used(attacked_folder: Attacked) -> None:
    # The process id of the command is unknown, so the test uses each possible one.
    program = (
        "import os, pathlib, sys\n"
        "for name in ('out.sarif', 'plan.json', 'package.zip'):\n"
        f"    pathlib.Path(f'.{{name}}.{{os.getpid()}}').symlink_to({str(attacked_folder.victim)!r})\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'schemactl', *sys.argv[1:]])\n"
    )
    for arguments in (
        ["check", "--format", "sarif=out.sarif"],
        ["generate", "--zip", "package.zip"],
        ["plan", "--target", "local", "--out", "plan.json"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=attacked_folder.path,
            env=shop.make_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert attacked_folder.is_unharmed()


def test_init_writes_through_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text(KEPT)
    for name in ("namespaces/default/greetings.avsc", ".gitignore", "namespaces", ".pre-commit-config.yaml"):
        folder = tmp_path / name.replace("/", "-")
        (folder / name).parent.mkdir(parents=True)
        to = tmp_path / "outside" if name == "namespaces" else tmp_path / "new" if "pre" in name else victim
        (folder / name).symlink_to(to)
        shop.run(folder, "init", code=(0, 1) if name.startswith(".pre") else 1)
        assert victim.read_text() == KEPT
        assert not (tmp_path / "outside").exists()
        assert not (tmp_path / "new").exists()


def test_import_writes_through_no_link(attacked_folder: Attacked) -> None:
    attacked_folder.run("apply", "--yes", "--target", "local")
    fresh = Scratch(attacked_folder.path.parent / "fresh").path
    (fresh / "namespaces").symlink_to(attacked_folder.outside)
    registry = f"sqlite:{attacked_folder.path}/.schemactl/registry.db"
    done = shop.run(fresh, "import", "--registry", registry, code=1)
    assert attacked_folder.is_unharmed()
    assert "namespaces is a symbolic link" in done.err


def test_outside_the_repository_a_path_may_hold_links(attacked_folder: Attacked, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to(attacked_folder.outside)
    attacked_folder.run("check", "--format", f"json={tmp_path}/short/report.json")
    assert (attacked_folder.outside / "report.json").is_file()


def test_a_repository_may_be_reached_through_a_link_and_its_own_are_still_refused(
    attacked_folder: Attacked, tmp_path: Path
) -> None:
    (tmp_path / "short").symlink_to(attacked_folder.path)
    shop.run(tmp_path, "-C", "short", "check", "--format", "json=a.json")
    attacked_folder.add_link("linked", attacked_folder.outside)
    for path in (f"{tmp_path}/short/linked/b.json", "linked/b.json", "topics/../linked/b.json"):
        done = shop.run(tmp_path, "-C", "short", "check", "--format", f"json={path}", code=1)
        assert "linked is a symbolic link" in done.err
        assert attacked_folder.is_unharmed()


INTO_GIT = {
    "check": ["check", "--format", "json={}"],
    "generate --out": ["generate", "--out", "{}"],
    "generate --check": ["generate", "--check", "--out", "{}"],
    "generate --zip": ["generate", "--zip", "{}"],
    "generate --wheel": ["generate", "--wheel", "{}", "--wheel-version", "1.0"],
    "plan --out": ["plan", "--target", "local", "--out", "{}"],
    "apply --result": ["apply", "--yes", "--target", "local", "--result", "{}"],
}


@pytest.mark.parametrize("command", INTO_GIT)
def test_git_folder_is_rejected_in_every_spelling(attacked_folder: Attacked, command: str) -> None:
    def list_paths() -> set[Path]:
        return set(attacked_folder.path.rglob("*"))

    # The files of the tool and of commands exist before.
    for arguments in (["apply", "--yes", "--target", "local"], ["check"], ["generate"]):
        attacked_folder.run(*arguments)
    (attacked_folder.outside / "short").symlink_to(attacked_folder.path / ".git")
    git = (attacked_folder.path / ".git" / "config").read_bytes()
    for place in (
        ".git/config",
        "topics/../.git/new",
        ".GIT/new",
        "git~1/new",
        "topics/.git/new",
        f"{attacked_folder.outside}/short/config",
    ):
        before = list_paths()
        done = attacked_folder.run(*(word.format(place) for word in INTO_GIT[command]), code=1)
        assert " leads into Git's own folder: " in done.err, (place, done.err)
        assert list_paths() == before
        assert (attacked_folder.path / ".git" / "config").read_bytes() == git


def test_a_registry_in_git_s_own_folder_is_refused(attacked_folder: Attacked) -> None:
    config = attacked_folder.path / "schemactl.yaml"
    config.write_text(config.read_text().replace(".schemactl/registry.db", ".git/registry.db"))
    shop.git(attacked_folder.path, "commit", "-qam", "registry")
    done = attacked_folder.run("apply", "--yes", "--target", "local", code=1)
    assert "leads into Git's own folder" in done.err
    assert not (attacked_folder.path / ".git" / "registry.db").exists()


# The function itself.


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_the_umask_s(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write(tmp_path / "a", b"x", below=str(tmp_path))
        write(tmp_path / "b", b"x", below=None, mode=PRIVATE_MODE)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600 & ~umask


def test_a_new_file_takes_no_other_s_place(tmp_path: Path) -> None:
    write(tmp_path / "a", b"old", below=None)
    with pytest.raises(FileExistsError):
        write(tmp_path / "a", b"new", below=None, is_new=True)
    write(tmp_path / "b", b"new", below=None, is_new=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old", "b": b"new"}


def test_where_files_have_one_name_a_new_one_takes_no_other_s_place_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)
    test_a_new_file_takes_no_other_s_place(tmp_path)


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    def yield_parts_and_fail() -> object:
        yield b"half"
        raise OSError("the disk is full")

    write(tmp_path / "a", b"old", below=None)
    with pytest.raises(OSError, match="disk is full"):
        write(tmp_path / "a", yield_parts_and_fail(), below=None)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_the_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for below in (None, str(tmp_path)):
        with pytest.raises(OSError, match=r"report\.json") as caught:
            write(tmp_path / "taken" / "report.json", b"{}", below=below)
        assert caught.value.filename == str(tmp_path / "taken" / "report.json")


def test_a_process_that_is_killed_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from schemactl.core.atomic_files import write\n"
        "def parts():\n"
        "    yield b'x' * 1_000_000\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write(sys.argv[1], parts(), below=None, is_new=sys.argv[2] == 'new')\n"
    )
    (tmp_path / "old").write_bytes(b"old")
    for name, kind in (("old", "replaced"), ("fresh", "new")):
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path / name), kind], check=False)
        assert done.returncode < 0
    assert (tmp_path / "old").read_bytes() == b"old"
    assert not (tmp_path / "fresh").exists()


@pytest.mark.parametrize(
    "use",
    [
        lambda path, top: write(path, b"x", below=top),
        lambda path, top: read(path, below=top),
        lambda path, top: remove(path, below=top),
        lambda path, top: reject_links(path, below=top),
    ],
)
def test_a_link_is_refused_however_the_path_is_written(
    tmp_path: Path, use: Callable[[Path, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "top"
    (top / "plain" / "deep").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text(KEPT)
    (top / "plain" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "way").symlink_to(top / "plain" / "deep")
    monkeypatch.chdir(top)
    for path in (
        top / "plain/link/file",
        Path("plain/link/file"),
        Path("./plain//deep/../link/file"),
        tmp_path / "outside/../top/plain/link/file",
        tmp_path / "way/../link/file",
    ):
        with pytest.raises(SchemactlError, match=r"^plain/link is a symbolic link"):
            use(path, str(top))
    assert (tmp_path / "outside" / "file").read_text() == KEPT


def test_a_device_outside_of_the_repository_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    below = tmp_path / "repository"
    below.mkdir()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe, b"text", below=str(below.resolve()))
        assert os.read(reader, 9) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_pipe_or_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, refused in (("pipe", SchemactlError), ("folder", IsADirectoryError)):
        with pytest.raises(refused):
            read(tmp_path / name, below=str(tmp_path))
        with pytest.raises(refused):
            write(tmp_path / name, b"x", below=str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "folder"}


def test_missing_file_reads_as_none_and_creates_no_folder(tmp_path: Path) -> None:
    for below in (None, str(tmp_path)):
        assert read(tmp_path / "no" / "file", below=below) is None
        assert read(tmp_path / "file", below=below) is None
    assert not list(tmp_path.iterdir())


def test_the_top_is_the_nearest_repository_s(tmp_path: Path) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    (tmp_path / "one" / "two" / "three").mkdir(parents=True)
    (tmp_path / "one" / "two" / ".git").write_text("gitdir: elsewhere")
    (tmp_path / "short").symlink_to(tmp_path / "one" / "two" / "three")
    real = os.path.realpath(tmp_path)
    assert find_top_folder(str(tmp_path / "one")) == f"{real}/one"
    assert find_top_folder(str(tmp_path / "short")) == f"{real}/one/two"
