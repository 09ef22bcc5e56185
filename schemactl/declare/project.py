"""Find and read the project file, schemactl.yaml. Its paths become relative to the repository's top."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from schemactl.core.atomic_files import reject_links
from schemactl.core.errors import (
    DeclarationError,
    MissingProject,
    Problem,
    SchemactlError,
    Source,
    UsageError,
    did_you_mean,
    find_close_match,
    join_first,
)
from schemactl.core.escaping import escape_path
from schemactl.core.names import NamespaceName, parse_tenant
from schemactl.core.policies import BrokerDefaults
from schemactl.core.project import DEFAULT_CHECKERS, EXCLUDED, OPTIONAL_CHECKERS, Generate, NameStyles, Project, Target
from schemactl.core.rules import get_all_rules, get_builtin_rules
from schemactl.core.schema import EMPTY, Release
from schemactl.core.wording import describe_value, shorten
from schemactl.declare.document import (
    KEY_VALUE_PROPERTIES,
    RESERVED_PROPERTIES,
    Misfit,
    describe_unknown_rule,
    limit_problems,
    read_shape,
)
from schemactl.declare.files import (
    YAML_SUFFIXES,
    Files,
    WorktreeFiles,
    list_folders_with_yaml,
    make_relative,
    obstacle,
    read_bytes,
    resolve,
)
from schemactl.declare.source_location import Tokens
from schemactl.declare.yaml_parser import YamlText, read_yaml

if TYPE_CHECKING:
    from schemactl.core.findings import Severity
    from schemactl.declare.models import MappingShape, ProjectShape, TargetShape

PROJECT_FILE: Final = "schemactl.yaml"

_CREDENTIALS: Final = ("token_env", "token_file", "cert_file", "key_file", "oauth2", "ca_file")
"""The keys of a target with its credentials."""

_IMPORT_PREFIX: Final = re.compile(r"[^/\s\\]+(?:/[^/\s\\]+)*")
"""The folders with which the name of an import can begin."""


def load_project(directory: str, config: str | None = None, *, files: Files | None = None) -> tuple[Project, str]:
    """Read the project of the folder `directory`, and return it with the top of its working tree.

    The project file is `config`, or the nearest schemactl.yaml in `directory` or above, within the repository. The top is
    the folder with `.git`; outside of a repository, the folder of the project file. With `files`, the project file is found and
    read there instead of in the working tree.

    Raises:
        UsageError: if `config` is not a file of the repository.
        SchemactlError: if there is no project file, or `config` is behind a link or in another repository.
        DeclarationError: all problems of the project file.
    """
    # Links are resolved first, as in Git: the repository of the real folder counts.
    here = Path(directory).resolve()
    top: Path | None
    if config is not None:
        path = here / config
        reject_links(path, below=str(_find_top(here) or here))
        folder = path.parent.resolve()
        current_top = _find_top(here)
        top = _find_top(folder)
        if top != current_top and not path.exists():
            raise UsageError(f"--config {config}: no such file")
        if top != current_top:
            raise SchemactlError(
                f"--config {config} is in {f'the repository {top}' if top else 'no repository'}, and {here} is in "
                f"{current_top or 'none'}: its files would be compared with the history of another repository",
                fix=f"work where the project file is: -C {folder}" + ("" if top else ", in a repository"),
            )
        top = top or folder
        name = (folder / path.name).relative_to(top).as_posix()
        source = files or WorktreeFiles(str(top))
        if source.kind(name) != "file":
            raise UsageError(f"--config {config}: no such file")
        return _read_with_roots(source, name, top)
    top = _find_top(here)
    for folder in (here, *here.parents):
        base = top or folder
        name = (folder / PROJECT_FILE).relative_to(base).as_posix()
        source = files or WorktreeFiles(str(base))
        if source.kind(name) != "missing":
            reason = obstacle(source, name)
            if reason:
                raise DeclarationError([Problem(Source(escape_path(name)), reason, "put the file itself here")])
            return _read_with_roots(source, name, base)
        if folder == top:
            break
    raise MissingProject(
        f"there is no {PROJECT_FILE} in {here}" + (" or above it" if here != top else ""),
        fix=_suggest_project_folder(here),
    )


def _suggest_project_folder(folder: Path) -> str:
    """Return the fix for a folder without a project: the option `-C` with a project at most two folders below it, or `init`."""
    paths = sorted(
        path.parent.relative_to(folder) for pattern in ("*", "*/*") for path in folder.glob(f"{pattern}/{PROJECT_FILE}")
    )
    options = [f"-C {shlex.quote(str(path))}" for path in paths if not any(part.startswith(".") for part in path.parts)]
    if not options:
        return "start a project with `schemactl init`, or name its folder with -C"
    return f"name the folder of the project: {join_first(options, most=3)}"


def _read_with_roots(files: Files, name: str, top: Path) -> tuple[Project, str]:
    """Read the project file `name`, and check its roots in the working tree `top`."""
    data = read_bytes(files, name)
    project = read_project(name, data)
    if not all((top / root).is_dir() for root in project.roots):
        check_roots(files, project, data)
    return project, str(top)


def check_roots(files: Files, project: Project, data: bytes) -> None:
    """Check that no root is missing while a folder with a similar name has YAML files.

    This is checked before the history is read, because a missing root looks like the removal of its declarations.

    Raises:
        DeclarationError: a problem for each such root.
    """
    problems = []
    for index, root in enumerate(project.roots):
        folders = list_folders_with_yaml(files, posixpath.dirname(root))
        similar_folder = None if root in folders else find_close_match(root, folders)
        source = YamlText(project.path, data).locate(0, ("roots", str(index)))
        if similar_folder and similar_folder not in project.roots and source.line > 1:
            written = make_relative(similar_folder, project.folder)
            problems.append(Problem(source, f"there is no folder `{root}`", f"did you mean `{written}`?"))
    if problems:
        raise DeclarationError(problems)


def place_in_project(files: Files, project: Project, key: Tokens) -> Source:
    """Return the place of `key` in the project file, or the nearest place if the key is missing."""
    return YamlText(project.path, read_bytes(files, project.path)).locate(0, key)


def _find_top(folder: Path) -> Path | None:
    """Return the nearest folder with `.git` (a file in a linked worktree), from `folder` upwards."""
    return next((parent for parent in (folder, *folder.parents) if os.path.lexists(parent / ".git")), None)


@lru_cache(256)
def read_project(path: str, data: bytes) -> Project:
    """Read the project file `path`, which is relative to the repository's top.

    The cache helps because a command reads the same content several times: from the working tree, the index, the approved ref, and
    older commits for each target.

    Raises:
        DeclarationError: all problems of the file.
    """
    documents, problems = read_yaml(path, data)
    source = Source(escape_path(path))
    if len(documents) != 1:
        message = "the project file is empty" if not documents else "the project file has more than one document"
        raise DeclarationError([*problems, Problem(source, message, "start it with `version: 1`")])
    document = documents[0]
    if not isinstance(document.value, dict):
        message = f"expected the keys of a project, found {describe_value(document.value)}"
        raise DeclarationError([*problems, Problem(source, message, "start it with `version: 1`")])
    check = partial(_check_project, folder=posixpath.dirname(path))
    shape, errors = read_shape("project", document.value, document.node, escape_path(path), check)
    places = {problem.source for problem in problems}
    problems += [problem for problem in errors if problem.source not in places]
    if problems:
        raise DeclarationError(limit_problems(problems))
    return _build_project(path, shape)


class HistorySettings(NamedTuple):
    """The settings of a project file that versions depend on: `protobuf.include` with resolved folders, and `adopted`."""

    include: Mapping[str, str]
    adopted: str | None


def read_history_settings(path: str, data: bytes) -> HistorySettings | None:
    """Read the settings that versions depend on from the project file `path`, or return None if they cannot be read.

    Rules about other keys may be newer than the file, which may be of an old commit.
    """
    try:
        documents, _ = read_yaml(path, data)
        value = documents[0].value
        include = (value.get("protobuf") or {}).get("include") or {}
        folders = {prefix: resolve(posixpath.dirname(path), written) for prefix, written in include.items()}
        adopted = value.get("adopted")
    except (DeclarationError, AttributeError, IndexError, TypeError, ValueError):
        return None
    return HistorySettings(folders, adopted if isinstance(adopted, str) else None)


def _check_project(project: ProjectShape, folder: str) -> Iterator[Misfit]:
    """Yield contradictions between valid values, and invalid paths."""
    targets = project.targets
    paths: list[tuple[Tokens, str | None]] = [(("roots", str(index)), root) for index, root in enumerate(project.roots)]
    paths += [(("previous_roots", str(index)), root) for index, root in enumerate(project.previous_roots)]
    paths += [(("targets", name, "numbers"), target.numbers) for name, target in targets.items()]
    paths += [overlay for name, target in targets.items() for overlay in _iterate_overlays(name, target)]
    paths += [(("waivers",), project.waivers)]
    paths += [(("generate", "out"), project.generate.out)] if project.generate else []
    include = project.protobuf.include
    paths += [(("protobuf", "include", prefix), written) for prefix, written in include.items()]
    for prefix in include:
        if not _IMPORT_PREFIX.fullmatch(prefix) or {".", ".."} & {*prefix.split("/")}:
            message = f"`{shorten(prefix)}` cannot be the beginning of an import"
            fix = "write folders with `/` between them, such as github.com/acme/shop"
            yield Misfit(("protobuf", "include", prefix), message, fix, of_key=True)
    for parts, written in paths:
        try:
            resolve(folder, written or ".")
        except ValueError as error:
            yield Misfit(parts, str(error))
    yield from _check_severities(project.severities)
    releases = [project.pulsar or "4.0", *(target.pulsar or "4.0" for target in targets.values())]
    newest = max(map(_parse_release, releases))
    for index, name in enumerate(project.protobuf.checkers):
        first_release = OPTIONAL_CHECKERS[name]
        if newest < first_release:
            fix = f'remove it, or write pulsar: "{first_release}" if that is what the brokers run'
            yield Misfit(("protobuf", "checkers", str(index)), f"Pulsar {newest} has no {name}", fix)
    for index, name in enumerate(project.defaults.excluded_checkers):
        if newest < DEFAULT_CHECKERS[name]:
            checker_parts = ("defaults", "excluded_checkers", str(index))
            yield Misfit(checker_parts, f"Pulsar {newest} has no {name}", "remove it")
    roots = [posixpath.normpath(root) for root in project.roots or ("namespaces",)]
    for name, target in targets.items():
        yield from _check_target(target, ("targets", name))
        yield from _check_overlay_paths(_iterate_overlays(name, target), roots)
    references: list[tuple[Tokens, str]] = [
        (("targets", name, "after", str(index)), other)
        for name, target in targets.items()
        for index, other in enumerate(target.after)
    ]
    if project.generate and project.generate.target is not None:
        references.append((("generate", "target"), project.generate.target))
    for parts, target_name in references:
        if target_name not in targets:
            near = find_close_match(target_name, targets)
            fix = f"`targets` has {', '.join(targets)}" if targets else "add it to `targets`"
            message = f"`{shorten(target_name)}` is not one of the project's targets"
            yield Misfit(parts, message, f"write {near}" if near else fix)
    yield from _check_order({name: target.after for name, target in targets.items()})


def _check_order(predecessors_by_target: Mapping[str, Sequence[str]]) -> Iterator[Misfit]:
    """Yield each target whose `after` leads back to it, so that a version would wait for itself."""
    for name in predecessors_by_target:
        paths = [[name]]
        visited: set[str] = set()
        while paths:
            path = paths.pop()
            predecessors = predecessors_by_target.get(path[-1], ())
            if name in predecessors:
                message = f"a version would wait for itself: {' after '.join([*path, name])}"
                index = predecessors_by_target[name].index([*path, name][1])
                yield Misfit(("targets", name, "after", str(index)), message, "remove one of these entries")
                break
            paths += [[*path, predecessor] for predecessor in predecessors if predecessor not in visited]
            visited.update(predecessors)


def _check_severities(severities: Mapping[str, Any]) -> Iterator[Misfit]:
    used_rules = {rule for key, value in severities.items() for rule in (value if isinstance(value, dict) else [key])}
    # Reading the rules of all installed packages is slow, and only needed for rules that schemactl does not have.
    known_rules = get_builtin_rules() if used_rules <= get_builtin_rules().keys() else get_all_rules()
    for key, value in severities.items():
        is_namespace = isinstance(value, dict)
        if is_namespace:
            try:
                NamespaceName.parse(key)
            except ValueError as error:
                yield Misfit(("severities", key), str(error), of_key=True)
        for parts in [("severities", key, rule) for rule in value] if is_namespace else [("severities", key)]:
            rule = parts[-1]
            if rule not in known_rules:
                yield Misfit(parts, *describe_unknown_rule(rule, known_rules), of_key=True)
            elif known_rules[rule].is_fixed:
                yield Misfit(parts, f"the severity of {rule} is fixed", "remove it", of_key=True)


def _check_target(target: TargetShape, parts: Tokens) -> Iterator[Misfit]:
    credentials = [key for key in ("token_env", "token_file", "oauth2") if key in target.model_fields_set]
    if len(credentials) > 1:
        message = f"`{credentials[0]}` and `{credentials[1]}` exclude each other"
        yield Misfit((*parts, credentials[1]), message, "keep one", of_key=True)
    for key, needed_key in (("cert_file", "key_file"), ("key_file", "cert_file")):
        if getattr(target, key) and not getattr(target, needed_key):
            yield Misfit((*parts, key), f"`{key}` needs `{needed_key}`", f"add `{needed_key}`", of_key=True)
    for name in target.properties:
        # They must not change how a definition is read.
        property_parts = (*parts, "properties", name)
        if name.startswith(RESERVED_PROPERTIES):
            message = f"schemactl sets the property `{name}` itself"
            yield Misfit(property_parts, message, "give it another name", of_key=True)
        elif name.startswith(("__", *KEY_VALUE_PROPERTIES)):
            message = f"the property `{name}` determines how messages are read, which is the same on every target"
            fix = "write it under `properties` of the schema, or `schema_properties`"
            yield Misfit(property_parts, message, fix, of_key=True)
    yield from _check_target_names(target.tenants, parse_tenant, (*parts, "tenants"))
    yield from _check_target_names(target.namespaces, NamespaceName.parse, (*parts, "namespaces"))


def _check_target_names(
    target_names: Mapping[str, Any], parse: Callable[[str], object], parts: Tokens
) -> Iterator[Misfit]:
    """Yield declared names that are invalid, and names on the target that two declared names have."""
    target_name_counts = Counter(target_names.values())
    for name, target_name in target_names.items():
        try:
            parse(name)
        except ValueError as error:
            yield Misfit((*parts, name), str(error), of_key=True)
        if target_name_counts[target_name] > 1:
            message = f"two {parts[-1]} would both be {target_name} on this target"
            yield Misfit((*parts, name), message, "give each a separate name")


def _iterate_overlays(name: str, target: TargetShape) -> Iterator[tuple[Tokens, str]]:
    """Yield the places and paths of the overlay files of the target `name`."""
    parts = ("targets", name, "overlays")
    if isinstance(target.overlays, str):
        yield parts, target.overlays
    else:
        yield from (((*parts, str(index)), path) for index, path in enumerate(target.overlays or ()))


def _check_overlay_paths(overlays: Iterable[tuple[Tokens, str]], roots: Iterable[str]) -> Iterator[Misfit]:
    """Yield overlay files inside a root, which would be read as declarations, and overlay files that are named twice."""
    paths: set[str] = set()
    for parts, written in overlays:
        path = posixpath.normpath(written)
        if root := next((root for root in roots if _is_visible_below(root, path)), None):
            message = f"`{shorten(written)}` is in the root `{root}`, and would be read as a declaration"
            yield Misfit(parts, message, "name a file elsewhere, such as environments/prod.yaml")
        elif not path.endswith(YAML_SUFFIXES):
            yield Misfit(
                parts,
                f"`{shorten(written)}` does not end with .yaml or .yml",
                f"call it {posixpath.splitext(path)[0]}.yaml",
            )
        elif path in paths:
            yield Misfit(parts, f"`{shorten(written)}` is named twice", "keep one of the two")
        paths.add(path)


def _is_visible_below(root: str, path: str) -> bool:
    """Return whether `path` is below `root`, and no folder between them is hidden."""
    relative_path = path if root == "." else path.removeprefix(f"{root}/")
    return (root == "." or relative_path != path) and not any(part.startswith(".") for part in relative_path.split("/"))


def _build_project(path: str, shape: ProjectShape) -> Project:
    folder = posixpath.dirname(path)
    pulsar = shape.pulsar or "4.0"
    severities: dict[str, Severity | Literal["off"]] = {}
    namespace_severities: dict[NamespaceName, Mapping[str, Severity | Literal["off"]]] = {}
    for key, value in shape.severities.items():
        if isinstance(value, dict):
            namespace_severities[NamespaceName.parse(key)] = value
        else:
            severities[key] = value
    excluded_checkers = [EXCLUDED + name for name in shape.defaults.excluded_checkers]
    policies = _list_set_values(shape.defaults)
    policies["checkers"] = (*shape.protobuf.checkers, *dict.fromkeys(excluded_checkers))
    policies.pop("excluded_checkers", None)
    generate = None
    if shape.generate:
        generate = Generate(**_list_set_values(shape.generate))
        generate = replace(generate, out=resolve(folder, generate.out))
    return Project(
        folder=folder,
        path=path,
        roots=tuple(resolve(folder, root) for root in shape.roots or ("namespaces",)),
        previous_roots=tuple(resolve(folder, root) for root in shape.previous_roots),
        approved=shape.approved,
        adopted=shape.adopted,
        release=_parse_release(pulsar),
        pulsar=pulsar,
        defaults=BrokerDefaults(**policies),
        severities=severities,
        namespace_severities=namespace_severities,
        proto_rules=shape.protobuf.rules,
        rendering=shape.protobuf.rendering,
        require_declared_namespaces=bool(shape.require_declared_namespaces),
        names=NameStyles(**_list_set_values(shape.names)),
        include={prefix: resolve(folder, path) for prefix, path in shape.protobuf.include.items()},
        waivers=resolve(folder, shape.waivers or "waivers.yaml"),
        repository_url=shape.repository.url.rstrip("/").removesuffix(".git") if shape.repository else "",
        targets={name: _build_target(folder, name, target) for name, target in shape.targets.items()},
        generate=generate,
    )


def _list_set_values(shape: MappingShape) -> dict[str, Any]:
    """Return the values of the keys that the document has, by key."""
    return {key: value for key, value in shape if key in shape.model_fields_set}


def _build_target(folder: str, name: str, shape: TargetShape) -> Target:
    credentials = {key: value for key, value in _list_set_values(shape).items() if key in _CREDENTIALS}
    if shape.oauth2:
        credentials["oauth2"] = dict(shape.oauth2)
    return Target(
        name=name,
        registry=shape.registry,
        release=_parse_release(shape.pulsar) if shape.pulsar else None,
        pulsar=shape.pulsar,
        namespaces={NamespaceName.parse(old): new for old, new in shape.namespaces.items()},
        tenants=shape.tenants or EMPTY,
        overlays=tuple(resolve(folder, path) for _, path in _iterate_overlays(name, shape)),
        include=tuple(shape.include),
        exclude=tuple(shape.exclude),
        labels=shape.labels or EMPTY,
        properties=shape.properties or EMPTY,
        cluster=shape.cluster or "",
        credentials=credentials,
        numbers=resolve(folder, shape.numbers) if shape.numbers else None,
        promoted=shape.promoted,
        after=tuple(dict.fromkeys(shape.after)),
    )


def _parse_release(text: str) -> Release:
    """Return the supported release whose rules apply to the Pulsar version `text`."""
    return Release.from_version(text) or Release.R4_0


def choose_target(project: Project, name: str | None, shown: str) -> Target:
    """Return the target `name` of `project`, or its only target if `name` is None. `shown` is the option as the user wrote it.

    Raises:
        UsageError: if `name` is unknown, or is None and the project does not have exactly one target.
    """
    names = ", ".join(project.targets)
    if name is None and len(project.targets) == 1:
        return next(iter(project.targets.values()))
    if not project.targets:
        raise UsageError(
            f"{project.path} has no targets",
            fix='add one: targets: {local: {registry: "sqlite:.schemactl/registry.db"}}',
        )
    if name is None:
        raise UsageError(
            f"--target is needed: {project.path} has {names}", fix="--target NAME, or SCHEMACTL_TARGET=NAME"
        )
    if name not in project.targets:
        suggestion = did_you_mean(name, project.targets)
        fix = "" if suggestion else f"name one of these, or add `{name}` to `targets` in {project.path}"
        raise UsageError(f"{shown}: {project.path} has {names}{suggestion}", fix=fix)
    return project.targets[name]
