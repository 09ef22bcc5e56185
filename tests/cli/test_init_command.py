"""`init`, `new` and `demo`: the files that they write, and the files that they leave alone. tests/test_example.py runs the demo itself."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from command import schemactl
from scratch import Scratch

from schemactl.cli.parser import COMMANDS
from schemactl.declare.models import editor_schemas
from schemactl.formats import SPECS

pytestmark = pytest.mark.slow

CLICKS = 'syntax = "proto3";\n\npackage web;\n\nmessage Click {\n  string id = 1;\n}\n'
MONEY = '{"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}'


@pytest.fixture(scope="module")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a project with a second namespace. No test changes it."""
    shop = Scratch(tmp_path_factory.mktemp("new") / "shop")
    schemactl(shop, "init")
    schemactl(shop, "new", "namespace", "shop/sales", "--strategy", "FULL", "--owner", "@acme/sales")
    return shop.path


@pytest.fixture
def shop_repository(new_project: Path, tmp_path: Path) -> Scratch:
    """Return a copy of the new project."""
    return Scratch.open_existing(shutil.copytree(new_project, tmp_path / "shop"))


def read_text(shop: Scratch, path: str) -> str:
    return (shop.path / path).read_text()


@pytest.mark.parametrize(
    ("installed", "release"),
    [
        ({"pyspark": "4.3.0"}, "4.3"),
        ({"pyspark": "4.0.0.dev2"}, "4.0"),
        ({"pyspark-client": "4.2.1"}, "4.2"),
        ({"pyspark": "3.5.9"}, "4.1"),
        ({}, "4.1"),
    ],
)
def test_a_new_project_generates_for_the_installed_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], release: str
) -> None:
    def find_version(distribution: str) -> str:
        if distribution not in installed:
            raise metadata.PackageNotFoundError
        return installed[distribution]

    monkeypatch.setattr("schemactl.cli.init.metadata.version", find_version)
    shop = Scratch(tmp_path / "shop")
    schemactl(shop, "init")
    assert yaml.safe_load(read_text(shop, "schemactl.yaml"))["generate"]["spark"] == release


def test_init_adds_what_a_project_lacks_and_changes_nothing_that_exists(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "shop")
    project = "version: 1\nroots: [schemas]  # ours\npulsar: '4.2'\ntargets:\n  prod: {registry: 'sqlite:r.db'}\n"
    declaration = "topic: shop/sales/orders\nschema: {type: STRING}\n"
    scratch.write({"schemactl.yaml": project, "schemas/orders.yaml": declaration, ".gitignore": "*.pyc"})
    printed = schemactl(scratch, "init").out
    assert "+generate:\n+  package: shop_schemas\n" in printed
    assert "  schemactl plan --target prod " in printed
    text = read_text(scratch, "schemactl.yaml")
    assert text.startswith(f"# yaml-language-server: $schema=.schemas/project.schema.json\n{project}\ndefaults: ")
    assert read_text(scratch, "schemas/orders.yaml") == declaration
    assert read_text(scratch, ".gitignore") == "*.pyc\n.schemactl/\n"
    for path in (".pre-commit-config.yaml", ".gitattributes", ".schemas/project.schema.json"):
        assert (scratch.path / path).is_file()
    assert not (scratch.path / "namespaces").exists()
    schemactl(scratch, "check")
    assert schemactl(scratch, "init").out == "The project is complete: nothing was changed.\n"
    assert read_text(scratch, "schemactl.yaml") == text


def test_init_prints_the_keys_that_cannot_be_added_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "schemactl.yaml").write_text("{version: 1, roots: [.]}\n")
    assert "add this to it by hand:\n\ndefaults: " in schemactl(tmp_path, "init").out
    assert (tmp_path / "schemactl.yaml").read_text().endswith("\n{version: 1, roots: [.]}\n")
    assert "default_install_hook_types" in (tmp_path / ".pre-commit-config.yaml").read_text()


@pytest.mark.parametrize("project", ["version: 1\nrots: [x]\n", "version: 1\n\tdefaults:\n", "- version: 1\n"])
def test_init_writes_nothing_beside_a_project_file_with_problems(tmp_path: Path, project: str) -> None:
    (tmp_path / "schemactl.yaml").write_text(project)
    assert "schemactl.yaml:" in schemactl(tmp_path, "init", code=1).err
    assert [path.name for path in tmp_path.iterdir()] == ["schemactl.yaml"]
    assert (tmp_path / "schemactl.yaml").read_text() == project


