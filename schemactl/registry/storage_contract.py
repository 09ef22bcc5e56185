"""Test the requirements of every `SchemaStorage` against your own storage (see docs/how-to/serve.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from schemactl.registry.storage import Decide, SchemaStorage, StoredSchema


class StorageContract:
    """Base of a pytest class for your storage. Each test opens a new storage."""

    def open_storage(self) -> SchemaStorage:
        """Return a new, empty storage that has not been started."""
        raise NotImplementedError

    def open_again(self, closed: SchemaStorage) -> SchemaStorage | None:
        """Return a new storage, not started, with the entries of `closed`, or None if these ended with `closed`."""
        del closed
        return None

    def test_numbers_count_from_zero_under_each_key(self) -> None:
        with self._start_storage() as storage:
            assert [storage.put("t/n/a", _append(b"x")), storage.put("t/n/a", _append(b"x"))] == [0, 1]
            assert storage.put("t/n/b", _append(b"y")) == 0
            assert tuple(storage.get_all("t/n/a")) == _number_entries(b"x", b"x")
            assert tuple(storage.get_all("t/n/b")) == _number_entries(b"y")

    def test_a_decision_sees_everything_stored_oldest_first(self) -> None:
        with self._start_storage() as storage:
            calls: list[Sequence[StoredSchema]] = []

            def decide(stored: Sequence[StoredSchema]) -> bytes:
                calls.append(tuple(stored))
                return bytes([len(stored)])

            for _ in range(3):
                storage.put("t/n/a", decide)
            assert calls == [_number_entries(), _number_entries(b"\0"), _number_entries(b"\0", b"\1")]

    def test_decision_for_none_stores_nothing(self) -> None:
        with self._start_storage() as storage:
            assert storage.put("t/n/a", lambda _: None) is None
            assert tuple(storage.get_all("t/n/a")) == ()
            assert list(storage.keys()) == []

    def test_exception_of_a_decision_is_raised_and_nothing_is_stored(self) -> None:
        with self._start_storage() as storage:
            storage.put("t/n/a", _append(b"first"))

            def decide(_: Sequence[StoredSchema]) -> bytes:
                raise _DecisionError

            try:
                storage.put("t/n/a", decide)
            except _DecisionError:
                pass
            else:
                raise AssertionError("the exception of the decision was not raised")
            assert tuple(storage.get_all("t/n/a")) == _number_entries(b"first")
            assert storage.put("t/n/a", _append(b"second")) == 1

    def test_get_returns_the_entry_of_a_number_or_the_latest(self) -> None:
        with self._start_storage() as storage:
            assert storage.get("t/n/a") is None
            for data in (b"zero", b"one"):
                storage.put("t/n/a", _append(data))
            assert storage.get("t/n/a") == StoredSchema(b"one", 1)
            assert storage.get("t/n/a", 0) == StoredSchema(b"zero", 0)
            assert [storage.get("t/n/a", number) for number in (2, -1)] == [None, None]

    def test_a_deleted_key_counts_from_zero_again(self) -> None:
        with self._start_storage() as storage:
            for key in ("t/n/a", "t/n/a", "t/n/other"):
                storage.put(key, _append(b"x"))
            assert storage.delete("t/n/a") is True
            assert storage.delete("t/n/a") is False
            assert tuple(storage.get_all("t/n/a")) == ()
            assert storage.put("t/n/a", _append(b"new")) == 0
            assert tuple(storage.get_all("t/n/other")) == _number_entries(b"x")

    def test_keys_have_at_least_one_entry(self) -> None:
        with self._start_storage() as storage:
            for key in ("t/n/b", "t/n/a", "t/n/b", "t/n/gone"):
                storage.put(key, _append(b"x"))
            storage.delete("t/n/gone")
            assert sorted(storage.keys()) == ["t/n/a", "t/n/b"]

    def test_entries_are_returned_byte_for_byte(self) -> None:
        entries = (b"", bytes(range(256)), b"\r\n\0", "Größe ✓".encode(), b"5 MiB".ljust(5 << 20))
        with self._start_storage() as storage:
            for data in entries:
                storage.put("t/n/a", _append(data))
            assert tuple(storage.get_all("t/n/a")) == _number_entries(*entries)

    def test_keys_may_contain_every_character_of_a_topic(self) -> None:
        keys = [f"tenant/name-space/{name}" for name in ("Größe ✓", "a'b\"c;%s?*", "..", ".", "A", "a", "x" * 150)]
        with self._start_storage() as storage:
            for key in keys:
                storage.put(key, _append(key.encode()))
            assert sorted(storage.keys()) == sorted(keys)
            assert [tuple(storage.get_all(key)) for key in keys] == [_number_entries(key.encode()) for key in keys]

    def test_the_version_of_a_message_is_its_number(self) -> None:
        with self._start_storage() as storage:
            number = (258).to_bytes(8, "big")
            assert storage.version_from_bytes(number) == 258
            # Before Pulsar 2.4, the buffer had 64 bytes.
            assert storage.version_from_bytes(number + bytes(56)) == 258

    def test_concurrent_puts_store_each_entry_once(self) -> None:
        with self._start_storage() as storage, ThreadPoolExecutor(8) as threads:

            def put(number: int) -> int | None:
                # The entry has the length of its list, so two calls with the same list would differ from the expectation.
                return storage.put("t/n/a", lambda stored: f"{number} after {len(stored)}".encode())

            numbers = list(threads.map(put, range(100)))
            entries = tuple(storage.get_all("t/n/a"))
        assert sorted(number for number in numbers if number is not None) == list(range(100))
        assert [entry.data for entry in entries] == [
            f"{numbers.index(version)} after {version}".encode() for version in range(100)
        ]

    def test_entries_stay_after_reopening(self) -> None:
        storage = self.open_storage()
        storage.start()
        storage.put("t/n/a", _append(b"x"))
        storage.close()
        reopened = self.open_again(storage)
        if reopened is not None:
            reopened.start()
            assert reopened.put("t/n/a", _append(b"y")) == 1
            assert tuple(reopened.get_all("t/n/a")) == _number_entries(b"x", b"y")
            reopened.close()

    @contextmanager
    def _start_storage(self) -> Iterator[SchemaStorage]:
        storage = self.open_storage()
        storage.start()
        try:
            yield storage
        finally:
            storage.close()


class _DecisionError(Exception):
    """An exception that storages do not raise."""


def _append(data: bytes) -> Decide:
    return lambda _: data


def _number_entries(*entries: bytes) -> Sequence[StoredSchema]:
    return tuple(StoredSchema(data, version) for version, data in enumerate(entries))
