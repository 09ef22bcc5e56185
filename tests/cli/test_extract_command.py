"""`extract` prints, writes and compares definitions of classes; `verify-client` is a service's contract test in its own repository."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from command import Printed, run_json, schemactl
from scratch import Scratch
from topics_to_generate import ALL, GENERATE, ID, ORDERS, make_approved, make_info

from schemactl.codegen.package import package_files
from schemactl.codegen.package_folder import compare, write
from schemactl.core.schema import Release

pytestmark = pytest.mark.slow

SHOP = """
from dataclasses import dataclass
from pydantic import BaseModel
print("the shop opens")

@dataclass
class Order:
    id: str
    total: float = 0.0

@dataclass
class Other:
    id: str

    class Inner(BaseModel):
        id: int

number = 1
"""
numbers = count()


@pytest.fixture
def written_module(tmp_path: Path) -> Iterator[str]:
    """Write a module into the folder, and return its name."""
    name = f"extracted_{next(numbers)}"
    (tmp_path / f"{name}.py").write_text(SHOP)
    yield name
    sys.modules.pop(name, None)


def make_topic_repository(folder: Path, module: str, schema: str = "{type: AVRO, definition: orders.avsc}") -> Scratch:
    """Make a repository with the module, and a topic with the definition that is extracted from its Order."""
    schemactl(folder, "extract", f"{module}:Order", "--out", "topics/orders.avsc")
    repository = Scratch(folder / "git")
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/orders.yaml": f"topic: shop/sales/orders\nschema: {schema}\n",
            "topics/orders.avsc": (folder / "topics/orders.avsc").read_text(),
            f"{module}.py": SHOP,
        }
    )
    repository.flush()
    return repository


def test_a_definition_is_printed_alone(tmp_path: Path, written_module: str) -> None:
    printed = schemactl(tmp_path, "extract", f"{written_module}:Order")
    assert printed.out == (
        '{\n  "type": "record",\n  "name": "Order",\n  "fields": [\n    {"name": "id", "type": "string"},\n'
        '    {"name": "total", "type": "double", "default": 0}\n  ]\n}\n'
    )
    # The output of the module is not part of the definition.
    assert printed.err == "the shop opens\n"
    assert schemactl(tmp_path, "extract", f"{written_module}:Other.Inner").out.count('"Inner"') == 1


def test_a_file_is_written_once_and_never_over_something_else(tmp_path: Path, written_module: str) -> None:
    file = tmp_path / "orders.avsc"
    write = ("extract", f"{written_module}:Order", "--out", "orders.avsc")
    assert schemactl(tmp_path, *write).out.endswith("orders.avsc: created\n")
    before = file.stat().st_mtime_ns
    assert schemactl(tmp_path, *write).out.endswith("orders.avsc: unchanged\n")
    assert file.stat().st_mtime_ns == before
    assert schemactl(tmp_path, *write, "--always-allow-null").out.endswith("orders.avsc: updated\n")
    for text in (file.read_text(), "notes"):
        file.write_text(text)
        output = schemactl(tmp_path, "extract", f"{written_module}:Other", "--out", "orders.avsc", code=1)
        assert "orders.avsc does not have a definition of Other; it was not changed" in output.err
        assert file.read_text() == text
    schemactl(tmp_path, "extract", f"{written_module}:Other", "--out", "orders.avsc", "--force")
    assert '"Other"' in file.read_text()
    assert "goes into a file that ends in .avsc or .json" in schemactl(tmp_path, *write[:-1], "x.proto", code=64).err


def test_the_property_of_java_time_is_printed_beside_the_definition(tmp_path: Path, written_module: str) -> None:
    order, switch = f"{written_module}:Order", '{__jsr310ConversionEnabled: "true"}'
    printed = schemactl(tmp_path, "extract", order, "--jsr310")
    assert f"properties: {switch}" in printed.err
    assert json.loads(printed.out)["name"] == "Order"
    assert switch not in schemactl(tmp_path, "extract", order).err
    assert switch not in schemactl(tmp_path, "extract", order, "--jsr310", "--type", "JSON").err
    for output in ("created", "unchanged"):
        assert output in schemactl(tmp_path, "extract", order, "--jsr310", "--out", "orders.json").out
        assert json.loads((tmp_path / "orders.json").read_text())["properties"] == {"__jsr310ConversionEnabled": "true"}
    # A file without it is another text of the version.
    assert "updated" in schemactl(tmp_path, "extract", order, "--out", "orders.json").out
    assert "updated" in schemactl(tmp_path, "extract", order, "--jsr310", "--out", "orders.json").out


@pytest.mark.parametrize(("value", "is_printed"), [(None, True), ("true", False), ("false", True)])
def test_a_declared_property_of_java_time_is_not_printed(
    tmp_path: Path, written_module: str, value: str | None, *, is_printed: bool
) -> None:
    properties = f', properties: {{__jsr310ConversionEnabled: "{value}"}}' if value else ""
    schema = f"{{type: AVRO, definition: orders.avsc{properties}}}"
    repository = make_topic_repository(tmp_path, written_module, schema)
    printed = schemactl(repository, "extract", f"{written_module}:Order", "--jsr310", "--topic", "orders", "--check")
    assert "are one version" in printed.out
    assert ("the schema of orders@work" in printed.err) == is_printed


def test_check_says_whether_class_and_declaration_are_one_version(tmp_path: Path, written_module: str) -> None:
    order = f"{written_module}:Order"
    repository = make_topic_repository(tmp_path, written_module)
    for against in (("--out", "topics/orders.avsc"), ("--topic", "orders")):
        assert f"and {order} are one version.\n" in schemactl(repository, "extract", order, "--check", *against).out
        output = schemactl(repository, "extract", f"{written_module}:Other", "--check", *against, code=100).out
        assert '-      "name": "total",\n' in output
        assert f"{written_module}:Other reads" in output
        # Neither of them is a version.
        other = "topics/orders.avsc" if "--out" in against else "orders@work"
        assert f"the record was called Order in {other} and is called Other now" in output
    assert (
        "there is no file none.avsc"
        in schemactl(tmp_path, "extract", order, "--out", "none.avsc", "--check", code=1).err
    )
    assert "needs either --out FILE or --topic TOPIC" in schemactl(tmp_path, "extract", order, "--check", code=64).err


@pytest.mark.parametrize(
    "schema",
    [
        "{type: JSON, definition: orders.avsc}",
        "{type: KEY_VALUE, key: {type: STRING}, value: {type: JSON, definition: orders.avsc}}",
    ],
)
def test_a_class_is_compared_as_what_its_topic_takes(tmp_path: Path, written_module: str, schema: str) -> None:
    repository = make_topic_repository(tmp_path, written_module, schema)
    check = ("extract", f"{written_module}:Order", "--topic", "orders", "--check")
    assert "are one version" in schemactl(repository, *check).out
    assert "type: JSON -> AVRO" in schemactl(repository, *check, "--type", "AVRO", code=100).out


def test_a_module_that_fails_is_one_error_with_its_line(tmp_path: Path, written_module: str) -> None:
    def read_error(text: str) -> str:
        printed = schemactl(tmp_path, "extract", text, code=(1, 64))
        assert "Traceback" not in printed.err
        return printed.err

    for name, text, last in (
        ("raises", "import json\n\ndef fail():\n    return {}['key']\nfail()\n", "4: {} cannot be imported: KeyError: 'key'"),
        ("leaves", "import sys\nsys.exit(3)\n", "2: {} cannot be imported: SystemExit: 3"),
        ("parses", "x = (\n", "1: {} cannot be imported: SyntaxError: '(' was never closed"),
        ("misses", "import nothing_of_that_name\n", "1: {} cannot be imported: ModuleNotFoundError"),
    ):  # fmt: skip
        (tmp_path / f"{written_module}_{name}.py").write_text(text)
        assert f"{written_module}_{name}.py:{last.format(f'{written_module}_{name}')}" in read_error(
            f"{written_module}_{name}:Order"
        )
    # For an error in an installed package, the line that calls it is reported.
    (tmp_path / f"{written_module}_calls.py").write_text("import json\n\njson.loads('{')\n")
    assert (
        f"{written_module}_calls.py:3: {written_module}_calls cannot be imported: json.decoder.JSONDecodeError"
        in read_error(f"{written_module}_calls:Order")
    )
    assert "cannot find the module no_such_shop, neither in " in read_error("no_such_shop.models:Order")
    assert f"{written_module} has no class Ordr; did you mean Order?" in read_error(f"{written_module}:Ordr")
    assert "Fix: name one of Order, Other\n" in read_error(f"{written_module}:Ordr")
    assert "is not a class, but a value of type int" in read_error(f"{written_module}:number")
    assert "expected MODULE:CLASS, such as shop.models:Order" in read_error("orders.avsc")


def test_the_folder_of_the_module_is_looked_in_for_the_import_alone(tmp_path: Path, written_module: str) -> None:
    before = [*sys.path]
    schemactl(tmp_path, "extract", f"{written_module}:Order")
    assert sys.path == before


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


@pytest.fixture
def service_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Write the service's module to the current folder, and return its name."""
    name = f"service_{next(numbers)}"
    folder = tmp_path / "service"
    folder.mkdir()
    (folder / f"{name}.py").write_text(SERVICE)
    monkeypatch.chdir(folder)
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def schemas_repository(tmp_path: Path) -> Scratch:
    """Make the schemas repository, which a service could have as a submodule."""
    repository = Scratch(tmp_path / "service-schemas")
    files = {"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/orders.yaml": TOPIC.format(strategy="BACKWARD")}
    for definition in VERSIONS:
        repository.commit({**files, "topics/orders.avsc": definition}, "orders")
    repository.flush()
    return repository


