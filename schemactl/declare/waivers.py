"""The reader of the waiver file: every problem with its place and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from schemactl.core.catalog import parse_day
from schemactl.core.errors import DeclarationError, Problem, SchemactlError, Source
from schemactl.core.findings import Waiver
from schemactl.core.names import TopicName
from schemactl.core.rules import rules
from schemactl.core.wording import found, shortened
from schemactl.declare.document import Misfit, capped, problems_of, unknown_rule
from schemactl.declare.files import Files, decode, obstacle, read_bytes, shown
from schemactl.declare.source_location import node_place
from schemactl.declare.yaml_parser import compose, read_yaml, scalar


def read_waivers(files: Files, path: str) -> tuple[tuple[Waiver, ...], tuple[Problem, ...]]:
    """Return the waivers in the file at `path`, those with problems left out, and all its problems. No file: no waivers."""
    if files.kind(path) == "missing":
        return (), ()
    if why := obstacle(files, path):
        return (), (Problem(Source(shown(path)), why, "put the file itself here"),)
    try:
        return parsed(path, read_bytes(files, path))
    except DeclarationError as error:
        return (), error.problems


def parsed(path: str, data: bytes) -> tuple[tuple[Waiver, ...], tuple[Problem, ...]]:
    """Return the waivers in a file's content, and its problems. Raise DeclarationError where it cannot be read at all."""
    documents, problems = read_yaml(path, data)
    source = Source(shown(path))
    if len(documents) > 1:
        second = node_place(source.path, documents[1].node)
        problems.append(Problem(second, "a waiver file has one document", "remove `---`"))
    if not documents or documents[0].value is None:
        return (), capped(problems)
    root, value = documents[0].node, documents[0].value
    if not isinstance(root, yaml.SequenceNode):
        what = f"expected a list of waivers, found {found(value)}"
        return (), capped([*problems, Problem(node_place(source.path, root), what, "write `- rule: ...`")])
    # What is wrong with a key or value as such needs no second word about its shape.
    places = {problem.source for problem in problems}
    waivers = []
    for node, entry in zip(root.value, value, strict=True):
        wrong = problems_of("waiver", entry, node, source.path, _between)
        problems += [problem for problem in wrong if problem.source not in places]
        if not wrong:
            waivers.append(_waiver(entry, node_place(source.path, node)))
    return tuple(waivers), capped(problems)


def _between(entry: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield what is wrong with names of the right shape."""
    for key in ("rule", "topic"):
        if "*" in entry[key]:
            what = f"a waiver is of one {key}, and `{shortened(entry[key])}` has a `*`"
            yield Misfit.of((key,), what, "write an entry for each finding: `schemactl waive` does")
            return
    known = rules()
    name = entry["rule"]
    if name not in known:
        yield Misfit.of(("rule",), *unknown_rule(name, known))
    elif not known[name].is_waivable:
        yield Misfit.of(
            ("rule",),
            f"{name} cannot be waived: it is not about what one change of a schema breaks",
            "remove the entry",
        )


def _waiver(entry: Mapping[str, str], source: Source) -> Waiver:
    return Waiver(
        entry["rule"],
        TopicName.parse(entry["topic"]),
        entry["fingerprint"],
        entry["reason"].strip(),
        entry["owner"].strip(),
        parse_day(entry["until"]),
        source,
        entry.get("field", ""),
    )


_HEAD: Final = """\
# Findings that are approved all the same. `schemactl waive` adds entries. An entry counts in the commit that brings its change:
# once that is merged, it may stay here or be removed.
"""


def with_entries(path: str, data: bytes, waivers: Sequence[Waiver]) -> bytes:
    """Return the content of a waiver file with more waivers at its end; comments and layout stay. b"" is a new file.

    Raises:
        DeclarationError: the file has problems.
        SchemactlError: it is laid out so that nothing can be added.
    """
    before, problems = parsed(path, data)
    if problems:
        raise DeclarationError(problems)
    found = _added(path, data or _HEAD.encode(), waivers).encode()
    try:
        now, problems = parsed(path, found)
    except DeclarationError:
        now = ()
    if problems or now != (*before, *waivers):
        entries = "".join(_entry(each, "") for each in waivers)
        raise SchemactlError(
            f"{shown(path)} is laid out so that nothing can be added to it", fix=f"add it by hand:\n{entries}"
        )
    return found


def _added(path: str, data: bytes, waivers: Sequence[Waiver]) -> str:
    text = decode(path, data)
    line_end = "\r\n" if "\r\n" in text else "\n"
    root = next(iter(compose(path, data)), None)
    indent = ""
    if isinstance(root, yaml.SequenceNode):
        if root.flow_style:
            flow = ", ".join(f"{{{', '.join(_lines(each))}}}" for each in waivers)
            at = root.value[-1].end_mark.index if root.value else root.end_mark.index - 1
            return text[:at] + (", " if root.value else "") + flow + text[at:]
        indent = " " * root.start_mark.column
    elif root is not None:
        # Nothing, spelled out.
        text = text[: root.start_mark.index] + text[root.end_mark.index :]
    # What ends a document stands behind everything.
    ends = _DOCUMENT_END.search(text)
    body, end = (text[: ends.start()], ends[0]) if ends else (text, "")
    body += line_end if body and not body.endswith("\n") else ""
    entries = "".join(_entry(each, indent) for each in waivers).replace("\n", line_end)
    return body + entries + end


_DOCUMENT_END: Final = re.compile(r"^\.\.\.\s.*\Z", re.MULTILINE | re.DOTALL)


def _entry(waiver: Waiver, indent: str) -> str:
    first, *others = _lines(waiver)
    return "".join([f"{indent}- {first}\n", *(f"{indent}  {line}\n" for line in others)])


def _lines(waiver: Waiver) -> Iterator[str]:
    """Yield each key of an entry with its value."""
    yield f"rule: {waiver.rule}"
    yield f"topic: {scalar(str(waiver.topic))}"
    if waiver.field:
        yield f"field: {scalar(waiver.field)}"
    yield f"fingerprint: {scalar(waiver.fingerprint)}"
    yield f"reason: {scalar(waiver.reason)}"
    yield f"owner: {scalar(waiver.owner)}"
    yield f"until: {waiver.until.isoformat()}"