@pytest.mark.parametrize("folder", ["it's", "a: b", "c #d", "e-"])
def test_the_hook_names_any_folder(tmp_path: Path, folder: str) -> None:
    scratch = Scratch(tmp_path / "mono")
    (scratch.path / folder).mkdir()
    schemactl(scratch.path / folder, "init")
    text = read_text(scratch, ".pre-commit-config.yaml")
    [hook] = yaml.safe_load(text)["repos"][0]["hooks"]
    assert shlex.split(hook["entry"]) == ["schemactl", "-C", folder, "check", "--staged"]
    assert hook["name"] == f"check Pulsar schemas of {folder}"
    assert schemactl(scratch.path / folder, "init").out == "The project is complete: nothing was changed.\n"


@pytest.mark.parametrize(
    ("folder", "package"),
    [
        ("shop", "shop_schemas"),
        ("schemas", "my_schemas"),
        ("Shop-Schemas", "shop_schemas"),
        ("shop.2", "shop_2_schemas"),
    ],
)
def test_the_package_is_named_after_the_folder(tmp_path: Path, folder: str, package: str) -> None:
    (tmp_path / folder).mkdir()
    schemactl(tmp_path / folder, "init", "--bare")
    assert yaml.safe_load((tmp_path / folder / "schemactl.yaml").read_text())["generate"]["package"] == package


@pytest.mark.parametrize(
    ("projects", "fix"),
    [
        ([], "start a project with `schemactl init`, or name its folder with -C"),
        ([".cache"], "start a project with `schemactl init`, or name its folder with -C"),
        (["a/b/c"], "start a project with `schemactl init`, or name its folder with -C"),
        (["shop"], "name the folder of the project: -C shop"),
        (["web data", "platform/schemas"], "name the folder of the project: -C platform/schemas, -C 'web data'"),
    ],
)
def test_a_command_above_a_project_names_its_folder(tmp_path: Path, projects: list[str], fix: str) -> None:
    scratch = Scratch(tmp_path / "mono")
    scratch.write({f"{project}/schemactl.yaml": "version: 1\n" for project in projects})
    assert (
        schemactl(scratch, "plan", code=1).err
        == f"schemactl: there is no schemactl.yaml in {scratch.path}\n  Fix: {fix}\n"
    )


def test_the_hooks_of_two_projects_below_the_top_judge_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    scratch = Scratch(tmp_path / "mono")
    scratch.commit({"README.md": "A repository.\n"})
    (scratch.path / "web data").mkdir()
    (scratch.path / "shop").mkdir()
    first_output = schemactl(scratch.path / "shop", "init").out
    assert "wrote ../.pre-commit-config.yaml" in first_output
    assert "  git add . ../.pre-commit-config.yaml && git commit\n" in first_output
    printed = schemactl(scratch.path / "web data", "init").out
    hook = printed.partition("Add the hook below its `repos:`:\n\n")[2].partition("\nNext:")[0]
    assert "and at its top" not in hook
    with (scratch.path / ".pre-commit-config.yaml").open("a") as file:
        file.write(hook)
    assert not (scratch.path / "shop/.pre-commit-config.yaml").exists()
    scratch.git("add", "-A")
    run = (sys.executable, "-m", "pre_commit", "run")
    first = subprocess.run(run, cwd=scratch.path, capture_output=True, text=True, check=True).stdout
    assert "check Pulsar schemas of shop" in first
    assert "check Pulsar schemas of web data" in first
    scratch.git("commit", "-q", "--no-verify", "-m", "Begin")
    definition = scratch.path / "web data/namespaces/default/greetings.avsc"
    definition.write_text(definition.read_text().replace('"string"', '"int"'))
    scratch.git("add", "-A")
    done = subprocess.run(run, cwd=scratch.path, capture_output=True, text=True, check=False).stdout
    assert re.search(r"schemas of shop\.+Passed", done)
    assert re.search(r"schemas of web data\.+Failed", done)


