"""Every storage, including the documented example, fulfills the contract and supports a registry; and the registry's file is created by the first write, rejected if it is foreign, complete after a kill, and shared by processes."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest
from forks import Say, assert_killed, fork_process

from schemactl.core.catalog import Catalog
from schemactl.core.errors import RegistryError, SchemaRejected, UsageError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.project import Target
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.registry import open_registry
from schemactl.registry.embedded import LARGEST_BYTES, EmbeddedRegistry, make_entry, read_entry
from schemactl.registry.interface import Registry, Scope
from schemactl.registry.storage import FORMAT_VERSION, Database, SchemaStorage, SqliteStorage, StoredSchema, number_of
from schemactl.registry.storage_contract import StorageContract

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "serve.md"
SALES = NamespaceName("shop", "sales")
ORDERS = TopicName("shop", "sales", "orders")


def read_documented_storage() -> str:
    """Return the example storage of docs/how-to/serve.md."""
    (text,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "class FolderStorage" in block
    ]
    return str(text)


EXAMPLE: dict[str, Any] = {}
exec(read_documented_storage(), EXAMPLE)  # noqa: S102  the page's own example


class TestMemory(StorageContract):
    """The contract, in memory."""

    def open_storage(self) -> SchemaStorage:
        return SqliteStorage(Database(":memory:"))


class InFolder(StorageContract):
    """The contract for a storage whose entries stay after it is closed."""

    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open_again(self, closed: SchemaStorage) -> SchemaStorage:
        del closed
        return self.open_storage()


class TestSqlite(InFolder):
    """The contract, in a file."""

    def open_storage(self) -> SchemaStorage:
        return SqliteStorage(Database(str(self.folder / "registry.db")))


class TestFolder(InFolder):
    """The contract, for the documented example."""

    def open_storage(self) -> SchemaStorage:
        storage: SchemaStorage = EXAMPLE["FolderStorage"](self.folder, path="schemas")
        return storage


class Forgetful(SqliteStorage):
    """A storage that gives every entry the number 0."""

    def get_all(self, key: str) -> tuple[StoredSchema, ...]:
        return tuple(StoredSchema(entry.data, 0) for entry in super().get_all(key))


def test_the_contract_can_fail() -> None:
    class Broken(StorageContract):
        def open_storage(self) -> SchemaStorage:
            return Forgetful(Database(":memory:"))

    with pytest.raises(AssertionError):
        Broken().test_numbers_count_from_zero_under_each_key()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The documented storage as an importable module."""
    (tmp_path / "folder_storage.py").write_text(read_documented_storage())
    monkeypatch.syspath_prepend(str(tmp_path))
    allowed = ("folder_storage:FolderStorage", " folder_storage:Other", "no_such_module:Storage")
    monkeypatch.setenv("SCHEMACTL_ALLOW_STORAGE", ",".join(allowed))
    yield "folder_storage"
    sys.modules.pop("folder_storage", None)


def open_storage(url: str, folder: Path) -> Registry:
    return open_registry(Target("t", url), release=Release.R4_0, defaults=BrokerDefaults(), folder=folder)


