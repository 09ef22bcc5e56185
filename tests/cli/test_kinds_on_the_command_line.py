"""A topic with several kinds of events on the command line: the three events of Pulsar's page on schema evolution."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command import run_json, schemactl
from scratch import Scratch, record

pytestmark = pytest.mark.slow

TOPIC = "persistent://shop/web/users"

USERS = """\
namespace: shop/web
---
topic: persistent://shop/web/users
schema_compatibility_strategy: ALWAYS_COMPATIBLE
kinds_compatibility: BACKWARD_TRANSITIVE
clients:
  - {name: mail, role: consumer, kind: user_created, schema: 0}
  - {name: crm, role: consumer, schema: 1}
  - {name: lake, role: consumer}
schemas:
  user_created: {type: AVRO, definition: user-created.avsc}
  user_address_changed: {type: AVRO, definition: user-address-changed.avsc}
  user_enquiry_received: {type: AVRO, definition: user-enquiry-received.avsc}
"""

FILES = {
    "schemactl.yaml": 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n',
    ".gitignore": ".schemactl/\n",
    "namespaces/users.yaml": USERS,
    "namespaces/user-created.avsc": record("id", "mail", name="UserCreated"),
    "namespaces/user-address-changed.avsc": record("id", "street", name="UserAddressChanged"),
    "namespaces/user-enquiry-received.avsc": record("id", "text", name="UserEnquiryReceived"),
}

TWO_CHANGES = {
    "namespaces/user-enquiry-received.avsc": record("id", "text", name="UserEnquiryReceived", urgent=0),
    "namespaces/user-created.avsc": record("id", "mail", name="UserCreated", age=0),
}


def make_repository(path: Path) -> Scratch:
    """Make a repository in which the three kinds are approved."""
    scratch = Scratch(path)
    scratch.commit(FILES, "Users")
    scratch.flush()
    return scratch


@pytest.fixture
def kinds_repository(tmp_path: Path) -> Scratch:
    return make_repository(tmp_path / "r")


@pytest.fixture(scope="module")
def shared_repository(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Return a repository with the three kinds, which no test changes."""
    return make_repository(tmp_path_factory.mktemp("shared") / "r")


def test_three_kinds_from_the_first_commit_to_registered_versions(kinds_repository: Scratch) -> None:
    assert [
        (version["version"], version["kind"])
        for version in run_json(kinds_repository, "log", "users")["topics"][0]["versions"]
    ] == [(0, "user_created"), (1, "user_address_changed"), (2, "user_enquiry_received")]
    steps = run_json(kinds_repository, "plan", "--target", "local")["steps"]
    assert [(step["version"], step["kind"]) for step in steps if step["action"] == "register_version"] == [
        (0, "user_created"),
        (1, "user_address_changed"),
        (2, "user_enquiry_received"),
    ]
    schemactl(kinds_repository, "apply", "--target", "local", "--yes")
    schemactl(kinds_repository, "drift", "--target", "local", "--detailed-exitcode")

    # Two pending commits, of which the first changes two kinds.
    kinds_repository.commit(TWO_CHANGES, "two kinds")
    kinds_repository.commit(
        {"namespaces/user-created.avsc": record("id", "mail", name="UserCreated", age=0, size=0)}, "one kind"
    )
    plan = schemactl(kinds_repository, "plan", "--target", "local").out
    assert [line.split("(")[0].strip() for line in plan.splitlines() if " v" in line and "registers" in line] == [
        "+ v3 AVRO user_created",
        "+ v4 AVRO user_enquiry_received",
        "+ v5 AVRO user_created",
    ]
    schemactl(kinds_repository, "apply", "--target", "local", "--yes")
    schemactl(kinds_repository, "drift", "--target", "local", "--detailed-exitcode")


