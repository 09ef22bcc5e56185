"""A `.proto` definition is registered in the form of a client language, and a registry with another form is not changed."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from scratch import Scratch

from schemactl.core.names import TopicName
from schemactl.core.project import ProtoRendering
from schemactl.core.schema import SchemaInfo
from schemactl.formats.native_definitions import find_rendering, list_proto_files
from schemactl.formats.protobuf.protoc import Proto, compile_proto, read_descriptor_set
from schemactl.formats.protobuf.rendering import convert, render_as
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

CLICKS = TopicName("shop", "web", "clicks")
CLICK = 'syntax = "proto3"; package web; import "common.proto"; message Click { string user_id = 1; User user = 2; }'
COMMON = 'syntax = "proto3"; package web; message User { string full_name = 1; }'
PROJECT = 'version: 1\ntargets:\n  local: {registry: "sqlite:.schemactl/registry.db"}\n'
NAMESPACE = "namespace: shop/web\nis_allow_auto_update_schema: false\n"
SCHEMA = "schema: {type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click, references: [common.proto]}\n"
LANGUAGES: tuple[ProtoRendering, ...] = ("java", "go", "python")


def compile_click(text: str = CLICK) -> SchemaInfo:
    return compile_proto(
        Proto("web.Click", "click.proto", {"click.proto": text.encode(), "common.proto": COMMON.encode()})
    )


class Shop:
    """A project with the topic `clicks`, and the registry of its target."""

    def __init__(self, path: Path) -> None:
        self.scratch = Scratch(path)
        self.scratch.commit(
            {"schemactl.yaml": PROJECT, ".gitignore": ".schemactl/\n", "namespaces/web.yaml": NAMESPACE}
        )

    def declare(self, topic: str = "", *, project: str = "", text: str = CLICK, schema: str = SCHEMA) -> None:
        files = {
            "schemactl.yaml": PROJECT + project,
            "namespaces/clicks.yaml": f"topic: shop/web/clicks\n{topic}{schema}",
            "namespaces/click.proto": text,
            "namespaces/common.proto": COMMON,
        }
        self.scratch.commit(files, "Declare clicks")

    def run(self, *arguments: str, code: int = 0) -> str:
        self.scratch.flush()
        return schemactl(self.scratch.path, *arguments, code=code).out

    def apply(self) -> None:
        self.run("apply", "--target", "local", "--auto-approve")

    def read_plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = json.loads(self.run("plan", "--target", "local", "--format", "json"))
        return plan

    def read_registered(self) -> list[bytes]:
        registry = EmbeddedRegistry(str(self.scratch.path / ".schemactl/registry.db"))
        try:
            return [version.info.schema for version in registry.versions(CLICKS) if version.info]
        finally:
            registry.close()


@pytest.fixture
def protobuf_shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def produce(*languages: str) -> str:
    clients = [f"{{name: p{n}, role: producer, language: {language}}}" for n, language in enumerate(languages)]
    return f"clients: [{', '.join(clients)}]\n"


@pytest.mark.parametrize(
    ("topic", "project", "expected"),
    [
        ("", "", "java"),
        ("", "protobuf: {rendering: go}\n", "go"),
        ("protobuf: {rendering: python}\n", "protobuf: {rendering: go}\n", "python"),
        ("protobuf: {rendering: java}\n" + produce("go"), "", "java"),
        (produce("Go"), "", "go"),
        (produce("golang", "go"), "", "go"),
        (produce("python"), "", "python"),
        (produce("python"), "protobuf: {rendering: go}\n", "go"),
        (produce("kotlin"), "", "java"),
        (produce("go", "python"), "", "java"),
        (produce("rust"), "", "java"),
        (produce("go", "rust"), "", "java"),
        ("clients: [{name: c, role: consumer, language: go}]\n", "", "java"),
    ],
)
def test_definition_is_registered_in_the_form_of_the_setting_or_of_the_producers(
    protobuf_shop: Shop, topic: str, project: str, expected: ProtoRendering
) -> None:
    protobuf_shop.declare(topic, project=project)
    protobuf_shop.apply()
    assert protobuf_shop.read_registered() == [render_as(compile_click().schema, expected)]
    assert protobuf_shop.read_plan()["notes"] == []


def test_key_and_value_have_the_form(protobuf_shop: Shop) -> None:
    native = "{type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click, references: [common.proto]}"
    protobuf_shop.declare(
        "protobuf: {rendering: go}\n", schema=f"schema: {{type: KEY_VALUE, key: {{type: STRING}}, value: {native}}}\n"
    )
    protobuf_shop.apply()
    [schema] = protobuf_shop.read_registered()
    assert schema.endswith(render_as(compile_click().schema, "go"))


def test_older_versions_have_the_form_of_today(protobuf_shop: Shop) -> None:
    newer = CLICK.replace("User user = 2;", "User user = 2; int32 n = 3;")
    protobuf_shop.declare("protobuf: {rendering: java}\n")
    protobuf_shop.declare("protobuf: {rendering: python}\n", text=newer)
    protobuf_shop.apply()
    assert protobuf_shop.read_registered() == [
        render_as(compile_click(text).schema, "python") for text in (CLICK, newer)
    ]


def test_declared_descriptor_set_is_registered_as_it_is(protobuf_shop: Shop) -> None:
    from schemactl.formats.protobuf.definition import make_descriptor_set

    data, _ = make_descriptor_set(render_as(compile_click().schema, "go"))
    protobuf_shop.declare(
        "protobuf: {rendering: python}\n",
        schema=SCHEMA.replace(".proto, m", ".binpb, m").replace(", references: [common.proto]", ""),
    )
    protobuf_shop.scratch.commit({"namespaces/click.binpb": data})
    protobuf_shop.apply()
    assert protobuf_shop.read_registered() == [read_descriptor_set(data, "web.Click", path="x").schema]


def test_another_form_in_the_registry_is_a_note_until_the_declared_form_is_uploaded_and_recorded(
    protobuf_shop: Shop,
) -> None:
    protobuf_shop.declare("protobuf: {rendering: go}\n")
    protobuf_shop.apply()
    protobuf_shop.declare("protobuf: {rendering: python}\n")
    assert protobuf_shop.read_plan()["steps"] == []
    [note] = protobuf_shop.read_plan()["notes"]
    assert note["kind"] == "other form"
    assert note["message"].startswith(
        "Git's v0 is registered as Go's client sends it, and declared as Python's client sends it: brokers without automatic updates"
    )
    for command in (
        "schemactl registry put shop/web/clicks@0 --target local",
        "schemactl drift --target local --accept",
    ):
        assert command in note["message"]
    assert "No drift" in protobuf_shop.run("drift", "--target", "local")

    assert "stored as version 1" in protobuf_shop.run("registry", "put", "clicks@0", "--target", "local")
    assert [find_rendering(compile_like(schema)) for schema in protobuf_shop.read_registered()] == ["go", "python"]
    protobuf_shop.run("drift", "--target", "local", "--accept", "--reason", "Python's form", code=0)
    assert "1: {git: 0" in (protobuf_shop.scratch.path / "numbers/local.yaml").read_text()
    protobuf_shop.scratch.git("add", "-A")
    protobuf_shop.scratch.git("commit", "-qm", "Record the number")
    assert "other form" not in [entry["kind"] for entry in protobuf_shop.read_plan()["notes"]]
    assert "No drift" in protobuf_shop.run("drift", "--target", "local")


def compile_like(schema: bytes) -> SchemaInfo:
    return SchemaInfo(compile_click().type, schema)


@pytest.mark.parametrize("language", LANGUAGES)
def test_put_uploads_a_form_on_request(protobuf_shop: Shop, language: ProtoRendering) -> None:
    protobuf_shop.declare()
    protobuf_shop.apply()
    files = ["--file", "namespaces/click.proto", "--message", "web.Click", "--reference", "namespaces/common.proto"]
    protobuf_shop.run("registry", "put", "shop/web/clicks", *files, "--language", language, "--target", "local")
    assert protobuf_shop.read_registered()[-1] == convert(compile_click().schema, language)


def test_versions_keep_their_numbers_when_the_form_changes(protobuf_shop: Shop) -> None:
    numbers = []
    for rendering in LANGUAGES:
        protobuf_shop.declare(f"protobuf: {{rendering: {rendering}}}\n")
        numbers.append(protobuf_shop.run("log", "clicks", "--format", "json"))
    assert [text.count('"version": 0') for text in numbers] == [1, 1, 1]
    assert not any('"version": 1' in text for text in numbers)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("protobuf: {rendering: rust}\n", "namespaces/clicks.yaml:2:23", "write one of java, go, python"),
        ("protobuf: {render: go}\n", "namespaces/clicks.yaml:2:12", "write `rendering`"),
        ("rendering: go\n", "namespaces/clicks.yaml:2:1", "belongs to `protobuf`"),
    ],
)
def test_mistakes_have_a_place_and_a_fix(protobuf_shop: Shop, text: str, place: str, message: str) -> None:
    protobuf_shop.declare(text)
    protobuf_shop.scratch.flush()
    printed = schemactl(protobuf_shop.scratch.path, "check", "--base", "HEAD^", code=1).err
    assert place in printed
    assert message in printed


@pytest.mark.parametrize("registered", LANGUAGES)
def test_admit_answers_by_bytes(protobuf_shop: Shop, registered: ProtoRendering) -> None:
    protobuf_shop.declare(f"protobuf: {{rendering: {registered}}}\n" + produce(*LANGUAGES))
    protobuf_shop.apply()
    for where in ([], ["--target", "local"]):
        for language in LANGUAGES:
            is_same = language == registered
            answer = json.loads(
                protobuf_shop.run(
                    *("admit", "producer", "clicks", "--language", language, *where, "--format", "json"),
                    code=0 if is_same else 100,
                )
            )
            assert (answer["allowed"], answer["row"], answer["version"]) == (
                (True, "P4", 0) if is_same else (False, "P8", None)
            )
            assert bool(answer["variants"]) == (language == "go"), "two files in random order"
        matrix = json.loads(protobuf_shop.run("admit", "--all", "clicks", *where, "--format", "json", code=100))
        allowed = [entry["allowed"] for entry in matrix["decisions"] if entry["client"]]
        assert allowed == [language == registered for language in LANGUAGES]
    text = protobuf_shop.run(
        "admit", "producer", "clicks", "--language", "python" if registered == "java" else "java", code=100
    )
    assert "Fix: the topic has this definition in the form of another client, and brokers compare bytes" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_import_declares_the_form_that_it_finds(protobuf_shop: Shop, language: ProtoRendering) -> None:
    protobuf_shop.declare(f"protobuf: {{rendering: {language}}}\n")
    protobuf_shop.apply()
    protobuf_shop.scratch.commit(
        {f"namespaces/{name}": None for name in ("web.yaml", "clicks.yaml", "click.proto", "common.proto")}
    )
    protobuf_shop.scratch.commit({"namespaces/.keep": ""})
    protobuf_shop.run("import", "--target", "local")
    declared = (protobuf_shop.scratch.path / "namespaces/shop/web/clicks.yaml").read_text()
    assert f"rendering: {language}" in declared
    assert "file: click.proto" in declared
    protobuf_shop.scratch.git("add", "-A")
    protobuf_shop.scratch.git("commit", "-qm", "Import")
    plan = protobuf_shop.read_plan()
    assert (plan["steps"], plan["notes"]) == ([], [])


def test_import_declares_a_descriptor_set_where_no_client_sends_the_form(protobuf_shop: Shop) -> None:
    protobuf_shop.declare()
    protobuf_shop.apply()
    odd = read_descriptor_set(reorder(compile_click().schema), "web.Click", path="x")
    with closing(EmbeddedRegistry(str(protobuf_shop.scratch.path / ".schemactl/registry.db"))) as registry:
        registry.create_topic(TopicName("shop", "web", "odd"), None)
        registry.put_schema(TopicName("shop", "web", "odd"), odd)
    protobuf_shop.run("import", "--target", "local", "--topic", "odd")
    declared = (protobuf_shop.scratch.path / "namespaces/shop/web/odd.yaml").read_text()
    assert "definition: odd.binpb" in declared
    assert "protobuf" not in declared.replace("PROTOBUF_NATIVE", "")
    protobuf_shop.scratch.git("add", "-A")
    protobuf_shop.scratch.git("commit", "-qm", "Import")
    assert (protobuf_shop.read_plan()["steps"], protobuf_shop.read_plan()["notes"]) == ([], [])


def reorder(schema: bytes) -> bytes:
    """Return the files of Java's form in the opposite order."""
    files = FileDescriptorSet.FromString(base64.b64decode(json.loads(schema)["fileDescriptorSet"]))
    return FileDescriptorSet(file=[*reversed(files.file)]).SerializeToString()