def verify(schemas: Scratch, kind: str, *arguments: str, code: int = 0) -> Printed:
    return schemactl(schemas, "verify-client", kind, "--topic", "orders", *arguments, code=code)


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
    schemas_repository: Scratch, service_module: str, kind: str, role: str, against: str | None, code: int
) -> None:
    more = ("--against", against) if against else ()
    verify(schemas_repository, f"{service_module}:{kind}", "--role", role, *more, code=code)


def test_all_versions_count_where_the_strategy_is_transitive(schemas_repository: Scratch, service_module: str) -> None:
    consumer = (f"{service_module}:ReadsNewest", "--role", "consumer")
    assert "(version 2, BACKWARD)" in verify(schemas_repository, *consumer).out
    schemas_repository.commit({"topics/orders.yaml": TOPIC.format(strategy="FULL_TRANSITIVE")}, "all readers")
    report = verify(schemas_repository, *consumer, code=100).out
    assert "(versions 0-2, FULL_TRANSITIVE)" in report


def test_the_report_says_why_and_what_to_do(schemas_repository: Scratch, service_module: str) -> None:
    report = verify(schemas_repository, f"{service_module}:ReadsNothing", "--role", "consumer", code=100).out
    assert report.startswith(
        f"{service_module}:ReadsNothing cannot read the approved versions of persistent://shop/sales/orders (version 2, BACKWARD).\n"
        "It is not an approved version.\n\nconsumer: cannot read version 2 ("
    )
    assert "): READER_FIELD_MISSING_DEFAULT_VALUE\n  " in report
    assert "customer" in report
    assert "\n  Fix: " in report
    assert "\n  More: schemactl explain READER_FIELD_MISSING_DEFAULT_VALUE\n" in report
    report = verify(schemas_repository, f"{service_module}:ReadsNothing", "--role", "producer", code=100).out
    assert "Its schema is not an approved version" in report
    answer = json.loads(verify(schemas_repository, f"{service_module}:ReadsNothing", "--format", "json", code=100).out)
    assert (answer["failed"], answer["version"], answer["against"]) == (True, None, [2])
    assert answer["findings"][0] == {
        **answer["findings"][0],
        "role": "consumer",
        "rule": "READER_FIELD_MISSING_DEFAULT_VALUE",
        "severity": "error",
        "against": 2,
    }
    assert json.loads(verify(schemas_repository, f"{service_module}:Newest", "--format", "json").out)["version"] == 2