def test_check_compares_each_kind_with_itself(kinds_repository: Scratch) -> None:
    kinds_repository.write(
        {**TWO_CHANGES, "namespaces/user-address-changed.avsc": record("id", "city", name="UserAddressChanged")}
    )
    report = run_json(kinds_repository, "check", code=100)
    assert [
        (topic["kind"], topic["change"], topic["version"], topic["latest"], topic["broker"]["answer"], topic["data"])
        for topic in report["topics"]
    ] == [
        ("user_created", "new version", 3, 0, "ok", "compatible"),
        ("user_address_changed", "new version", 4, 1, "ok", "breaking"),
        ("user_enquiry_received", "new version", 5, 2, "ok", "compatible"),
    ]
    assert [(finding["rule"], finding["kind"], finding["against"]) for finding in report["findings"]] == [
        ("READER_FIELD_MISSING_DEFAULT_VALUE", "user_address_changed", [1]),
        ("CLIENT_BREAKS", "user_address_changed", [1]),
    ]
    assert {topic["kind"]: [client["name"] for client in topic["clients"]] for topic in report["topics"]} == {
        "user_created": ["lake", "mail"],
        "user_address_changed": ["crm", "lake"],
        "user_enquiry_received": ["lake"],
    }


def test_a_waiver_approves_the_finding_of_one_kind(kinds_repository: Scratch) -> None:
    kinds_repository.write({"namespaces/user-created.avsc": record("id", "mail", "more", name="UserCreated")})
    kinds_repository.write(
        {"namespaces/user-enquiry-received.avsc": record("id", "text", "more", name="UserEnquiryReceived")}
    )
    [created, enquiry] = run_json(kinds_repository, "check", code=100)["findings"]
    approval = ("--reason", "x", "--owner", "team", "--until", str(datetime.now(tz=UTC).date() + timedelta(days=300)))
    schemactl(kinds_repository, "waive", created["fingerprint"], *approval)
    report = run_json(kinds_repository, "check", code=100)
    assert [(finding["kind"], bool(finding["waiver"])) for finding in report["findings"]] == [
        ("user_created", True),
        ("user_enquiry_received", False),
    ]
    schemactl(kinds_repository, "waive", enquiry["fingerprint"], *approval)
    schemactl(kinds_repository, "check")


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("show", "users#user_created@0"), 0, '"UserCreated"'),
        (("show", "users#user_created"), 0, '"UserCreated"'),
        (("show", "shop/web/users#user_enquiry_received@2"), 0, '"UserEnquiryReceived"'),
        (("show", f"{TOPIC}#user_address_changed@1"), 0, '"UserAddressChanged"'),
        (("show", "users@1"), 0, '"UserAddressChanged"'),
        (("show", "users#user_created@work"), 0, '"UserCreated"'),
        (("show", "users#user_created@main"), 0, '"UserCreated"'),
        (("log", "users#user_created@0"), 0, "version 0 (user_created, "),
        (("diff", "users#user_created@0", "users#user_created@work"), 0, "The text is the same."),
        (("sample", "users#user_address_changed@1"), 0, '"street"'),
        (
            ("show", "users#user_created@1"),
            64,
            "version 1 belongs to the kind `user_address_changed`, not to `user_created`",
        ),
        (("log", "users#user_created@2"), 64, "belongs to the kind `user_enquiry_received`"),
        (("show", "users#user_created@7"), 64, "has no version 7: the approved history has version 0 of the kind"),
        (("show", "users#user_craeted"), 64, "has no kind 'user_craeted'; did you mean user_created?"),
        (("show", "users#user_craeted@0"), 64, "did you mean user_created?"),
        (("show", "users#user_craeted@work"), 64, "did you mean user_created?"),
        (("show", "users#@0"), 64, "has no kind ''"),
        (("show", "user#user_created@0"), 64, "unknown topic"),
    ],
)
def test_a_version_is_named_with_its_kind(
    shared_repository: Scratch, arguments: tuple[str, ...], code: int, expected: str
) -> None:
    printed = schemactl(shared_repository, *arguments, code=code)
    assert expected in printed.out + printed.err


def test_a_topic_with_the_literal_name_comes_first(kinds_repository: Scratch) -> None:
    literal = 'topic: "persistent://shop/web/users#user_created"\nschema: {type: STRING}\n'
    kinds_repository.commit({"namespaces/literal.yaml": literal}, "literal")
    assert run_json(kinds_repository, "show", "users#user_created")["type"] == "STRING"
    assert run_json(kinds_repository, "show", "users#user_created@0")["topic"] == f"{TOPIC}#user_created"
    assert run_json(kinds_repository, "show", "users#user_address_changed@1")["kind"] == "user_address_changed"