@pytest.mark.parametrize(
    ("folder", "topic", "project", "imported", "name"),
    [
        ("namespaces", "", "", "common.proto", "click.proto"),
        ("namespaces/web", "", "", "web/common.proto", "web/click.proto"),
        ("namespaces/acme/web", "", "", "acme/web/common.proto", "acme/web/click.proto"),
        ("namespaces/acme/web", "", "", "common.proto", "click.proto"),
        ("namespaces", "protobuf: {file: acme/click.proto}\n", "", "common.proto", "acme/click.proto"),
        (
            "namespaces",
            "",
            "protobuf: {include: {acme/web: namespaces}}\n",
            "acme/web/common.proto",
            "acme/web/click.proto",
        ),
        ("namespaces", "", "protobuf: {include: {acme/web: namespaces}}\n", "", "acme/web/click.proto"),
        ("namespaces", "", "", "google/protobuf/timestamp.proto", "click.proto"),
    ],
)
def test_file_has_the_name_under_which_producers_compile_it(
    protobuf_shop: Shop, folder: str, topic: str, project: str, imported: str, name: str
) -> None:
    statement = f'import "{imported}"; ' if imported else ""
    text = f'syntax = "proto3"; package web; {statement}message Click {{ string id = 1; }}'
    references = "" if imported.startswith("google/") or "include" in project or not imported else ", references: [./]"
    path = folder.removeprefix("namespaces").lstrip("/")
    definition = f"{path}/click.proto" if path else "click.proto"
    if references:
        references = f", references: [{path + '/' if path else ''}common.proto]"
    files = {
        "schemactl.yaml": PROJECT + project,
        "namespaces/clicks.yaml": f"topic: shop/web/clicks\n{topic}schema: {{type: PROTOBUF_NATIVE, definition: {definition}, message: web.Click{references}}}\n",
        f"{folder}/click.proto": text,
        f"{folder}/common.proto": COMMON,
    }
    protobuf_shop.scratch.commit(files)
    protobuf_shop.apply()
    [schema] = protobuf_shop.read_registered()
    assert json.loads(schema)["rootFileDescriptorName"] == name
    assert list_proto_files(compile_like(schema))[-1:] == [name] or name in list_proto_files(compile_like(schema))


