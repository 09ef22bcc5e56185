"""`schemactl verify-client`: a service's contract test, run in the service's own repository."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from command import Printed, schemactl
from scratch import Scratch
from topics_to_generate import ALL, GENERATE, ID, ORDERS, approved, avro

from schemactl.codegen.package import compare, package_files, write
from schemactl.core.schema import Release

TOPIC = """\
topic: shop/sales/orders
schema_compatibility_strategy: {strategy}
schema: {{type: AVRO, definition: orders.avsc}}
"""
VERSIONS = (
    '{"type": "record", "name": "Order", "fields": [{"name": "old", "type": "long", "default": 0}, {"name": "id", "type": "string"}]}',
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}',
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, {"name": "total", "type": "double", "default": 0}]}',
)
SERVICE = """
from dataclasses import dataclass
from typing import ClassVar
import pydantic

@dataclass
class Newest:
    __avro__ = {"name": "Order"}
    id: str
    total: float = 0

@dataclass
class Reads:
    __avro__ = {"name": "Order"}
    id: str

@dataclass
class ReadsNewest:
    __avro__ = {"name": "Order"}
    total: float

@dataclass
class ReadsNothing:
    __avro__ = {"name": "Order"}
    id: str
    customer: str

@dataclass
class Renamed:
    id: str

class Aliased(pydantic.BaseModel):
    __avro__: ClassVar = {"name": "Order"}
    order_id: str = pydantic.Field(alias="id")

class Computes(pydantic.BaseModel):
    __avro__: ClassVar = {"name": "Order"}
    id: str

    @pydantic.computed_field
    def upper(self) -> str:
        return self.id.upper()

class WrittenAs(pydantic.BaseModel):
    __avro__: ClassVar = {"name": "Order"}
    order_id: str = pydantic.Field(serialization_alias="id")

class ReadAs(pydantic.BaseModel):
    __avro__: ClassVar = {"name": "Order"}
    order_id: str = pydantic.Field(validation_alias="id")
"""
numbers = count()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Write the service's module to the current folder, and return its name."""
    name = f"service_{next(numbers)}"
    folder = tmp_path / "service"
    folder.mkdir()
    (folder / f"{name}.py").write_text(SERVICE)
    monkeypatch.chdir(folder)
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def schemas(tmp_path: Path) -> Scratch:
    """Make the schemas repository, which a service could have as a submodule."""
    repository = Scratch(tmp_path / "service-schemas")
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/orders.yaml": TOPIC.format(strategy="BACKWARD")}
    for definition in VERSIONS:
        repository.commit({**files, "topics/orders.avsc": definition}, "orders")
    repository.flush()
    return repository


def verify(schemas: Scratch, kind: str, *arguments: str, code: int = 0) -> Printed:
    schemas.flush()
    return schemactl(schemas.path, "verify-client", kind, "--topic", "orders", *arguments, code=code)


@pytest.mark.parametrize(
    ("kind", "role", "against", "code"),
    [
        ("Newest", "both", None, 0),
        ("Newest", "both", "all", 0),
        ("Reads", "consumer", "all", 0),
        ("Reads", "producer", "all", 0),
        ("Aliased", "both", "all", 0),
        ("Computes", "consumer", "all", 0),
        ("Computes", "producer", "all", 100),
        ("WrittenAs", "consumer", "all", 100),
        ("WrittenAs", "producer", "all", 0),
        ("ReadAs", "consumer", "all", 0),
        ("ReadAs", "producer", "all", 100),
        ("ReadsNewest", "consumer", None, 0),
        ("ReadsNewest", "consumer", "all", 100),
        ("ReadsNewest", "consumer", "1,2", 100),
        ("ReadsNewest", "consumer", "2", 0),
        ("ReadsNewest", "producer", None, 100),
        ("ReadsNothing", "consumer", None, 100),
        ("ReadsNothing", "producer", "latest", 100),
    ],
)
def test_a_class_reads_what_its_role_meets(
    schemas: Scratch, service: str, kind: str, role: str, against: str | None, code: int
) -> None:
    more = ("--against", against) if against else ()
    verify(schemas, f"{service}:{kind}", "--role", role, *more, code=code)


def test_all_versions_count_where_the_strategy_is_transitive(schemas: Scratch, service: str) -> None:
    consumer = (f"{service}:ReadsNewest", "--role", "consumer")
    assert "(version 2, BACKWARD)" in verify(schemas, *consumer).out
    schemas.commit({"topics/orders.yaml": TOPIC.format(strategy="FULL_TRANSITIVE")}, "all readers")
    report = verify(schemas, *consumer, code=100).out
    assert "(versions 0-2, FULL_TRANSITIVE)" in report


