"""Topic patterns, the same in every command: a full name, its last parts, or a glob."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from schemactl.errors import UsageError, did_you_mean, first_of

if TYPE_CHECKING:
    from schemactl.model import TopicName

_GLOB_PARTS = re.compile(r"(?:^|(?<=/))\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|.", re.DOTALL)


def matching(pattern: str, names: Iterable[TopicName], *, globs: bool = True) -> list[TopicName]:
    """Return the topics of `names` that `pattern` names, sorted.

    A pattern is a topic's full name, `tenant/namespace/topic`, or any right-hand part of that (`sales/orders`, `orders`), and
    may be a glob: `*`, `?` and `[...]` stop at `/`, `**` does not. A name that is written out names that topic alone; a
    partition stands for its topic. Without `globs`, which few options that destroy something take, they are plain text.
    """
    text = re.sub("-partition-[0-9]+$", "", pattern)
    known = sorted(names)
    exact = [name for name in known if text in (str(name), name.schema_id)]
    if exact:
        return exact
    try:
        expression = glob_expression(text) if globs else re.compile(re.escape(text))
    except re.error:  # a range that runs backwards, such as [z-a]
        return []
    return [name for name in known if any(expression.fullmatch(spelled) for spelled in _spellings(name))]


def glob_expression(glob: str, *, of_files: bool = False) -> re.Pattern[str]:
    """Return what matches a glob: `*`, `?` and `[...]` stop at `/`, `**` does not; `of_files`, `**/` is any folder, or none.

    The text between two `**`, and in that between two `*`, is matched at its first place only: whatever fits behind a
    later place fits behind that one, too. So a glob is fast, however many wildcards a stranger puts into it.

    Raises:
        re.error: for a range that runs backwards.
    """
    # By `**`, what stands before its part; the parts of each by `*`.
    stretches: list[tuple[str, list[str]]] = [("", [""])]
    for part in _GLOB_PARTS.findall(glob):
        if part == "**/" and of_files:
            stretches.append(("(?:.*?/)??", [""]))
        elif part.startswith("**"):
            stretches.append((".*?", [_expression(each) for each in part[2:]] or [""]))
        elif part == "*":
            stretches[-1][1].append("")
        else:
            stretches[-1][1][-1] += _expression(part)
    expression = ""
    for number, (wildcard, (first, *others)) in enumerate(stretches, start=1):
        is_last = number == len(stretches)
        inner = [f"(?>[^/]*?{each})" for each in others]
        if is_last and others:
            inner[-1] = f"[^/]*?{others[-1]}"
        whole = f"{wildcard}{first}{''.join(inner)}"
        expression += whole if is_last else f"(?>{whole})"
    return re.compile(expression, re.DOTALL)


def is_glob(pattern: str, names: Iterable[TopicName]) -> bool:
    """Return whether `pattern` is a glob, and not itself the name of a topic."""
    return any(each in pattern for each in "*?[") and not matching(pattern, names, globs=False)


def select(
    names: Iterable[TopicName], patterns: Sequence[str] = (), namespaces: Sequence[str] = ()
) -> frozenset[TopicName]:
    """Return the topics in one of `namespaces` that match one of `patterns` and no `!PATTERN`; without any, all."""
    found = [name for name in names if not namespaces or str(name.namespace_name) in namespaces]
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    chosen = {name for pattern in wanted for name in matching(pattern, found)} if wanted else set(found)
    return frozenset(
        chosen.difference(*(matching(pattern[1:], found) for pattern in patterns if pattern.startswith("!")))
    )


def select_known(
    names: Collection[TopicName],
    patterns: Sequence[str],
    namespaces: Sequence[str],
    *,
    where: str = "the approved history",
    known_namespaces: Iterable[str] = (),
) -> frozenset[TopicName]:
    """Return what `select` does; raise UsageError if one of `patterns` or `namespaces` matches nothing, or nothing all of them."""
    spaces = {str(name.namespace_name) for name in names} | {*known_namespaces}
    for text in namespaces:
        if text not in spaces:
            raise UsageError(
                f"--namespace {text}: there is no such namespace in {where}{did_you_mean(text, spaces)}"
            )
    for pattern in (each.removeprefix("!") for each in patterns):
        if not select(names, [pattern], namespaces):
            inside = f" in {', '.join(namespaces)}" if namespaces else ""
            raise UsageError(f"no topic of {where} matches {pattern!r}{inside}{_near(pattern, names)}")
    found = select(names, patterns, namespaces)
    if patterns and not found:
        raise UsageError(f"{' '.join(patterns)}: these leave no topic")
    return found


def find_one(
    text: str, names: Collection[TopicName], *, globs: bool = True, where: str = "the approved history"
) -> TopicName:
    """Return the one topic of `names` that `text` names; `where` describes them.

    Raises:
        UsageError: there is none, or several; the message lists what comes near.
    """
    found = matching(text, names, globs=globs)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{text!r} names {len(found)} topics: {first_of(found)}", fix="write more of its name"
        )
    if not names:
        raise UsageError(f"there is no topic {text!r}: {where} declares none yet")
    raise UsageError(f"there is no topic {text!r} in {where}{_near(text, names)}")


def _spellings(name: TopicName) -> tuple[str, ...]:
    return str(name), name.schema_id, f"{name.namespace}/{name.topic}", name.topic


def _expression(part: str) -> str:
    """Return the regular expression of one part of a glob."""
    if part == "?":
        return "[^/]"
    if len(part) > 1:
        inside = part[1:-1].replace("\\", r"\\").replace("^", r"\^").replace("[", r"\[")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(part)


def _near(text: str, names: Collection[TopicName]) -> str:
    """Return, as the end of a message, which of `names` was probably meant, or what names there are."""
    # What was left out is no difference: the name is compared with as many parts as it has.
    parts = 0 if "://" in text else text.count("/") + 1
    spelled = {"/".join(str(name).split("/")[-parts:]): str(name) for name in names}
    known = f"; known: {first_of(sorted(names, key=str))}" if names else ""
    return did_you_mean(text, spelled, shown=spelled, most=3) or known
