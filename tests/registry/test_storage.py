"""Every storage, including the documented example, fulfills the contract and supports a registry."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemactl.core.errors import RegistryError, SchemaRejected, UsageError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults
from schemactl.core.project import Target
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.registry import open_registry
from schemactl.registry.embedded import LARGEST_BYTES, EmbeddedRegistry, entry, version
from schemactl.registry.interface import Registry, Scope
from schemactl.registry.storage import Database, SchemaStorage, SqliteStorage, StoredSchema, number_of
from schemactl.registry.storage_contract import StorageContract

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "storage.md"
SALES = NamespaceName("shop", "sales")
ORDERS = TopicName("shop", "sales", "orders")


def documented() -> str:
    """The example storage of docs/how-to/storage.md."""
    (text,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "class FolderStorage" in block
    ]
    return str(text)


EXAMPLE: dict[str, Any] = {}
exec(documented(), EXAMPLE)  # noqa: S102  the page's own example


class TestMemory(StorageContract):
    """The contract, in memory."""

    def open_storage(self) -> SchemaStorage:
        return SqliteStorage(Database(":memory:"))


class InFolder(StorageContract):
    """The contract, where what is stored outlives the storage."""

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
    """Gives every entry the number 0."""

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
    (tmp_path / "folder_storage.py").write_text(documented())
    monkeypatch.syspath_prepend(str(tmp_path))
    allowed = ("folder_storage:FolderStorage", " folder_storage:Other", "no_such_module:Storage")
    monkeypatch.setenv("SCHEMACTL_ALLOW_STORAGE", ",".join(allowed))
    yield "folder_storage"
    sys.modules.pop("folder_storage", None)


def opened(url: str, folder: Path) -> Registry:
    return open_registry(Target("t", url), release=Release.R4_0, defaults=BrokerDefaults(), folder=folder)


def test_a_storage_of_ones_own_is_opened_by_its_url(module: str, tmp_path: Path) -> None:
    url = f"{module}:FolderStorage?metadata=metadata.db&path=my%20schemas"
    with closing(opened(url, tmp_path)) as registry:
        registry.create_namespace(SALES)
        numbers = [registry.put_schema(ORDERS, SchemaInfo(SchemaType.STRING)) for _ in range(2)]
        assert (numbers, registry.delete_schema(ORDERS), registry.url) == ([0, 0], 1, url)
    with closing(opened(url, tmp_path)) as registry:
        catalog = registry.read(Scope(frozenset({SALES}), frozenset({ORDERS})))
        assert [(version.number, version.info) for version in catalog.topics[ORDERS].versions] == [
            (0, SchemaInfo(SchemaType.STRING)),
            (1, None),
        ]
        assert list(catalog.namespaces) == [SALES]
        assert registry.everything() == Scope(frozenset({SALES}), frozenset({ORDERS}))
    assert (tmp_path / "my schemas").is_dir()
    assert (tmp_path / "metadata.db").is_file()


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("url", "kind", "what"),
    [
        ("folder_storage:FolderStorage?path=x", UsageError, "does not say where namespaces"),
        ("folder_storage:FolderStorage?metadata=m.db", UsageError, "does not take these options"),
        ("folder_storage:Other?metadata=m.db", RegistryError, "cannot be imported"),
        ("no_such_module:Storage?metadata=m.db", RegistryError, "cannot be imported"),
    ],
)
def test_an_impossible_storage_is_one_error(tmp_path: Path, url: str, kind: type[Exception], what: str) -> None:
    with pytest.raises(kind, match=what):
        opened(url, tmp_path)
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize(
    "allowed", [None, "", "folder_storage", "folder_storage:", "folder_storage:Folder", "x:FolderStorage", "*"]
)
def test_a_storage_that_nobody_allowed_by_its_full_name_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str | None
) -> None:
    (tmp_path / "folder_storage.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("SCHEMACTL_ALLOW_STORAGE", raising=False)
    if allowed is not None:
        monkeypatch.setenv("SCHEMACTL_ALLOW_STORAGE", allowed)
    with pytest.raises(RegistryError, match="storage folder_storage:FolderStorage is code") as raised:
        opened("folder_storage:FolderStorage?metadata=m.db&path=x", tmp_path)
    assert "SCHEMACTL_ALLOW_STORAGE=folder_storage:FolderStorage" in raised.value.fix


def test_a_registry_in_memory_is_gone_with_it(tmp_path: Path) -> None:
    with closing(opened("memory:", tmp_path)) as registry:
        registry.create_namespace(SALES)
        assert registry.put_schema(ORDERS, SchemaInfo(SchemaType.STRING)) == 0
    with closing(opened("memory:", tmp_path)) as registry:
        assert registry.everything() == Scope(frozenset(), frozenset())
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
    stored = version(StoredSchema(entry(info, 5), 3))
    assert (stored.info, stored.number, stored.timestamp_ms) == (info, 3, 5)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"type": "NOPE", "schema": "", "timestamp": 1}', b"\xff"])
def test_an_entry_of_something_else_is_one_error(data: bytes) -> None:
    with pytest.raises(RegistryError, match="entry 7 of the schema storage cannot be read"):
        version(StoredSchema(data, 7))


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