def test_a_topic_of_every_type_passes_every_command_that_judges_files(shop_repository: Scratch) -> None:
    project = read_text(shop_repository, "schemactl.yaml").replace('"4.0"', '"4.2"')
    shop_repository.write({"schemactl.yaml": f"{project}severities: {{OTHER_RELEASE_DIFFERS: off}}\n"})
    types = [type_.name for type_, spec in SPECS.items() if not spec.undeclarable]
    for type_ in types:
        schemactl(shop_repository, "new", "topic", f"sales/{type_.lower()}-v1", "--type", type_)
    halves = [type_.name for type_, spec in SPECS.items() if spec.declared_as in ("avro", "protobuf", "proto")]
    for type_ in halves:
        schemactl(shop_repository, "new", "topic", f"sales/pair-{type_}", "--key", type_, "--value", type_)
    odd = 'odd "names" 100% of 2031'
    schemactl(shop_repository, "new", "topic", f"non-persistent://shop/sales/{odd}", "--partitions", "3")
    schemactl(shop_repository, "new", "topic", "sales/pings", "--type", "NONE", "--description", "Who is there?")
    count = len(types) + len(halves) + 3
    assert f"{count} topics checked" in schemactl(shop_repository, "check", "--strict").out
    for command in (["lint", "--strict"], ["fmt", "--check"]):
        if command[0] in COMMANDS:
            schemactl(shop_repository, *command)
    assert read_text(shop_repository, "namespaces/sales/key_value-v1.yaml") == (
        "# yaml-language-server: $schema=../../.schemas/declarations.schema.json\n"
        "topic: persistent://shop/sales/key_value-v1\n"
        "schema:\n  type: KEY_VALUE\n  encoding: SEPARATED\n  key:\n    type: STRING\n"
        "  value:\n    type: AVRO\n    definition: key_value-v1.value.avsc\n"
    )
    assert '"name": "OddNames100Of2031"' in read_text(shop_repository, "namespaces/sales/odd__names__100__of_2031.avsc")


def test_a_definition_in_the_repository_is_named_and_another_is_copied(
    shop_repository: Scratch, tmp_path: Path
) -> None:
    shop_repository.write({"proto/click.proto": CLICKS, "proto/two.proto": f"{CLICKS}message Other {{}}\n"})
    (tmp_path / "money.avsc").write_text(MONEY)
    printed = schemactl(shop_repository, "new", "topic", "shop/sales/clicks", "--from", "proto/click.proto").out
    assert printed == "wrote namespaces/sales/clicks.yaml\n\nNext:\n  schemactl check\n"
    assert "  definition: ../../proto/click.proto\n  message: web.Click\n" in read_text(
        shop_repository, "namespaces/sales/clicks.yaml"
    )
    options = ["--from", str(tmp_path / "money.avsc"), "--value", "JSON"]
    schemactl(shop_repository, "new", "topic", "shop/sales/sums", *options)
    assert read_text(shop_repository, "namespaces/sales/sums.value.avsc") == MONEY
    two = ["new", "topic", "shop/sales/two", "--from", "proto/two.proto"]
    assert "--message: web.Click, web.Other" in schemactl(shop_repository, *two, code=64).err
    schemactl(shop_repository, *two, "--message", "web.Other")
    assert "4 topics checked" in schemactl(shop_repository, "check").out


IMPORTING = 'syntax = "proto3";\npackage web;\nimport "web/device.proto";\nmessage Press { Device device = 1; }\n'
DEVICE = 'syntax = "proto3";\npackage web;\nmessage Device { string name = 1; }\n'


