"""The project file, schemactl.yaml: finds it, parses it, and makes its paths relative to the repository's top."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from schemactl.core.atomic_files import reject_links
from schemactl.core.errors import DeclarationError, Problem, SchemactlError, Source, UsageError, did_you_mean, meant
from schemactl.core.names import NamespaceName, parse_tenant
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy
from schemactl.core.project import OPTIONAL_CHECKERS, Generate, NameStyles, Project, Target
from schemactl.core.rules import every_rule, rules
from schemactl.core.schema import EMPTY, Release
from schemactl.core.wording import found, shortened
from schemactl.declare.document import Misfit, capped, problems_of, unknown_rule
from schemactl.declare.files import (
    YAML_SUFFIXES,
    Files,
    WorktreeFiles,
    folders_with_yaml,
    obstacle,
    read_bytes,
    resolve,
    shown,
)
from schemactl.declare.source_location import Tokens
from schemactl.declare.yaml_parser import YamlText, read_yaml

PROJECT_FILE: Final = "schemactl.yaml"


def load_project(directory: str, config: str | None = None, *, files: Files | None = None) -> tuple[Project, str]:
    """Return the project that `directory` belongs to, and the top of its working tree.

    The project file is `config`, or the nearest schemactl.yaml in `directory` or above, within the repository. The top is
    the folder with `.git`; outside of a repository, the project's own folder. With `files` the project file is looked for
    and read there instead of in the working tree.

    Raises:
        UsageError: `config` is no file of the repository.
        SchemactlError: there is no project file, a link of the repository leads to `config`, or it is in another repository.
        DeclarationError: it has problems.
    """
    # As git does, links on the way are resolved first: the repository is where the folder really is.
    here = Path(directory).resolve()
    top: Path | None
    if config is not None:
        path = here / config
        reject_links(path, below=str(_top(here) or here))
        folder = path.parent.resolve()
        around = _top(here)
        top = _top(folder)
        if top != around and not path.exists():
            raise UsageError(f"--config {config}: there is no such file")
        if top != around:
            raise SchemactlError(
                f"--config {config} is in {f'the repository {top}' if top else 'no repository'}, and {here} is in "
                f"{around or 'none'}: its files would be judged by the history of another",
                fix=f"work where the project file is: -C {folder}" + ("" if top else ", in a repository"),
            )
        top = top or folder
        name = (folder / path.name).relative_to(top).as_posix()
        source = files or WorktreeFiles(str(top))
        if source.kind(name) != "file":
            raise UsageError(f"--config {config}: there is no such file")
        return _read(source, name, top)
    top = _top(here)
    for folder in (here, *here.parents):
        base = top or folder
        name = (folder / PROJECT_FILE).relative_to(base).as_posix()
        source = files or WorktreeFiles(str(base))
        if source.kind(name) != "missing":
            why = obstacle(source, name)
            if why:
                raise DeclarationError([Problem(Source(shown(name)), why, "put the file itself here")])
            return _read(source, name, base)
        if folder == top:
            break
    raise SchemactlError(
        f"there is no {PROJECT_FILE} in {here}" + (" or above it" if here != top else ""),
        fix="start a project with `schemactl init`, or name its folder with -C",
    )


def _read(files: Files, name: str, top: Path) -> tuple[Project, str]:
    """Return the project whose file is `name`, and the top of its working tree."""
    data = read_bytes(files, name)
    project = read_project(name, data)
    if not all((top / root).is_dir() for root in project.roots):
        check_roots(files, project, data)
    return project, str(top)


def check_roots(files: Files, project: Project, data: bytes) -> None:
    """Raise DeclarationError if a root is missing, and a folder with a similar name has YAML files.

    This is checked before the history is read, by which the declarations would have been removed.
    """
    problems = []
    for index, root in enumerate(project.roots):
        known = folders_with_yaml(files, posixpath.dirname(root))
        near = None if root in known else meant(root, known)
        place = YamlText(project.path, data).locate(0, ("roots", str(index)))
        if near and near not in project.roots and place.line > 1:
            written = posixpath.relpath(near, project.folder or ".")
            problems.append(Problem(place, f"there is no folder `{root}`", f"did you mean `{written}`?"))
    if problems:
        raise DeclarationError(problems)


def place_in_project(files: Files, project: Project, key: Tokens) -> Source:
    """Return the place of `key` in the project file, or the nearest place if the file does not have it."""
    return YamlText(project.path, read_bytes(files, project.path)).locate(0, key)


def _top(folder: Path) -> Path | None:
    """Return the nearest folder with `.git` (a file in a linked worktree), from `folder` upwards."""
    return next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None)


@lru_cache(256)
def read_project(path: str, data: bytes) -> Project:
    """Return the project that the file `path`, relative to the repository's top, declares.

    A command meets the same file more than once: here, in the index, as approved, and at older commits for each target.

    Raises:
        DeclarationError: all problems of the file.
    """
    documents, problems = read_yaml(path, data)
    source = Source(shown(path))
    if len(documents) != 1:
        what = "the project file is empty" if not documents else "the project file has more than one document"
        raise DeclarationError([*problems, Problem(source, what, "start it with `version: 1`")])
    document = documents[0]
    if not isinstance(document.value, dict):
        what = f"expected the keys of a project, found {found(document.value)}"
        raise DeclarationError([*problems, Problem(source, what, "start it with `version: 1`")])
    between = partial(_between, folder=posixpath.dirname(path))
    errors = problems_of("project", document.value, document.node, shown(path), between)
    places = {problem.source for problem in problems}
    problems += [problem for problem in errors if problem.source not in places]
    if problems:
        raise DeclarationError(capped(problems))
    return _project(path, document.value)


def _between(value: Mapping[str, Any], folder: str) -> Iterator[Misfit]:
    """Yield contradictions between values of the right shape, and invalid paths."""
    targets, generate = value.get("targets", {}), value.get("generate", {})
    paths: list[tuple[Tokens, str]] = [
        ((key, str(index)), written)
        for key in ("roots", "previous_roots")
        for index, written in enumerate(value.get(key, ()))
    ]
    paths += [(("targets", name, "numbers"), each.get("numbers", ".")) for name, each in targets.items()]
    paths += [(at, written) for name, each in targets.items() for at, written in _overlays(name, each)]
    paths += [(("waivers",), value.get("waivers", ".")), (("generate", "out"), generate.get("out", "."))]
    for at, written in paths:
        try:
            resolve(folder, written)
        except ValueError as error:
            yield Misfit.of(at, str(error))
    yield from _in_severities(value.get("severities", {}))
    releases = [value.get("pulsar", "4.0"), *(each.get("pulsar", "4.0") for each in targets.values())]
    newest = max(map(_release, releases))
    for index, checker in enumerate(value.get("protobuf", {}).get("checkers", ())):
        name = _class_name(checker)
        first = OPTIONAL_CHECKERS[name]
        if newest < first:
            fix = f'remove it, or write pulsar: "{first}" if that is what the brokers run'
            here = ("protobuf", "checkers", str(index))
            yield Misfit.of(here, f"Pulsar {newest} has no {name}", fix)
    roots = [posixpath.normpath(root) for root in value.get("roots", ("namespaces",))]
    for name, target in targets.items():
        yield from _in_target(target, ("targets", name))
        yield from _misplaced(_overlays(name, target), roots)
    named: list[tuple[Tokens, str]] = [
        (("targets", name, "after", str(index)), other)
        for name, target in targets.items()
        for index, other in enumerate(target.get("after", ()))
    ]
    if "target" in generate:
        named.append((("generate", "target"), generate["target"]))
    for at, chosen in named:
        if chosen not in targets:
            near = meant(chosen, targets)
            has = f"`targets` has {', '.join(targets)}" if targets else "add it to `targets`"
            what = f"`{shortened(chosen)}` is none of the project's targets"
            yield Misfit.of(at, what, f"write {near}" if near else has)
    yield from _in_order(targets)


def _in_order(targets: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield each target whose `after` leads back to it, so that a version would wait for itself."""
    for name in targets:
        ways = [[name]]
        seen = set()
        while ways:
            way = ways.pop()
            others = targets.get(way[-1], {}).get("after", ())
            if name in others:
                what = f"a version would wait for itself: {' after '.join([*way, name])}"
                at = ("targets", name, "after", str(targets[name]["after"].index([*way, name][1])))
                yield Misfit.of(at, what, "remove one of these entries")
                break
            ways += [[*way, other] for other in others if other not in seen]
            seen.update(others)


