"""buf's rules on files and packages, one function a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import FileOptions

from schemactl.formats.protobuf_native.descriptor import Enum, Field, Message, Service
from schemactl.formats.protobuf_native.image import Declared, File, Image, declared_by
from schemactl.formats.protobuf_native.violation import Violation, violation

FileRule = Callable[[File, File], Iterator[Violation]]
ImageRule = Callable[["Change"], Iterator[Violation]]
Named: TypeAlias = Message | Enum | Service | Field


class Change:
    """Two images, and what the files that differ between them declare.

    What an unchanged file declares is the same on both sides, so no rule needs to look there; only whether a name or
    a package still exists is asked of the whole.
    """

    def __init__(self, old: Image, new: Image, *, everything: bool = False) -> None:
        self.old, self.new, self.everything = old, new, everything
        self.pairs = [
            (file, new.files[name])
            for name, file in old.files.items()
            if name in new.files and (everything or file.proto != new.files[name].proto)
        ]
        self.gone = [file for name, file in old.files.items() if name not in new.files]
        self.old_files = [before for before, _ in self.pairs] + self.gone
        self.new_files = [after for _, after in self.pairs]
        self.new_files += [file for name, file in new.files.items() if name not in old.files]

    @cached_property
    def before(self) -> Declared:
        """What the changed files declared."""
        return declared_by(self.old_files)

    @cached_property
    def after(self) -> Declared:
        """What they declare now."""
        return declared_by(self.new_files)

    def enums(self) -> Iterator[tuple[Enum, Enum]]:
        """Each enum that is in both, by full name."""
        for name, old in self.before.enums.items():
            if name in self.after.enums:
                yield old, self.after.enums[name]

    def messages(self) -> Iterator[tuple[Message, Message]]:
        """Each message that is in both and means something else, by full name."""
        for name, old in self.before.messages.items():
            new = self.after.messages.get(name)
            if new is None:
                continue
            if (
                self.everything
                or old.proto != new.proto
                or old.features != new.features
                or old.file.context != new.file.context
            ):
                yield old, new

    def services(self) -> Iterator[tuple[Service, Service]]:
        """Each service that is in both, by full name."""
        for name, old in self.before.services.items():
            if name in self.after.services:
                yield old, self.after.services[name]

    def extensions(self) -> Iterator[tuple[Field, Field]]:
        """Each extension that is in both, by extended message and number."""
        for key, old in self.before.extensions.items():
            if key in self.after.extensions:
                yield old, self.after.extensions[key]


def _same_option(option: str) -> FileRule:
    rule = f"FILE_SAME_{option.upper()}"

    def check(old: File, new: File) -> Iterator[Violation]:
        before, after = (getattr(file.proto.options, option) for file in (old, new))
        if before != after:
            changed = f'from "{_shown(option, before)}" to "{_shown(option, after)}"'
            yield violation(rule, f'File option "{option}" changed {changed}.', (new, option))

    return check


_OPTIMIZE_MODES: dict[int, str] = {number: name for name, number in FileOptions.OptimizeMode.items()}


def _shown(option: str, value: str | int) -> str:
    if option == "optimize_for":
        return _OPTIMIZE_MODES[int(value)]
    return str(value).lower() if isinstance(value, bool) else str(value)


def same_package(old: File, new: File) -> Iterator[Violation]:
    """The package, without which nothing else in the file keeps its name."""
    if old.proto.package != new.proto.package:
        words = f'File package changed from "{old.proto.package}" to "{new.proto.package}".'
        yield violation("FILE_SAME_PACKAGE", words, (new, "package"))


def same_syntax(old: File, new: File) -> Iterator[Violation]:
    """proto2, proto3 or editions."""
    before, after = old.proto.syntax or "proto2", new.proto.syntax or "proto2"
    if before != after:
        yield violation(
            "FILE_SAME_SYNTAX", f'File syntax changed from "{before}" to "{after}".', (new, "syntax")
        )


def _no_delete(noun: str, kind: type[Named]) -> FileRule:
    rule = f"{noun.upper()}_NO_DELETE"

    def check(old: File, new: File) -> Iterator[Violation]:
        kept = _named(new, kind)
        for name, element in _named(old, kind).items():
            if name not in kept:
                words = f'Previously present {noun} "{name}" was deleted from file.'
                yield violation(rule, words, (_enclosing(name, [new]) or new, ""), pointer=element.pointer)

    return check


def _named(file: File, kind: type[Named]) -> dict[str, Named]:
    """What `file` declares of one kind, by name without the package."""
    found = {}
    for element in file.elements():
        if isinstance(element, kind):
            found[element.nested_name] = element
    return found


def _enclosing(nested_name: str, files: Iterable[File]) -> Message | None:
    """The innermost message of `files` that something called `nested_name` would be in."""
    elements = (element for file in files for element in file.elements())
    messages = {element.nested_name: element for element in elements if isinstance(element, Message)}
    while nested_name:
        nested_name = nested_name.rpartition(".")[0]
        if nested_name in messages:
            return messages[nested_name]
    return None


def file_no_delete(change: Change) -> Iterator[Violation]:
    """Every file, by path."""
    for file in change.gone:
        words = f'Previously present file "{file.name}" was deleted.'
        yield Violation("FILE_NO_DELETE", words, pointer=file.pointer)


def package_no_delete(change: Change) -> Iterator[Violation]:
    """Every package."""
    kept = {file.proto.package for file in change.new.files.values()}
    for package in {file.proto.package: None for file in change.old_files}:
        if package not in kept:
            yield Violation("PACKAGE_NO_DELETE", f'Previously present package "{package}" was deleted.')


def _package_no_delete(noun: str, kind: type[Named]) -> ImageRule:
    rule = f"PACKAGE_{noun.upper()}_NO_DELETE"

    def check(change: Change) -> Iterator[Violation]:
        kept = {(file.proto.package, name) for file in change.new_files for name in _named(file, kind)}
        for file in change.old_files:
            package = file.proto.package
            for name, element in _named(file, kind).items():
                # A package with nothing left of the kind is passed over, as buf does; services are looked for in
                # every package that is left.
                if (package, name) in kept or not _remains(change.new, package, kind):
                    continue
                words = f'Previously present {noun} "{name}" was deleted from package "{package}".'
                now = change.new.files.get(file.name)
                if now is None:
                    yield Violation(rule, words, pointer=element.pointer)
                    continue
                # A message's parent is sought in the whole package, that of anything else in the file.
                around = _of_package(change.new, package) if kind is Message else [now]
                yield violation(rule, words, (_enclosing(name, around) or now, ""), pointer=element.pointer)

    return check


def _remains(image: Image, package: str, kind: type[Named]) -> bool:
    files = _of_package(image, package)
    return bool(files) and (
        kind is Service or any(isinstance(element, kind) for file in files for element in file.elements())
    )


def _of_package(image: Image, package: str) -> list[File]:
    return [file for file in image.files.values() if file.proto.package == package]


_OPTIONS = (
    "cc_enable_arenas",
    "cc_generic_services",
    "csharp_namespace",
    "go_package",
    "java_generic_services",
    "java_multiple_files",
    "java_outer_classname",
    "java_package",
    "objc_class_prefix",
    "optimize_for",
    "php_class_prefix",
    "php_metadata_namespace",
    "php_namespace",
    "py_generic_services",
    "ruby_package",
    "swift_prefix",
)

FILE_RULES: Mapping[str, FileRule] = {
    "ENUM_NO_DELETE": _no_delete("enum", Enum),
    "EXTENSION_NO_DELETE": _no_delete("extension", Field),
    "FILE_SAME_PACKAGE": same_package,
    "FILE_SAME_SYNTAX": same_syntax,
    "MESSAGE_NO_DELETE": _no_delete("message", Message),
    "SERVICE_NO_DELETE": _no_delete("service", Service),
    **{f"FILE_SAME_{option.upper()}": _same_option(option) for option in _OPTIONS},
}

IMAGE_RULES: Mapping[str, ImageRule] = {
    "FILE_NO_DELETE": file_no_delete,
    "PACKAGE_ENUM_NO_DELETE": _package_no_delete("enum", Enum),
    "PACKAGE_EXTENSION_NO_DELETE": _package_no_delete("extension", Field),
    "PACKAGE_MESSAGE_NO_DELETE": _package_no_delete("message", Message),
    "PACKAGE_NO_DELETE": package_no_delete,
    "PACKAGE_SERVICE_NO_DELETE": _package_no_delete("service", Service),
}
