"""`schemactl import`: a registry becomes declarations, and then there is nothing to apply."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scratch import Scratch, declared, record

from schemactl.changes import COMMIT_PROPERTY
from schemactl.cli import main
from schemactl.formats.key_value import join
from schemactl.formats.protobuf_native.compile import Proto, compile_proto
from schemactl.model import CompatibilityStrategy, NamespaceName, Policies, SchemaInfo, SchemaType, TopicName
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

SALES = NamespaceName("shop", "sales")
ORDERS = TopicName("shop", "sales", "orders")
STRING = SchemaInfo(SchemaType.STRING)
PROJECT = 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'

Run = Callable[..., int]


def avro(*fields: str, **default: Any) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, record(*fields, **default).encode())


class Clock:
    """A day later each time, from 2023-11-14 on."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        self.now_ms += 86_400_000
        return self.now_ms


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A repository with a project file and no declaration."""
    made = Scratch(tmp_path / "shop")
    made.commit({"schemactl.yaml": PROJECT, ".gitignore": ".schemactl/\n"})
    made.flush()
    return made


@pytest.fixture
def registry(scratch: Scratch) -> Iterator[EmbeddedRegistry]:
    """The target's registry, with one namespace that accepts everything."""
    path = scratch.path / ".schemactl/registry.db"
    with closing(EmbeddedRegistry(str(path), clock_ms=Clock())) as opened:
        opened.create_namespace(SALES)
        opened.set_namespace_policies(SALES, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
        yield opened


@pytest.fixture
def run(scratch: Scratch) -> Run:
    def call(*arguments: str) -> int:
        for name, value in (("NAME", "Ada"), ("EMAIL", "ada@shop.example")):
            scratch.git("config", f"user.{name.lower()}", value)
        return main(["-C", str(scratch.path), *arguments])

    return call


def put(registry: EmbeddedRegistry, name: TopicName, *infos: SchemaInfo | None) -> None:
    """A topic with these versions; None deletes."""
    registry.create_topic(name, None)
    for info in infos:
        if info is None:
            registry.delete_schema(name)
        else:
            registry.put_schema(name, info)


def settled(run: Run, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The import succeeds, `check` and `plan` have nothing to say; what the import said."""
    capsys.readouterr()
    assert run("import", *arguments) == 0
    said = capsys.readouterr().out
    if not {"--one-commit", "--commit-each-version"} & {*arguments}:
        return said
    assert run("check", "--strict") == 0
    code = run("plan", "--detailed-exitcode")
    assert code == (100 if "would be misread" in said else 0)
    return said


def numbers(run: Run, capsys: pytest.CaptureFixture[str], name: TopicName) -> list[tuple[int, int]]:
    """The registry's and Git's number of each version."""
    capsys.readouterr()
    assert run("log", str(name), "--target", "local", "--format", "json") in (0, 100)
    [topic] = json.loads(capsys.readouterr().out)["topics"]
    return [(each["registry"], each["git"]) for each in topic["versions"] if each["state"] != "tombstone"]


def test_every_version_becomes_a_commit_with_its_time_and_number(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    invoices = TopicName("shop", "sales", "invoices", "non-persistent")
    put(registry, ORDERS, avro("id"))
    put(registry, invoices, STRING)
    put(registry, ORDERS, avro("id", note=0), avro("id", note=0, city=0))
    said = settled(run, capsys, "--commit-each-version")
    assert said.startswith("Imported 1 namespace and 2 topics from local.\n")
    log = scratch.git("log", "--reverse", "--format=%s|%an|%as|%cs").splitlines()
    assert log[2:] == [
        f"{ORDERS}: version 0 of local|Ada|2023-11-15|2023-11-15",
        f"{invoices}: version 0 of local|Ada|2023-11-16|2023-11-16",
        f"{ORDERS}: version 1 of local|Ada|2023-11-17|2023-11-17",
        f"{ORDERS}: version 2 of local|Ada|2023-11-18|2023-11-18",
    ]
    assert "Imported from sqlite:.schemactl/registry.db, uploaded 2023-11-18" in scratch.git("log", "-1")
    assert numbers(run, capsys, ORDERS) == [(0, 0), (1, 1), (2, 2)]
    assert scratch.git("status", "--porcelain") == ""
    assert scratch.git("for-each-ref", "refs/schemactl") == ""
    assert run("drift", "--unmanaged", "--detailed-exitcode") == 0


def test_what_is_written_is_laid_out(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = b'{"name":"Order","type":"record","fields":[{"name":"a","type":"double","default":1.0}]}'
    info = SchemaInfo(SchemaType.AVRO, text, {"owner": "orders: team", COMMIT_PROPERTY: "f" * 40})
    put(registry, ORDERS, info)
    registry.set_namespace_policies(SALES, Policies(is_allow_auto_update_schema=False))
    registry.set_topic_policies(ORDERS, Policies(CompatibilityStrategy.FULL))
    settled(run, capsys, "--one-commit")
    folder = scratch.path / "namespaces/shop/sales"
    assert (folder / "namespace.yaml").read_text() == (
        "namespace: shop/sales\n"
        "schema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
        "is_allow_auto_update_schema: false\n"
    )
    assert (folder / "orders.yaml").read_text() == (
        "topic: persistent://shop/sales/orders\n"
        "schema_compatibility_strategy: FULL\n"
        "schema:\n"
        "  type: AVRO\n"
        "  definition: orders.avsc\n"
        "  properties:\n"
        '    owner: "orders: team"\n'
    )
    assert (folder / "orders.avsc").read_text() == json.dumps(json.loads(text), indent=2) + "\n"


def test_every_type_of_schema(
    registry: EmbeddedRegistry, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    click = compile_proto(
        Proto(
            "web.Click",
            "click.proto",
            {"click.proto": b'syntax = "proto3"; package web; message Click { int64 at = 1; }'},
            {},
        )
    )
    key = SchemaInfo(SchemaType.STRING, properties={"__charset": "ISO-8859-1"})
    pair = join(key=key, value=avro("id"), encoding="SEPARATED")
    named = SchemaInfo(pair.type, pair.schema, {**pair.properties, "key.schema.name": "String", "x": "y"})
    both = join(key=click, value=click, encoding="INLINE")
    kinds = {
        "avro": avro("id"),
        "json": SchemaInfo(SchemaType.JSON, record("id").encode()),
        "protobuf": SchemaInfo(SchemaType.PROTOBUF, record("id").encode()),
        "native": click,
        "pair": named,
        "pair-of-messages": both,
        "bytes-and-int": join(
            key=SchemaInfo(SchemaType.BYTES), value=SchemaInfo(SchemaType.INT32), encoding="INLINE"
        ),
        "union": SchemaInfo(SchemaType.JSON, b'["null", "string"]'),
        "bare": SchemaInfo(SchemaType.AVRO, b'"string"'),
        "charset": key,
        "instant": SchemaInfo(SchemaType.INSTANT),
    }
    for name, info in kinds.items():
        put(registry, TopicName("shop", "sales", name), info)
    put(registry, TopicName("shop", "sales", "none"))
    registry.create_topic(TopicName("shop", "sales", "wide"), 7)
    said = settled(run, capsys, "--commit-each-version")
    assert said.startswith(f"Imported 1 namespace and {len(kinds) + 2} topics from local.\n")
    assert run("plan") == 0
    assert "Stays as it is" not in capsys.readouterr().out
    for name in kinds:
        assert numbers(run, capsys, TopicName("shop", "sales", name)) == [(0, 0)]


def native(message: str, **sources: str) -> SchemaInfo:
    """A PROTOBUF_NATIVE definition; the last of `sources` is the root's file, `_` in a name stands for a slash."""
    texts = {f"{name.replace('_', '/')}.proto": text.encode() for name, text in sources.items()}
    return compile_proto(Proto(message, list(texts)[-1], texts))


def test_protobuf_becomes_proto_files_that_can_be_read(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    money = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    cart = 'import "common/money.proto"; import "google/protobuf/timestamp.proto"; package web; message Cart { shop.Money sum = 1; }'
    first = native("web.Cart", common_money=money, web_cart=f'syntax = "proto3"; {cart}')
    second = native(
        "web.Cart",
        common_money=money,
        web_cart=f'syntax = "proto3"; {cart} message Line {{ google.protobuf.Timestamp at = 1; }}',
    )
    group = 'syntax = "proto2"; message G { optional group Inner = 1 { optional int32 a = 1; } }'
    put(registry, ORDERS, first, second)
    put(registry, TopicName("shop", "sales", "groups"), native("G", g=group))
    put(
        registry,
        TopicName("shop", "sales", "pairs"),
        join(key=SchemaInfo(SchemaType.INT32), value=first, encoding="INLINE"),
    )
    settled(run, capsys, "--commit-each-version")
    assert numbers(run, capsys, ORDERS) == [(0, 0), (1, 1)]
    folder = scratch.path / "namespaces/shop/sales"
    assert (folder / "orders.proto").read_text() == (
        'syntax = "proto3";\npackage web;\nimport "common/money.proto";\n'
        'import "google/protobuf/timestamp.proto";\n\nmessage Cart {\n  .shop.Money sum = 1;\n}\n\n'
        "message Line {\n  .google.protobuf.Timestamp at = 1;\n}\n"
    )
    assert (folder / "orders/common/money.proto").exists()
    assert "  references: [orders/common/money.proto]\n" in (folder / "orders.yaml").read_text()
    assert (folder / "groups.binpb").exists()
    assert (folder / "pairs.value.proto").exists()


def test_names_that_are_no_file_names(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["a b", "a_b", "A_B", "namespace", "..x", "x.key", "x", "ü: {y}", "-C", "yes", "1", "a.yaml"]
    for name in names:
        put(registry, TopicName("shop", "sales", name), avro("id"))
    put(registry, TopicName("shop", "sales", "x"), join(key=avro("k"), value=avro("v"), encoding="INLINE"))
    settled(run, capsys, "--commit-each-version")
    paths = [path.relative_to(scratch.path).as_posix() for path in scratch.path.glob("namespaces/**/*.*")]
    assert len({path.lower() for path in paths}) == len(paths)
    assert run("drift", "--unmanaged", "--detailed-exitcode") == 0


def test_nothing_that_exists_is_overwritten(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = {
        "namespaces/mine.yaml": "namespace: shop/sales\n",
        "namespaces/orders.yaml": declared(),
        "namespaces/orders.avsc": record("mine"),
        "namespaces/shop/sales/refunds.avsc": record("mine", name="Other"),
    }
    scratch.commit(mine)
    put(registry, ORDERS, avro("id"))
    put(registry, TopicName("shop", "sales", "refunds"), avro("id"))
    assert run("import", "--commit-each-version") == 0
    assert "Imported 0 namespaces and 1 topic from local." in capsys.readouterr().out
    for path, text in mine.items():
        assert (scratch.path / path).read_text() == text
    assert (scratch.path / "namespaces/shop/sales/refunds-2.avsc").exists()
    assert run("import", "--commit-each-version") == 0
    assert "Nothing to import: everything there is declared." in capsys.readouterr().out


def test_files_alone_wait_for_a_commit(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(registry, ORDERS, avro("id"), avro("id", note=0))
    said = settled(run, capsys)
    assert "1 of the topics has older versions there, which Git then does not know" in said
    assert "git add . && git commit" in said
    assert scratch.git("log", "--format=%s") == "change"
    scratch.git("add", ".")
    scratch.git("commit", "-q", "-m", "Declare what is there")
    assert f"messages of {ORDERS} would be misread" in said
    assert "schemactl drift --target local --accept --reason TEXT" in said
    assert run("plan", "--detailed-exitcode") == 100
    assert run("drift", "--accept", "--reason", "imported") == 0
    scratch.git("add", "numbers")
    scratch.git("commit", "-q", "-m", "Record numbers")
    assert run("plan", "--detailed-exitcode") == 0
    assert numbers(run, capsys, ORDERS) == [(0, None), (1, 0)]


def test_a_tombstone_is_told_and_numbers_are_apart(
    registry: EmbeddedRegistry, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    put(registry, ORDERS, avro("id"), None, avro("id", note=0), avro("id", note=0, city=0))
    said = settled(run, capsys, "--commit-each-version")
    assert f"{ORDERS}: versions 0-1 can no longer be read: a tombstone came after.\n" in said
    assert f"{ORDERS}: the registry's v2 is Git's v0, v3 is Git's v1.\n" in said
    assert numbers(run, capsys, ORDERS) == [(0, None), (2, 0), (3, 1)]


def test_what_cannot_be_declared_is_told(
    registry: EmbeddedRegistry, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def name(text: str) -> TopicName:
        return TopicName("shop", "sales", text)

    bad = b'{"type": "record", "name": "R", "fields": [{"name": "x", "type": "string", "default": null}]}'
    put(registry, name("plain"), SchemaInfo(SchemaType.BYTES))
    put(registry, name("python"), SchemaInfo(SchemaType.STRING, b"null"))
    put(registry, name("both"), STRING, SchemaInfo(SchemaType.STRING, b"null"), SchemaInfo(SchemaType.INT8))
    put(registry, name("bad"), SchemaInfo(SchemaType.AVRO, bad))
    put(registry, name("legacy"), SchemaInfo(SchemaType.JSON, b'{"type": "object", "id": "urn:x"}'))
    put(registry, name("untyped"), SchemaInfo(SchemaType.KEY_VALUE, b"\0\0\0\3???\0\0\0\0"))
    registry.create_topic(name("twin"), None)
    registry.create_topic(TopicName("shop", "sales", "twin", "non-persistent"), None)
    registry.put_schema(name("gone"), STRING)
    odd = {"\ud800": "\udfff\x07\u2028"}
    put(registry, name("odd"), SchemaInfo(SchemaType.INT8, properties=odd))
    said = settled(run, capsys, "--commit-each-version").splitlines()
    told = {line.split("/")[4].split(":")[0]: line for line in said if line.count("://") and "/" in line}
    assert "declared without `schema`: the registry holds a schema of type NONE" in told["plain"]
    assert "python" not in told  # it is STRING, as the Python client spells it
    assert "left out: version 0" in told["bad"]
    assert "default" in told["bad"]
    assert "left out: version 0" in told["legacy"]
    assert "left out: version 0" in told["untyped"]
    assert "the topic itself does not exist" in told["gone"]
    assert "non-persistent://shop/sales/twin: left out" in told["twin"]
    assert any("both: the registry's v1 is Git's v0, v2 is Git's v1" in line for line in said)
    assert numbers(run, capsys, name("both")) == [(0, 0), (1, 0), (2, 1)]
    assert numbers(run, capsys, name("python")) == [(0, 0)]


def test_of_two_domains_with_one_name_the_persistent_topic_comes_with_its_policies_and_partitions(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = TopicName("shop", "sales", "parts")
    other = TopicName("shop", "sales", "parts", "non-persistent")
    registry.create_topic(parts, 4)
    registry.create_topic(other, 2)
    registry.set_topic_policies(parts, Policies(CompatibilityStrategy.FULL_TRANSITIVE))
    registry.put_schema(parts, STRING)
    said = settled(run, capsys, "--one-commit")
    assert f"{other}: left out: it shares its list of schemas with {parts}, which is declared" in said
    [line] = [line for line in said.splitlines() if "left out" in line]
    assert line.startswith(str(other))
    text = (scratch.path / "namespaces/shop/sales/parts.yaml").read_text()
    assert text.splitlines()[:3] == [
        f"topic: {parts}",
        "partitions: 4",
        "schema_compatibility_strategy: FULL_TRANSITIVE",
    ]


def test_versions_of_another_history_are_refused_by_plan_unless_all_come(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    stamped = [
        SchemaInfo(each.type, each.schema, {COMMIT_PROPERTY: "ab" * 20})
        for each in (avro("id"), avro("id", n=0))
    ]
    put(registry, ORDERS, *stamped)
    assert run("import", "--one-commit") == 0
    assert "import with --commit-each-version instead" in capsys.readouterr().out
    assert run("plan") == 100
    scratch.git("reset", "-q", "--hard", "HEAD~1")
    settled(run, capsys, "--commit-each-version")


def test_filters_choose_by_the_registrys_names(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    web = NamespaceName("shop", "web")
    registry.create_namespace(web)
    put(registry, ORDERS, STRING)
    put(registry, TopicName("shop", "web", "clicks"), STRING)
    put(registry, TopicName("shop", "web", "views"), STRING)
    settled(run, capsys, "--one-commit", "--topic", "*/clicks")
    assert sorted(path.name for path in scratch.path.glob("namespaces/shop/*/*")) == [
        "clicks.yaml",
        "namespace.yaml",
    ]
    settled(run, capsys, "--one-commit", "--namespace", "shop/web")
    assert (scratch.path / "namespaces/shop/web/views.yaml").exists()
    assert not (scratch.path / "namespaces/shop/sales").exists()
    assert run("import", "--topic", "nothing") == 64
    assert run("import", "--namespace", "shop/none") == 64


def test_a_targets_names_become_the_declared_ones(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.create_namespace(NamespaceName("shop", "lab"))
    put(registry, ORDERS, STRING)
    project = PROJECT.replace('.db"', '.db", namespaces: {made/up: shop/sales}')
    scratch.commit({"schemactl.yaml": project})
    settled(run, capsys, "--commit-each-version")
    assert (scratch.path / "namespaces/made/up/orders.yaml").exists()
    project = PROJECT.replace('.db"', '.db", namespaces: {shop/lab: shop/sales}')
    scratch.commit({"schemactl.yaml": project})
    assert run("import") == 64


def test_without_a_project_file_one_is_written(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(registry, ORDERS, avro("id"))
    scratch.commit({"schemactl.yaml": None})
    assert run("import", "--target", "prod") == 64
    assert run("import", "--registry", "https://ada:secret@shop.example") == 64
    url = "sqlite:.schemactl/registry.db"
    settled(run, capsys, "--target", "prod", "--registry", url, "--commit-each-version")
    assert (scratch.path / "schemactl.yaml").read_text() == (
        'version: 1\nroots: [namespaces]\npulsar: "4.0"\ntargets:\n  prod:\n'
        "    registry: sqlite:.schemactl/registry.db\n"
    )
    assert run("import", "--registry", url) == 64


def test_the_folder_of_a_new_project_is_its_root(
    registry: EmbeddedRegistry, scratch: Scratch, tmp_path: Path
) -> None:
    put(registry, ORDERS, STRING)
    fresh = Scratch(tmp_path / "fresh")
    (fresh.path / "pulsar").mkdir()
    url = f"sqlite:{scratch.path}/.schemactl/registry.db"
    here = ["-C", str(fresh.path / "pulsar")]
    assert main([*here, "import", "--registry", url, "--out", "prod"]) == 0
    assert "roots: [prod]" in (fresh.path / "pulsar/schemactl.yaml").read_text()
    assert (fresh.path / "pulsar/prod/shop/sales/orders.yaml").exists()
    assert main([*here, "import"]) == 0  # there is a project now
    assert main(["-C", str(fresh.path), "import", "--registry", url, "--out", ".."]) == 64


def test_commits_beside_the_approved_ref_are_said_to_be(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(registry, ORDERS, STRING)
    scratch.commit({"schemactl.yaml": PROJECT + "approved: main\n"})
    scratch.git("switch", "-q", "-c", "import")
    assert run("import", "--commit-each-version") == 0
    assert "bring the commits onto main with a rebase or a fast-forward" in capsys.readouterr().out
    scratch.git("switch", "-q", "main")
    scratch.git("merge", "-q", "--ff-only", "import")
    assert run("plan", "--detailed-exitcode") == 0


def test_a_repository_without_commits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fresh = Scratch(tmp_path / "fresh")
    fresh.git("config", "user.name", "Ada")
    fresh.git("config", "user.email", "ada@shop.example")
    with closing(EmbeddedRegistry(str(fresh.path / "registry.db"))) as registry:
        registry.create_namespace(SALES)
        put(registry, ORDERS, avro("id"), avro("id", note=0))
    command = ["-C", str(fresh.path), "import", "--registry", "sqlite:registry.db", "--commit-each-version"]
    assert main(command) == 0
    assert main(["-C", str(fresh.path), "plan", "--detailed-exitcode"]) == 0
    assert "No changes." in capsys.readouterr().out
    assert fresh.git("status", "--porcelain") == "?? registry.db"


def test_the_folder_can_be_chosen_inside_the_roots(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(registry, ORDERS, STRING)
    settled(run, capsys, "--one-commit", "--out", "namespaces/prod")
    assert (scratch.path / "namespaces/prod/shop/sales/orders.yaml").exists()
    for outside in ("elsewhere", "..", "namespaces-2"):
        assert run("import", "--out", outside) == 64


def test_commits_need_a_branch_and_an_author(
    registry: EmbeddedRegistry, run: Run, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(registry, ORDERS, STRING)
    scratch.git("checkout", "-q", "--detach")
    assert run("import", "--one-commit") == 1
    assert "git switch -c import" in capsys.readouterr().err
    assert not (scratch.path / "namespaces").exists()


def test_other_work_in_the_way_stops_it_whole(registry: EmbeddedRegistry, run: Run, scratch: Scratch) -> None:
    put(registry, ORDERS, STRING)
    scratch.write({"namespaces": "a file where the folder has to be"})
    assert run("import", "--one-commit") == 1
    assert scratch.git("log", "--format=%s") == "change"
    assert scratch.git("for-each-ref", "refs/schemactl") == ""
    assert (scratch.path / "namespaces").read_text() == "a file where the folder has to be"


def test_a_time_that_a_registry_should_not_have_told_makes_an_ordinary_commit(
    scratch: Scratch, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    times_ms = iter([-5_000, 10**18, 10**30, 1_700_000_000_000])
    path = scratch.path / ".schemactl/registry.db"
    with closing(EmbeddedRegistry(str(path), clock_ms=lambda: next(times_ms))) as registry:
        registry.create_namespace(SALES)
        registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
        for number in range(4):
            put(registry, TopicName("shop", "sales", f"t{number}"), STRING)
    settled(run, capsys, "--commit-each-version")
    times_s = [int(each) for each in scratch.git("log", "--format=%ct", "-4").splitlines()]
    assert 0 in times_s
    assert 1_700_000_000 in times_s
    assert all(0 <= each <= time.time() for each in times_s)
    assert scratch.git("fsck", "--strict") == ""
