"""Read the waiver file, with the place of every problem and a fix, and add entries to it for `waive`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import yaml

from schemactl.core.errors import DeclarationError, Problem, SchemactlError, Source
from schemactl.core.escaping import escape_path
from schemactl.core.findings import Waiver
from schemactl.core.rules import get_builtin_rules
from schemactl.core.wording import describe_value, shorten
from schemactl.declare.document import Misfit, describe_unknown_rule, limit_problems, read_shape
from schemactl.declare.files import Files, decode, obstacle, read_bytes
from schemactl.declare.source_location import locate_node
from schemactl.declare.yaml_parser import compose, read_yaml, scalar

if TYPE_CHECKING:
    from schemactl.declare.models import WaiverShape


def read_waivers(files: Files, path: str) -> tuple[tuple[Waiver, ...], tuple[Problem, ...]]:
    """Read the valid waivers in the file at `path`, and all its problems. A missing file has no waivers."""
    if files.kind(path) == "missing":
        return (), ()
    if reason := obstacle(files, path):
        return (), (Problem(Source(escape_path(path)), reason, "put the file itself here"),)
    try:
        return parse_waivers(path, read_bytes(files, path))
    except DeclarationError as error:
        return (), error.problems


def parse_waivers(path: str, data: bytes) -> tuple[tuple[Waiver, ...], tuple[Problem, ...]]:
    """Parse the content of a waiver file, and return its valid waivers and all its problems.

    Raises:
        DeclarationError: if the content is not YAML.
    """
    documents, problems = read_yaml(path, data)
    source = Source(escape_path(path))
    if len(documents) > 1:
        second = locate_node(source.path, documents[1].node)
        problems.append(Problem(second, "a waiver file has one document", "remove `---`"))
    if not documents or documents[0].value is None:
        return (), limit_problems(problems)
    root, value = documents[0].node, documents[0].value
    if not isinstance(root, yaml.SequenceNode):
        message = f"expected a list of waivers, found {describe_value(value)}"
        return (), limit_problems([*problems, Problem(locate_node(source.path, root), message, "write `- rule: ...`")])
    # A key or value that the YAML reader rejected gets no second problem from validation.
    places = {problem.source for problem in problems}
    waivers = []
    for node, entry in zip(root.value, value, strict=True):
        shape, errors = read_shape("waiver", entry, node, source.path, partial(_check_names, entry))
        problems += [problem for problem in errors if problem.source not in places]
        if not errors:
            waiver = Waiver(
                shape.rule,
                shape.topic,
                shape.fingerprint,
                shape.reason.strip(),
                shape.owner.strip(),
                shape.until,
                locate_node(source.path, node),
                shape.field or "",
            )
            waivers.append(waiver)
    return tuple(waivers), limit_problems(problems)


def _check_names(entry: Mapping[str, Any], shape: WaiverShape) -> Iterator[Misfit]:
    """Yield the problems of the rule and topic of an entry that fits the model; `entry` has them as written."""
    for key in ("rule", "topic"):
        if "*" in entry[key]:
            message = f"a waiver covers one {key}, and `{shorten(entry[key])}` has a `*`"
            yield Misfit((key,), message, "write an entry for each finding: `schemactl waive` does")
            return
    known_rules = get_builtin_rules()
    name = shape.rule
    if name not in known_rules:
        yield Misfit(("rule",), *describe_unknown_rule(name, known_rules))
    elif not known_rules[name].is_waivable:
        yield Misfit(
            ("rule",),
            f"{name} cannot be waived: it does not report a breaking change of one schema",
            "remove the entry",
        )


_HEADER: Final = """\
# Findings on changes that are approved in spite of them. `schemactl waive` adds entries. An entry counts in the commit of its change:
# once that is merged, it may stay here or be removed.
"""


_DOCUMENT_END: Final = re.compile(r"^\.\.\.\s.*\Z", re.MULTILINE | re.DOTALL)


def add_waivers(path: str, data: bytes, waivers: Sequence[Waiver]) -> bytes:
    """Add waivers at the end of a waiver file, whose comments and formatting stay, and return its new content.

    Args:
        path: the path of the file, for problems.
        data: its content, or b"" for a new file.
        waivers: the waivers to add.

    Raises:
        DeclarationError: all problems of the file.
        SchemactlError: if entries cannot be added because of its formatting.
    """
    old_waivers, problems = parse_waivers(path, data)
    if problems:
        raise DeclarationError(problems)
    content = _append_entries(path, data or _HEADER.encode(), waivers).encode()
    try:
        new_waivers, problems = parse_waivers(path, content)
    except DeclarationError:
        new_waivers = ()
    if problems or new_waivers != (*old_waivers, *waivers):
        entries = "".join(_render_entry(waiver, "") for waiver in waivers)
        raise SchemactlError(
            f"{escape_path(path)} cannot be extended because of its formatting", fix=f"add it by hand:\n{entries}"
        )
    return content


def _append_entries(path: str, data: bytes, waivers: Sequence[Waiver]) -> str:
    text = decode(path, data)
    line_end = "\r\n" if "\r\n" in text else "\n"
    root = next(iter(compose(path, data)), None)
    indent = ""
    if isinstance(root, yaml.SequenceNode):
        if root.flow_style:
            entries = ", ".join(f"{{{', '.join(_render_lines(waiver))}}}" for waiver in waivers)
            end = root.value[-1].end_mark.index if root.value else root.end_mark.index - 1
            return text[:end] + (", " if root.value else "") + entries + text[end:]
        indent = " " * root.start_mark.column
    elif root is not None:
        # An explicit null is replaced.
        text = text[: root.start_mark.index] + text[root.end_mark.index :]
    # The end mark of the document stays at the end.
    document_end = _DOCUMENT_END.search(text)
    body, tail = (text[: document_end.start()], document_end[0]) if document_end else (text, "")
    body += line_end if body and not body.endswith("\n") else ""
    block_entries = "".join(_render_entry(waiver, indent) for waiver in waivers).replace("\n", line_end)
    return body + block_entries + tail


def _render_entry(waiver: Waiver, indent: str) -> str:
    first, *others = _render_lines(waiver)
    return "".join([f"{indent}- {first}\n", *(f"{indent}  {line}\n" for line in others)])


def _render_lines(waiver: Waiver) -> Iterator[str]:
    """Yield the lines of an entry, a key with its value in each."""
    yield f"rule: {waiver.rule}"
    yield f"topic: {scalar(str(waiver.topic))}"
    if waiver.field:
        yield f"field: {scalar(waiver.field)}"
    yield f"fingerprint: {scalar(waiver.fingerprint)}"
    yield f"reason: {scalar(waiver.reason)}"
    yield f"owner: {scalar(waiver.owner)}"
    yield f"until: {waiver.until.isoformat()}"