def _in_severities(severities: Mapping[str, Any]) -> Iterator[Misfit]:
    named = {rule for key, value in severities.items() for rule in (value if isinstance(value, dict) else [key])}
    # Every installed package is looked at only for what is not ours.
    known = rules() if named <= rules().keys() else every_rule()
    for key, value in severities.items():
        of_namespace = isinstance(value, dict)
        if of_namespace:
            try:
                NamespaceName.parse(key)
            except ValueError as error:
                yield Misfit.of(("severities", key), str(error), of_key=True)
        for at in [("severities", key, rule) for rule in value] if of_namespace else [("severities", key)]:
            rule = at[-1]
            if rule not in known:
                yield Misfit.of(at, *unknown_rule(rule, known), of_key=True)
            elif known[rule].is_fixed:
                yield Misfit.of(at, f"the severity of {rule} is fixed", "remove it", of_key=True)


def _in_target(target: Mapping[str, Any], at: Tokens) -> Iterator[Misfit]:
    given = [key for key in ("token_env", "token_file", "oauth2") if key in target]
    if len(given) > 1:
        what = f"`{given[0]}` and `{given[1]}` exclude each other"
        yield Misfit.of((*at, given[1]), what, "keep one", of_key=True)
    for one, other in (("cert_file", "key_file"), ("key_file", "cert_file")):
        if one in target and other not in target:
            yield Misfit.of((*at, one), f"`{one}` needs `{other}`", f"add `{other}`", of_key=True)
    for key, parse in (("tenants", parse_tenant), ("namespaces", NamespaceName.parse)):
        mapped = Counter(target.get(key, {}).values())
        for name, to in target.get(key, {}).items():
            try:
                parse(name)
            except ValueError as error:
                yield Misfit.of((*at, key, name), str(error), of_key=True)
            if mapped[to] > 1:
                what = f"two {key} would both be {to} on this target"
                yield Misfit.of((*at, key, name), what, "give each a name of its own")