def test_the_report_says_why_and_what_to_do(schemas: Scratch, service: str) -> None:
    report = verify(schemas, f"{service}:ReadsNothing", "--role", "consumer", code=100).out
    assert report.startswith(
        f"{service}:ReadsNothing cannot read what is approved for persistent://shop/sales/orders (version 2, BACKWARD).\n"
        "It is none of the approved versions.\n\nconsumer: cannot read version 2 ("
    )
    assert "): READER_FIELD_MISSING_DEFAULT_VALUE\n  " in report
    assert "customer" in report
    assert "\n  Fix: " in report
    assert "\n  More: schemactl explain READER_FIELD_MISSING_DEFAULT_VALUE\n" in report
    report = verify(schemas, f"{service}:ReadsNothing", "--role", "producer", code=100).out
    assert "Its schema is not an approved version" in report
    answer = json.loads(verify(schemas, f"{service}:ReadsNothing", "--format", "json", code=100).out)
    assert (answer["failed"], answer["version"], answer["against"]) == (True, None, [2])
    assert answer["findings"][0] == {
        **answer["findings"][0],
        "role": "consumer",
        "rule": "READER_FIELD_MISSING_DEFAULT_VALUE",
        "severity": "error",
        "against": 2,
    }
    assert json.loads(verify(schemas, f"{service}:Newest", "--format", "json").out)["version"] == 2


def test_a_cause_is_printed_once_with_the_versions_it_concerns(schemas: Scratch, service: str) -> None:
    consumer = (f"{service}:ReadsNothing", "--role", "consumer", "--against", "all")
    report = verify(schemas, *consumer, code=100).out
    assert report.count("READER_FIELD_MISSING_DEFAULT_VALUE\n  ") == 1
    assert "\n  Versions 0-1 break too.\n  Fix: " in report
    # The field is elsewhere in the first version.
    producer = verify(schemas, f"{service}:ReadsNewest", "--role", "producer", "--against", "0,1", code=100).out
    assert producer.count("Order.id is gone") == 1
    assert "\n  Version 0 breaks too.\n" in producer
    findings = json.loads(verify(schemas, *consumer, "--format", "json", code=100).out)["findings"]
    assert [finding["against"] for finding in findings if finding["rule"]] == [2, 1, 0]


def test_what_only_strict_readers_meet_is_a_warning(schemas: Scratch, service: str) -> None:
    report = verify(schemas, f"{service}:Renamed", "--role", "consumer").out
    assert "NAME_MISMATCH (warning: Java's clients get through, strict readers do not)" in report


def test_a_class_that_a_broker_does_not_let_connect_is_refused(schemas: Scratch, service: str) -> None:
    locked = TOPIC.format(strategy="ALWAYS_INCOMPATIBLE")
    schemas.commit({"topics/orders.yaml": locked}, "locked")
    report = verify(schemas, f"{service}:ReadsNewest", "--role", "consumer", code=100).out
    assert "A broker does not let it connect (C7): IncompatibleSchema" in report


def test_wrong_usage_says_what_to_write(schemas: Scratch, service: str) -> None:
    for against in ("9", "newest", "1,,2"):
        error = verify(schemas, f"{service}:Newest", "--against", against, code=64).err
        assert "expected latest, all, or numbers among 0, 1, 2" in error
    error = verify(schemas, f"{service}:Newest", "--half", "key", code=64).err
    assert "is no KEY_VALUE topic" in error
    assert (
        "is not a package that `schemactl generate` wrote"
        in verify(schemas, f"{service}:Newest", "--package", "json", code=1).err
    )
    # No code of the schemas repository runs, which other people may write to.
    (schemas.path / "of_schemas.py").write_text(SERVICE)
    assert "there is no module of_schemas" in verify(schemas, "of_schemas:Newest", code=1).err


def test_a_package_replaces_the_repository(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path.cwd()
    package = f"package_of_{service}"
    topics = [*ALL, approved("parcels", (ORDERS[0], avro(ID)))]
    files = package_files(topics, replace(GENERATE, package=package), release=Release.R4_0)
    write(files, folder, compare(files, folder))
    monkeypatch.syspath_prepend(str(folder))
    (folder / "service.py").write_text(
        "from dataclasses import dataclass\nfrom typing import Annotated\n\n@dataclass\nclass Order:\n"
        '    id: Annotated[int, "int"]\n    customer_id: Annotated[int, "int"]\n\n@dataclass\nclass Parcel:\n'
        '    __avro__ = {"name": "Order"}\n    id: Annotated[int, "int"]\n'
    )
    sys.modules.pop("service", None)

    def verify_topic(topic: str, *arguments: str, kind: str = "Order", code: int = 0) -> str:
        return schemactl(
            folder, "verify-client", f"service:{kind}", "--topic", topic, "--package", package, *arguments, code=code
        ).out

    report = verify_topic("sales/orders", "--role", "consumer", "--against", "all", code=100)
    assert "cannot read version 2: READER_FIELD_MISSING_DEFAULT_VALUE" in report
    assert "It is version 0." in verify_topic("sales/orders", "--against", "0")
    # A package has no strategy, so all its versions count.
    assert "(versions 0-2)" in verify_topic("sales/orders", code=100)
    assert "(version 1)" in verify_topic("parcels", kind="Parcel")
    assert "is not read by version 0" in verify_topic("parcels", "--against", "all", kind="Parcel", code=100)
    assert "It is version 0." in verify_topic("stock", "--half", "value")
    assert "It is version 0." in verify_topic("stock-levels", "--half", "key")
    assert "SCHEMA_TYPE_CHANGED" in verify_topic("stock-levels", "--half", "value", code=100)
    for name in [name for name in sys.modules if name.split(".")[0] in (package, "service")]:
        del sys.modules[name]
