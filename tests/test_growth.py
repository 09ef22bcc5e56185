"""Foreign texts are read in time that grows in proportion to their length.

Texts of repeated pieces, of which many are never closed, double in length, and the time that a parser takes must not grow by
more than three times with each doubling. Times are CPU times, and start where they can be told from noise.
"""

from __future__ import annotations

import gc
import io
import json
import random
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import _lru_cache_wrapper, cache
from typing import Any, Final

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from schemactl.broker import legacy_json
from schemactl.broker.exceptions import parse_message
from schemactl.cli.json_lines import answer_lines
from schemactl.cli.topic_selection import parse_version_bytes
from schemactl.codec import avro_schema
from schemactl.codec.definition import InvalidDefinition
from schemactl.codec.wire_format import join_pair
from schemactl.core.errors import SchemactlError, find_close_match
from schemactl.core.escaping import escape_path
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.declare import yaml_parser
from schemactl.declare.definition import gather
from schemactl.declare.document import read_documents
from schemactl.declare.files import decode, resolve
from schemactl.declare.project import read_project
from schemactl.declare.source_location import JsonText, place
from schemactl.declare.strict_json import read_json
from schemactl.formats import SPECS, key_value
from schemactl.formats.avro.json_text import InvalidAvro, read
from schemactl.formats.avro.parser import find_problems, parse
from schemactl.formats.avro.schema import JavaException
from schemactl.formats.protobuf import load
from schemactl.registry.pulsar.responses import Reply, can_succeed_later, find_exception
from schemactl.registry.pulsar.responses import error_message as broker_words
from schemactl.registry.server import http
from schemactl.registry.server.http import BadRequest, ErrorPage

pytestmark = pytest.mark.timed

Parser = Callable[[str], object]


def _parse_documents(front: str) -> Parser:
    return lambda text: read_documents("a.yaml", (front + text).encode())


def _without_libyaml(text: str) -> object:
    return yaml_parser.compose("a.yaml", text.encode(), yaml_parser.PythonComposer)


def _in_yaml(text: str) -> object:
    front = "topic: a/b/c\nschema:\n  type: AVRO\n  definition: |\n    "
    return read_documents("a.yaml", (front + text.replace("\n", "\n    ")).encode())


def _parse_json(text: str) -> object:
    return read_json(JsonText(text, lambda offset: place("a.avsc", text, offset)))


def _parse_refused(text: str) -> object:
    try:
        return parse(text, Release.R4_0, validate_defaults=True)
    except InvalidAvro as problem:
        return parse_message(text, problem, Release.R4_0)


def _in_avro(form: str, read: Parser) -> Parser:
    return lambda text: read(form.replace("$", json.dumps(text)))


def _parse_native(text: str) -> object:
    names = ("fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName")
    return load("definition").parse(json.dumps(dict.fromkeys(names, text)).encode())


def _key_value(text: str) -> object:
    data = join_pair(text.encode(), text.encode())
    return key_value.split(SchemaInfo(SchemaType.KEY_VALUE, data, {"key.schema.properties": text}))


def _answer_lines(text: str) -> object:
    return answer_lines(io.BytesIO(text.encode(errors="replace")), io.StringIO(), lambda _: {})


def _parse_root(text: str) -> object:
    file = FileDescriptorProto(name="a.proto", package=f"{text[: len(text) // 2]}b")
    encoded = b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode()
    names = {"rootMessageTypeName": text, "rootFileDescriptorName": "a.proto"}
    return load("definition").parse(json.dumps({"fileDescriptorSet": encoded, **names}).encode())