@pytest.mark.parametrize(
    ("files", "reference_option", "references"),
    [
        ({"proto/web/device.proto": DEVICE}, "proto/web/press.proto", "[../../proto/web/device.proto]"),
        # Of two copies, the copy next to the file itself.
        (
            {"proto/web/device.proto": DEVICE, "a/web/device.proto": DEVICE},
            "proto/web/press.proto",
            "[../../proto/web/device.proto]",
        ),
        (
            {"namespaces/common/sum.avsc": MONEY.replace("Money", "Sum").replace("shop", "")},
            "orders.avsc",
            "[../common/sum.avsc]",
        ),
        # Directly and through another file, and only what is used.
        (
            {
                "namespaces/common/a.avsc": '{"type": "record", "name": "Sum", "fields": [{"name": "unit", "type": "Unit"}]}',
                "namespaces/common/b.avsc": '{"type": "enum", "name": "Unit", "symbols": ["EUR"]}',
                "namespaces/common/c.avsc": '{"type": "enum", "name": "Other", "symbols": ["EUR"]}',
            },
            "orders.avsc",
            "[../common/a.avsc, ../common/b.avsc]",
        ),
    ],
    ids=["import", "two copies", "type", "types through each other"],
)
def test_new_topic_references_the_files_that_a_definition_uses(
    shop_repository: Scratch, files: dict[str, str], reference_option: str, references: str
) -> None:
    orders = '{"type": "record", "name": "Order", "fields": [{"name": "sum", "type": "Sum"}]}'
    shop_repository.write({**files, reference_option: IMPORTING if reference_option.endswith(".proto") else orders})
    schemactl(shop_repository, "new", "topic", "shop/sales/uses", "--from", reference_option)
    assert f"\n  references: {references}\n" in read_text(shop_repository, "namespaces/sales/uses.yaml")
    assert "2 topics checked" in schemactl(shop_repository, "check").out


