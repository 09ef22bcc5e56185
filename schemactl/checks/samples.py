"""Read the sample messages next to declarations, and report samples that the declared schema cannot read."""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from schemactl.checks import kinds
from schemactl.checks.check_report import CheckReport
from schemactl.checks.proposal import Comparison
from schemactl.codec import CodecError, InvalidDefinition, Options
from schemactl.codec.readable_json import to_json
from schemactl.codec.verification import judge_messages
from schemactl.codegen.codecs import get_wire_options, make_codec
from schemactl.comparison.fingerprint import compute_fingerprint
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.escaping import escape_path
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import format_version_numbers
from schemactl.declare.files import Files
from schemactl.formats import assign_kinds

if TYPE_CHECKING:
    from schemactl.codec import Codec
    from schemactl.declare.reader import Declared


_VERSION_PATTERN: Final = re.compile(r"\.v([0-9]{1,9})(\.[^/]*)?\.bin$")

_SAMPLE_FORMAT: Final = 'write `{"version": 3, "payload_b64": "..."}`, and also `key_b64` for SEPARATED pairs'

_NESTING_DEPTHS: Final = (64, 16, 8, 4, 2, 1)
"""The numbers of nested records to try, the highest first: each level of a recursive record adds columns, in a tree exponentially."""

_MAX_SHOWN: Final = 10
"""Maximum number of findings of a topic, one for each message."""


class SampleMessage(NamedTuple):
    """A message with the number of its schema version, or None if it does not carry one.

    The number is Git's, or the number of `target` for a version that Git does not know.
    """

    payload: bytes | None
    version: int | None
    key: bytes | None = None
    target: str | None = None

    def to_line(self, value: Any = None) -> str:
        """Return the message as a line of a sample file, with its decoded value if there is one."""
        bytes_by_key = {"payload_b64": self.payload, "key_b64": self.key}
        text_by_key = {
            key: base64.b64encode(content).decode() for key, content in bytes_by_key.items() if content is not None
        }
        value_entry = {} if value is None else {"value": to_json(value)}
        target_entry = {} if self.target is None else {"target": self.target}
        return json.dumps(target_entry | {"version": self.version} | text_by_key | value_entry, ensure_ascii=False)


class Sample(NamedTuple):
    """A message and its location."""

    source: Source
    message: SampleMessage


class SampleFiles(NamedTuple):
    """The sample files by topic, and the files whose names do not start with a topic's name."""

    by_topic: dict[TopicName, list[str]]
    unassigned: list[str]


def add_sample_findings(
    report: CheckReport,
    comparison: Comparison,
    declared: Declared,
    files: Files,
    changed: Collection[str],
    selected: Collection[TopicName] | None,
) -> CheckReport:
    """Add a finding for each unreadable sample, if its schema or the sample itself has changed.

    Args:
        report: the report of the check.
        comparison: the comparison that the report is about.
        declared: the declarations, with the paths of all samples.
        files: the files with the samples.
        changed: the paths of the samples that the change adds or edits.
        selected: the topics to check, or None for all topics.

    Raises:
        DeclarationError: if files are not valid sample files; `problems` has the problems of all files.
    """
    sample_files = assign_files(declared.samples, declared.catalog)
    changed_checks = [topic_check for topic_check in reversed(report.topics) if topic_check.schema]
    checks_by_kind = {(topic_check.topic, topic_check.kind): topic_check for topic_check in changed_checks}
    changed_topics = {topic_check.topic for topic_check in changed_checks}
    findings: list[Finding] = []
    problems: list[Problem] = []
    for name, paths in sorted(sample_files.by_topic.items()):
        topic = declared.catalog.topics[name]
        if topic.schema is None or (selected is not None and name not in selected):
            continue
        samples: list[Sample] = []
        for path in sorted(paths):
            if name in changed_topics or path in changed:
                try:
                    samples += read_samples(path, files)
                except DeclarationError as error:
                    problems += error.problems
        if not samples or problems:
            continue
        approved_versions = comparison.get_versions(name)
        if topic.kinds:
            approved_topic = comparison.find_approved(name) or topic
            names = kinds.join_kind_names(approved_topic, topic)
            approved_versions = assign_kinds(approved_versions, replace(topic, kind_names=names))
        remaining_samples = samples
        parts = replace(topic, versions=approved_versions).split()
        for part in parts:
            topic_check = checks_by_kind.get((name, part.kind))
            versions = topic_check.versions if topic_check else part.versions
            if topic_check and topic_check.version is not None and topic_check.is_pending:
                versions = (*versions, SchemaVersion(topic_check.version, part.schema))
            numbers = {version.number for version in versions}
            part_samples, remaining_samples = remaining_samples, []
            if part is not parts[-1]:
                # Samples without a version are reported with the last kind.
                remaining_samples = [sample for sample in part_samples if sample.message.version not in numbers]
                part_samples = [sample for sample in part_samples if sample.message.version in numbers]
            if part.schema and part_samples:
                findings += _report_unreadable_samples(comparison, part, part.schema, versions, part_samples)
    if problems:
        raise DeclarationError(problems)
    notes = (
        f"{on_one_line(path)} does not have the name of a topic that is declared in the parent folder, so its samples were not read"
        for path in sorted(changed)
        if path in sample_files.unassigned
    )
    return replace(report, findings=(*report.findings, *findings), notes=(*report.notes, *notes))


