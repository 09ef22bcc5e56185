"""The working tree on a real disk: which files are read, and where the project file is looked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from memory_files import MemoryFiles

from schemactl.core.errors import DeclarationError, SchemactlError, UsageError
from schemactl.core.project import Project
from schemactl.declare.files import MAX_BYTES, WorktreeFiles, obstacle, resolve
from schemactl.declare.project import load_project
from schemactl.declare.reader import read

PROJECT = Project(roots=("topics",))


def write(top: Path, files: dict[str, str]) -> Path:
    """`top`, with these files in it."""
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text, encoding="utf-8")
    return top


def test_every_file_is_listed_but_gits_own(tmp_path: Path) -> None:
    write(tmp_path, {".git/config": "", "a.yaml": "", "b/.hidden/c.yaml": "", "b/d.avsc": ""})
    assert sorted(WorktreeFiles(str(tmp_path)).paths()) == ["a.yaml", "b/.hidden/c.yaml", "b/d.avsc"]


def test_only_the_folders_asked_for_are_walked(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.yaml": "", "b/y.yaml": "", "c/z.yaml": ""})
    files = WorktreeFiles(str(tmp_path), folders=("b", "a", "b", "missing"))
    assert list(files.paths()) == ["b/y.yaml", "a/x.yaml"]
    assert files.read("c/z.yaml") == b""


def test_links_and_other_repositories_are_named_and_never_entered(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.yaml": "topic: shop/sales/secret\n"})
    top = write(tmp_path / "top", {"topics/a.yaml": "topic: shop/sales/a\n", "topics/module/b.yaml": ""})
    (top / "topics/module/.git").write_text("gitdir: elsewhere\n")
    (top / "topics/linked").symlink_to(outside)
    (top / "topics/file.yaml").symlink_to(outside / "secret.yaml")
    files = WorktreeFiles(str(top))
    assert sorted(files.paths()) == ["topics/a.yaml", "topics/file.yaml", "topics/linked", "topics/module"]
    assert {path: files.kind(path) for path in files.paths()} == {
        "topics/a.yaml": "file",
        "topics/file.yaml": "symlink",
        "topics/linked": "symlink",
        "topics/module": "submodule",
    }
    assert files.kind("topics/linked/secret.yaml") == "symlink"
    assert files.kind("topics/module/b.yaml") == "submodule"
    assert files.kind("topics") == files.kind("topics/x.yaml") == files.kind("topics/a.yaml/x") == "missing"
    with pytest.raises(OSError, match=r"file\.yaml"):
        files.read("topics/file.yaml")
    assert len(read(files, PROJECT).problems) == 3


def test_a_root_that_is_a_link_is_a_problem(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"a.yaml": "topic: shop/sales/a\n"})
    top = write(tmp_path / "top", {"x": ""})
    (top / "topics").symlink_to(outside)
    problems = read(WorktreeFiles(str(top), folders=PROJECT.roots), PROJECT).problems
    assert [(str(problem.source), problem.message) for problem in problems] == [
        ("topics:1:1", "`topics` is a symbolic link; links are not followed")
    ]


def test_pipes_folders_and_huge_files_do_no_harm(tmp_path: Path) -> None:
    top = write(tmp_path, {"topics/a.yaml": "topic: shop/sales/a\n"})
    os.mkfifo(top / "topics/pipe.yaml")
    (top / "topics/folder.yaml").mkdir()
    with (top / "topics/huge.yaml").open("wb") as file:
        file.truncate(1 << 40)
    files = WorktreeFiles(str(top))
    with pytest.raises(DeclarationError, match="1,099,511,627,776 bytes"):
        files.read("topics/huge.yaml")
    assert [problem.source.path for problem in read(files, PROJECT).problems] == [
        "topics/huge.yaml",
        "topics/pipe.yaml",
    ]


def test_a_file_that_may_not_be_read_is_a_problem() -> None:
    class Locked(MemoryFiles):
        def read(self, path: str) -> bytes:
            raise PermissionError(13, "Permission denied", path)

    (problem,) = read(Locked({"topics/a.yaml": ""}), PROJECT).problems
    assert str(problem) == "topics/a.yaml:1:1: the file cannot be read: Permission denied"


def test_a_definition_may_be_exactly_as_large_as_the_limit(tmp_path: Path) -> None:
    line = "topic: shop/sales/a\n"
    top = write(tmp_path, {"topics/a.yaml": line + "#" * (MAX_BYTES - len(line) - 1) + "\n"})
    assert read(WorktreeFiles(str(top)), PROJECT).problems == ()


PATHS = {"a.avsc": "x/y/a.avsc", "./a": "x/y/a", "../a": "x/a", "../../z/a": "z/a", ".": "x/y"}
AWAY = ["", " ", "/etc/passwd", "~/a", "../../../a", "a\\b", "C:/a", "a\nb", "\0", "../../.git/config", "../../.."]


def test_paths_start_at_the_file_that_names_them_and_lead_nowhere_else() -> None:
    assert {written: resolve("x/y", written) for written in PATHS} == PATHS
    for written in AWAY:
        with pytest.raises(ValueError, match=r"is not|leads|backslash"):
            resolve("x/y", written)


def test_a_name_in_other_case_is_another_file() -> None:
    files = MemoryFiles({"topics/Orders.avsc": ""})
    assert obstacle(files, "topics/Orders.avsc") is None
    assert obstacle(files, "topics/orders.avsc") == "there is no file `topics/orders.avsc`"


# Where the project file is.


def test_the_nearest_project_file_upwards_is_taken(tmp_path: Path) -> None:
    everywhere, shop = "version: 1\nroots: [all]\n", "version: 1\nroots: [topics]\n"
    write(tmp_path, {".git/config": "", "schemactl.yaml": everywhere, "shop/schemactl.yaml": shop})
    write(tmp_path, {"shop/topics/sales/a.yaml": "", "docs/a.md": ""})
    for folder, path in (
        ("shop/topics/sales", "shop/schemactl.yaml"),
        ("shop", "shop/schemactl.yaml"),
        ("docs", "schemactl.yaml"),
    ):
        project, top = load_project(str(tmp_path / folder))
        assert (project.path, top) == (path, str(tmp_path))
    assert load_project(str(tmp_path / "shop"))[0].roots == ("shop/topics",)


def test_the_search_ends_at_the_top_of_the_repository(tmp_path: Path) -> None:
    write(tmp_path, {"schemactl.yaml": "version: 1\n", "inner/.git": "gitdir: elsewhere\n", "inner/a/b": ""})
    with pytest.raises(SchemactlError, match=r"there is no schemactl\.yaml in .*/inner/a or above it"):
        load_project(str(tmp_path / "inner/a"))


def test_outside_of_a_repository_the_projects_folder_is_the_top(tmp_path: Path) -> None:
    write(tmp_path, {"shop/schemactl.yaml": "version: 1\n", "shop/namespaces/a.yaml": ""})
    project, top = load_project(str(tmp_path / "shop/namespaces"))
    assert (project.path, top) == ("schemactl.yaml", str(tmp_path / "shop"))


def test_config_names_another_project_file(tmp_path: Path) -> None:
    write(tmp_path, {".git/config": "", "ci/strict.yaml": "version: 1\npulsar: '5.0'\n", "shop/a": ""})
    project, top = load_project(str(tmp_path / "shop"), "../ci/strict.yaml")
    assert (project.path, project.folder, project.pulsar) == ("ci/strict.yaml", "ci", "5.0")
    assert top == str(tmp_path)
    for wrong in ("../ci/lax.yaml", "../ci", "/nowhere/schemactl.yaml"):
        with pytest.raises(UsageError, match="no such file"):
            load_project(str(tmp_path / "shop"), wrong)


def test_the_project_file_can_be_read_from_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, {".git/config": "", "shop/schemactl.yaml": "nonsense"})
    staged = MemoryFiles({"schemactl.yaml": "version: 1\n", "shop/topics/a.yaml": ""})
    project, top = load_project(str(tmp_path / "shop"), files=staged)
    assert (project.path, top) == ("schemactl.yaml", str(tmp_path))


def test_a_link_into_a_repository_leads_to_its_project(tmp_path: Path) -> None:
    write(tmp_path, {"real/.git/config": "", "real/schemactl.yaml": "version: 1\n", "real/shop/a": ""})
    (tmp_path / "short").symlink_to("real/shop")
    for config in (None, "../schemactl.yaml"):
        assert load_project(str(tmp_path / "short"), config)[1] == str(tmp_path / "real")


def test_no_link_of_the_repository_leads_to_the_project_file(tmp_path: Path) -> None:
    top = write(tmp_path / "shop", {".git/config": "", "real/schemactl.yaml": "version: 1\n"})
    write(tmp_path, {"out/schemactl.yaml": ""})
    (top / "linked").symlink_to(tmp_path / "out")
    (top / "real" / "file.yaml").symlink_to("schemactl.yaml")
    for config in ("linked/schemactl.yaml", "real/../linked/schemactl.yaml", "real/file.yaml"):
        with pytest.raises(SchemactlError, match="is a symbolic link"):
            load_project(str(top), config)
    assert load_project(str(top), "real/schemactl.yaml")[0].folder == "real"
    (top / "schemactl.yaml").symlink_to("real/schemactl.yaml")
    with pytest.raises(DeclarationError, match="symbolic link"):
        load_project(str(top))
