"""A declaration outside of the roots is a note, and a missing root names the folders that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import schemactl
from estate import PROJECT, Estate
from scratch import Scratch, write_declaration

pytestmark = pytest.mark.slow

TOPIC = write_declaration("shop/sales/returns", "returns.avsc")


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return Estate(tmp_path_factory.mktemp("outside") / "shop")


def find_notes(estate: Estate, *arguments: str) -> list[str]:
    lines = estate.run("check", *arguments, code=(0, 100)).err.splitlines()
    return [line for line in lines if "outside of the roots" in line]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("topics/returns.yaml", TOPIC, "shop/sales/returns"),
        ("returns.yml", TOPIC, "shop/sales/returns"),
        ("a/b/c/sales.yaml", "# ours\nnamespace: 'shop/returns'   # new\n", "shop/returns"),
        ("two.yaml", f"namespace: shop/more\n---\n{TOPIC}", "shop/more and 1 more"),
        ("topics/odd.yaml", 'topic: "non-persistent://shop/sales/x"\n', "non-persistent://shop/sales/x"),
        ("kubernetes.yaml", "namespace: default\ntopic: orders\n", None),
        ("topics/nested.yaml", "spec:\n  topic: shop/sales/returns\n", None),
        ("topics/text.yaml", "note: |\n  x\ntopic: see shop/sales/returns\n", None),
        ("topics/broken.yaml", "topic: [\n", None),
        ("topics/bytes.yaml", "topic: \udcff\n", None),
        ("topics/returns.txt", TOPIC, None),
        (".hidden/returns.yaml", TOPIC, None),
        ("topics/.returns.yaml", TOPIC, None),
        ("namespaces/more/returns.yaml", TOPIC.replace("returns.avsc", "../orders.avsc"), None),
        (".schemactl/returns.yaml", TOPIC, None),
    ],
)
@pytest.mark.parametrize("state", ["untracked", "committed"])
def test_a_declaration_outside_of_the_roots_is_a_note(
    module_estate: Estate, tmp_path: Path, state: str, path: str, text: str, name: str | None
) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    file = estate.scratch.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode(errors="surrogateescape"))
    if state == "committed":
        estate.scratch.configure_author()
        estate.scratch.git("add", "-A")
        estate.scratch.git("commit", "-q", "--allow-empty", "-m", "A file")
    note = (
        f"note: {path} declares {name} outside of the roots (`namespaces`), so it is not read: move the file, or add its folder to "
        "`roots` of schemactl.yaml"
    )
    assert find_notes(estate) == ([note] if name else [])
    if state == "committed":
        assert find_notes(estate, "--base", "main") == ([note] if name else [])
    assert find_notes(estate, "--staged") == []
    assert find_notes(estate, "--topic", "orders") == []


def test_overlays_previous_roots_and_other_projects_are_no_declarations(module_estate: Estate, tmp_path: Path) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    project = PROJECT.replace('db"}', 'db", overlays: environments/local.yaml}') + "previous_roots: [old]\n"
    estate.scratch.write(
        {
            "schemactl.yaml": project,
            "environments/local.yaml": "topic: shop/sales/orders\npartitions: 4\n",
            "old/returns.yaml": TOPIC,
            "other/schemactl.yaml": "version: 1\nroots: [topics]\n",
            "other/returns.yaml": TOPIC,
        }
    )
    assert find_notes(estate) == []


@pytest.mark.parametrize(
    ("roots", "folders", "message"),
    [
        (
            "[schemata]",
            ("declared", "docs"),
            "note: nothing is declared in schemata (`roots` of schemactl.yaml); folders with YAML files: declared, docs",
        ),
        (
            "[namespaces, schemata]",
            ("declared",),
            (
                "schemactl.yaml:2:21: there is no file in the folder `schemata`\n  Fix: name a folder that contains declarations, or remove the entry; folders with YAML files: declared, namespaces"
            ),
        ),
        (
            "[schemata]",
            tuple(f"f{number:02}" for number in range(12)),
            "folders with YAML files: f00, f01, f02, f03, f04, f05, f06, f07, f08, f09 and 2 more",
        ),
        ("[schemata]", (), "note: nothing is declared in schemata (`roots` of schemactl.yaml)\n"),
    ],
)
def test_a_missing_root_names_the_existing_folders(
    tmp_path: Path, roots: str, folders: tuple[str, ...], message: str
) -> None:
    estate = Estate(tmp_path / "shop")
    estate.scratch.flush()
    git = estate.scratch.git
    git("checkout", "-q", "--orphan", "fresh")
    git("branch", "-D", "main")
    if "namespaces" not in roots:
        git("rm", "-rq", "-f", "namespaces")
    estate.scratch.write({"schemactl.yaml": f"version: 1\nroots: {roots}\n"})
    estate.scratch.write({f"{folder}/a.yaml": "a: 1\n" for folder in folders})
    printed = estate.run("check", code=(0, 1))
    assert message in printed.out + printed.err


def test_a_namespace_without_topics_is_declared(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/sales.yaml": "namespace: shop/sales\n"}
    scratch.commit(files)
    assert "nothing is declared" not in schemactl(scratch, "check").out
