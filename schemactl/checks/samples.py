"""Read the recorded messages next to declarations, and find those that the declared schema cannot read."""

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

from schemactl.checks.check_report import CheckReport
from schemactl.checks.proposal import Run
from schemactl.codec import CodecError, InvalidDefinition, Options
from schemactl.codec.topic import json_value, judge
from schemactl.codegen.topics import codec_of
from schemactl.comparison.fingerprint import fingerprint
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import versions as versions_said
from schemactl.declare.files import Files, shown

if TYPE_CHECKING:
    from schemactl.codec import Codec
    from schemactl.declare.reader import Declared


_VERSION_PATTERN: Final = re.compile(r"\.v([0-9]{1,9})(\.[^/]*)?\.bin$")


_SAMPLE_FORMAT: Final = 'write `{"version": 3, "payload_b64": "..."}`, and `key_b64` beside them for SEPARATED pairs'


_RECURSION_DEPTHS: Final = (64, 16, 8, 4, 2, 1)
"""Of a record that holds itself, once or (a tree) in several places, each with columns of its own."""


_MAX_SHOWN: Final = 10
"""The most messages of a topic that have a finding each."""


class SampleMessage(NamedTuple):
    """A message; `version` is the number of its schema, None: it says none."""

    payload: bytes | None
    version: int | None
    key: bytes | None = None

    def line(self, value: Any = None) -> str:
        """Return the message as a line of a file of samples, with its value where it is known."""
        coded = {"payload_b64": self.payload, "key_b64": self.key}
        texts = {name: base64.b64encode(held).decode() for name, held in coded.items() if held is not None}
        shown = {} if value is None else {"value": json_value(value)}
        return json.dumps({"version": self.version} | texts | shown, ensure_ascii=False)


class Sample(NamedTuple):
    """A message, and where it stands."""

    source: Source
    message: SampleMessage


class SampleFiles(NamedTuple):
    """The files of samples by topic, and those whose names begin like no topic's."""

    by_topic: dict[TopicName, list[str]]
    unassigned: list[str]


def add_sample_findings(
    report: CheckReport,
    run: Run,
    declared: Declared,
    files: Files,
    changed: Collection[str],
    only: Collection[TopicName] | None,
) -> CheckReport:
    """Return the report with the samples that cannot be read: those of changed schemas, and changed ones.

    Args:
        report: of the check.
        run: what is compared with what.
        declared: with the paths of all samples.
        files: that have them.
        changed: the paths of those that the change adds or edits.
        only: the topics to look at; None: all.

    Raises DeclarationError: a file is no file of samples; `problems` holds those of all files.
    """
    here = assign_files(declared.samples, declared.catalog)
    proposed = {each.topic: each for each in reversed(report.topics) if each.schema}
    found: list[Finding] = []
    problems: list[Problem] = []
    for name, paths in sorted(here.by_topic.items()):
        topic = declared.catalog.topics[name]
        if topic.schema is None or (only is not None and name not in only):
            continue
        check = proposed.get(name)
        samples: list[Sample] = []
        for path in sorted(paths):
            if check or path in changed:
                try:
                    samples += read_samples(path, files)
                except DeclarationError as error:
                    problems += error.problems
        if samples and not problems:
            versions = check.versions if check else run.get_versions(name)
            if check and check.version is not None and check.is_pending:
                versions = (*versions, SchemaVersion(check.version, topic.schema))
            found += _report_unreadable_samples(run, topic, topic.schema, versions, samples)
    if problems:
        raise DeclarationError(problems)
    notes = (
        f"{on_one_line(path)} has the name of no topic that is declared in the folder above: its samples were not read"
        for path in sorted(changed)
        if path in here.unassigned
    )
    return replace(report, findings=(*report.findings, *found), notes=(*report.notes, *notes))


def assign_files(paths: Iterable[str], catalog: Catalog) -> SampleFiles:
    """Return the files by topic: `samples/orders.v3.bin` is of the topic `orders` that is declared in the folder around.

    Where the names of several topics fit, the longest counts. Raise DeclarationError if two topics that are declared there have that name.
    """
    declared: dict[str, list[TopicName]] = {}
    for topic in catalog.topics.values():
        if topic.source:
            declared.setdefault(posixpath.dirname(topic.source.path), []).append(topic.name)
    found = SampleFiles({}, [])
    for path in paths:
        folder, _, inside = f"/{path}".rpartition("/samples/")
        fitting = [name for name in declared.get(folder[1:], ()) if inside.startswith(f"{name.topic}.")]
        longest = max((len(name.topic) for name in fitting), default=0)
        named = [name for name in fitting if len(name.topic) == longest]
        if len(named) > 1:
            raise DeclarationError(
                [
                    Problem(
                        Source(shown(path)),
                        f"two topics that are declared in this folder have that name: {named[0]} and {named[1]}",
                        "declare one of them in another folder, with its samples",
                    )
                ]
            )
        if named:
            found.by_topic.setdefault(named[0], []).append(path)
        else:
            found.unassigned.append(path)
    return found