def assign_files(paths: Iterable[str], catalog: Catalog) -> SampleFiles:
    """Assign sample files to topics: `samples/orders.v3.bin` belongs to `orders`, which is declared in the parent folder.

    If several topic names match, the longest one counts.

    Raises:
        DeclarationError: if two topics in the parent folder have that name.
    """
    declared: dict[str, list[TopicName]] = {}
    for topic in catalog.topics.values():
        if topic.source:
            declared.setdefault(posixpath.dirname(topic.source.path), []).append(topic.name)
    sample_files = SampleFiles({}, [])
    for path in paths:
        folder, _, file_name = f"/{path}".rpartition("/samples/")
        matching_names = [name for name in declared.get(folder[1:], ()) if file_name.startswith(f"{name.topic}.")]
        longest = max((len(name.topic) for name in matching_names), default=0)
        longest_names = [name for name in matching_names if len(name.topic) == longest]
        if len(longest_names) > 1:
            raise DeclarationError(
                [
                    Problem(
                        Source(escape_path(path)),
                        f"this file name matches two topics that are declared in this folder: {longest_names[0]} and {longest_names[1]}",
                        "declare one of them in another folder, with its samples",
                    )
                ]
            )
        if longest_names:
            sample_files.by_topic.setdefault(longest_names[0], []).append(path)
        else:
            sample_files.unassigned.append(path)
    return sample_files


def read_samples(path: str, files: Files) -> list[Sample]:
    """Read the messages of a sample file.

    Raises:
        DeclarationError: if lines are not valid; `problems` has at most 100 of them.
    """
    content, source = files.read(path), Source(escape_path(path))
    if path.endswith(".bin"):
        version = _VERSION_PATTERN.search(path)
        if version is None:
            message = "the file name does not contain the version of the payload"
            fix = "name it by topic and version, such as orders.v3.bin or orders.v3.refund.bin"
            raise DeclarationError([Problem(source, message, fix)])
        return [Sample(source, SampleMessage(content, int(version[1])))]
    samples, problems = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            source_of_line = Source(escape_path(path), number, 1)
            try:
                samples.append(Sample(source_of_line, _parse_message(line)))
            except ValueError as error:
                problems.append(Problem(source_of_line, str(error), _SAMPLE_FORMAT))
    if problems:
        raise DeclarationError(problems[:100])
    return samples