def test_a_storage_of_ones_own_is_opened_by_its_url(module: str, tmp_path: Path) -> None:
    url = f"{module}:FolderStorage?metadata=metadata.db&path=my%20schemas"
    with closing(open_storage(url, tmp_path)) as registry:
        registry.create_namespace(SALES)
        numbers = [registry.put_schema(ORDERS, SchemaInfo(SchemaType.STRING)) for _ in range(2)]
        assert (numbers, registry.delete_schema(ORDERS), registry.url) == ([0, 0], 1, url)
    with closing(open_storage(url, tmp_path)) as registry:
        catalog = registry.read(Scope(frozenset({SALES}), frozenset({ORDERS})))
        assert [(version.number, version.info) for version in catalog.topics[ORDERS].versions] == [
            (0, SchemaInfo(SchemaType.STRING)),
            (1, None),
        ]
        assert list(catalog.namespaces) == [SALES]
        assert registry.read_scope() == Scope(frozenset({SALES}), frozenset({ORDERS}))
    assert (tmp_path / "my schemas").is_dir()
    assert (tmp_path / "metadata.db").is_file()


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("url", "kind", "problem"),
    [
        ("folder_storage:FolderStorage?path=x", UsageError, "names no file for namespaces"),
        ("folder_storage:FolderStorage?metadata=m.db", UsageError, "does not take these options"),
        ("folder_storage:Other?metadata=m.db", RegistryError, "cannot be imported"),
        ("no_such_module:Storage?metadata=m.db", RegistryError, "cannot be imported"),
    ],
)
def test_an_impossible_storage_is_one_error(tmp_path: Path, url: str, kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        open_storage(url, tmp_path)
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize(
    "allowed", [None, "", "folder_storage", "folder_storage:", "folder_storage:Folder", "x:FolderStorage", "*"]
)
def test_storage_is_imported_only_if_its_full_name_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str | None
) -> None:
    (tmp_path / "folder_storage.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("SCHEMACTL_ALLOW_STORAGE", raising=False)
    if allowed is not None:
        monkeypatch.setenv("SCHEMACTL_ALLOW_STORAGE", allowed)
    with pytest.raises(RegistryError, match="storage folder_storage:FolderStorage is code") as raised:
        open_storage("folder_storage:FolderStorage?metadata=m.db&path=x", tmp_path)
    assert "SCHEMACTL_ALLOW_STORAGE=folder_storage:FolderStorage" in raised.value.fix


DAMAGES = {
    "properties of a topic": "UPDATE topics SET properties = ''",
    "properties of a namespace": "UPDATE namespaces SET properties = '{'",
    "properties that are a list": "UPDATE namespaces SET properties = '[1]'",
    "a strategy": "UPDATE topics SET schema_compatibility_strategy = 'x'",
    "partitions": "UPDATE topics SET partitions = 'x'",
    "the name of a topic": "UPDATE topics SET topic = 'x'",
    "the number of a version": "UPDATE schemas SET version = 'x'",
    "the text of a version": "UPDATE schemas SET data = 'x'",
    "the bytes of a version": "UPDATE schemas SET data = x'ff'",
    "a setting": "INSERT INTO settings VALUES ('shop/sales', 'retention_policies', '{')",
}


@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
def test_a_value_that_somebody_damaged_is_an_error_of_the_registry(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "registry.db"
    with closing(EmbeddedRegistry(str(path))) as registry:
        registry.create_namespace(SALES)
        registry.create_topic(ORDERS, None)
        registry.put_schema(ORDERS, SchemaInfo(SchemaType.STRING))
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.execute(statement)

    def read_all(registry: EmbeddedRegistry) -> None:
        registry.read(Scope(frozenset({SALES}), frozenset({ORDERS})))
        registry.versions(ORDERS)
        registry.topics()

    with (
        closing(EmbeddedRegistry(str(path))) as registry,
        pytest.raises(RegistryError, match=r"damaged at|cannot be read"),
    ):
        read_all(registry)


def test_uploads_of_two_clients_to_one_topic_count_together(tmp_path: Path) -> None:
    """Each registry keeps the versions of its last upload; a version or a deletion of the other one counts all the same."""
    path = str(tmp_path / "registry.db")
    infos = [
        SchemaInfo(SchemaType.AVRO, f'{{"type": "enum", "name": "E", "symbols": ["S{number}"]}}'.encode())
        for number in range(10)
    ]
    with closing(EmbeddedRegistry(path)) as first, closing(EmbeddedRegistry(path)) as second:
        first.create_namespace(SALES)
        first.set_namespace_policies(SALES, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
        registries = [first, second] * 4
        assert [registry.put_schema(ORDERS, info) for registry, info in zip(registries, infos, strict=False)] == [
            *range(8)
        ]
        assert second.put_schema(ORDERS, infos[0]) == 0
        first.delete_schema(ORDERS, force=True)
        assert second.put_schema(ORDERS, infos[9]) == 0
        assert [first.put_schema(ORDERS, infos[number]) for number in (9, 1, 9)] == [0, 1, 0]
        assert second.put_schema(ORDERS, infos[1]) == 1


def test_a_registry_in_memory_is_gone_with_it(tmp_path: Path) -> None:
    with closing(open_storage("memory:", tmp_path)) as registry:
        registry.create_namespace(SALES)
        assert registry.put_schema(ORDERS, SchemaInfo(SchemaType.STRING)) == 0
    with closing(open_storage("memory:", tmp_path)) as registry:
        assert registry.read_scope() == Scope(frozenset(), frozenset())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(SchemaType.AVRO, b'"string"', {"owner": "Größe ✓", "lone": "\ud800"}),
        SchemaInfo(SchemaType.KEY_VALUE, bytes(range(256))),
        SchemaInfo(SchemaType.STRING, b""),
        None,
    ],
)
def test_an_entry_holds_the_whole_version(info: SchemaInfo | None) -> None:
    stored = read_entry(StoredSchema(make_entry(info, 5), 3))
    assert (stored.info, stored.number, stored.timestamp_ms) == (info, 3, 5)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"type": "NOPE", "schema": "", "timestamp": 1}', b"\xff"])
def test_an_entry_of_something_else_is_one_error(data: bytes) -> None:
    with pytest.raises(RegistryError, match="entry 7 of the schema storage cannot be read"):
        read_entry(StoredSchema(data, 7))