def read_samples(path: str, files: Files) -> list[Sample]:
    """Return the messages in a file. Raise DeclarationError with the problems of all its lines."""
    content, source = files.read(path), Source(shown(path))
    if path.endswith(".bin"):
        version = _VERSION_PATTERN.search(path)
        if version is None:
            what = "the name of the file does not say which version the payload is of"
            fix = "call it by topic and version, such as orders.v3.bin or orders.v3.refund.bin"
            raise DeclarationError([Problem(source, what, fix)])
        return [Sample(source, SampleMessage(content, int(version[1])))]
    found, problems = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            at = Source(shown(path), number, 1)
            try:
                found.append(Sample(at, _parse_message(line)))
            except ValueError as error:
                problems.append(Problem(at, str(error), _SAMPLE_FORMAT))
    if problems:
        raise DeclarationError(problems[:100])
    return found


def _parse_message(line: bytes) -> SampleMessage:
    """Return the message of a line. Raise ValueError unless it is one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("this line is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("this line is not a JSON object")  # noqa: TRY004  of a file, not of a caller
    strange = value.keys() - {"version", "payload_b64", "key_b64", "value"}
    if strange:
        raise ValueError(f"a sample has no {shown(min(strange))!r}")
    version = value.get("version")
    is_number = isinstance(version, int) and not isinstance(version, bool) and 0 <= version < 2**63
    if version is not None and not is_number:
        raise ValueError("`version` is not the number of a version, or null for none")
    return SampleMessage(_decode_base64(value, "payload_b64"), version, _decode_base64(value, "key_b64"))


def _decode_base64(value: dict[str, object], key: str) -> bytes | None:
    text = value.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"`{key}` is not a text in base64")  # noqa: TRY004  of a file, not of a caller
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # also of letters outside ASCII
        raise ValueError(f"`{key}` is not base64") from None


def _report_unreadable_samples(
    run: Run, topic: Topic, schema: SchemaInfo, versions: tuple[SchemaVersion, ...], samples: list[Sample]
) -> Iterator[Finding]:
    known = {each.number: each.info for each in versions if each.info}
    reasons = _find_rejections(run, topic, schema, versions, samples)
    rejected = [(sample, *why) for sample, why in zip(samples, reasons, strict=True) if why[0]]
    for at, (sample, reason, with_approved) in enumerate(rejected[:_MAX_SHOWN], start=1):
        number = sample.message.version
        before = ""
        if number is not None and number not in known:
            reason = f"there is no version {number}: the topic has {versions_said([*known])}"  # noqa: PLW2901
        elif with_approved:
            why = "" if with_approved == reason else f": {on_one_line(with_approved)}"
            before = f" With the schema approved last it cannot be read either{why}."
        written = "without a version" if number is None else f"of version {number}"
        more = f" The same for {len(rejected) - at:,} more samples." if at == _MAX_SHOWN < len(rejected) else ""
        writer = known.get(number) if number is not None else None
        # Its key, too, and whether it has a payload at all; the number of its version is no part of what was approved.
        message = sample.message._replace(version=None).line()
        yield from run.make_finding(
            "SAMPLE_UNREADABLE",
            topic,
            f"This message {written} cannot be read with the schema of {topic.name}: {on_one_line(reason)}.{before}{more}",
            source=sample.source,
            against=() if number is None else (number,),
            fingerprint=fingerprint(
                "SAMPLE_UNREADABLE",
                topic.name,
                new=schema,
                against=[writer] if writer else [],
                pointer=hashlib.sha256(message.encode()).hexdigest(),
            ),
        )


def _find_rejections(
    run: Run, topic: Topic, schema: SchemaInfo, versions: tuple[SchemaVersion, ...], samples: list[Sample]
) -> list[tuple[str, str | None]]:
    """Return for each sample why it is rejected, "" if it is not, and why with the schema approved last, None if it is not."""
    generate = run.project.generate
    options = Options(json_defaults=generate is not None and generate.json_defaults)
    known = replace(topic, versions=versions)
    approved = [each.info for each in versions if each.info and each.info is not schema]
    try:
        codec = _make_codec(known, options, schema)
        against = _make_codec(known, options, approved[-1]) if approved else None
        payloads, numbers, keys = zip(*(sample.message for sample in samples), strict=True)
        judged = judge(
            codec, pa.array(payloads, pa.binary()), pa.array(numbers, pa.int64()), pa.array(keys, pa.binary()), against
        )
    except CodecError as error:
        return [(str(error), None)] * len(samples)
    return [
        (reason or "", approved_reason)
        for reason, approved_reason in zip(judged.reasons.to_pylist(), judged.with_approved.to_pylist(), strict=True)
    ]


def _make_codec(topic: Topic, options: Options, reader: SchemaInfo) -> Codec:
    """Return the codec with the deepest recursion of which a batch has not too many columns; what is deeper is skipped."""
    for depth in _RECURSION_DEPTHS:
        codec = codec_of(topic, replace(options, recursion_depth=depth), reader=reader)
        try:
            codec.columns  # noqa: B018  whether there are any
        except InvalidDefinition:
            continue
        break
    return codec
