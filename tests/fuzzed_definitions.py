"""Damaged definitions, descriptors, defaults and properties, from a seed."""

from __future__ import annotations

import base64
import copy
import json
import random
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from random_avro import Maker
from random_protobuf import ProtoMaker, read_json_definition

_SCALARS: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**63, 2**70, 1.5, -0.0, 1e308),
    *("", "null", "int", "R1", "E2", "a.b", ".R1", "1x", "é", "\ud800", "\x00", "x" * 300, "record", "decimal"),
)
_VALUES: tuple[Any, ...] = (
    *_SCALARS,
    [],
    {},
    ["null"],
    ["null", "null"],
    [[]],
    {"type": "record"},
    {"type": "enum", "name": "E", "symbols": []},
    {"type": "fixed", "name": "F", "size": 0},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 9},
    {"type": {"type": "int"}},
    {"type": "array", "items": {"type": "map", "values": "R1"}},
)
_KEYS = (
    *(
        "type",
        "name",
        "namespace",
        "fields",
        "symbols",
        "items",
        "values",
        "size",
        "default",
        "aliases",
        "doc",
        "order",
    ),
    *("logicalType", "precision", "scale", "avro.java.string", "spark.sql.catalyst.type", "", "é"),
)
_LOGICAL_TYPES = (
    "decimal",
    "uuid",
    "date",
    "time-millis",
    "timestamp-nanos",
    "duration",
    "local-timestamp-micros",
    "x",
)
_TYPES = ("AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE", "STRING", "INT64", "NONE", "BYTES", "AUTO", "x")
_STRATEGIES = ("BACKWARD", "FORWARD", "FULL", "FULL_TRANSITIVE", "ALWAYS_COMPATIBLE", "UNDEFINED", "x")
_PROTO_TEXTS = (
    "",
    ".",
    "r.M",
    ".r.M1",
    "M1",
    ".r.E",
    "google.protobuf.Timestamp",
    "größe",
    "1x",
    "a.b",
    "nan",
    "-1",
    "C",
)


def make_descriptor_set(file: FileDescriptorProto) -> bytes:
    """Return the bytes of a descriptor set with a file and the files that it imports."""
    return base64.b64decode(json.loads(read_json_definition(file, "").text)["fileDescriptorSet"])