def _overlays(name: str, target: Mapping[str, Any]) -> Iterator[tuple[Tokens, str]]:
    """Yield the places and paths of the overlay files of the target `name`."""
    written = target.get("overlays", [])
    if isinstance(written, str):
        yield ("targets", name, "overlays"), written
    else:
        yield from ((("targets", name, "overlays", str(index)), each) for index, each in enumerate(written))


def _misplaced(overlays: Iterable[tuple[Tokens, str]], roots: Iterable[str]) -> Iterator[Misfit]:
    """Yield overlay files inside a root, which would be read as declarations, and those that are named twice."""
    seen: set[str] = set()
    for at, written in overlays:
        path = posixpath.normpath(written)
        if root := next((each for each in roots if _holds(each, path)), None):
            what = f"`{shortened(written)}` lies in the root `{root}`, and would be read as a declaration"
            yield Misfit.of(at, what, "name a file elsewhere, such as environments/prod.yaml")
        elif not path.endswith(YAML_SUFFIXES):
            yield Misfit.of(
                at, f"`{shortened(written)}` is no YAML file by its name", f"call it {posixpath.splitext(path)[0]}.yaml"
            )
        elif path in seen:
            yield Misfit.of(at, f"`{shortened(written)}` is named twice", "keep one of the two")
        seen.add(path)


def _holds(root: str, path: str) -> bool:
    """Whether `path` lies below `root`, and no part of it there is hidden."""
    below = path if root == "." else path.removeprefix(f"{root}/")
    return (root == "." or below != path) and not any(part.startswith(".") for part in below.split("/"))


