"""What a plan file consists of, by JSON types: whoever wrote it, the parts that read it meet nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_TEXT: Final = (str,)
_TEXT_OR_NONE: Final = (str, type(None))
_NUMBER: Final = (int,)
_NUMBER_OR_NONE: Final = (int, type(None))
_FLAG: Final = (bool,)

_COMMIT: Final = ({"id": _TEXT, "time_s": _NUMBER, "subject": _TEXT}, type(None))
_SCHEMA: Final = (
    {"type": _TEXT, "schema?": _TEXT, "schema_b64?": _TEXT, "properties": ({"*": _TEXT},)},
    type(None),
)
_ANSWER: Final = {
    "answer": _TEXT,
    "version": _NUMBER_OR_NONE,
    "message": _TEXT,
    "exception": _TEXT,
}
_POLICIES: Final = {
    "schema_compatibility_strategy?": _TEXT_OR_NONE,
    "is_allow_auto_update_schema?": (bool, type(None)),
    "schema_validation_enforced?": (bool, type(None)),
}
_LISTED: Final = {
    "registry": _NUMBER_OR_NONE,
    "git": _NUMBER_OR_NONE,
    "state": _TEXT,
    "type?": _TEXT_OR_NONE,
    "time_ms": _NUMBER_OR_NONE,
    "commit": _COMMIT,
    "stamp?": _TEXT_OR_NONE,
    "schema?": _SCHEMA,
}
_STEP: Final = {
    "action": _TEXT,
    "namespace?": _TEXT,
    "topic?": _TEXT,
    "partitions?": _NUMBER_OR_NONE,
    "version?": _NUMBER,
    "commit?": _COMMIT,
    "schema?": _SCHEMA,
    "answer?": (_ANSWER,),
    "strategy?": _TEXT,
    "versions?": ([_NUMBER],),
    "force?": _FLAG,
    "number?": _NUMBER,
}
_GROWING: Final = {**_STEP, "before": _NUMBER, "after": _NUMBER}
_SETTING: Final = {**_STEP, "before": (_POLICIES,), "after": (_POLICIES,)}

_PLAN: Final = {
    "format_version": _NUMBER,
    "schemactl": _TEXT,
    "target": _TEXT,
    "registry": _TEXT,
    "pulsar": _TEXT,
    "registry_version?": _TEXT,
    "approved": ({"ref": _TEXT, "commit": _COMMIT},),
    "state_digest": _TEXT,
    "scope": ({"namespaces": ([_TEXT],), "topics": ([_TEXT],)},),
    "steps": ([({"action": _TEXT},)],),
    "notes": ([({"topic": _TEXT, "kind": _TEXT, "message": _TEXT},)],),
    "refusals": (
        [
            (
                {
                    "topic": _TEXT,
                    "version": _NUMBER_OR_NONE,
                    "answer": (_ANSWER, type(None)),
                    "message": _TEXT,
                    "fix": _TEXT,
                },
            )
        ],
    ),
    "numbers_apart?": (
        [({"topic": _TEXT, "registry": _NUMBER, "git": _NUMBER_OR_NONE, "state": _TEXT, "recorded": _FLAG},)],
    ),
    "numbers_apart_now?": _FLAG,
    "lists?": ([({"topic": _TEXT, "versions": ([(_LISTED,)],)},)],),
}
"""Every key with what its value may be: types; {...}: an object with such keys, `key?` may be missing, `*` is any;
[...]: a list of such values. What else an object has is left to later formats."""

_WORDS: Final = {
    str: "text",
    int: "a number",
    bool: "true or false",
    type(None): "null",
    dict: "an object",
    list: "a list",
}


def misfit(plan: dict[str, Any]) -> str | None:
    """What has a wrong type in a plan's JSON value, or is missing, in words; None: nothing."""
    found = next(_misfits(plan, (_PLAN,), ""), None)
    if found is None:
        for number, step in enumerate(plan["steps"]):
            action = step["action"]
            shape = _GROWING if action == "grow_partitions" else _SETTING if "policies" in action else _STEP
            found = found or next(_misfits(step, (shape,), f"steps[{number}]"), None)
    return found


def _misfits(value: object, allowed: tuple[Any, ...], place: str) -> Iterator[str]:
    for shape in allowed:
        # A truth value is an int in Python, and none in JSON.
        if type(value) is (shape if isinstance(shape, type) else type(shape)):
            break
    else:
        kinds = [_WORDS[shape if isinstance(shape, type) else type(shape)] for shape in allowed]
        yield f"`{place}` is {_WORDS.get(type(value), 'a number with a fraction')}, expected {' or '.join(kinds)}"
        return
    if isinstance(shape, list) and isinstance(value, list):
        for number, each in enumerate(value):
            yield from _misfits(each, shape[0], f"{place}[{number}]")
    elif isinstance(shape, dict) and isinstance(value, dict):
        yield from _misfits_inside(value, shape, f"{place}." if place else "")


def _misfits_inside(value: dict[str, Any], shape: dict[str, Any], before: str) -> Iterator[str]:
    if "*" in shape:
        shape = dict.fromkeys(value, shape["*"])
    for key, allowed in shape.items():
        name = key if key in value else key.removesuffix("?")
        if name in value:
            yield from _misfits(value[name], allowed, f"{before}{name}")
        elif name == key:
            yield f"`{before}{name}` is missing"