class Fuzzer:
    """Makes damaged input of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self._seed = seed

    def make_avro(self) -> Any:
        """Return an Avro definition with some parts damaged."""
        schema = copy.deepcopy(Maker(self.random.randrange(1000)).record())
        for _ in range(self.random.choice((0, 1, 1, 2, 4))):
            schema = self._damage_value(schema)
        return schema

    def make_avro_text(self) -> str:
        """Return the text of an Avro definition, rarely cut or without a meaning."""
        text = json.dumps(self.make_avro())
        if self.random.random() < 0.05:
            return text[: self.random.randrange(len(text) + 1)]
        return "[" * 300 + text + "]" * 300 if self.random.random() < 0.02 else text

    def _damage_value(self, root: Any) -> Any:
        holders: list[tuple[Any, Any]] = []
        pending = [root]
        while pending:
            value = pending.pop()
            if isinstance(value, dict | list):
                items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
                holders += [(value, key) for key, _ in items]
                pending += [item for _, item in items]
        if not holders:
            return self.random.choice(_VALUES)
        holder, key = self.random.choice(holders)
        pick = self.random.randrange(8)
        if pick == 0 and isinstance(holder, dict):
            del holder[key]
        elif pick == 1 and isinstance(holder, dict):
            holder[self.random.choice(_KEYS)] = copy.deepcopy(self.random.choice(_VALUES))
        elif pick in (2, 3) and isinstance(holder, dict) and "type" in holder:
            holder["default"] = copy.deepcopy(self.random.choice(_VALUES))
        elif pick == 4 and isinstance(holder, dict) and "type" in holder:
            holder["type"] = {"type": holder["type"], "logicalType": self.random.choice(_LOGICAL_TYPES)}
        elif pick == 5 and isinstance(holder, list):
            holder.append(copy.deepcopy(self.random.choice(holder)))
        else:
            holder[key] = copy.deepcopy(self.random.choice(_VALUES))
        return root

    def make_descriptor(self) -> tuple[FileDescriptorProto, str]:
        """Return a file of messages with some parts damaged, and the name of its root."""
        maker = ProtoMaker(self.random.randrange(1000), groups=True)
        file = FileDescriptorProto()
        file.CopyFrom(maker.file)
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            self._damage_descriptor(file)
        return file, self.random.choice((f"r.{maker.root}", f"r.{maker.root}", str(maker.root), "r.None"))

    def _damage_descriptor(self, file: FileDescriptorProto) -> None:
        messages = [*file.message_type, *(nested for message in file.message_type for nested in message.nested_type)]
        fields = [field for message in messages for field in message.field]
        pick = self.random.randrange(9)
        text = self.random.choice(_PROTO_TEXTS)
        if pick == 0:
            file.syntax = self.random.choice(("proto2", "proto3", "editions", ""))
        elif pick == 1:
            file.package = text
        elif pick == 2:
            file.dependency.append(text)
        elif messages and pick == 3:
            self.random.choice(messages).name = text
        elif fields:
            field = self.random.choice(fields)
            match pick:
                case 4:
                    field.type_name = text
                case 5:
                    field.type = self.random.randrange(1, 19)  # type: ignore[assignment]  # any number
                case 6:
                    field.default_value = text
                case 7:
                    field.number = self.random.choice((-1, 0, 1, 19000, 2**29, 2**31 - 1))
                case _:
                    field.label = self.random.randrange(1, 4)  # type: ignore[assignment]  # any number

    def make_native_text(self) -> str:
        """Return the text of a PROTOBUF_NATIVE definition."""
        file, root = self.make_descriptor()
        data = make_descriptor_set(file)
        if self.random.random() < 0.05:
            data = data[: self.random.randrange(len(data) + 1)]
        wrapper: Any = {
            "fileDescriptorSet": base64.b64encode(data).decode(),
            "rootMessageTypeName": root,
            "rootFileDescriptorName": file.name,
        }
        if self.random.random() < 0.1:
            wrapper = self._damage_value(wrapper)
        return json.dumps(wrapper)

    def make_schema(self) -> Any:
        """Return a definition as a line of `compare` has it."""
        if self.random.random() < 0.03:
            return copy.deepcopy(self.random.choice(_VALUES))
        kind = self.random.choice(_TYPES[:5] * 3 + _TYPES)
        schema: Any = self.make_native_text() if kind == "PROTOBUF_NATIVE" else self.make_avro_text()
        properties: Any = {}
        if kind == "KEY_VALUE":
            schema = json.dumps({"key": self.random.choice(("", self.make_avro())), "value": self.make_avro()})
            properties = {
                "key.schema.type": self.random.choice(_TYPES),
                "value.schema.type": self.random.choice(("AVRO", "JSON", *_TYPES)),
                "kv.encoding.type": self.random.choice(("INLINE", "SEPARATED", "inline", "")),
                "value.schema.properties": self.random.choice(("{}", "[]", '{"a": 1}', "{")),
            }
        if self.random.random() < 0.1:
            properties = self._damage_value({**properties, "__charset": self.random.choice(("UTF-8", "x", ""))})
        value = {"type": kind, "schema": schema, "properties": properties}
        return self._damage_value(value) if self.random.random() < 0.05 else value

    def make_request(self) -> dict[str, Any]:
        """Return a line of `compare`."""
        new = self.make_schema()
        existing = [copy.deepcopy(new) if self.random.random() < 0.3 else self.make_schema() for _ in range(2)]
        if self.random.random() < 0.1:
            existing.append({"deleted": True})
        return {"id": self._seed, "strategy": self.random.choice(_STRATEGIES), "existing": existing, "new": new}

    def make_files(self) -> dict[str, str | bytes]:
        """Return declarations of topics with damaged definitions."""
        files: dict[str, str | bytes] = {}
        for name, kind in (("a", "AVRO"), ("j", "JSON"), ("p", "PROTOBUF")):
            files[f"topics/{name}.avsc"] = self.make_avro_text()
            files[f"topics/{name}.yaml"] = f"topic: t/n/{name}\nschema: {{type: {kind}, definition: {name}.avsc}}\n"
        file, root = self.make_descriptor()
        files["topics/d.binpb"] = make_descriptor_set(file)
        schema = f"{{type: PROTOBUF_NATIVE, definition: d.binpb, message: {root}}}"
        files["topics/d.yaml"] = f"topic: t/n/d\nschema: {schema}\n"
        files["topics/k.avsc"] = self.make_avro_text()
        halves = "encoding: INLINE, key: {type: STRING}, value: {type: AVRO, definition: k.avsc}"
        files["topics/k.yaml"] = f"topic: t/n/k\nschema: {{type: KEY_VALUE, {halves}}}\n"
        return files
