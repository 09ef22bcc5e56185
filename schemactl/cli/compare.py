"""`compare`: judge definitions on JSON lines."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from schemactl.cli.context import Context
from schemactl.cli.json_lines import Answer, Request, answer_standard_input
from schemactl.cli.parser import add_options
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.json_values import BreakageView, to_json
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import OPTIONAL_CHECKERS, ProtoCategory
from schemactl.core.schema import NO_DATA, Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions

_COMPARE_EPILOG: Final = """\
reads one JSON object per line and writes one per line, in the same order; a line that cannot be parsed gets an `error`:
  {"id": "7", "strategy": "BACKWARD",
   "existing": [{"type": "AVRO", "schema": "<text>", "properties": {}}, ... oldest first],
   "new": {"type": "AVRO", "schema": "<text>", "properties": {}}}
  {"id": "7", "broker": "incompatible", "version": null, "test": "incompatible", "data": "breaking",
   "incompatibilities": [{"rule": ..., "pointer": ..., "direction": "new_reads_old", "against": 0}], "misread": [], "values": "changed",
   "check": "breaking"}

`data` and `incompatibilities` are by the specification of the schema language. `misread` lists what a reader decodes to another value
than the written one. `values` is `kept` if `incompatibilities` and `misread` are empty, else `changed`, and null if `data` is null.
`check` is the verdict on data
that `check` gives: also breaking for misread values, and not_judged under a strategy that protects no reader, where `data` is compatible.

`schema` is the definition's text: Avro JSON; for KEY_VALUE the admin API's {"key": ..., "value": ...}; for PROTOBUF_NATIVE
the broker's wrapper, or {"proto": "<text>", "message": "a.B"}. `schema_b64` gives raw bytes instead, null no data at all.
{"deleted": true} among `existing` is a tombstone.

examples:
  schemactl compare --pulsar 4.2 < pairs.jsonl > verdicts.jsonl
  schemactl compare --identity < pairs.jsonl          {"id", "equal": [true, false, ...]}, one for each of `existing`
  schemactl compare --fingerprint < schemas.jsonl     {"id", "schema"} in, {"id", "canonical", "crc64", "sha256"} out
"""


def configure_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare`."""
    parser.description = (
        "Check definitions in bulk, without a repository: the broker's response to an upload, and whether messages "
        "stay readable."
    )
    parser.epilog = _COMPARE_EPILOG
    parser.add_argument(
        "--pulsar",
        choices=[release.value for release in Release],
        default=Release.R4_0.value,
        help="the Pulsar release whose responses are predicted (default: 4.0)",
    )
    add_options(
        parser,
        "--checker CLASS...: an optional checker that the broker is configured with: "
        f"{', '.join(f'{name} (from {first} on)' for name, first in OPTIONAL_CHECKERS.items())}",
        choices=list(OPTIONAL_CHECKERS),
    )
    modes = parser.add_mutually_exclusive_group()
    add_options(
        modes,
        "--identity: only print which definitions in `existing` are the same version as `new`",
        "--fingerprint: only print the parsing canonical form and fingerprints of Avro schemas",
    )
    modes.add_argument(
        "--proto-rules",
        type=_parse_category,
        choices=("WIRE", "WIRE_JSON"),
        help="for PROTOBUF_NATIVE, also what buf's category finds against the latest version",
    )


def _parse_category(text: str) -> str:
    if text in ("FILE", "PACKAGE"):
        raise argparse.ArgumentTypeError(
            f"{text} is about generated code, which schemactl does not check: run `buf breaking` for it, or give WIRE or WIRE_JSON"
        )
    return text


def run_compare(args: argparse.Namespace, context: Context) -> int:  # noqa: ARG001  every command has this shape
    """Answer the lines on standard input; return 1 if one has an error, else 0."""
    from schemactl.broker.checkers import create_checkers

    if args.fingerprint:
        answer: Callable[[Request], Answer] = _compute_fingerprints
    elif args.identity:
        answer = _compare_identity
    else:
        release, optional = Release(args.pulsar), tuple(args.checker)
        create_checkers(release, optional)  # Raises UsageError if the release does not have such a checker.
        answer = partial(_judge_request, release=release, category=args.proto_rules, optional=optional)
    return answer_standard_input(answer, ahead=_compile_ahead)