def test_the_number_of_a_message_finds_its_version() -> None:
    with closing(EmbeddedRegistry(":memory:")) as registry:
        registry.create_namespace(SALES)
        for text in (b"", b"null"):
            registry.put_schema(ORDERS, SchemaInfo(SchemaType.STRING, text))
        stored = registry.version_of_message(ORDERS, struct.pack(">q", 1))
        assert stored is not None
        assert stored.info == SchemaInfo(SchemaType.STRING, b"null")
        assert registry.version_of_message(ORDERS, struct.pack(">q", 2)) is None
        registry.delete_schema(ORDERS)
        assert registry.version_of_message(ORDERS, struct.pack(">q", 1)) is None


@pytest.mark.parametrize("size", [0, 7, 9, 65])
def test_other_bytes_are_no_version(size: int) -> None:
    with pytest.raises(ValueError, match=f"8 or 64 bytes, found {size}"):
        number_of(bytes(size))


def test_the_largest_definition_is_a_ledger_entrys() -> None:
    def padded(size: int) -> SchemaInfo:
        return SchemaInfo(SchemaType.AVRO, b'"string"'.ljust(size))

    with closing(EmbeddedRegistry(":memory:")) as registry:
        registry.create_namespace(SALES)
        with pytest.raises(SchemaRejected, match="non-faulty bookies"):
            registry.put_schema(ORDERS, padded(LARGEST_BYTES + 1))
        assert registry.put_schema(ORDERS, padded(LARGEST_BYTES)) == 0


EVERYTHING = Scope(frozenset({SALES}), frozenset({ORDERS}))


def writer(path: Path, name: str, count: int) -> tuple[int, IO[str]]:
    """Start a process that uploads `count` definitions and prints the version number of each."""

    def write(say: Say) -> None:
        registry = EmbeddedRegistry(str(path))
        registry.create_namespace(SALES)
        for text in write_file(name, range(count)):
            say(registry.put_schema(ORDERS, SchemaInfo(SchemaType.AVRO, text.encode())))

    return fork_process(write)


def numbers_of(process: int, output: IO[str]) -> list[int]:
    """Return the numbers that a writer printed."""
    with output:
        numbers = [int(line) for line in output]
    assert os.waitpid(process, 0)[1] == 0
    return numbers


def texts(path: Path) -> list[str]:
    topic = read(path).topics.get(ORDERS)
    versions = topic.versions if topic else ()
    assert [version.number for version in versions] == list(range(len(versions)))
    return [version.info.schema.decode() for version in versions if version.info]


def write_file(name: str, numbers: Sequence[int]) -> list[str]:
    return [f'{{"type": "record", "name": "R", "fields": [], "{name}": {number}}}' for number in numbers]


def read(path: Path) -> Catalog:
    with closing(EmbeddedRegistry(str(path))) as registry:
        return registry.read(EVERYTHING)


def make(path: Path) -> None:
    """Create the namespace SALES in the registry at `path`."""
    with closing(EmbeddedRegistry(str(path))) as registry:
        registry.create_namespace(SALES)


def test_reading_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "registry.db"
    assert read(path) == Catalog()
    with closing(EmbeddedRegistry(str(path))) as registry:
        assert registry.strategy(ORDERS) is CompatibilityStrategy.FULL
    assert list(tmp_path.iterdir()) == []


def test_writing_makes_the_file_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "two words" / "Größe" / "registry.db"
    make(path)
    assert path.is_file()
    assert list(read(path).namespaces) == [SALES]


def test_a_closed_registry_leaves_one_file(tmp_path: Path) -> None:
    make(tmp_path / "registry.db")
    assert [path.name for path in tmp_path.iterdir()] == ["registry.db"]