def _parse_imports(text: str) -> object:
    """A file that imports as many others as there are references, none of which it finds."""
    names = [f"{text[:20]}{number}.proto" for number in range(len(text) // 20)]
    imports = "".join(f'import "{name}";\n' for name in names).encode()
    return gather("a/b.proto", lambda path: imports if path == "a/b.proto" else b"", [f"c/x{name}" for name in names])


def _parse_answer(content_type: str, front: str = "") -> Parser:
    def words_of(text: str) -> object:
        reply = Reply(500, "Internal", content_type, (front + text).encode())
        return broker_words(reply), find_exception(reply), can_succeed_later(reply)

    return words_of


_NUMBER_FIELD: Final = '{"type":"record","name":"A","fields":[{"name":"a","type":"double","default":$}]}'
_NAMED: Final = '{"type":"record","name":$,"fields":[]}'
_REFERENCE: Final = '{"type":"record","name":"A","fields":[{"name":"a","type":$}]}'

PARSERS: Final[dict[str, Parser]] = {
    "YAML": _parse_documents(""),
    "YAML without libyaml": _without_libyaml,
    "a topic in YAML": _parse_documents("topic: "),
    "properties in YAML": _parse_documents("topic: a/b/c\nschema: {type: STRING, properties: {"),
    "Avro in YAML": _in_yaml,
    "the project file": lambda text: read_project("schemactl.yaml", f"version: 1\n{text}".encode()),
    "targets of the project file": lambda text: read_project(
        "schemactl.yaml", f"version: 1\ntargets: {{{text}".encode()
    ),
    "JSON with places": _parse_json,
    "Avro's JSON": read,
    "Avro": lambda text: parse(text, Release.R4_0),
    "Avro with its defaults": lambda text: list(find_problems(text, Release.R5_0)),
    "Java's words for Avro": _parse_refused,
    "numbers in Avro": _in_avro(_NUMBER_FIELD, lambda text: list(find_problems(text, Release.R4_0))),
    "names in Avro": _in_avro(_NAMED, lambda text: parse(text, Release.R5_0)),
    "references in Avro": _in_avro(_REFERENCE, lambda text: parse(text, Release.R4_0)),
    "Avro in the codec": avro_schema.parse,
    "numbers in the codec": _in_avro(_NUMBER_FIELD, avro_schema.parse),
    "names in the codec": _in_avro(_NAMED, avro_schema.parse),
    "imports of protobuf": lambda text: gather("a/b.proto", lambda _: text.encode(), ["c/x.proto"]),
    "many imports of protobuf": _parse_imports,
    "a descriptor set": _parse_native,
    "the root of a descriptor set": _parse_root,
    "a broker's words": _parse_answer("text/plain", "An unexpected error occurred in the server Message:"),
    "a broker's page": _parse_answer("text/html", "<th>MESSAGE:</th><td>"),
    "a broker's JSON": _parse_answer("application/json", '{"reason":"An unexpected error occurred in the server'),
    "uploads": lambda text: http.read(text.encode()),
    "legacy JSON": lambda text: legacy_json.read_legacy_definition(text.encode()),
    "numbers in legacy JSON": _in_avro(
        '{"type":"number","maximum":$}', lambda text: legacy_json.read_legacy_definition(text.encode())
    ),
    "a KEY_VALUE's text": lambda text: SPECS[SchemaType.KEY_VALUE].from_text(SchemaType.KEY_VALUE, text, {}),
    "a KEY_VALUE's value": lambda text: SPECS[SchemaType.KEY_VALUE].from_text(
        SchemaType.KEY_VALUE, '{"key":"","value":' + text, {}
    ),
    "a KEY_VALUE's bytes": _key_value,
    "JSON lines": _answer_lines,
    "topics": lambda text: TopicName.parse(f"a/b/{text}"),
    "namespaces": lambda text: NamespaceName.parse(f"a/{text}"),
    "globs": lambda text: fnmatchcase(text, "*a*b*-*a*/*a*?*%*x*q"),
    "versions": parse_version_bytes,
    "paths": lambda text: resolve("a/b", text),
    "paths escaped": escape_path,
    "files": lambda text: decode("a.yaml", text.encode()),
    "near misses": lambda text: find_close_match(text, ("topic", "namespace", "is_allow_auto_update_schema")),
}

ATTACKS: Final = (
    *("a", "/* ", "//", '"', '\\"', '"a":', '{"a":', "[", "{", "- ", "---\n", "--- a\n", "\n", "\t", " "),
    *("a: ", "1", "1.", "%TAG ! x\n", "&a ", "*a ", "a: &a b\n", "- *a\n", "%", "'", "AAAA ", "import"),
    *("a.", "-partition-1", "[null,"),
)
"""Each is tried on every parser."""

PIECES: Final = (
    *("<th>MESSAGE:</th>", '"reason":"', "\nStacktrace: ", "&amp;", "&#", *ATTACKS, "*/", "/", "\\", '""'),
    *("}", "]", "[]", "{}", '{"a":1},', ",", ":", "-", "\r\n", "\r", "\n  ", "%TAG !a x\n", "!a "),
    *("%YAML 1.2\n", "|\n", ">\n", "? ", "...\n", "a: b\n", "#", "# \n", "''", "0", ".", "e", "0x", "a"),
    *("a/", "../", "_", "é", "\u2028", "\x85", "\x7f", "\U0001f600", 'import "x";', 'import\n"', "import'"),
    *("import public ", "=", "AAAA", "null", "NaN", '"null",', '{"type":', '{"type":"array","items":'),
    *('{"name":"a","type":"int"},', "<<<<<<< ", "\n=======\n", "<<: ", "0o", ".inf", "\\u0", "\\x"),
    *("topic: a/b/c\n---\n", "@", "*", "a,", "a:1,", "{a: ", "[a, ", "x: |\n  a\n", "Stacktrace:"),
    *("Message:", "<td>", "\\"),
)
"""Some of them, one after another, are repeated."""

SEQUENCES: Final = 12
"""Random ones for each parser."""

_FELT_S: Final = 0.003
"""A time that can be told from noise."""

_LARGEST: Final = 1 << 16
"""Characters: a parser that is fast at this length is fast enough at the five megabytes that a file may have."""


@cache
def _list_caches() -> list[Any]:
    """List all cached functions, so that a repeated text is read again."""
    # Objects that existed at the end of the collection of tests are frozen.
    gc.unfreeze()
    return [
        candidate
        for candidate in gc.get_objects()
        if isinstance(candidate, _lru_cache_wrapper) and str(candidate.__module__).startswith("schemactl")
    ]


def _measure_cost(parser: Parser, text: str, *, best_of: int) -> float:
    """CPU seconds, the least of some tries."""
    costs = []
    for _ in range(best_of):
        for cached_function in _list_caches():
            cached_function.cache_clear()
        start = time.process_time()
        with suppress(SchemactlError, InvalidDefinition, ValueError, JavaException, BadRequest, ErrorPage):
            parser(text)
        costs.append(time.process_time() - start)
    return min(costs)


def grows_too_much(parser: Parser, unit: str) -> bool:
    """Return whether the time for three doublings of a text of `unit`, and for one more, grows by more than three times with each.

    The last doubling is for parsers whose time stops growing when a text nests too deep.
    """
    length = 1 << 7
    while length <= _LARGEST:
        text = unit * (length // len(unit))
        felt = _measure_cost(parser, text, best_of=1)
        if felt > 1:
            # Half of the text could not be felt.
            return True
        if felt > _FELT_S and (least := _measure_cost(parser, text, best_of=3)) > _FELT_S / 2:
            return _goes_on(parser, text, least)
        length *= 2
    return False


def _goes_on(parser: Parser, text: str, least: float) -> bool:
    for times in (2, 4):
        if _measure_cost(parser, text * times, best_of=1) > 27 * least:
            return True
    much = _measure_cost(parser, text * 8, best_of=2)
    return much > 27 * least and _measure_cost(parser, text * 16, best_of=2) > 3 * much


def is_too_much(parser: Parser, unit: str) -> bool:
    """Return whether the time grows too much in all of three attempts."""
    return all(grows_too_much(parser, unit) for _ in range(3))


@pytest.mark.parametrize("name", PARSERS)
def test_the_time_to_read_a_text_grows_as_the_text_does(name: str) -> None:
    chance = random.Random(f"growth of {name}")  # noqa: S311  test data
    random_units = ("".join(chance.choices(PIECES, k=chance.randint(1, 3))) for _ in range(SEQUENCES))
    units = [*ATTACKS, *random_units]
    assert [unit for unit in units if is_too_much(PARSERS[name], unit)] == []


def test_a_parser_that_is_quadratic_is_found_out() -> None:
    assert grows_too_much(lambda text: [text[:length].count("a") for length in range(0, len(text), 4)], "ab")