def test_an_import_that_the_repository_lacks_names_the_folder_to_copy_or_the_files_it_could_mean(
    shop_repository: Scratch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere" / "web"
    elsewhere.mkdir(parents=True)
    (elsewhere / "press.proto").write_text(IMPORTING)
    (elsewhere / "device.proto").write_text(DEVICE)
    command = ["new", "topic", "shop/sales/uses", "--from", str(elsewhere / "press.proto")]
    assert f"Fix: copy {elsewhere} to proto/web in the repository" in schemactl(shop_repository, *command, code=1).err
    shop_repository.write({"a/web/device.proto": DEVICE, "b/web/device.proto": DEVICE})
    error = schemactl(shop_repository, *command, code=1).err
    assert '`import "web/device.proto"` could mean `a/web/device.proto` or `b/web/device.proto`' in error


def test_files_go_where_those_of_the_namespace_are(shop_repository: Scratch) -> None:
    shop_repository.write({"namespaces/acme/web/all.yaml": "namespace: acme/web\n---\ntopic: acme/web/views\n"})
    schemactl(shop_repository, "new", "topic", "web/clicks")
    schemactl(shop_repository, "new", "namespace", "acme/sales")
    assert (shop_repository.path / "namespaces/acme/web/clicks.yaml").exists()
    assert read_text(shop_repository, "namespaces/acme/sales/namespace.yaml").splitlines()[1:] == [
        "namespace: acme/sales",
        "is_allow_auto_update_schema: false",
    ]
    assert read_text(shop_repository, "namespaces/sales/namespace.yaml").splitlines()[1:] == [
        *("namespace: shop/sales", "schema_compatibility_strategy: FULL", "is_allow_auto_update_schema: false"),
        'owner: "@acme/sales"',
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ["topic", "orders"],
            64,
            "'orders' may be in 2 namespaces\n  Fix: write one of public/default/orders, shop/sales/orders",
        ),
        (
            ["topic", "shop/sale/orders"],
            1,
            "no file declares the namespace shop/sale; did you mean shop/sales?\n  Fix: schemactl new namespace shop/sale",
        ),
        (
            ["topic", "default/greetings"],
            64,
            "persistent://public/default/greetings is declared already, at namespaces/default/greetings.yaml:2:8",
        ),
        (["topic", "non-persistent://public/default/greetings"], 64, "is declared already"),
        (
            ["topic", "sales/__change_events"],
            64,
            "schemactl: persistent://shop/sales/__change_events is a system topic of Pulsar",
        ),
        (
            ["topic", "sales/orders\u200b"],
            64,
            "schemactl: 'shop/sales/orders\\u200b' contains U+200B ZERO WIDTH SPACE\n  Fix: write persistent://shop/sales/orders\n",
        ),
        (["namespace", "shop/sales"], 64, "shop/sales is declared already"),
        (["namespace", "shop"], 64, "'shop' is not a namespace: expected tenant/namespace"),
        (["topic", "sales/taken"], 1, "namespaces/sales/taken.yaml exists already"),
        (["topic", "sales/a", "--type", "AVR"], 64, "did you mean AVRO?"),
        (["topic", "sales/a", "--value", "KEY_VALUE"], 64, "a KEY_VALUE schema cannot be the key or value of another"),
        (["topic", "sales/a", "--type", "BYTES"], 64, "'BYTES' is unknown"),
        (["topic", "sales/a", "--type", "AVRO", "--key", "STRING"], 64, "--key and --value require --type KEY_VALUE"),
        (
            ["topic", "sales/a", "--type", "STRING", "--from", "bad.avsc"],
            64,
            "STRING is not defined by a file of that kind",
        ),
        (["topic", "sales/a", "--from", "bad.csv"], 64, "a definition's name ends with .avsc"),
        (["topic", "sales/a", "--from", "none.avsc"], 64, "--from none.avsc: No such file or directory"),
        (["topic", "sales/a", "--message", "web.Click"], 64, "--message names one in the file that --from names"),
        (
            ["topic", "sales/a", "--from", "bad.avsc"],
            1,
            "nothing was written, because `check` would reject it:\nbad.avsc:1:",
        ),
        (
            ["topic", "sales/a", "--partitions", "0"],
            1,
            "expected a number of partitions, 1 or more, found the number 0",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_written_says_why_and_leaves_no_file(
    shop_repository: Scratch, arguments: list[str], code: int, error: str
) -> None:
    shop_repository.write(
        {"bad.avsc": '{"type": "recrod", "name": "X", "fields": []}', "namespaces/sales/taken.yaml": "# mine\n"}
    )
    before = sorted(shop_repository.path.rglob("*"))
    assert error in schemactl(shop_repository, "new", *arguments, code=code).err
    assert sorted(shop_repository.path.rglob("*")) == before


def test_each_file_that_init_and_new_write_names_its_schema_to_editors(shop_repository: Scratch) -> None:
    schemactl(shop_repository, "new", "topic", "shop/sales/orders")
    for path in (shop_repository.path, *shop_repository.path.rglob("*.yaml")):
        if path.is_file() and not path.name.startswith("."):
            match = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
            assert match
            assert (path.parent / match[1]).is_file()
    assert {path.name for path in (shop_repository.path / ".schemas").iterdir()} == {
        f"{name}.schema.json" for name in editor_schemas()
    }
    shop_repository.write({".schemas/project.schema.json": "{}"})
    schemactl(shop_repository, "init", "--schemas")
    assert "ProjectShape" in read_text(shop_repository, ".schemas/project.schema.json")
    for path in (shop_repository.path / ".schemas").iterdir():
        path.unlink()
    schemactl(shop_repository, "new", "topic", "shop/sales/refunds")
    assert read_text(shop_repository, "namespaces/sales/refunds.yaml").startswith("topic: ")


def test_init_makes_the_example_s_repository(tmp_path: Path) -> None:
    done = schemactl(tmp_path, "init", "--example")
    assert "twenty commits" in done.out
    assert "5 (in force)" in schemactl(tmp_path, "log", "orders").out
    assert "15 topics" in schemactl(tmp_path, "lint").out


def test_init_makes_the_repositories_of_three_environments(tmp_path: Path) -> None:
    assert "origin.git" in schemactl(tmp_path, "init", "--example", "environments").out
    assert "prod" in schemactl(tmp_path / "shop", "targets").out
    assert "did you mean environments?" in schemactl(tmp_path, "init", "--example", "enviroments", code=64).err


def test_init_writes_no_example_where_files_are(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    error = schemactl(tmp_path, "init", "--example", code=1).err
    assert "is not empty: nothing was written" in error
    assert "mkdir shop && schemactl -C shop init --example shop" in error
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_demo_takes_no_folder_that_has_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    done = schemactl(tmp_path, "demo", ".", code=1)
    assert "has files that the demo did not make: name a new folder" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert "is a file" in schemactl(tmp_path, "demo", "thesis.tex", code=64).err


def test_the_demo_names_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    done = schemactl(tmp_path, "demo", code=1)
    assert "the demo needs pyspark, which is not installed" in done.err
    assert 'pip install "pulsar-schemactl[spark,proto,java]"' in done.err


def test_an_error_inside_the_example_is_not_taken_for_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_module_not_found(name: str) -> None:
        raise ModuleNotFoundError(name=f"something.{name}")

    monkeypatch.setattr("schemactl.cli.demo.import_module", raise_module_not_found)
    with pytest.raises(ModuleNotFoundError):
        schemactl(tmp_path, "init", "--example")