def _project(path: str, value: Mapping[str, Any]) -> Project:
    folder = posixpath.dirname(path)
    pulsar = value.get("pulsar", "4.0")
    severities: Mapping[str, Any] = value.get("severities", {})
    of_namespaces = {name: each for name, each in severities.items() if isinstance(each, dict)}
    protobuf, generate = value.get("protobuf", {}), value.get("generate")
    return Project(
        folder=folder,
        path=path,
        roots=tuple(resolve(folder, root) for root in value.get("roots", ("namespaces",))),
        previous_roots=tuple(resolve(folder, root) for root in value.get("previous_roots", ())),
        approved=value.get("approved"),
        release=_release(pulsar),
        pulsar=pulsar,
        defaults=_defaults(value.get("defaults", {}), protobuf.get("checkers", ())),
        severities={rule: each for rule, each in severities.items() if rule not in of_namespaces},
        namespace_severities={NamespaceName.parse(name): each for name, each in of_namespaces.items()},
        proto_rules=protobuf.get("rules"),
        require_declared_namespaces=value.get("require_declared_namespaces", False),
        names=NameStyles(**value.get("names", {})),
        waivers=resolve(folder, value.get("waivers", "waivers.yaml")),
        targets={name: _target(folder, name, target) for name, target in value.get("targets", {}).items()},
        generate=generate and Generate(**{**generate, "out": resolve(folder, generate.get("out", "generated"))}),
    )


def _class_name(checker: str) -> str:
    return checker.rpartition(".")[2]


def _defaults(value: Mapping[str, Any], checkers: Sequence[str]) -> BrokerDefaults:
    defaults = BrokerDefaults(**value, checkers=tuple(map(_class_name, checkers)))
    return replace(
        defaults, schema_compatibility_strategy=CompatibilityStrategy(defaults.schema_compatibility_strategy)
    )


def _target(folder: str, name: str, value: Mapping[str, Any]) -> Target:
    others = {**value}
    registry, pulsar = others.pop("registry"), others.pop("pulsar", None)
    namespaces, numbers = others.pop("namespaces", {}), others.pop("numbers", None)
    promoted, after = others.pop("promoted", None), others.pop("after", ())
    tenants, labels = others.pop("tenants", EMPTY), others.pop("labels", EMPTY)
    include, exclude = others.pop("include", ()), others.pop("exclude", ())
    overlays = [written for _, written in _overlays(name, {"overlays": others.pop("overlays", [])})]
    return Target(
        name=name,
        registry=registry,
        release=pulsar and _release(pulsar),
        pulsar=pulsar,
        namespaces={NamespaceName.parse(one): NamespaceName.parse(to) for one, to in namespaces.items()},
        tenants=tenants,
        overlays=tuple(resolve(folder, path) for path in overlays),
        include=tuple(include),
        exclude=tuple(exclude),
        labels=labels,
        cluster=others.pop("cluster", ""),
        credentials=others,
        numbers=numbers and resolve(folder, numbers),
        promoted=promoted,
        after=tuple(dict.fromkeys(after)),
    )


def _release(text: str) -> Release:
    """Return the release by whose rules one that is called `text` is judged."""
    return Release.nearest(text) or Release.R4_0


def choose_target(project: Project, name: str | None, shown: str) -> Target:
    """Return the target of `project` called `name`; None: the only one. `shown` is how a user named it.

    Raises:
        UsageError: that is not one target.
    """
    known = ", ".join(project.targets)
    if name is None and len(project.targets) == 1:
        return next(iter(project.targets.values()))
    if not project.targets:
        raise UsageError(
            f"{project.path} has no targets",
            fix='add one: targets: {local: {registry: "sqlite:.schemactl/registry.db"}}',
        )
    if name is None:
        raise UsageError(
            f"--target is needed: {project.path} has {known}", fix="--target NAME, or SCHEMACTL_TARGET=NAME"
        )
    if name not in project.targets:
        near = did_you_mean(name, project.targets)
        raise UsageError(f"{shown}: {project.path} has {known}{near}")
    return project.targets[name]
