"""A topic with several kinds of events in Git, and its messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scratch import Scratch

NAME = "persistent://shop/web/users"
KINDS = ("user_created", "user_address_changed", "user_enquiry_received")
ID: dict[str, Any] = {"name": "id", "type": "long"}
ZIP: dict[str, Any] = {"name": "zip", "type": ["null", "string"], "default": None}


def define(name: str, *fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": [ID, *fields]})


def declare(*kinds: str) -> str:
    lines = "".join(f"  {kind}: {{type: AVRO, definition: {kind}.avsc}}\n" for kind in kinds)
    return f"topic: shop/web/users\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nschemas:\n{lines}"


def make_repository(folder: Path) -> Scratch:
    """Version 0 of a former schema, 1 to 3 of three kinds, 4 and 5 of the first two; then the first kind is removed."""
    scratch = Scratch(folder)
    project = 'version: 1\nroots: [topics]\napproved: main\ngenerate: {package: kinds_in_spark, spark: "4.1"}\n'
    one = "topic: shop/web/users\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nschema: {type: AVRO, definition: old.avsc}\n"
    scratch.commit({"schemactl.yaml": project, "topics/namespace.yaml": "namespace: shop/web\n"})
    scratch.commit({"topics/users.yaml": one, "topics/old.avsc": define("Old")})
    scratch.commit(
        {
            "topics/users.yaml": declare(*KINDS),
            "topics/old.avsc": None,
            "topics/user_created.avsc": define("userCreated"),
            "topics/user_address_changed.avsc": define("userAddressChanged", ZIP),
            "topics/user_enquiry_received.avsc": define("userEnquiryReceived", {"name": "text", "type": "string"}),
        }
    )
    scratch.commit(
        {
            "topics/user_created.avsc": define("userCreated", {"name": "name", "type": "string", "default": "?"}),
            "topics/user_address_changed.avsc": define(
                "userAddressChanged", {**ZIP, "name": "code", "aliases": ["zip"]}
            ),
        }
    )
    scratch.commit({"topics/users.yaml": declare(*KINDS[1:]), "topics/user_created.avsc": None})
    scratch.flush()
    return scratch


MESSAGES: list[tuple[bytes | None, int | None]] = [
    (b"\x02", 1),
    (b"\x04\x02\x0299", 2),
    (b"\x06\x04hi", 3),
    (b"\x08\x06Ann", 4),
    (b"\x0a\x02\x0477", 5),
    # Rejected: of no kind, of no known version, without a version, damaged, without a payload.
    (b"\x0c", 0),
    (b"\x0e", 9),
    (b"\x10", None),
    (b"\x12\x08Ann", 4),
    (None, 2),
]
"""Payload and version number of each message; the last five are rejected."""