def test_rollout_of_a_new_topic_whose_name_has_the_mark_of_a_kind(kinds_repository: Scratch) -> None:
    kinds_repository.write({"namespaces/mark.yaml": 'topic: "shop/web/users2#created"\nschema: {type: STRING}\n'})
    assert schemactl(kinds_repository, "rollout", "users2#created").out.startswith(
        "persistent://shop/web/users2#created: version 0, "
    )


def test_generate_has_the_reason_of_each_kind(kinds_repository: Scratch) -> None:
    project = 'version: 1\napproved: main\ngenerate: {package: shop_schemas, out: generated, spark: "4.1"}\n'
    kinds_repository.commit({"schemactl.yaml": project}, "Generate")
    kinds_repository.git("checkout", "-q", "-b", "work")
    kinds_repository.write(TWO_CHANGES)
    error = schemactl(kinds_repository, "generate").err
    for kind, number in (("created", 3), ("enquiry-received", 4)):
        key = f"user_{kind.replace('-', '_')}"
        assert f"  shop/web/users#{key}@{number}: namespaces/user-{kind}.avsc changed, and not committed\n" in error
    kinds_repository.git("commit", "-q", "-m", "one kind", "namespaces/user-created.avsc")
    assert (
        "  shop/web/users#user_created@3: committed, and not in main\n" in schemactl(kinds_repository, "generate").err
    )


def test_a_topic_with_one_schema_has_no_kinds(kinds_repository: Scratch) -> None:
    kinds_repository.commit({"namespaces/one.yaml": "topic: shop/web/one\nschema: {type: STRING}\n"}, "one")
    assert "has one schema, and no kinds of events" in schemactl(kinds_repository, "show", "one#a@0", code=64).err


def test_teams_of_clients_of_a_removed_kind_are_on_one_line(kinds_repository: Scratch) -> None:
    hostile = USERS.replace("{name: mail, ", '{name: mail, team: "mail\\e[2K\\n::error", ')
    kinds_repository.commit({"namespaces/users.yaml": hostile}, "a team")
    kinds_repository.flush()
    without = hostile.replace("  user_created: {type: AVRO, definition: user-created.avsc}\n", "")
    without = "".join(line for line in without.splitlines(keepends=True) if "::error" not in line)
    kinds_repository.write({"namespaces/users.yaml": without})
    [finding] = run_json(kinds_repository, "check")["findings"]
    assert "(team mail" in finding["message"]
    assert "\x1b" not in finding["message"]
    assert "\n" not in finding["message"]


def test_a_removed_kind_is_still_shown(kinds_repository: Scratch) -> None:
    without = USERS.replace("  user_created: {type: AVRO, definition: user-created.avsc}\n", "")
    without = without.replace("  - {name: mail, role: consumer, kind: user_created, schema: 0}\n", "")
    kinds_repository.write({"namespaces/users.yaml": without})
    report = run_json(kinds_repository, "check")
    assert [(topic["kind"], topic["change"]) for topic in report["topics"]] == [("user_created", "removed")]
    assert [(finding["rule"], finding["kind"]) for finding in report["findings"]] == [("KIND_REMOVED", "user_created")]
    assert " Version 0 stays registered, " in report["findings"][0]["message"]
    for name in ("users", "users#user_created"):
        assert schemactl(kinds_repository, "rollout", name).out == (
            f"{TOPIC}#user_created: the kind is no longer declared, so there is no new version to roll out; "
            "`schemactl explain KIND_REMOVED` says more.\n"
        )
    kinds_repository.commit({"namespaces/users.yaml": without}, "without")
    assert "in force again" not in schemactl(kinds_repository, "log", "users").out
    shown_version = run_json(kinds_repository, "show", "users#user_created")
    assert (shown_version["deleted"], shown_version["in_force"], shown_version["latest"]) == (True, None, 0)
    assert [(kind["kind"], kind["removed"]) for kind in shown_version["kinds"]] == [
        ("user_address_changed", False),
        ("user_enquiry_received", False),
        ("user_created", True),
    ]


def test_log_names_the_kind_that_has_an_older_version_in_force(kinds_repository: Scratch) -> None:
    definitions = {
        path: (kinds_repository.path / path).read_text() for path in TWO_CHANGES if path.endswith("user-created.avsc")
    }
    kinds_repository.commit(TWO_CHANGES, "two")
    kinds_repository.commit(definitions, "back")
    for topic in ("users", "users#user_created"):
        note = "  version 0 of user_created is in force again; a registry's latest of this kind stays 3\n"
        assert note in schemactl(kinds_repository, "log", topic).out