def _compile_ahead(requests: Sequence[Request]) -> None:
    """Compile every `.proto` of the requests in one run of protoc."""
    from schemactl.formats import protobuf
    from schemactl.formats.json_definitions import find_json_proto

    entries = []
    for request in requests:
        existing = request.get("existing")
        entries += [request.get("new"), *(existing if isinstance(existing, list) else [])]
    protos = []
    for entry in entries:
        if isinstance(entry, dict) and entry.get("type") == SchemaType.PROTOBUF_NATIVE.name:
            proto = find_json_proto(entry.get("schema"))
            if proto:
                protos.append(proto)
    if protos:
        # An error is raised again when its line is answered.
        with contextlib.suppress(SchemactlError):
            protobuf.load("protoc").compile_all(protos)


def _judge_request(
    request: Request, *, release: Release, category: ProtoCategory | None = None, optional: tuple[str, ...] = ()
) -> Answer:
    from schemactl.comparison.compatibility import judge
    from schemactl.formats import spec
    from schemactl.formats.json_definitions import InvalidInput

    strategy = request.get("strategy")
    if not isinstance(strategy, str) or strategy not in CompatibilityStrategy.__members__:
        names = ", ".join(CompatibilityStrategy)
        raise InvalidInput(f"`strategy` is {json.dumps(strategy)}; expected one of {names}")
    existing = _parse_existing(request)
    new = _parse_new(request)
    verdict = judge(existing, new, CompatibilityStrategy(strategy), release, checkers=optional)
    # For an ambiguous alias, Java throws instead of listing incompatibilities; `data` is breaking nevertheless.
    breakages = [breakage for breakage in verdict.data if breakage.incompatibility.rule != "AMBIGUOUS_ALIAS"]
    answer: Answer = {
        "broker": verdict.broker.outcome.value,
        "version": verdict.broker.version,
        "test": verdict.test.outcome.value,
        "data": verdict.state.json,
        "incompatibilities": [to_json(BreakageView.from_breakage(breakage)) for breakage in breakages],
        "misread": [to_json(BreakageView.from_breakage(breakage)) for breakage in verdict.misread],
        "values": verdict.values,
        "check": verdict.checked,
    }
    if category:
        # The violations from the latest live version to `new`; null if one of them does not parse.
        live_versions = get_live_versions(existing)
        old = live_versions[-1].info if live_versions else None
        try:
            violations = spec(new).find_buf_violations(category, new=new, old=old) if old else ()
            answer["proto_rules"] = [
                {"rule": violation.rule, "pointer": violation.pointer, "message": violation.message}
                for violation in violations
            ]
        except InvalidSchema:
            answer["proto_rules"] = None
    return answer


def _compare_identity(request: Request) -> Answer:
    from schemactl.formats import identity
    from schemactl.formats.json_definitions import read_json_definition

    key = identity(read_json_definition(request.get("new"), "new"))

    def is_equal(info: SchemaInfo) -> bool:
        try:
            return identity(info) == key
        except InvalidSchema:
            return False

    return {"equal": [version.info is not None and is_equal(version.info) for version in _parse_existing(request)]}


def _compute_fingerprints(request: Request) -> Answer:
    from schemactl.formats.avro.json_text import canonical_form, schema_fingerprints
    from schemactl.formats.avro.parser import parse
    from schemactl.formats.json_definitions import InvalidInput

    text = request.get("schema")
    if not isinstance(text, str):
        raise InvalidInput("`schema` is not a string")
    form = canonical_form(parse(text, Release.R5_0))
    crc64, sha256 = schema_fingerprints(form)
    return {"canonical": form, "crc64": crc64, "sha256": sha256}


def _parse_new(request: Request) -> SchemaInfo:
    """Return the definition under `new`. A KEY_VALUE text on which brokers fail has no data, since they fail on that as well."""
    from schemactl.formats.json_definitions import read_json_definition, read_json_properties

    new = request.get("new")
    try:
        return read_json_definition(new, "new")
    except InvalidSchema:
        if not isinstance(new, dict) or new["type"] != SchemaType.KEY_VALUE.name:
            raise
        return SchemaInfo(SchemaType.KEY_VALUE, NO_DATA, read_json_properties(new, "new"))


def _parse_existing(request: Request) -> list[SchemaVersion]:
    from schemactl.formats.json_definitions import InvalidInput, read_json_definition

    existing = request.get("existing")
    if not isinstance(existing, list):
        raise InvalidInput("`existing` is not a list of definitions")
    versions = []
    for number, entry in enumerate(existing):
        is_tombstone = isinstance(entry, dict) and entry.get("deleted") is True
        info = None if is_tombstone else read_json_definition(entry, f"existing[{number}]")
        versions.append(SchemaVersion(number, info))
    return versions