def test_class_of_python_is_the_version_in_pythons_form_alone(
    protobuf_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = protobuf_shop.scratch.path / "classes"
    folder.mkdir()
    (folder / "forms_of_click.proto").write_text(
        'syntax = "proto3"; package forms; message Click { string user_id = 1; }'
    )
    command = ["-m", "grpc_tools.protoc", f"-I{folder}", f"--python_out={folder}", "forms_of_click.proto"]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(folder)
    schema = "schema: {type: PROTOBUF_NATIVE, definition: forms_of_click.proto, message: forms.Click}\n"
    protobuf_shop.scratch.commit({"namespaces/forms_of_click.proto": (folder / "forms_of_click.proto").read_text()})
    class_ = "forms_of_click_pb2:Click"
    for rendering in LANGUAGES:
        protobuf_shop.declare(f"protobuf: {{rendering: {rendering}}}\n", schema=schema)
        is_same = rendering == "python"
        printed = protobuf_shop.run("extract", class_, "--topic", "clicks", "--check", code=0 if is_same else 100)
        assert ("are one version" if is_same else "have the same content, but are two versions to a broker") in printed
        for role in ("producer", "consumer"):
            is_fine = is_same or role == "consumer"
            protobuf_shop.run("verify-client", class_, "--topic", "clicks", "--role", role, code=0 if is_fine else 100)


@pytest.mark.parametrize(
    ("old", "new", "clients", "warnings"),
    [
        ("", "protobuf: {rendering: python}\n", produce("go"), 1),
        ("protobuf: {rendering: go}\n", "", produce("go", "java"), 1),
        ("protobuf: {rendering: go}\n", "protobuf: {rendering: python}\n", produce("java"), 0),
        ("", "protobuf: {rendering: go}\n", produce("go"), 0),
        ("", "protobuf: {rendering: python}\n", "protobuf: {rendering: go}\n" + produce("go"), 0),
    ],
)
def test_check_warns_where_the_project_changes_the_form_under_a_producer(
    protobuf_shop: Shop, old: str, new: str, clients: str, warnings: int
) -> None:
    protobuf_shop.declare(clients, project=old)
    protobuf_shop.declare(clients, project=new)
    findings = json.loads(protobuf_shop.run("check", "--base", "HEAD^", "--format", "json"))["findings"]
    assert [finding["rule"] for finding in findings].count("CLIENT_FORM_DIFFERS") == warnings


def test_generated_package_does_not_depend_on_the_form(protobuf_shop: Shop) -> None:
    generate = "generate: {package: forms_of_clicks, classes: dataclass}\n"
    protobuf_shop.declare(project=generate)
    protobuf_shop.run("generate")
    for rendering in LANGUAGES:
        protobuf_shop.declare(f"protobuf: {{rendering: {rendering}}}\n", project=generate)
        assert "0 stale" in protobuf_shop.run("generate", "--check")


@pytest.mark.parametrize(
    "text", ['{"fileDescriptorSet": [1]}', "{}", "no JSON", '{"fileDescriptorSet": "AAAA", "rootMessageTypeName": "a"}']
)
def test_text_that_is_not_a_definition_stays(protobuf_shop: Shop, text: str) -> None:
    protobuf_shop.declare()
    payload = {"type": "PROTOBUF_NATIVE", "schema": text, "properties": {}}
    (protobuf_shop.scratch.path / "payload.json").write_text(json.dumps(payload))
    protobuf_shop.scratch.flush()
    for language in LANGUAGES:
        arguments = (
            "admit",
            "producer",
            "clicks",
            "--file",
            "payload.json",
            "--language",
            language,
            "--format",
            "json",
        )
        answer = json.loads(protobuf_shop.run(*arguments, code=100))
        assert (answer["allowed"], answer["variants"]) == (False, [])


def test_options_are_converted_between_the_forms() -> None:
    text = (
        'syntax = "proto3"; package web; import "google/protobuf/descriptor.proto";'
        "extend google.protobuf.FieldOptions { bool secret = 50001; } message Click { string a_b = 1 [(secret) = true]; }"
    )
    schema = compile_proto(Proto("web.Click", "click.proto", {"click.proto": text.encode()})).schema
    for start in LANGUAGES:
        for end in LANGUAGES:
            assert convert(render_as(schema, start), end) == render_as(schema, end)
