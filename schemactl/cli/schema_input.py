"""Schemas given as options or files, and the reader of questions on JSON lines."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TextIO, get_args

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.errors import DeclarationError, InvalidSchema, SchemactlError, UsageError
from schemactl.core.names import TopicName
from schemactl.core.project import Nanoseconds, ProtoRendering
from schemactl.core.schema import WITHOUT_SCHEMA, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.declare.reader import Declared
    from schemactl.formats import InvalidInput


Request = dict[str, Any]
Answer = dict[str, Any]

_TYPES_BY_SUFFIX: Final = {
    ".avsc": SchemaType.AVRO,
    ".proto": SchemaType.PROTOBUF_NATIVE,
    ".binpb": SchemaType.PROTOBUF_NATIVE,
    ".txt": SchemaType.EXTERNAL,
}
"""The default of --type for a definition, by the suffix of its file."""

INTERNAL_ERROR: Final = "internal error"
"""The start of the `error` of a line that failed because of a mistake of the program."""

_ANY_TOPIC: Final = TopicName("public", "default", "topic")
"""A name for the topic of a definition that is read without one."""

_CHUNK_BYTES: Final = 1 << 20

_MAX_BATCH_LINES: Final = 200
"""The maximum number of lines that are parsed before the first of them is answered."""


# Schemas on the command line.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a schema."""
    add_options(
        parser,
        "--file FILE: the schema: .avsc, .proto, .binpb, .txt, a YAML declaration, or JSON as pulsar-admin uploads it",
    )
    add_options(
        parser,
        "--type TYPE: of an .avsc: AVRO (the default), JSON or PROTOBUF; without a file: STRING, INT64, ...",
        choices=[
            kind.name for kind in SchemaType if kind.value >= 0 and kind not in {*WITHOUT_SCHEMA, SchemaType.KEY_VALUE}
        ],
    )
    add_options(
        parser,
        "--message NAME: of a .proto: the root message's full name",
        "--reference FILE...: a file that FILE takes types from",
    )
    add_options(
        parser,
        "--language LANGUAGE: give a protobuf definition the form that Pulsar's client of this language sends: java, go or python",
        choices=get_args(ProtoRendering),
    )


def is_given(args: argparse.Namespace) -> bool:
    """Return whether the command line has a schema."""
    return args.file is not None or args.type is not None


def read_schema(args: argparse.Namespace, context: Context, topic: TopicName) -> SchemaInfo:
    """Return the schema on the command line, for `topic`.

    Raises:
        UsageError: if there is no schema, or a part of it is missing.
        DeclarationError: if the file has problems.
    """
    from schemactl.formats import SPECS

    if args.file is None:
        if args.type is None or SPECS[SchemaType[args.type]].payload != "value":
            raise UsageError(
                "a schema is missing", fix="pass --file FILE, or --type STRING or another type without a definition"
            )
        return SchemaInfo(SchemaType[args.type])
    if not Path(context.directory, args.file).is_file():
        raise UsageError(f"--file {args.file}: no such file")
    info = read_file(
        args.file,
        context,
        topic=topic,
        type_=SchemaType[args.type] if args.type else None,
        message=args.message,
        references=args.reference,
    )
    return render_for_client(info, args.language)


def render_for_client(info: SchemaInfo, language: ProtoRendering | None) -> SchemaInfo:
    """Return a schema as the client of a language sends it; a definition that brokers reject is not changed."""
    from schemactl import formats

    try:
        return formats.convert(info, language) if language else info
    except InvalidSchema:
        return info