def test_diff_shows_every_kind_that_changes(kinds_repository: Scratch) -> None:
    kinds_repository.write(TWO_CHANGES)
    subjects = run_json(kinds_repository, "diff")["subjects"]
    assert [(version["version"], version["kind"], version["before"]) for version in subjects[0]["versions"]] == [
        (3, "user_created", 0),
        (4, "user_enquiry_received", 2),
    ]
    kinds_repository.commit(TWO_CHANGES, "two kinds")
    changelog = schemactl(kinds_repository, "changelog", "HEAD~1..HEAD").out
    assert "**v3** AVRO user_created" in changelog
    assert "**v4** AVRO user_enquiry_received" in changelog


@pytest.mark.parametrize(
    ("name", "kind", "nearest", "advice"),
    [
        ("UserCreated", "user_created", 0, "to adopt it, add it to the topic's definition"),
        ("UserDeleted", None, None, "declare it with a key under `schemas`"),
    ],
)
def test_drift_names_the_kind_of_a_foreign_version(
    kinds_repository: Scratch, name: str, kind: str | None, nearest: int | None, advice: str
) -> None:
    schemactl(kinds_repository, "apply", "--target", "local", "--yes")
    kinds_repository.write({"foreign.avsc": record("id", "mail", "foreign", name=name)})
    schemactl(kinds_repository, "registry", "put", TOPIC, "--target", "local", "--file", "foreign.avsc")
    report = run_json(kinds_repository, "drift", "--target", "local", code=100)
    [item] = [item for item in report["differences"] if "version" in item]
    assert (item["version"]["version"], item["version"]["kind"]) == (3, kind)
    assert (item["nearest"] and item["nearest"]["version"]) == nearest
    assert advice in item["fix"]
    assert [version["kind"] for version in report["topics"][0]["versions"]][:2] == [
        "user_created",
        "user_address_changed",
    ]


def test_the_catalog_and_the_list_name_the_kinds(kinds_repository: Scratch) -> None:
    kinds_repository.commit(TWO_CHANGES, "two kinds")
    [topic] = run_json(kinds_repository, "list")["topics"]
    assert (topic["type"], topic["kinds"], topic["version"]) == (
        "AVRO",
        ["user_created", "user_address_changed", "user_enquiry_received"],
        4,
    )
    schemactl(kinds_repository, "site", "--out", "site")
    pages = {path.name: path.read_text() for path in (kinds_repository.path / "site").rglob("*.html")}
    topic_page = next(text for text in pages.values() if "Kinds of events" in text)
    assert topic_page.count("<code>user_created</code><td") == 2
    versions_page = next(text for text in pages.values() if "<h1>Versions of users</h1>" in text)
    version = versions_page.partition("<span>v3</span><code>user_created</code>")[2].partition("</section>")[0]
    # Compared with version 0, the version of this kind before.
    assert "UserCreated.age: int = 0" in version


def test_files_of_kinds_are_laid_out(kinds_repository: Scratch) -> None:
    compact = FILES["namespaces/user-created.avsc"].replace(" ", "")
    kinds_repository.write({"namespaces/user-created.avsc": compact})
    schemactl(kinds_repository, "fmt", "--check", code=100)
    printed = schemactl(kinds_repository, "fmt")
    assert "bug of schemactl" not in printed.out + printed.err
    assert (kinds_repository.path / "namespaces/user-created.avsc").read_text() != compact
    schemactl(kinds_repository, "fmt", "--check")


def test_a_fix_edits_the_definition_of_its_kind(kinds_repository: Scratch) -> None:
    path = "namespaces/user-address-changed.avsc"
    kinds_repository.write({path: record("id", "street", "city", name="UserAddressChanged")})
    schemactl(kinds_repository, "check", "--fix", code=[0, 100])
    fields = json.loads((kinds_repository.path / path).read_text())["fields"]
    assert fields[-1] == {"name": "city", "type": "string", "default": ""}
    assert json.loads((kinds_repository.path / "namespaces/user-created.avsc").read_text())["name"] == "UserCreated"
    schemactl(kinds_repository, "check")