def _parse_message(line: bytes) -> SampleMessage:
    """Parse a line of a sample file; raise ValueError if it is not a valid message."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("this line is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("this line is not a JSON object")  # noqa: TRY004  of a file, not of a caller
    unknown_keys = value.keys() - {"version", "payload_b64", "key_b64", "value"}
    if unknown_keys:
        raise ValueError(f"unknown key of a sample: {escape_path(min(unknown_keys))!r}")
    version = value.get("version")
    is_number = isinstance(version, int) and not isinstance(version, bool) and 0 <= version < 2**63
    if version is not None and not is_number:
        raise ValueError("`version` is neither a version number nor null (for a message without a version)")
    return SampleMessage(_decode_base64(value, "payload_b64"), version, _decode_base64(value, "key_b64"))


def _decode_base64(value: dict[str, object], key: str) -> bytes | None:
    text = value.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"`{key}` is not base64 text")  # noqa: TRY004  of a file, not of a caller
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # also raised for characters outside ASCII
        raise ValueError(f"`{key}` is not base64") from None


def _report_unreadable_samples(
    comparison: Comparison, topic: Topic, schema: SchemaInfo, versions: tuple[SchemaVersion, ...], samples: list[Sample]
) -> Iterator[Finding]:
    schemas_by_number = {version.number: version.info for version in versions if version.info}
    reasons = _find_rejections(comparison, topic, schema, versions, samples)
    rejected = [(sample, *rejection) for sample, rejection in zip(samples, reasons, strict=True) if rejection[0]]
    for index, (sample, reason, with_approved) in enumerate(rejected[:_MAX_SHOWN], start=1):
        number = sample.message.version
        remark = ""
        if number is not None and number not in schemas_by_number:
            reason = f"there is no version {number}: the topic has {format_version_numbers([*schemas_by_number])}"  # noqa: PLW2901
        elif with_approved:
            rejection = "" if with_approved == reason else f": {on_one_line(with_approved)}"
            remark = f" The last approved schema cannot read it either{rejection}."
        origin = "without a version" if number is None else f"of version {number}"
        remaining_note = (
            f" The same for {len(rejected) - index:,} more samples." if index == _MAX_SHOWN < len(rejected) else ""
        )
        writer_schema = schemas_by_number.get(number) if number is not None else None
        # The fingerprint covers key and payload, but not the version number, which may differ between targets.
        message = sample.message._replace(version=None).to_line()
        yield from comparison.make_finding(
            "SAMPLE_UNREADABLE",
            topic,
            f"This message {origin} cannot be read with the schema of {topic.name}: {on_one_line(reason)}.{remark}{remaining_note}",
            source=sample.source,
            against=() if number is None else (number,),
            fingerprint=compute_fingerprint(
                "SAMPLE_UNREADABLE",
                topic.name,
                new=schema,
                against=[writer_schema] if writer_schema else [],
                pointer=hashlib.sha256(message.encode()).hexdigest(),
            ),
        )


def _find_rejections(
    comparison: Comparison, topic: Topic, schema: SchemaInfo, versions: tuple[SchemaVersion, ...], samples: list[Sample]
) -> list[tuple[str, str | None]]:
    """Return two reasons for each sample: why the schema rejects it, and why the last approved schema does.

    The first reason is empty, and the second None, if the sample can be read.
    """
    generate = comparison.project.generate
    json_defaults = generate is not None and generate.json_defaults
    options = Options(json_defaults=json_defaults, **get_wire_options(topic, generate))
    topic_with_versions = replace(topic, versions=versions)
    approved_schemas = [version.info for version in versions if version.info and version.info is not schema]
    try:
        codec = _make_codec(topic_with_versions, options, schema)
        approved_codec = _make_codec(topic_with_versions, options, approved_schemas[-1]) if approved_schemas else None
        payloads, numbers, keys, _ = zip(*(sample.message for sample in samples), strict=True)
        result = judge_messages(
            codec,
            pa.array(payloads, pa.binary()),
            pa.array(numbers, pa.int64()),
            pa.array(keys, pa.binary()),
            approved_codec,
        )
    except CodecError as error:
        return [(str(error), None)] * len(samples)
    return [
        (reason or "", approved_reason)
        for reason, approved_reason in zip(result.reasons.to_pylist(), result.with_approved.to_pylist(), strict=True)
    ]


def _make_codec(topic: Topic, options: Options, reader: SchemaInfo) -> Codec:
    """Return the codec with the most nested records whose columns fit into a batch; deeper records are skipped."""
    for depth in _NESTING_DEPTHS:
        codec = make_codec(topic, replace(options, max_nesting=depth), reader=reader)
        try:
            codec.columns  # noqa: B018  whether there are any
        except InvalidDefinition:
            continue
        break
    return codec