def test_an_empty_file_becomes_a_registry(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    path.touch()
    assert read(path).namespaces == {}
    make(path)
    assert list(read(path).namespaces) == [SALES]


@pytest.mark.parametrize(
    ("content", "problem", "fix"),
    [
        (b"not a database at all, but long enough to look", "is not a readable SQLite file", "schemactl apply"),
        (b"SQLite format 3\x00" + b"\xff" * 4096, "is not a readable SQLite file", "schemactl apply"),
        ("PRAGMA application_id = 0; PRAGMA user_version = 0", "is a database of some other program", "nothing was changed"),
        (f"PRAGMA user_version = {FORMAT_VERSION + 1}", f"has format {FORMAT_VERSION + 1}", "upgrade schemactl"),
        (f"PRAGMA user_version = {FORMAT_VERSION - 1}", f"has format {FORMAT_VERSION - 1}", "move the file away"),
    ],
    ids=["text", "only a header", "another program", "newer", "older"],
)  # fmt: skip
def test_an_unusable_file_is_refused_untouched(tmp_path: Path, content: bytes | str, problem: str, fix: str) -> None:
    """A text is SQL, run on a registry."""
    path = tmp_path / "registry.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        make(path)
        with closing(sqlite3.connect(path)) as other:
            other.executescript(content)
    before = path.read_bytes()
    for use in (read, make):
        with pytest.raises(RegistryError, match=rf"registry\.db {problem}") as raised:
            use(path)
        assert fix in raised.value.fix
    assert path.read_bytes() == before


def test_a_damaged_registry_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    make(path)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(RegistryError, match="is not a readable SQLite file") as raised:
        read(path)
    assert "schemactl apply" in raised.value.fix


def test_a_file_without_properties_of_namespaces_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    make(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("ALTER TABLE namespaces DROP COLUMN properties")
    before = read(path)
    assert before == read(path)
    with closing(EmbeddedRegistry(str(path))) as registry:
        (space,) = registry.namespaces()
        registry.set_namespace_properties(space, {"k": "v"})
        assert registry.require_namespace(space).properties == {"k": "v"}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("folder", "cannot be used: unable to open database file"),
        ("file/registry.db", r"the folder .* cannot be created"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(RegistryError, match=problem):
        make(tmp_path / name)


def test_a_url_opens_relative_to_the_project(tmp_path: Path) -> None:
    target = Target("local", "sqlite:.schemactl/registry.db")
    with closing(open_registry(target, release=Release.R4_2, defaults=BrokerDefaults(), folder=tmp_path)) as registry:
        registry.create_namespace(SALES)
        assert (tmp_path / ".schemactl" / "registry.db").is_file()
        assert registry.release is Release.R4_2
        assert registry.url == "sqlite:.schemactl/registry.db"


@pytest.mark.parametrize("url", ["registry.db", "sqlite", "sqlite:", "mysql://host/db"])
def test_another_url_is_wrong_usage(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="registry URL"):
        open_registry(Target("prod", url), release=Release.R4_0, defaults=BrokerDefaults(), folder=tmp_path)


def test_the_project_defaults_stand_for_the_brokers_own(tmp_path: Path) -> None:
    defaults = BrokerDefaults(schema_compatibility_strategy=CompatibilityStrategy.BACKWARD)
    target = Target("local", "sqlite::memory:")
    with closing(open_registry(target, release=Release.R4_0, defaults=defaults, folder=tmp_path)) as registry:
        assert registry.strategy(ORDERS) is CompatibilityStrategy.BACKWARD
    assert list(tmp_path.iterdir()) == []


def test_concurrent_processes_store_every_upload_in_order(tmp_path: Path) -> None:
    path, count, names = tmp_path / "registry.db", 12, ["a", "b", "c"]
    writers = {name: writer(path, name, count) for name in names}
    numbers = {name: numbers_of(*writer_process) for name, writer_process in writers.items()}
    stored = texts(path)
    assert len(stored) == count * len(names)
    for name in names:
        assert [stored[number] for number in numbers[name]] == write_file(name, range(count))
        assert numbers[name] == sorted(numbers[name])


def test_processes_with_one_list_register_it_once(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    writers = [writer(path, "same", 12) for _ in range(3)]
    assert [numbers_of(*writer_process) for writer_process in writers] == [list(range(12))] * 3
    assert texts(path) == write_file("same", range(12))


def test_threads_share_one_open_registry() -> None:
    contents = [SchemaInfo(SchemaType.AVRO, text.encode()) for text in write_file("n", range(40))]
    with closing(EmbeddedRegistry(":memory:")) as registry, ThreadPoolExecutor(8) as threads:
        registry.create_namespace(SALES)
        registry.set_namespace_policies(SALES, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
        numbers = list(threads.map(lambda info: registry.put_schema(ORDERS, info), contents * 2))
        stored = registry.read(EVERYTHING).topics[ORDERS].versions
    assert numbers[:40] == numbers[40:]
    assert [version.number for version in stored] == list(range(40))
    assert [stored[number].info for number in numbers[:40]] == contents


def test_a_killed_writer_leaves_a_whole_registry(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    for wait_lines in (1, 3, 8, 15):
        process, output = writer(path, "same", 1000)
        for _ in range(wait_lines):
            output.readline()
        time.sleep(wait_lines / 1000)
        os.kill(process, signal.SIGKILL)
        assert_killed(process, output)
        stored = texts(path)
        assert stored == write_file("same", range(len(stored)))
        assert len(stored) >= wait_lines
        with sqlite3.connect(path) as opened_again:
            assert opened_again.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        opened_again.close()