def test_a_cause_is_printed_once_with_the_versions_it_concerns(
    schemas_repository: Scratch, service_module: str
) -> None:
    consumer = (f"{service_module}:ReadsNothing", "--role", "consumer", "--against", "all")
    report = verify(schemas_repository, *consumer, code=100).out
    assert report.count("READER_FIELD_MISSING_DEFAULT_VALUE\n  ") == 1
    assert "\n  Versions 0-1 break too.\n  Fix: " in report
    # The field is elsewhere in the first version.
    producer = verify(
        schemas_repository, f"{service_module}:ReadsNewest", "--role", "producer", "--against", "0,1", code=100
    ).out
    assert producer.count("Order.id is gone") == 1
    assert "\n  Version 0 breaks too.\n" in producer
    findings = json.loads(verify(schemas_repository, *consumer, "--format", "json", code=100).out)["findings"]
    assert [finding["against"] for finding in findings if finding["rule"]] == [2, 1, 0]


def test_what_only_strict_readers_meet_is_a_warning(schemas_repository: Scratch, service_module: str) -> None:
    report = verify(schemas_repository, f"{service_module}:Renamed", "--role", "consumer").out
    assert "NAME_MISMATCH (warning: Java's clients get through, strict readers do not)" in report


def test_a_class_that_a_broker_does_not_let_connect_is_refused(
    schemas_repository: Scratch, service_module: str
) -> None:
    locked = TOPIC.format(strategy="ALWAYS_INCOMPATIBLE")
    schemas_repository.commit({"topics/orders.yaml": locked}, "locked")
    report = verify(schemas_repository, f"{service_module}:ReadsNewest", "--role", "consumer", code=100).out
    assert "A broker does not let it connect (C7): IncompatibleSchema" in report