def test_exports_have_every_kind(kinds_repository: Scratch) -> None:
    kinds_repository.commit(TWO_CHANGES, "two kinds")
    [channel] = json.loads(schemactl(kinds_repository, "export", "asyncapi").out)["channels"].values()
    assert {name: message["x-schema-version"] for name, message in channel["messages"].items()} == {
        "user_created": 3,
        "user_address_changed": 1,
        "user_enquiry_received": 4,
    }
    assert channel["x-schema-version"] == 4
    schemactl(kinds_repository, "export", "avro", "--out", "avro")
    assert sorted(path.name for path in (kinds_repository.path / "avro").rglob("*.avsc")) == [
        "users.user_address_changed.avsc",
        "users.user_created.avsc",
        "users.user_enquiry_received.avsc",
    ]
    assert schemactl(kinds_repository, "export", "ddl").out.count("CREATE TABLE") == 3
    schema = json.loads(schemactl(kinds_repository, "export", "avro", "users#user_created").out)
    assert schema["name"] == "UserCreated"
    assert (
        "did you mean user_created?" in schemactl(kinds_repository, "export", "avro", "users#user_crated", code=64).err
    )


def test_a_client_is_compared_with_the_type_of_each_kind_that_it_reads(kinds_repository: Scratch) -> None:
    proto = 'syntax = "proto3";\npackage web;\nmessage Click { int64 id = 1; }\n'
    kinds_repository.commit(
        {
            "namespaces/click.proto": proto,
            "namespaces/users.yaml": USERS.replace(
                "schemas:\n", "schemas:\n  click: {type: PROTOBUF, definition: click.avsc}\n"
            ).replace("role: consumer, kind: user_created", "role: consumer, kind: click, language: python"),
            "namespaces/click.avsc": record("id", name="Click"),
        }
    )
    report = schemactl(kinds_repository, "lint", code={0, 100}).out
    assert "Python's client has no PROTOBUF schema: mail connects to persistent://shop/web/users#click" in report


CLASSES = """\
from dataclasses import dataclass


@dataclass
class UserCreated:
    id: str
    mail: str


@dataclass
class UserAddressChanged:
    id: str
    street: str
"""


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("verify-client shop_classes:UserCreated --topic users#user_created --role consumer", 0, ""),
        ("verify-client shop_classes:UserAddressChanged --topic users#user_address_changed --role consumer", 0, ""),
        ("verify-client shop_classes:UserCreated --topic users#user_address_changed --role consumer", 100, "street"),
        ("verify-client shop_classes:UserCreated --topic users --role consumer", 64, "write 'users#user_created' or"),
        ("extract shop_classes:UserCreated --check --topic users#user_created", 0, ""),
        ("extract shop_classes:UserCreated --check --topic users#user_address_changed", 100, ""),
        ("extract shop_classes:UserCreated --check --topic users", 64, ""),
    ],
)
def test_a_class_is_compared_with_one_kind(
    shared_repository: Scratch, monkeypatch: pytest.MonkeyPatch, command: str, code: int, expected: str
) -> None:
    shared_repository.write({"shop_classes.py": CLASSES})
    monkeypatch.chdir(shared_repository.path)
    monkeypatch.delitem(sys.modules, "shop_classes", raising=False)
    printed = schemactl(shared_repository, *command.split(), code=code)
    assert expected in printed.out + printed.err


def test_a_text_that_makes_no_version_is_noted_for_its_kind(kinds_repository: Scratch) -> None:
    schemactl(kinds_repository, "apply", "--target", "local", "--yes")
    kinds_repository.commit(
        {
            "namespaces/user-created.avsc": record("id", "mail", name="UserCreated", doc="who"),
            "namespaces/user-enquiry-received.avsc": record("id", "text", name="UserEnquiryReceived", urgent=0),
        },
        "doc and version",
    )
    kinds_repository.commit(
        {"namespaces/user-enquiry-received.avsc": FILES["namespaces/user-enquiry-received.avsc"]}, "back"
    )
    schemactl(kinds_repository, "apply", "--target", "local", "--yes")
    notes = run_json(kinds_repository, "plan", "--target", "local")["notes"]
    assert [(note["kind"], note["message"].partition(":")[0]) for note in notes] == [
        ("not stored", "would store nothing of user_created"),
        ("old version", "declares the content of an older version of user_enquiry_received again"),
    ]
