"""Compile `.proto` files, or read a descriptor set, into the definition that Pulsar stores, with source places.

protoc comes with the package grpcio-tools. One process (see `protoc_worker`) compiles many definitions, in a temporary folder with
copies of the given texts: protoc neither writes the user's files nor reads other files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schemactl.core.errors import DependsOnProtoc, InvalidSchema, SchemactlError, Source, find_close_match
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats.protobuf.definition import (
    digest_files,
    find_message,
    from_descriptor_set,
    make_locator,
    make_source,
    read_comments,
)
from schemactl.formats.protobuf.descriptor import Image, ProtoMessage, Span
from schemactl.formats.protobuf.protoc_process import describe_installation, open_worker
from schemactl.formats.protobuf.rendering import render, render_set

MAX_SOURCE_BYTES: Final = 5 * 2**20
"""The maximum size of one definition with its imports: a broker stores no larger schema."""

_TIMEOUT_S: Final = 30.0
"""The time for one run of protoc, and for the separate run of a definition without an answer; a thousand typical ones take 1 s."""

_WORKER: Final = Path(__file__).with_name("protoc_worker.py")
"""The script that runs protoc."""

_CACHE_BYTES: Final = 64 * 2**20

_SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)

_MESSAGE_WITH_PLACE = re.compile(r"(?P<name>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)")

_FILE_NAME: Final = re.compile(r"(?![-@/])[^\0\\\t\n\ud800-\udfff]+")

_EDITION: Final = re.compile(rb"""^\s*edition\s*=\s*["'](\d{4}\w*)["']""", re.MULTILINE)

_OWN_DECLARATION: Final = re.compile(r"google[./]protobuf[./]|^Option \"(?!\()[^\"]*\" unknown")
"""Messages about protoc's own files and options, which each release extends."""

_compiled: dict[str, bytes | InvalidSchema] = {}
"""The answers of protoc by digest, the oldest first."""


@dataclass(frozen=True, slots=True)
class Proto:
    """One definition to compile.

    Attributes:
        message: the root message's full name.
        entry: the import name of the file that declares it.
        sources: the texts of `entry` and its imports by import name; protoc's own files may be missing.
        paths: the paths of the files in the repository by import name; a missing file is at its import name.
    """

    message: str
    entry: str
    sources: Mapping[str, bytes]
    paths: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_text(cls, text: str, message: str) -> Proto:
        """Return a definition that is a single text, without a file."""
        return cls(message, "schema.proto", {"schema.proto": text.encode(errors="replace")})

    def digest(self) -> str:
        """Return a digest of everything that protoc's answer depends on."""
        digest = hashlib.sha256(repr(self.entry).encode())
        for name, text in sorted(self.sources.items()):
            digest.update(f"{name!r}{len(text)}\0".encode() + text)
        return digest.hexdigest()


def compile_proto(proto: Proto) -> SchemaInfo:
    """Return the PROTOBUF_NATIVE definition of `proto`; its locator leads into the texts.

    Raises:
        InvalidSchema: if it does not compile (with protoc's message and place), or has no such message.
        SchemactlError: if protoc is not installed.
    """
    [answer] = compile_all([proto])
    if isinstance(answer, InvalidSchema):
        raise answer
    return answer


def compile_all(protos: Sequence[Proto]) -> list[SchemaInfo | InvalidSchema]:
    """Return the result of `compile_proto`, or its InvalidSchema, for each definition; one process compiles all without a cached result.

    Raises:
        SchemactlError: if protoc is not installed.
    """
    digests = [proto.digest() for proto in protos]
    new = {digest: proto for digest, proto in zip(digests, protos, strict=True) if digest not in _compiled}
    _compiled.update(zip(new, _run(list(new.values())), strict=True))
    answers: dict[int, SchemaInfo | InvalidSchema] = {}
    # The definitions of one file share its parsed descriptors, of which few stay in memory.
    for number in sorted(range(len(protos)), key=digests.__getitem__):
        answers[number] = _make_definition(protos[number], _compiled[digests[number]])
    cache_bytes = sum(map(_count_bytes, _compiled.values()))
    while cache_bytes > _CACHE_BYTES:
        oldest = next(iter(_compiled))
        cache_bytes -= _count_bytes(_compiled.pop(oldest))
    return [answers[number] for number in range(len(protos))]


def _count_bytes(answer: bytes | InvalidSchema) -> int:
    return len(answer) if isinstance(answer, bytes) else len(answer.message)


def _make_definition(proto: Proto, answer: bytes | InvalidSchema) -> SchemaInfo | InvalidSchema:
    source = Source(proto.paths.get(proto.entry, proto.entry))
    if isinstance(answer, InvalidSchema):
        place = answer.source
        if place is not None:
            place = Source(proto.paths.get(place.path, place.path), place.line, place.column)
        return type(answer)(answer.message, fix=answer.fix, source=place or source)

    def read_root() -> ProtoMessage:
        return find_message(_read_image(answer), proto.message, among={proto.entry})

    try:
        schema = render(read_root(), proto.sources)
    except InvalidSchema as error:
        return _add_source(error, source)
    paths = {name: proto.paths.get(name, name) for name in proto.sources}
    return SchemaInfo(
        SchemaType.PROTOBUF_NATIVE,
        schema,
        source=source,
        locator=make_locator(read_root, paths=paths, texts=proto.sources, elsewhere=source),
        comments=partial(read_comments, read_root),
    )


def _add_source(error: InvalidSchema, source: Source) -> InvalidSchema:
    """Return `error` at `source`, except a missing message: its error is in the declaration that names it."""
    return error if error.pointer else InvalidSchema(error.message, fix=error.fix, source=source)


@lru_cache(maxsize=2)
def _read_image(compiled: bytes) -> Image:
    """Parse the answer of protoc, which the topics of one `.proto` file share."""
    return Image.of(FileDescriptorSet.FromString(compiled))


def identify(info: SchemaInfo) -> Hashable:
    """Return `formats.identity` of a definition from `compile_proto`, also if brokers reject the definition.

    The versions of a topic depend on it, so rules about brokers that are added later must not make approved definitions unreadable.
    """
    envelope = json.loads(info.schema)
    return info.type, (envelope["rootMessageTypeName"], _digest_files(envelope["fileDescriptorSet"]))


@lru_cache(maxsize=2)
def _digest_files(encoded: str) -> str:
    """Return the digest of the declarations in a descriptor set, in which every file is reachable from the root's."""
    return digest_files(FileDescriptorSet.FromString(base64.b64decode(encoded)).file)


def read_descriptor_set(data: bytes, message: str, *, path: str) -> SchemaInfo:
    """Return the PROTOBUF_NATIVE definition in a serialized FileDescriptorSet at `path`.

    Raises:
        InvalidSchema: if `data` is not a descriptor set, its files do not fit together, or it has no such message.
    """
    source = Source(path)
    try:
        schema = render_set(from_descriptor_set(data, message))
    except InvalidSchema as error:
        raise _add_source(error, source) from error
    return SchemaInfo(SchemaType.PROTOBUF_NATIVE, schema, source=source)


def has_protoc() -> bool:
    """Return whether protoc is installed."""
    return find_spec("grpc_tools") is not None


# Runs of protoc


def _run(protos: Sequence[Proto]) -> Iterator[bytes | InvalidSchema]:
    """Yield protoc's answer to each definition: a descriptor set with source info, or the reason for its absence."""
    if not protos:
        return
    with tempfile.TemporaryDirectory(prefix="schemactl-protoc-") as folder:
        jobs = [
            (Path(folder, str(number)), ["--include_imports", "--include_source_info", proto.entry])
            for number, proto in enumerate(protos)
        ]
        problems = [_write_files(job, proto) for (job, _), proto in zip(jobs, protos, strict=True)]
        pending = [number for number, problem in enumerate(problems) if problem is None]
        codes: dict[int, str] = {}
        while pending:
            answers = _run_jobs([jobs[number] for number in pending])
            codes.update(zip(pending, answers, strict=False))
            pending = pending[len(answers) :]
            if pending:
                # The next job killed the process, or exceeded the time: its separate run has the whole time.
                first, *pending = pending
                codes[first] = "".join(_run_jobs([jobs[first]]))
        for number, ((job, _), problem) in enumerate(zip(jobs, problems, strict=True)):
            outcome = problem or _read_outcome(job, codes[number])
            if isinstance(outcome, InvalidSchema) and _depends_on_protoc(outcome, protos[number]):
                fix = "install a release that compiles it: pip install --upgrade grpcio-tools"
                outcome = DependsOnProtoc(
                    f"{outcome.message} (protoc of {describe_installation()})", fix=fix, source=outcome.source
                )
            yield outcome


def _depends_on_protoc(error: InvalidSchema, proto: Proto) -> bool:
    """Return whether another release of protoc may accept a definition that the installed one rejects.

    Since the oldest supported release, protoc 29, texts differ between releases only by editions and by protoc's own files.
    """
    if isinstance(error, DependsOnProtoc) or _OWN_DECLARATION.search(error.message):
        return True
    editions = {match[1].decode() for text in proto.sources.values() for match in _EDITION.finditer(text)}
    return not all(map(_has_edition, sorted(editions)))


@cache
def _has_edition(edition: str) -> bool:
    """Return whether the installed protoc compiles files of the edition."""
    text = f'edition = "{edition}";\nmessage A {{}}\n'.encode()
    with tempfile.TemporaryDirectory(prefix="schemactl-protoc-") as folder:
        job = Path(folder, "0")
        _write_files(job, Proto("A", "a.proto", {"a.proto": text}))
        return _run_jobs([(job, ["a.proto"])]) == ["0"]


def _write_files(job: Path, proto: Proto) -> InvalidSchema | None:
    """Write the texts to the job's folder, or return the reason why that is impossible."""
    if problem := find_problem(proto):
        return problem
    for name, text in proto.sources.items():
        path = job / "in" / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        except OSError as error:
            return DependsOnProtoc(f"{name!r} is not a file name that can be compiled here: {error.strerror}")
    return None


def find_problem(proto: Proto) -> InvalidSchema | None:
    """Return the reason why the files cannot be given to protoc, or None if they can."""
    if sum(map(len, proto.sources.values())) > MAX_SOURCE_BYTES:
        return InvalidSchema(f"its files have more than {MAX_SOURCE_BYTES:,} bytes, more than a broker stores")
    for name in proto.sources:
        # protoc would read a leading - or @ as an option.
        if not _FILE_NAME.fullmatch(name) or ".." in PurePosixPath(name).parts:
            return InvalidSchema(f"{name!r} is not a file name that protoc can import")
    return None


def _run_jobs(jobs: Sequence[tuple[Path, Sequence[str]]]) -> list[str]:
    """Return the exit codes of the jobs (folder and arguments), up to the first that kills the process or exceeds the time.

    Raises:
        SchemactlError: if protoc is not installed.
    """
    spec = find_spec("grpc_tools")
    if spec is None or not spec.submodule_search_locations:
        raise SchemactlError(
            "a .proto definition needs protoc, which is not installed", fix='pip install "pulsar-schemactl[proto]"'
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    command = [sys.executable, "-I", str(_WORKER), str(package.parent), str(package / "_proto")]
    with open_worker(command) as process:
        return process.answers(["\t".join([str(folder), *arguments]) + "\n" for folder, arguments in jobs], _TIMEOUT_S)


def compile_files(folder: Path, names: Iterable[str]) -> FileDescriptorSet | None:
    """Compile files in `folder`/in, and return them without their imports and source info, or None if that fails.

    Raises:
        SchemactlError: if protoc is not installed.
    """
    codes = _run_jobs([(folder, [*names])])
    return FileDescriptorSet.FromString((folder / "out").read_bytes()) if codes == ["0"] else None


def _read_outcome(job: Path, code: str) -> bytes | InvalidSchema:
    if code == "0":
        return (job / "out").read_bytes()
    if not code:
        return DependsOnProtoc(f"protoc timed out after {_TIMEOUT_S:.0f} s, or crashed")
    output = (job / "err").read_text(encoding="utf-8", errors="replace").replace(f"{job}/in/", "")
    for line in output.split("\n"):
        match = _MESSAGE_WITH_PLACE.fullmatch(line)
        if match and not match["message"].startswith("warning: "):
            name, message = match["name"], match["message"]
            text = (job / "in" / name).read_bytes() if (job / "in" / name).is_file() else b""
            span = Span(int(match["line"]), int(match["column"]))
            return InvalidSchema(message, fix=_suggest_fix(message), source=make_source(name, text, span))
    return InvalidSchema(output.strip() or f"protoc ended with exit code {code}")


def _suggest_fix(message: str) -> str:
    """Return the fix for a message of protoc, or "" if it is obvious or unknown."""
    if "was not found or had errors" in message:
        return "list the file under `references`"
    if message == 'Expected ";".':
        return "end the statement before this one with `;`"
    if match := re.search(r"has already been used in .* Next available field number is (\d+)\.", message):
        return f"write {match[1]}"
    name = re.fullmatch('"([a-z0-9]+)" is not defined.', message)
    suggestion = find_close_match(name[1], _SCALARS) if name else None
    return f"write {suggestion}" if suggestion else ""
