"""Generated packages of topics with several kinds of events, from the first commit to decoded messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from imported_package import import_package
from scratch import Scratch

from schemactl.codec import Unreadable
from schemactl.codegen.topic_module import KINDS_ATTRIBUTES
from schemactl.generated import GeneratedKinds

NAME = "persistent://shop/web/users"
PROJECT = (
    "version: 1\nroots: [topics]\napproved: main\ntargets:\n"
    '  prod: {registry: "sqlite:.schemactl/prod.db", numbers: prod-numbers.yaml}\n'
    '  stage: {registry: "sqlite:.schemactl/stage.db"}\n'
    'generate: {package: shop_schemas, out: generated, spark: "4.1"}\n'
)
ID: dict[str, Any] = {"name": "id", "type": "long"}
CITY: dict[str, Any] = {"name": "city", "type": "string", "default": "?"}


def define(name: str, *fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "web", "fields": [ID, *fields]})


def declare(*kinds: str, more: str = "") -> str:
    """Return the declaration of a topic with these kinds, each with a definition of its name."""
    lines = "".join(f"  {kind}: {{type: AVRO, definition: {kind}.avsc{more}}}\n" for kind in kinds)
    return f"topic: shop/web/users\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nschemas:\n{lines}"


THREE = ("user_created", "user_address_changed", "user_enquiry_received")


@pytest.fixture
def kinds_repository(tmp_path: Path) -> Scratch:
    """Versions 0, 1 and 2 of three kinds, then 3 and 4 of the first two."""
    scratch = Scratch(tmp_path / "shop")
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/namespace.yaml": "namespace: shop/web\n",
            "topics/users.yaml": declare(*THREE),
            "topics/user_created.avsc": define("UserCreated"),
            "topics/user_address_changed.avsc": define("UserAddressChanged"),
            "topics/user_enquiry_received.avsc": define("UserEnquiryReceived"),
        }
    )
    scratch.commit(
        {
            "topics/user_created.avsc": define("UserCreated", CITY),
            "topics/user_address_changed.avsc": define("UserAddressChanged", CITY),
        }
    )
    scratch.flush()
    return scratch


def generate(repository: Scratch, *arguments: str) -> Path:
    """Generate the package, which `generate --check` accepts, and return its folder."""
    repository.flush()
    schemactl(repository.path, "generate", *arguments)
    assert schemactl(repository.path, "generate", "--check").code == 0
    return repository.path / "generated"


def test_each_kind_has_its_reader_and_its_versions(kinds_repository: Scratch) -> None:
    folder = generate(kinds_repository)
    with import_package(folder, "shop_schemas") as package:
        users = package.topic(NAME)
        assert repr(users) == f"<topic {NAME}: {', '.join(THREE)}>"
        assert [*users.kinds] == [*THREE]
        assert users.user_created is users["user_created"]
        assert repr(users.user_created) == f"<topic {NAME}#user_created>"
        assert users.user_created.encode_one({"id": 1, "city": "Rome"}) == b"\x02\x08Rome"
        assert users.user_created.codec.number_written() == 3
        assert users.user_enquiry_received.codec.number_written() == 2
        assert users.user_created.decode_one(b"\x02", 0) == {"id": 1, "city": "?"}
        for version, payload, event in (
            (0, b"\x02", ("user_created", {"id": 1, "city": "?"})),
            (1, b"\x02", ("user_address_changed", {"id": 1, "city": "?"})),
            (2, b"\x02", ("user_enquiry_received", {"id": 1})),
            (3, b"\x02\x08Rome", ("user_created", {"id": 1, "city": "Rome"})),
            (4, b"\x02\x08Bonn", ("user_address_changed", {"id": 1, "city": "Bonn"})),
        ):
            assert users.decode_one(payload, version) == event
            users.validate(payload, version)
        with pytest.raises(Unreadable, match="version 1 is of the kind user_address_changed, and not user_created"):
            users.user_created.decode_one(b"\x02", 1)
        with pytest.raises(Unreadable, match=r"version 5 is not in the codec \(0 to 4\)"):
            users.decode_one(b"\x02", 5)
        with pytest.raises(Unreadable, match="1 bytes follow the value"):
            users.validate(b"\x02\x02", 2)
    text = (folder / "shop_schemas/shop/web/users.py").read_text()
    assert "class UsersKinds(Kinds):" in text
    assert "    user_created: Topic[UserCreated]\n" in text
    assert "* user_enquiry_received: AVRO, read as version 2\n" in text


def test_a_kind_can_be_read_as_an_older_version(kinds_repository: Scratch) -> None:
    kinds_repository.commit(
        {"topics/users.yaml": declare(*THREE[:1], more=", reader: 0") + declare(*THREE[1:]).split("schemas:\n")[1]}
    )
    with import_package(generate(kinds_repository), "shop_schemas") as package:
        users = package.topic(NAME)
        assert users.decode_one(b"\x02\x08Rome", 3) == ("user_created", {"id": 1})
        assert users.decode_one(b"\x02\x08Bonn", 4) == ("user_address_changed", {"id": 1, "city": "Bonn"})


@pytest.mark.parametrize("number", [1, 7])
def test_a_reader_of_another_kind_is_a_problem(kinds_repository: Scratch, number: int) -> None:
    kinds_repository.commit({"topics/users.yaml": declare("user_created", more=f", reader: {number}")})
    kinds_repository.flush()
    result = schemactl(kinds_repository.path, "generate", code={1, 100})
    assert f"`reader: {number}`" in result.err + result.out


def test_a_version_that_is_not_approved_has_its_kind(kinds_repository: Scratch) -> None:
    kinds_repository.write({"topics/user_enquiry_received.avsc": define("UserEnquiryReceived", CITY)})
    error = schemactl(kinds_repository.path, "generate").err
    assert "\n  shop/web/users#user_enquiry_received@5: topics/user_enquiry_received.avsc changed, " in error


def test_a_removed_kind_stays_readable(kinds_repository: Scratch) -> None:
    kinds_repository.commit({"topics/users.yaml": declare(*THREE[1:]), "topics/user_created.avsc": None})
    folder = generate(kinds_repository)
    with import_package(folder, "shop_schemas") as package:
        users = package.topic(NAME)
        assert [*users.kinds] == [*THREE[1:], "user_created"]
        assert users.decode_one(b"\x02", 0) == ("user_created", {"id": 1, "city": "?"})
        assert users.user_created.decode_one(b"\x02\x08Rome", 3) == {"id": 1, "city": "Rome"}
    assert (
        "* user_created (removed): AVRO, read as version 3\n" in (folder / "shop_schemas/shop/web/users.py").read_text()
    )


def test_versions_from_the_time_of_one_schema_belong_to_kinds_by_record_name(tmp_path: Path) -> None:
    repository = Scratch(tmp_path / "shop")
    one = "topic: shop/web/users\nschema: {type: AVRO, definition: users.avsc}\n"
    repository.commit({"schemactl.yaml": PROJECT, "topics/users.yaml": one, "topics/users.avsc": define("Old")})
    repository.commit({"topics/users.avsc": define("UserCreated")})
    repository.commit(
        {
            "topics/users.yaml": declare("user_created", "user_address_changed"),
            "topics/users.avsc": None,
            "topics/user_created.avsc": define("UserCreated", CITY),
            "topics/user_address_changed.avsc": define("UserAddressChanged"),
        }
    )
    repository.flush()
    with import_package(generate(repository), "shop_schemas") as package:
        users = package.topic(NAME)
        assert users.decode_one(b"\x02", 1) == ("user_created", {"id": 1, "city": "?"})
        with pytest.raises(
            Unreadable, match="schema version 0 does not belong to any kind of events that was ever declared"
        ):
            users.decode_one(b"\x02", 0)


def test_kinds_have_the_numbers_of_targets(kinds_repository: Scratch) -> None:
    numbers = (
        f"{NAME}:\n"
        "  2: {foreign: foreign.avsc, type: AVRO, reason: by hand, accepted: 2026-11-22}\n"
        "  3: {foreign: unknown.avsc, type: AVRO, reason: by hand, accepted: 2026-11-22}\n"
        "  4: {git: 2}\n  5: {git: 3}\n"
    )
    kinds_repository.commit(
        {
            "prod-numbers.yaml": numbers,
            "foreign.avsc": define("UserCreated", {"name": "extra", "type": "long"}),
            "unknown.avsc": define("Unknown"),
        }
    )
    with import_package(generate(kinds_repository), "shop_schemas") as package:
        users = package.topic(NAME)
        assert users.decode_one(b"\x02", 0) == ("user_created", {"id": 1, "city": "?"})
        with pytest.raises(Unreadable, match="means different content on two targets"):
            users.decode_one(b"\x02", 2)
        prod = users.for_target("prod")
        assert prod.decode_one(b"\x02\x06", 2) == ("user_created", {"id": 1, "city": "?"})
        assert prod.decode_one(b"\x02", 4) == ("user_enquiry_received", {"id": 1})
        assert prod.user_created.codec.number_written() == 5
        assert prod.user_enquiry_received.codec.number_written() == 4
        with pytest.raises(Unreadable, match="version 3 does not belong to any kind"):
            prod.decode_one(b"\x02", 3)
        assert users.for_target("stage").decode_one(b"\x02", 2) == ("user_enquiry_received", {"id": 1})
        assert users.decode_one(b"\x02", 1).kind == "user_address_changed"


def test_kinds_have_classes_and_attributes_of_their_own(kinds_repository: Scratch) -> None:
    kinds_repository.commit(
        {
            "schemactl.yaml": PROJECT.replace('spark: "4.1"', 'spark: "4.1", classes: dataclass'),
            "topics/users.yaml": declare(*THREE, "decode"),
            "topics/decode.avsc": define("Decode"),
        }
    )
    folder = generate(kinds_repository)
    with import_package(folder, "shop_schemas") as package:
        users = package.topic(NAME)
        assert users.decode_.encode_one({"id": 1}) == b"\x02"
        from shop_schemas.shop.web.classes.users.user_created import UserCreated

        assert users.user_created.encode_one(UserCreated(id=1, city="Rome")) == b"\x02\x08Rome"
        assert users.user_created.decode_as(UserCreated, b"\x02", 0) == UserCreated(id=1, city="?")


def test_kinds_have_the_properties_of_their_versions(kinds_repository: Scratch) -> None:
    # A property alone makes no version, so each version has the properties of its first text.
    kinds_repository.commit(
        {
            "topics/users.yaml": declare(*THREE, more=", properties: {owner: growth}"),
            "topics/user_created.avsc": define("UserCreated", CITY, {"name": "note", "type": "string", "default": ""}),
        }
    )
    with import_package(generate(kinds_repository), "shop_schemas") as package:
        users = package.topic(NAME)
        assert users.properties(5) == {"owner": "growth"}
        assert users.user_created.properties(5) == {"owner": "growth"}
        with pytest.raises(LookupError, match="is of the kind user_address_changed, and not user_created"):
            users.user_created.properties(4)
        assert users.properties(4) == {}


def test_attributes_that_kinds_cannot_have_are_listed() -> None:
    public = {name for name in dir(GeneratedKinds) if not name.startswith("_")}
    assert public | {"name", "kinds"} == KINDS_ATTRIBUTES


def test_a_complete_package_reads_kinds_and_names_commits(kinds_repository: Scratch) -> None:
    generate(kinds_repository)
    kinds_repository.commit({"generated/shop_schemas/keep.txt": ""})
    kinds_repository.flush()
    schemactl(kinds_repository.path, "generate", "--zip", "shop.zip", "--with-commits")
    code = (
        "import sys; sys.path.insert(0, 'shop.zip')\n"
        f"import shop_schemas\nusers = shop_schemas.topic('{NAME}')\n"
        "print(users.decode_one(b'\\x02', 1), len(users.commit(4)), users.user_created.commit(0) == users.commit(0))\n"
        "assert 'schemactl' not in sys.modules\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=kinds_repository.path,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": ""},
    ).stdout
    assert output == "Event(kind='user_address_changed', value={'id': 1, 'city': '?'}) 40 True\n"


@pytest.mark.parametrize(
    ("record", "own_versions"), [("UserCreated", {0, 3, 5}), ("Other", {5})], ids=["a former kind", "a new record"]
)
def test_a_topic_that_has_one_schema_again_rejects_the_kinds_that_it_had(
    kinds_repository: Scratch, record: str, own_versions: set[int]
) -> None:
    one = "topic: shop/web/users\nschema: {type: AVRO, definition: users.avsc}\n"
    definition = define(record, CITY, {"name": "at", "type": "long", "default": 0})
    kinds_repository.commit({"topics/users.yaml": one, "topics/users.avsc": definition})
    payloads = {0: b"\x02", 1: b"\x02", 2: b"\x02", 3: b"\x02\x08Rome", 4: b"\x02\x08Bonn", 5: b"\x02\x08Rome\x00"}
    with import_package(generate(kinds_repository), "shop_schemas") as package:
        users = package.topic(NAME)
        for version, payload in payloads.items():
            if version in own_versions:
                assert users.decode_one(payload, version)["id"] == 1
            else:
                with pytest.raises(
                    Unreadable, match=rf"version {version} is of the kind \w+, which the topic no longer"
                ):
                    users.decode_one(payload, version)
            # Its messages stay readable by their own schema.
            assert users.read_as(version).decode_one(payload, version)["id"] == 1
