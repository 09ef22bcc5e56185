"""The compiler from `.proto` files, or a descriptor set, to the definition that Pulsar stores, with source places.

protoc comes with the package grpcio-tools. It runs in a process of its own (see `protoc_worker`), many definitions in one go, over
copies in a temporary folder: nothing of the user's is written, and nothing but the given texts is read.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schemactl.core.errors import InvalidSchema, SchemactlError, Source, meant
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats.protobuf.definition import (
    comments,
    find_message,
    from_descriptor_set,
    locator,
    render,
    source_at,
)
from schemactl.formats.protobuf.descriptor import Image, ProtoMessage, Span
from schemactl.formats.protobuf.protoc_process import worker

MAX_SOURCE_BYTES: Final = 5 * 2**20
"""Of one definition with its imports: a broker stores no larger schema."""

TIMEOUT_S: Final = 30.0
"""For one run of protoc, and for a definition that had no answer in it by itself; a thousand usual ones take a second."""

WORKER: Final = Path(__file__).with_name("protoc_worker.py")
"""The script that runs protoc."""

_KEPT_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Proto:
    """One definition to compile.

    Attributes:
        message: the root message's full name.
        entry: the file that declares it, by the name others import it with.
        sources: the texts of `entry` and of what it imports, by import name; protoc's own files need not be there.
        paths: where they are in the repository, for messages; a file that is not named here is at its import name.
    """

    message: str
    entry: str
    sources: Mapping[str, bytes]
    paths: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_text(cls, text: str, message: str) -> Proto:
        """Return a definition that is one text, from no file."""
        return cls(message, "schema.proto", {"schema.proto": text.encode(errors="replace")})

    def digest(self) -> str:
        """Return a digest that is equal for definitions that protoc gives one answer to."""
        digest = hashlib.sha256(repr(self.entry).encode())
        for name, text in sorted(self.sources.items()):
            digest.update(f"{name!r}{len(text)}\0".encode() + text)
        return digest.hexdigest()


_compiled: dict[str, bytes | InvalidSchema] = {}
"""What protoc answered, by digest, the oldest first."""


def compile_proto(proto: Proto) -> SchemaInfo:
    """Return the PROTOBUF_NATIVE definition that `proto` declares; its locator leads into the texts.

    Raises:
        InvalidSchema: it does not compile, in protoc's words and at its place, or has no such message.
        SchemactlError: protoc is not installed.
    """
    [answer] = compile_all([proto])
    if isinstance(answer, InvalidSchema):
        raise answer
    return answer


def compile_all(protos: Sequence[Proto]) -> list[SchemaInfo | InvalidSchema]:
    """Return what `compile_proto` does, or raises, for each; one process compiles all that were not compiled before.

    Raises:
        SchemactlError: protoc is not installed.
    """
    digests = [proto.digest() for proto in protos]
    new = {digest: proto for digest, proto in zip(digests, protos, strict=True) if digest not in _compiled}
    _compiled.update(zip(new, _run(list(new.values())), strict=True))
    answers = [_definition(proto, _compiled[digest]) for proto, digest in zip(protos, digests, strict=True)]
    kept = sum(map(_size, _compiled.values()))
    while kept > _KEPT_BYTES:
        oldest = next(iter(_compiled))
        kept -= _size(_compiled.pop(oldest))
    return answers


def _size(answer: bytes | InvalidSchema) -> int:
    return len(answer) if isinstance(answer, bytes) else len(answer.what)


def read_descriptor_set(data: bytes, message: str, *, path: str) -> SchemaInfo:
    """Return the PROTOBUF_NATIVE definition in a serialized FileDescriptorSet at `path`.

    Raises:
        InvalidSchema: it is no descriptor set, does not hold together, or has no such message.
    """
    source = Source(path)
    try:
        schema = render(from_descriptor_set(data, message))
    except InvalidSchema as error:
        raise _placed(error, source) from error
    return SchemaInfo(SchemaType.PROTOBUF_NATIVE, schema, source=source)


def _definition(proto: Proto, answer: bytes | InvalidSchema) -> SchemaInfo | InvalidSchema:
    source = Source(proto.paths.get(proto.entry, proto.entry))
    if isinstance(answer, InvalidSchema):
        place = answer.source
        if place is not None:
            place = Source(proto.paths.get(place.path, place.path), place.line, place.column)
        return InvalidSchema(answer.what, fix=answer.fix, source=place or source)
    read_root = partial(_root, answer, proto.message, proto.entry)
    try:
        schema = render(read_root())
    except InvalidSchema as error:
        return _placed(error, source)
    paths = {name: proto.paths.get(name, name) for name in proto.sources}
    where = locator(read_root, paths=paths, texts=proto.sources, elsewhere=source)
    said = partial(comments, read_root)
    return SchemaInfo(SchemaType.PROTOBUF_NATIVE, schema, source=source, locator=where, comments=said)


def _placed(error: InvalidSchema, source: Source) -> InvalidSchema:
    """`error` of the file at `source`; a message that is not there is no error of the file, but of who named it."""
    return error if error.pointer else InvalidSchema(error.what, fix=error.fix, source=source)


def _root(compiled: bytes, message: str, entry: str) -> ProtoMessage:
    return find_message(Image.of(FileDescriptorSet.FromString(compiled)), message, among={entry})


def _run(protos: Sequence[Proto]) -> Iterator[bytes | InvalidSchema]:
    """Yield protoc's answer to each: a descriptor set with source info, or why there is none."""
    if not protos:
        return
    site, include = _protoc()
    with tempfile.TemporaryDirectory(prefix="schemactl-protoc-") as folder:
        jobs = [Path(folder, str(number)) for number in range(len(protos))]
        invalid = [_write_files(job, proto) for job, proto in zip(jobs, protos, strict=True)]
        todo = [number for number, problem in enumerate(invalid) if problem is None]
        codes: dict[int, str] = {}
        while todo:
            answered = _answers(site, include, [(jobs[number], protos[number].entry) for number in todo])
            codes.update(zip(todo, answered, strict=False))
            todo = todo[len(answered) :]
            if todo:
                # The next one has stopped the process, or time was up: by itself it has all the time there is.
                first, *todo = todo
                codes[first] = "".join(_answers(site, include, [(jobs[first], protos[first].entry)]))
        for number, (job, problem) in enumerate(zip(jobs, invalid, strict=True)):
            yield problem or _outcome(job, codes[number])