def read_file(
    name: str,
    context: Context,
    *,
    topic: TopicName = _ANY_TOPIC,
    type_: SchemaType | None = None,
    message: str | None = None,
    references: Sequence[str] = (),
) -> SchemaInfo:
    """Return the schema in a file.

    Args:
        name: the path of the file, relative to the folder to work in.
        context: where to work.
        topic: the topic to select if the file declares several.
        type_: the type of a definition; by default the file's suffix determines it.
        message: the full name of the root message in a protobuf file.
        references: the files from which the definition uses types.

    Raises:
        UsageError: if the suffix is unknown, or `message` is missing.
        SchemactlError: if the file cannot be read, or has not the format of its suffix.
    """
    from schemactl.declare.files import decode
    from schemactl.formats import SPECS

    path = Path(context.directory, name)
    if not path.is_file():
        raise SchemactlError(f"there is no file {name}")
    suffix = path.suffix.lower()
    if suffix == ".json":
        from schemactl.declare.payload import find_name_problem, read_payload

        payload = read_payload(name, path.read_bytes())
        checked_topic = None if topic == _ANY_TOPIC else topic
        if problems := [*find_name_problem(payload.name, checked_topic, payload.text.locate(("name",)))]:
            raise DeclarationError(problems)
        return payload.build_info()
    if suffix in (".yaml", ".yml"):
        return _read_declaration(path, context, topic)
    if suffix not in _TYPES_BY_SUFFIX:
        raise UsageError(
            f"{name}: its extension is not known", fix="name an .avsc, .proto, .binpb, .txt, .yaml or .json file"
        )
    kind = type_ or _TYPES_BY_SUFFIX[suffix]
    if SPECS[kind].declared_as == "proto" and not message:
        raise UsageError("a .proto declares many messages", fix="name one: --message package.Name")
    if SPECS[kind].declared_as == "text":
        data = path.read_bytes()
        decode(path.name, data)
        # The registry says whether it knows the type; the project may be for an older release.
        return SchemaInfo(kind, data)
    schema: dict[str, Any] = {"type": kind.name, "definition": path.name}
    if message:
        schema["message"] = message
    if references:
        schema["references"] = [
            os.path.relpath(Path(context.directory, reference), path.parent) for reference in references
        ]
    # JSON is YAML, so the definition gets a declaration next to it.
    text = json.dumps({"topic": str(topic), "schema": schema})
    info = _build_catalog(path, "--file", text.encode(), context).catalog.topics[topic].schema
    if info is None:
        raise SchemactlError(f"{path.name} declares no schema")
    return info


def _read_declaration(path: Path, context: Context, topic: TopicName) -> SchemaInfo:
    """Return the schema of a YAML declaration, or the schema of `topic` if the file declares several."""
    declared = _build_catalog(path, path.name, path.read_bytes(), context)
    schemas = {name: declaration.schema for name, declaration in declared.catalog.topics.items() if declaration.schema}
    if not schemas:
        raise SchemactlError(f"{path.name} declares no schema")
    schema = next(iter(schemas.values())) if len(schemas) == 1 else schemas.get(topic)
    if schema is None:
        names = ", ".join(map(str, schemas))
        raise UsageError(f"{path.name} declares {names}, and not {topic}")
    return schema


def _build_catalog(path: Path, name: str, data: bytes, context: Context) -> Declared:
    """Return the declarations of the YAML `data`, as if it were a file called `name` next to `path`."""
    from schemactl.core.project import Project
    from schemactl.declare import document as declare_document
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project
    from schemactl.declare import reader

    folder = path.parent.resolve()
    # References may name the files of the repository if the folder is in it, else only the files of the folder.
    files, rendering = declare_files.WorktreeFiles(str(folder)), None
    with suppress(SchemactlError):
        project, top = declare_project.load_project(context.directory, context.config)
        rendering = project.rendering
        if folder.is_relative_to(top):
            # Missing types are searched in the roots of the project, since generated packages have copies of all definitions.
            folders = (folder.relative_to(top).as_posix(), *project.roots)
            files = declare_files.WorktreeFiles(str(top), folders=folders)
    document = declare_document.read_documents((folder.relative_to(files.top) / name).as_posix(), data)
    declared = reader.build([document], files, Project(rendering=rendering), has_targets=False)
    if declared.problems:
        raise DeclarationError(declared.problems)
    return declared


# Requests on JSON lines.


def answer_standard_input(
    answer: Callable[[Request], Answer], *, ahead: Callable[[Sequence[Request]], None] | None = None
) -> int:
    """Answer the lines on standard input, as `answer_lines` does; return 1 if one has an error, else 0."""
    return 0 if answer_lines(sys.stdin.buffer, sys.stdout, answer, ahead=ahead) else 1