def test_wrong_usage_says_what_to_write(schemas_repository: Scratch, service_module: str) -> None:
    for against in ("9", "newest", "1,,2"):
        error = verify(schemas_repository, f"{service_module}:Newest", "--against", against, code=64).err
        assert "expected latest, all, or numbers among 0, 1, 2" in error
    error = verify(schemas_repository, f"{service_module}:Newest", "--half", "key", code=64).err
    assert "applies only to KEY_VALUE topics" in error
    assert (
        "is not a package that `schemactl generate` wrote"
        in verify(schemas_repository, f"{service_module}:Newest", "--package", "json", code=1).err
    )
    # No code of the schemas repository runs, which other people may write to.
    (schemas_repository.path / "of_schemas.py").write_text(SERVICE)
    assert "cannot find the module of_schemas" in verify(schemas_repository, "of_schemas:Newest", code=1).err


def test_a_package_replaces_the_repository(service_module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path.cwd()
    package = f"package_of_{service_module}"
    topics = [*ALL, make_approved("parcels", (ORDERS[0], make_info(ID)))]
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


RECORDS = """
from dataclasses import dataclass
from enum import Enum
from pulsar.schema import Bytes, CustomEnum, Record, String

class Color(Enum):
    RED = 1

class Raw(Record):
    b = Bytes()

class Colored(Record):
    c = CustomEnum(Color)

class Plain(Record):
    s = String()
"""


@pytest.mark.parametrize(
    ("name", "role", "fields"),
    [
        ("Raw", "both", ["Raw.b", "Raw.b"]),
        ("Raw", "consumer", ["Raw.b"]),
        ("Colored", "producer", ["Colored.c"]),
        # Its enum is read by name.
        ("Colored", "consumer", []),
        ("Plain", "both", []),
    ],
)
def test_json_that_pythons_client_writes_otherwise_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, role: str, fields: list[str]
) -> None:
    module_name = f"records_{next(numbers)}"
    (tmp_path / f"{module_name}.py").write_text(RECORDS)
    class_ = f"{module_name}:{name}"
    monkeypatch.chdir(tmp_path)
    printed = schemactl(tmp_path, "extract", class_, "--type", "JSON")
    assert ("JsonSchema" in printed.err) is (name != "Plain")
    assert "JsonSchema" not in schemactl(tmp_path, "extract", class_).err
    repository = Scratch(tmp_path / "schemas")
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/raw.yaml": "topic: a/b/raw\nschema: {type: JSON, definition: raw.avsc}\n",
            "topics/raw.avsc": printed.out,
        }
    )
    arguments = ("verify-client", class_, "--topic", "raw", "--role", role)
    code = 100 if fields else 0
    report = run_json(repository, *arguments, code=code)
    assert [finding["reason"].partition(" is ")[0] for finding in report["findings"]] == fields
    assert report["version"] == 0
    printed = schemactl(repository, *arguments, code=code)
    assert ("cannot" in printed.out) is bool(fields)
    sys.modules.pop(module_name, None)