def _answers(site: str, include: str, jobs: Sequence[tuple[Path, str]]) -> list[str]:
    """Return the exit codes for folders and entries, up to the first on which the process dies or time is up."""
    command = [sys.executable, "-I", str(WORKER), site, include]
    with worker(command) as running:
        return running.answers([f"{folder}\t{entry}\n" for folder, entry in jobs], TIMEOUT_S)


def has_protoc() -> bool:
    """Whether `.proto` files can be compiled here."""
    return find_spec("grpc_tools") is not None


def _protoc() -> tuple[str, str]:
    """Where grpc_tools is installed, and where protoc's own `.proto` files are."""
    spec = find_spec("grpc_tools")
    if spec is None or not spec.submodule_search_locations:
        raise SchemactlError(
            "a .proto definition needs protoc, which is not installed", fix='pip install "pulsar-schemactl[proto]"'
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    return str(package.parent), str(package / "_proto")


def _write_files(job: Path, proto: Proto) -> InvalidSchema | None:
    """Write the texts to the job's folder, or return why they cannot be."""
    if sum(map(len, proto.sources.values())) > MAX_SOURCE_BYTES:
        return InvalidSchema(f"its files hold more than {MAX_SOURCE_BYTES:,} bytes, more than a broker stores")
    for name, text in proto.sources.items():
        # A leading - or @ would be an option to protoc.
        if not re.fullmatch(r"(?![-@/])[^\0\\\t\n\ud800-\udfff]+", name) or ".." in PurePosixPath(name).parts:
            return InvalidSchema(f"{name!r} is not a file name that protoc can import")
        path = job / "in" / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        except OSError as error:
            return InvalidSchema(f"{name!r} is not a file name that can be compiled here: {error.strerror}")
    return None


def _fix(what: str) -> str:
    """Return what to do about a message of protoc; "" where that is plain, or not known."""
    if "was not found or had errors" in what:
        return "list the file under `references`"
    if what == 'Expected ";".':
        return "end the statement before this one with `;`"
    if following := re.search(r"has already been used in .* Next available field number is (\d+)\.", what):
        return f"write {following[1]}"
    name = re.fullmatch('"([a-z0-9]+)" is not defined.', what)
    near = meant(name[1], _SCALARS) if name else None
    return f"write {near}" if near else ""


_SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)

_PLACED = re.compile(r"(?P<name>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<what>.*)")


def _outcome(job: Path, code: str) -> bytes | InvalidSchema:
    if code == "0":
        return (job / "out").read_bytes()
    if not code:
        return InvalidSchema(f"protoc gave no answer within {TIMEOUT_S:.0f} s, or crashed on it")
    words = (job / "err").read_text(encoding="utf-8", errors="replace").replace(f"{job}/in/", "")
    for line in words.split("\n"):
        placed = _PLACED.fullmatch(line)
        if placed and not placed["what"].startswith("warning: "):
            name, what = placed["name"], placed["what"]
            text = (job / "in" / name).read_bytes() if (job / "in" / name).is_file() else b""
            span = Span(int(placed["line"]), int(placed["column"]))
            return InvalidSchema(what, fix=_fix(what), source=source_at(name, text, span))
    return InvalidSchema(words.strip() or f"protoc ended with exit code {code}")
