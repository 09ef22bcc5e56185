"""Schemas given as options or files, and the reader of questions on JSON lines."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TextIO

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.errors import DeclarationError, SchemactlError, UsageError
from schemactl.core.names import TopicName
from schemactl.core.schema import WITHOUT_SCHEMA, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.declare.files import WorktreeFiles
    from schemactl.declare.reader import Declared
    from schemactl.formats import InvalidInput


Request = dict[str, Any]
Answer = dict[str, Any]

_CHUNK_BYTES = 1 << 20
_BATCH_LINES = 200
"""How much of the questions is read ahead where more has arrived."""


# Schemas on the command line.


_YAML = (".yaml", ".yml")
_DEFINITIONS = {".avsc": SchemaType.AVRO, ".proto": SchemaType.PROTOBUF_NATIVE, ".binpb": SchemaType.PROTOBUF_NATIVE}
"""What a file is, by the end of its name, where --type does not say otherwise."""

_ANY = TopicName("public", "default", "topic")
"""Stands for the topic of a definition that is asked for alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a schema."""
    add_options(
        parser, "--file FILE: the schema: .avsc, .proto, a YAML declaration, or JSON as pulsar-admin uploads it"
    )
    add_options(
        parser,
        "--type TYPE: of an .avsc: AVRO (the default), JSON or PROTOBUF; without a file: STRING, INT64, ...",
        choices=[
            kind.name
            for kind in SchemaType
            if kind.value >= 0 and kind not in {*WITHOUT_SCHEMA, SchemaType.KEY_VALUE, SchemaType.EXTERNAL}
        ],
    )
    add_options(
        parser,
        "--message NAME: of a .proto: the root message's full name",
        "--reference FILE...: a file that FILE takes types from",
    )


def is_given(args: argparse.Namespace) -> bool:
    """Return whether a schema is given on the command line."""
    return args.file is not None or args.type is not None


def read_schema(args: argparse.Namespace, context: Context, topic: TopicName) -> SchemaInfo:
    """Return the schema given on the command line for `topic`.

    Raises:
        UsageError: none is given, or not all of it.
        DeclarationError: the file is not what its name says.
    """
    from schemactl.formats import SPECS

    if args.file is None:
        if args.type is None or SPECS[SchemaType[args.type]].payload != "value":
            raise UsageError(
                "a schema is needed", fix="--file FILE, or --type STRING and the like for a type without a definition"
            )
        return SchemaInfo(SchemaType[args.type])
    if not Path(context.directory, args.file).is_file():
        raise UsageError(f"--file {args.file}: there is no such file")
    return read_file(
        args.file,
        context,
        topic=topic,
        type_=SchemaType[args.type] if args.type else None,
        message=args.message,
        references=args.reference,
    )


def read_file(
    name: str,
    context: Context,
    *,
    topic: TopicName = _ANY,
    type_: SchemaType | None = None,
    message: str | None = None,
    references: Sequence[str] = (),
) -> SchemaInfo:
    """Return the schema in a file.

    Args:
        name: the file's.
        context: where to work.
        topic: which to take if the file declares several.
        type_: of a definition; None to tell it from the file's suffix.
        message: the root's full name, in a file of protobuf.
        references: the files that it takes types from.

    Raises:
        UsageError: the kind of file is unknown, or `message` is missing.
        SchemactlError: it cannot be read, or is not what its name says.
    """
    path = Path(context.directory, name)
    if not path.is_file():
        raise SchemactlError(f"there is no file {name}")
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _payload(path, name)
    if suffix in _YAML:
        return _declared(path, context, topic)
    if suffix not in _DEFINITIONS:
        raise UsageError(
            f"{name}: its extension is not known", fix="name an .avsc, .proto, .binpb, .yaml or .json file"
        )
    return _definition(
        path,
        type_ or _DEFINITIONS[suffix],
        message,
        [Path(context.directory, each) for each in references],
        context,
        topic,
    )


def _payload(path: Path, shown: str) -> SchemaInfo:
    """Return what `pulsar-admin schemas upload` takes (PostSchemaPayload), as a broker reads it."""
    from schemactl.formats import SPECS

    try:
        payload: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise SchemactlError(f"{shown} is not JSON: {error}") from None
    fields = payload if isinstance(payload, dict) else {}
    kind, schema, properties = fields.get("type"), fields.get("schema"), fields.get("properties") or {}
    if (
        not isinstance(kind, str)
        or kind not in SchemaType.__members__
        or not isinstance(schema, str)
        or not isinstance(properties, dict)
        or not all(isinstance(value, str) for value in properties.values())
    ):
        raise SchemactlError(
            f"{shown} is not what pulsar-admin uploads",
            fix='write {"type": "AVRO", "schema": "<the definition as a text>", "properties": {}}',
        )
    return SPECS[SchemaType[kind]].from_text(SchemaType[kind], schema, properties)


def _declared(path: Path, context: Context, topic: TopicName) -> SchemaInfo:
    """Return the schema of a YAML declaration; of `topic` if the file declares several."""
    declared = _build(path, path.name, path.read_bytes(), context)
    found = {name: each.schema for name, each in declared.catalog.topics.items() if each.schema}
    if not found:
        raise SchemactlError(f"{path.name} declares no schema")
    schema = next(iter(found.values())) if len(found) == 1 else found.get(topic)
    if schema is None:
        names = ", ".join(map(str, found))
        raise UsageError(f"{path.name} declares {names}, and not {topic}")
    return schema


def _definition(
    path: Path, kind: SchemaType, message: str | None, references: Sequence[Path], context: Context, topic: TopicName
) -> SchemaInfo:
    """Return the schema of a bare definition, read as if a declaration next to it named it."""
    from schemactl.formats import SPECS

    if SPECS[kind].declared_as == "proto" and not message:
        raise UsageError("a .proto declares many messages", fix="name one: --message package.Name")
    schema: dict[str, Any] = {"type": kind.name, "definition": path.name}
    schema |= {"message": message} if message else {}
    schema |= {"references": [os.path.relpath(each, path.parent) for each in references]} if references else {}
    # JSON is YAML.
    text = json.dumps({"topic": str(topic), "schema": schema})
    found = _build(path, "--file", text.encode(), context).catalog.topics[topic].schema
    if found is None:
        raise SchemactlError(f"{path.name} declares no schema")
    return found


def _build(path: Path, name: str, data: bytes, context: Context) -> Declared:
    """Return what the YAML `data` declares, as if it were a file called `name` next to `path`."""
    from schemactl.core.project import Project
    from schemactl.declare import document as declare_document
    from schemactl.declare import reader

    folder = path.parent.resolve()
    files = _files(folder, context)
    top = files.top
    document = declare_document.read_documents((folder.relative_to(top) / name).as_posix(), data)
    declared = reader.build([document], files, Project())
    if declared.problems:
        raise DeclarationError(declared.problems)
    return declared


def _files(folder: Path, context: Context) -> WorktreeFiles:
    """Return the files that references may name: the repository's if `folder` is in the project.

    Where a type is missing, its definition is looked for in the project's roots: a generated package has copies of all.
    """
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project

    try:
        project, top = declare_project.load_project(context.directory, context.config)
    except SchemactlError:
        return declare_files.WorktreeFiles(str(folder))
    if not folder.is_relative_to(top):
        return declare_files.WorktreeFiles(str(folder))
    return declare_files.WorktreeFiles(str(top), folders=(folder.relative_to(top).as_posix(), *project.roots))


# Questions on JSON lines.


def answer_lines(
    lines: BinaryIO,
    out: TextIO,
    answer: Callable[[Request], Answer],
    *,
    ahead: Callable[[Sequence[Request]], None] | None = None,
) -> bool:
    """Write the answer of every one of `lines`, or what is wrong with it, to `out`; return whether all were read.

    Answers as soon as there is a line: who asks may wait for the answer before asking again.

    Args:
        lines: the questions, one a line; blank lines are left out.
        out: takes the answers.
        answer: may raise InvalidInput or SchemactlError; that becomes the line's `error`.
        ahead: is shown the questions that have arrived together, before the first of them is answered.
    """
    from schemactl.formats import InvalidInput

    complete = True
    for batch in _batches(lines):
        requests = [_request(line) for line in batch]
        if ahead is not None:
            ahead([request for request in requests if isinstance(request, dict)])
        for request in requests:
            id_ = request.get("id") if isinstance(request, dict) else None
            try:
                if isinstance(request, InvalidInput):
                    raise request
                answered = answer(request)
            except (InvalidInput, SchemactlError) as error:
                complete = False
                answered = {"error": str(error)}
            out.write(json.dumps({"id": id_, **answered}, ensure_ascii=False) + "\n")
        out.flush()
    return complete


def _batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield the lines that have arrived, as they arrive; blank ones left out."""
    # In pieces: a long line that grows by each of them would be copied as often.
    begun: list[bytes] = []
    while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]  # buffered streams have it
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*begun, lines[0]])
            begun = []
        begun.append(rest)
        for start in range(0, len(lines), _BATCH_LINES):
            yield [line for line in lines[start : start + _BATCH_LINES] if line.strip()]
    if (last := b"".join(begun)).strip():
        yield [last]