def test_an_approved_definition_keeps_its_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_module: str
) -> None:
    monkeypatch.chdir(tmp_path)
    portable = schemactl(tmp_path, "extract", f"{written_module}:Order").out
    for definition in (portable, portable.replace('"default": 0', '"default": 0.0')):
        repository = Scratch(tmp_path / f"schemas_{len(definition)}")
        repository.commit(
            {
                "schemactl.yaml": "version: 1\nroots: [topics]\n",
                "topics/orders.yaml": "topic: a/b/orders\nschema: {type: AVRO, definition: orders.avsc}\n",
                "topics/orders.avsc": definition,
            }
        )
        schemactl(repository, "verify-client", f"{written_module}:Order", "--topic", "orders")
        out = repository.path / "topics" / "orders.avsc"
        assert schemactl(tmp_path, "extract", f"{written_module}:Order", "--out", str(out)).out.endswith(
            "orders.avsc: unchanged\n"
        )
        schemactl(tmp_path, "extract", f"{written_module}:Order", "--out", str(out), "--check")


RENAMED = """
from dataclasses import dataclass
from pulsar.schema import Record, String

class Line(Record):
    sku = String(required=True)

class Order(Record):
    line = Line(required=True)

@dataclass
class LineOfOrder:
    sku: str
    __avro__ = {"name": "Line"}

@dataclass
class PlainOrder:
    line: LineOfOrder
    __avro__ = {"name": "Order"}
"""


@pytest.mark.parametrize(("name", "code"), [("Order", 100), ("PlainOrder", 0)])
def test_a_record_reads_as_pythons_client_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    module_name = f"renamed_{next(numbers)}"
    (tmp_path / f"{module_name}.py").write_text(RENAMED)
    monkeypatch.chdir(tmp_path)
    definition = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "line", "type": {"type": "record", "name": "Row", "fields": [{"name": "sku", "type": "string"}]}}
        ],
    }
    repository = Scratch(tmp_path / "schemas")
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/orders.yaml": "topic: a/b/orders\nschema: {type: AVRO, definition: orders.avsc}\n",
            "topics/orders.avsc": json.dumps(definition),
        }
    )
    arguments = ("verify-client", f"{module_name}:{name}", "--topic", "orders", "--role", "consumer")
    # Java's resolution, which the generated package follows, decodes a renamed record; AvroSchema fails on it.
    printed = schemactl(repository, *arguments, code=code)
    assert "NAME_MISMATCH" in printed.out
    sys.modules.pop(module_name, None)
