"""A realistic pull request as a real repository, for the comparison of its reports."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from command import run_json
from scratch import Scratch

CHANGED = 20
"""Topics with a row: 12 that break, one whose break is waived, 2 that are deleted, 2 of a rename, one whose strategy is relaxed, 2 compatible."""

OF_MONEY = [f"shop/sales/order{number}" for number in range(8)]
OF_STATUS = [f"shop/web/session{number}" for number in range(3)]
ALONE = "shop/web/click"
CAUSES = {
    "TYPE_MISMATCH": set(OF_MONEY),
    "MISSING_ENUM_SYMBOLS": set(OF_STATUS),
    "READER_FIELD_MISSING_DEFAULT_VALUE": {ALONE},
}
"""The three edits that break topics: 12 in all."""

WAIVED = "shop/web/page"
DELETED = ("shop/sales/legacy0", "shop/sales/legacy1")
RENAMED = ("shop/web/visit", "shop/web/visit-v2")
RELAXED = "shop/sales/audit"


def make(path: Path, *, waivers: bool = True) -> Scratch:
    """The repository with the pull request on the branch `change`, which is checked out; `main` is what it goes to."""
    repository = Scratch(path)
    approved = repository.commit(_make_approved_files(), "Approved schemas")
    repository.commit(_make_changed_files(), "Money as text, fewer states", branch="change", start=approved)
    repository.git("checkout", "-q", "change")
    if waivers:
        findings = run_json(path, "check", "--base", "main", code=100)["findings"]
        repository.commit({"waivers.yaml": _make_waivers(findings)}, "Waivers", branch="change")
        repository.git("reset", "-q", "--hard")
    return repository


def _make_waivers(findings: list[dict[str, Any]]) -> str:
    """Make a valid and an expired waiver of a broken topic."""
    today = datetime.now(UTC).date()
    return "".join(
        f"- rule: {finding['rule']}\n  topic: {finding['topic']}\n  fingerprint: {finding['fingerprint']}\n"
        f"  reason: nobody ever wrote it\n  owner: team-web\n  until: {until}\n"
        for finding in findings
        for topic, until in ((WAIVED, today + timedelta(days=30)), (ALONE, today - timedelta(days=30)))
        if (finding["topic"] or "").endswith(topic) and finding["fingerprint"] and finding["verdict"] == "data"
    )


def _record(name: str, *fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": [*fields]}, indent=2)


def _make_field(name: str, of: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": of, **more}


def _make_topic(name: str, references: str = "", more: str = "") -> str:
    file = name.rpartition("/")[2]
    return f"topic: {name}\nowner: team-{name.split('/')[1]}\n{more}schema: {{type: AVRO, definition: {file}.avsc{references}}}\n"


def _make_enum(*symbols: str, name: str = "Status") -> dict[str, Any]:
    return {"type": "enum", "name": name, "namespace": "shop", "symbols": [*symbols]}


def _make_path(topic: str, suffix: str) -> str:
    return f"namespaces/{topic.partition('/')[2]}{suffix}"


def _make_approved_files() -> dict[str, str | bytes | None]:
    files: dict[str, str | bytes | None] = {
        "schemactl.yaml": "version: 1\nrequire_declared_namespaces: true\n",
        "namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL_TRANSITIVE\n",
        "namespaces/web.yaml": "namespace: shop/web\nschema_compatibility_strategy: BACKWARD\n",
        "namespaces/common/money.avsc": _record(
            "Money", _make_field("amount", "long"), _make_field("currency", "string")
        ),
        "namespaces/common/status.avsc": json.dumps(_make_enum("OPEN", "ACTIVE", "CLOSED"), indent=2),
    }

    def add(topic: str, definition: str, **more: str) -> None:
        files[_make_path(topic, ".yaml")] = _make_topic(topic, **more)
        files[_make_path(topic, ".avsc")] = definition

    for number, topic in enumerate(OF_MONEY):
        add(
            topic,
            _record(f"Order{number}", _make_field("id", "string"), _make_field("price", "shop.Money")),
            references=", references: [../common/money.avsc]",
        )
    for number, topic in enumerate(OF_STATUS):
        add(
            topic,
            _record(f"Session{number}", _make_field("user", "string"), _make_field("status", "shop.Status")),
            references=", references: [../common/status.avsc]",
        )
    add(ALONE, _record("Click", _make_field("url", "string")))
    add(WAIVED, _record("Page", _make_field("kind", _make_enum("HOME", "CART", "OLD", name="Kind"))))
    for number, topic in enumerate(DELETED):
        add(topic, _record(f"Legacy{number}", _make_field(f"value{number}", "bytes")))
    add(RENAMED[0], _record("Visit", _make_field("page", "string"), _make_field("seconds", "long")))
    add(RELAXED, _record("Audit", _make_field("who", "string")))
    for number in range(2):
        add(f"shop/sales/item{number}", _record(f"Item{number}", _make_field("sku", "string")))
    for number in range(3):
        add(f"shop/sales/same{number}", _record(f"Same{number}", _make_field("is", "boolean")))
    return files


def _make_changed_files() -> dict[str, str | bytes | None]:
    files: dict[str, str | bytes | None] = {
        "namespaces/common/money.avsc": _record(
            "Money", _make_field("amount", "string"), _make_field("currency", "string")
        ),
        "namespaces/common/status.avsc": json.dumps(_make_enum("OPEN", "CLOSED"), indent=2),
        _make_path(ALONE, ".avsc"): _record("Click", _make_field("url", "string"), _make_field("button", "int")),
        _make_path(WAIVED, ".avsc"): _record("Page", _make_field("kind", _make_enum("HOME", "CART", name="Kind"))),
        _make_path(RELAXED, ".yaml"): _make_topic(RELAXED, more="schema_compatibility_strategy: ALWAYS_COMPATIBLE\n"),
        _make_path(RENAMED[0], ".yaml"): None,
        _make_path(RENAMED[0], ".avsc"): None,
        _make_path(RENAMED[1], ".yaml"): _make_topic(RENAMED[1], more=f"renamed_from: {RENAMED[0]}\n"),
        _make_path(RENAMED[1], ".avsc"): _record(
            "Visit", _make_field("page", "string"), _make_field("seconds", "long")
        ),
    }
    for topic in DELETED:
        files |= {_make_path(topic, ".yaml"): None, _make_path(topic, ".avsc"): None}
    for number in range(2):
        optional = _make_field("colour", ["null", "string"], default=None)
        files[_make_path(f"shop/sales/item{number}", ".avsc")] = _record(
            f"Item{number}", _make_field("sku", "string"), optional
        )
    return files
