"""The reader of the waiver file: every problem with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import yaml

from schemactl.declare.describe import found, nearest, shortened
from schemactl.declare.document import capped
from schemactl.declare.files import Files, obstacle, read_bytes, shown
from schemactl.declare.validation_errors import Misfit, located, validation_errors
from schemactl.declare.yaml_text import read_yaml
from schemactl.errors import DeclarationError, Problem, Source
from schemactl.model import TopicName, Waiver
from schemactl.rules import rules
from schemactl.source import node_place


def read_waivers(files: Files, path: str) -> tuple[tuple[Waiver, ...], tuple[Problem, ...]]:
    """Return the waivers in the file at `path`, those with problems left out, and all its problems. No file: no waivers."""
    if files.kind(path) == "missing":
        return (), ()
    source = Source(shown(path))
    if why := obstacle(files, path):
        return (), (Problem(source, why, "put the file itself here"),)
    try:
        documents, problems = read_yaml(path, read_bytes(files, path))
    except DeclarationError as error:
        return (), error.problems
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
        wrong = located(validation_errors("waiver", entry), node, source.path)
        wrong = wrong or located(_between(entry), node, source.path)
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
        near = nearest(name, known)
        fix = f"write {near}" if near else "`schemactl explain --all` lists the rules"
        yield Misfit.of(("rule",), f"`{shortened(name)}` is not a rule", fix)
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
        date.fromisoformat(entry["until"]),
        source,
        entry.get("field", ""),
    )