def _no_json(word: str) -> NoReturn:
    """Refuse NaN and infinities, which Python reads and would write into the answer."""
    raise ValueError(f"{word} is no number there")


def _request(line: bytes) -> Request | InvalidInput:
    from schemactl.formats import InvalidInput

    try:
        request = json.loads(line, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        return InvalidInput(f"the line is not JSON: {error}")
    return request if isinstance(request, dict) else InvalidInput("the line is not a JSON object")


def options_of(request: Request) -> dict[str, Any]:
    """Return the options of a line.

    Raises:
        InvalidInput: it has something else there.
    """
    from schemactl.formats import InvalidInput

    given = request.get("options") or {}
    if not isinstance(given, dict):
        raise InvalidInput("`options` is not an object")
    return given


def recursion_depth(options: dict[str, Any], *, default: int) -> int:
    """Return the maximum recursion depth of a record.

    Raises:
        InvalidInput: `options` has no number there that Java has.
    """
    from schemactl.formats import InvalidInput

    try:
        # Spark's options are texts; numbers are taken as well.
        given = options.get("recursiveFieldMaxDepth", default)
        depth = None if isinstance(given, float | bool) else int(given)
    except (TypeError, ValueError):
        depth = None
    if depth is None or not -(1 << 31) <= depth < 1 << 31:
        raise InvalidInput("`options.recursiveFieldMaxDepth` is not a number of 32 bits")
    return depth