def answer_lines(
    lines: BinaryIO,
    out: TextIO,
    answer: Callable[[Request], Answer],
    *,
    ahead: Callable[[Sequence[Request]], None] | None = None,
) -> bool:
    """Write the answer to each line, or its error, to `out`; return whether no line had an error.

    Each line is answered as soon as it arrives, because a client may wait for the answer before it sends the next line.

    Args:
        lines: the requests, one a line; blank lines are skipped.
        out: the output for the answers.
        answer: returns the answer; any exception becomes the `error` of the line.
        ahead: gets the requests that have arrived together, before the first of them is answered.
    """
    from schemactl.formats import InvalidInput

    is_complete = True
    for batch in _read_batches(lines):
        requests = [_parse_request(line) for line in batch]
        if ahead is not None:
            # An error is raised again when its line is answered.
            with suppress(Exception):
                ahead([request for request in requests if isinstance(request, dict)])
        for request in requests:
            response: Answer = {}
            if isinstance(request, InvalidInput):
                id_, problem = None, str(request)
            else:
                id_ = request.get("id")
                try:
                    response, problem = answer(request), ""
                except (InvalidInput, SchemactlError) as error:
                    problem = str(error)
                except RecursionError:
                    problem = "it is nested too deeply"
                except Exception as error:  # noqa: BLE001  a mistake of the program is the error of one line, and not the loss of the others
                    problem = f"{INTERNAL_ERROR}: {type(error).__name__}: {error}"
            if problem:
                is_complete, response = False, {"error": problem}
            text = json.dumps({"id": id_, **response}, ensure_ascii=False)
            try:
                text.encode()
            except UnicodeEncodeError:
                # UTF-8 has no lone surrogates.
                text = json.dumps({"id": id_, **response})
            out.write(text + "\n")
        out.flush()
    return is_complete


def _read_batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield lines as they arrive, without blank ones."""
    # The chunks of a long line are joined only once, at its end.
    chunks: list[bytes] = []
    while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]  # buffered streams have it
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*chunks, lines[0]])
            chunks = []
        chunks.append(rest)
        for start in range(0, len(lines), _MAX_BATCH_LINES):
            yield [line for line in lines[start : start + _MAX_BATCH_LINES] if line.strip()]
    if (last := b"".join(chunks)).strip():
        yield [last]


def _parse_request(line: bytes) -> Request | InvalidInput:
    from schemactl.formats import InvalidInput

    try:
        request = json.loads(line, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        return InvalidInput(f"the line is not JSON: {error}")
    return request if isinstance(request, dict) else InvalidInput("the line is not a JSON object")


def _reject_constant(word: str) -> NoReturn:
    """Reject NaN and infinities, which are not JSON, but which Python would read and write."""
    raise ValueError(f"{word} is not a number there")


def read_options(request: Request) -> dict[str, Any]:
    """Return the `options` of a line.

    Raises:
        InvalidInput: if they are not an object.
    """
    from schemactl.formats import InvalidInput

    options = request.get("options") or {}
    if not isinstance(options, dict):
        raise InvalidInput("`options` is not an object")
    return options


def recursion_depth(options: dict[str, Any], *, default: int) -> int:
    """Return the maximum recursion depth of a record.

    Raises:
        InvalidInput: if the option is not an `int` of Java.
    """
    from schemactl.formats import InvalidInput

    try:
        # Spark's options are texts; numbers are accepted as well.
        value = options.get("recursiveFieldMaxDepth", default)
        depth = None if isinstance(value, float | bool) else int(value)
    except (TypeError, ValueError):
        depth = None
    if depth is None or not -(1 << 31) <= depth < 1 << 31:
        raise InvalidInput("`options.recursiveFieldMaxDepth` is not a number of 32 bits")
    return depth


def parse_nanoseconds(options: dict[str, Any]) -> Nanoseconds:
    """Return the columns of types with nanoseconds.

    Raises:
        InvalidInput: if the option has another value.
    """
    from schemactl.formats import InvalidInput

    for value in get_args(Nanoseconds):
        if options.get("nanoseconds", "truncated") == value:
            choice: Nanoseconds = value
            return choice
    raise InvalidInput(f"`options.nanoseconds` is not {' or '.join(get_args(Nanoseconds))}")
