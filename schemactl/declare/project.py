"""The project file, schemactl.yaml: finds it, parses it, and makes its paths relative to the repository's top."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from schemactl.declare.describe import found, nearest, shortened
from schemactl.declare.document import capped
from schemactl.declare.files import (
    Files,
    WorktreeFiles,
    folders_with_yaml,
    obstacle,
    read_bytes,
    resolve,
    shown,
)
from schemactl.declare.package_names import advised, owner
from schemactl.declare.validation_errors import validation_errors
from schemactl.declare.yaml_text import YamlDocument, YamlText, read_yaml
from schemactl.errors import DeclarationError, Problem, SchemactlError, Source, UsageError
from schemactl.model import (
    OPTIONAL_CHECKERS,
    BrokerDefaults,
    CompatibilityStrategy,
    Generate,
    NamespaceName,
    Project,
    Release,
    Target,
)
from schemactl.output import reject_links
from schemactl.rules import rules
from schemactl.source import Tokens, key_node, node_at, node_place

PROJECT_FILE: Final = "schemactl.yaml"


def load_project(
    directory: str, config: str | None = None, *, files: Files | None = None
) -> tuple[Project, str]:
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
        refuse_misspelled_roots(files, project, data)
    return project, str(top)


def refuse_misspelled_roots(files: Files, project: Project, data: bytes) -> None:
    """Raise DeclarationError where a root is missing, and a folder of nearly that name has YAML files.

    It is asked before the history, which would take the declarations for removed.
    """
    problems = []
    for index, root in enumerate(project.roots):
        known = folders_with_yaml(files, posixpath.dirname(root))
        near = None if root in known else nearest(root, known)
        place = YamlText(project.path, data).locate(0, ("roots", str(index)))
        if near and near not in project.roots and place.line > 1:
            written = posixpath.relpath(near, project.folder or ".")
            problems.append(Problem(place, f"there is no folder `{root}`", f"did you mean `{written}`?"))
    if problems:
        raise DeclarationError(problems)


def place_in_project(files: Files, project: Project, key: Tokens) -> Source:
    """Return the place of `key` in the project file; the nearest that there is where the file does not have it."""
    return YamlText(project.path, read_bytes(files, project.path)).locate(0, key)


def _top(folder: Path) -> Path | None:
    """Return the nearest folder with `.git` (a file in a linked worktree), from `folder` upwards."""
    return next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None)


def read_project(path: str, data: bytes) -> Project:
    """Return the project that the file `path`, relative to the repository's top, declares.

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
    errors = validation_errors("project", document, shown(path))
    if not errors:
        errors = list(_Checks(path, document).problems())
    places = {problem.source for problem in problems}
    problems += [problem for problem in errors if problem.source not in places]
    if problems:
        raise DeclarationError(capped(problems))
    return _project(path, document.value)


class _Checks:
    """What is wrong with values of the project file that are of the right shape."""

    def __init__(self, path: str, document: YamlDocument) -> None:
        self.path = path
        self.folder = posixpath.dirname(path)
        self.node = document.node
        self.value: Mapping[str, Any] = document.value

    def problems(self) -> Iterator[Problem]:
        yield from self._paths()
        yield from self._severities()
        yield from self._checkers()
        for name, target in self.value.get("targets", {}).items():
            yield from self._target(("targets", name), target)
        for way in (("pulsar",), *(("targets", name, "pulsar") for name in self.value.get("targets", {}))):
            release = _at(self.value, way)
            if release is not None and _nearest_release(release) is None:
                yield self._problem(
                    way, f"Pulsar {release} is older than the supported releases", 'write "4.0" or newer'
                )
        yield from self._generate()

    def _generate(self) -> Iterator[Problem]:
        package = _at(self.value, ("generate", "package"))
        if package is not None and (whose := owner(package)):
            yield self._problem(
                ("generate", "package"),
                f"`{shortened(package)}` is {whose}: a generated package of that name would take its place",
                f"write another name, such as {shortened(advised(package))}",
            )
        target, known = _at(self.value, ("generate", "target")), self.value.get("targets", {})
        if target is not None and target not in known:
            near = nearest(target, known)
            has = f"`targets` has {', '.join(known)}" if known else "add it to `targets`"
            fix = f"write {near}" if near else has
            yield self._problem(
                ("generate", "target"), f"`{shortened(target)}` is none of the project's targets", fix
            )
        way = ("generate", "spark")
        release = _at(self.value, way)
        if release is not None and int(release.partition(".")[0]) < 4:
            yield self._problem(
                way, f"Spark {release} is older than the supported releases", 'write "4.0" or newer'
            )

    def _paths(self) -> Iterator[Problem]:
        ways: list[Tokens] = [
            (key, str(index))
            for key in ("roots", "previous_roots")
            for index, _ in enumerate(self.value.get(key, ()))
        ]
        ways += [("targets", name, "numbers") for name in self.value.get("targets", {})]
        for way in (*ways, ("waivers",), ("generate", "out")):
            written = _at(self.value, way)
            if written is not None:
                try:
                    resolve(self.folder, written)
                except ValueError as error:
                    yield self._problem(way, str(error), "")

    def _severities(self) -> Iterator[Problem]:
        severities = self.value.get("severities", {})
        known = rules() if severities else {}
        for key, value in severities.items():
            if isinstance(value, dict):
                try:
                    NamespaceName.parse(key)
                except ValueError as error:
                    yield self._problem(("severities", key), str(error), "")
            for rule in value if isinstance(value, dict) else (key,):
                at = ("severities", key, rule) if isinstance(value, dict) else ("severities", key)
                if rule not in known:
                    near = nearest(rule, known)
                    fix = f"write {near}" if near else "`schemactl explain --all` lists the rules"
                    yield self._problem(at, f"`{shortened(rule)}` is not a rule", fix, key=True)
                elif known[rule].is_fixed:
                    yield self._problem(at, f"the severity of {rule} is fixed", "remove it", key=True)

    def _checkers(self) -> Iterator[Problem]:
        """Yield a problem for each optional checker that none of the brokers has."""
        ways = [("pulsar",), *(("targets", name, "pulsar") for name in self.value.get("targets", {}))]
        releases = [_nearest_release(_at(self.value, way) or "4.0") or Release.R4_0 for way in ways]
        for index, name in enumerate(_at(self.value, ("protobuf", "checkers")) or ()):
            first = OPTIONAL_CHECKERS[_class_name(name)]
            if max(releases) < first:
                yield self._problem(
                    ("protobuf", "checkers", str(index)),
                    f"Pulsar {max(releases)} has no {_class_name(name)}",
                    f'remove it, or write pulsar: "{first}" if that is what the brokers run',
                )

    def _target(self, way: Tokens, target: Mapping[str, Any]) -> Iterator[Problem]:
        ways = [key for key in ("token_env", "token_file", "oauth2") if key in target]
        if len(ways) > 1:
            yield self._problem(
                (*way, ways[1]), f"`{ways[0]}` and `{ways[1]}` exclude each other", "keep one", key=True
            )
        for one, other in (("cert_file", "key_file"), ("key_file", "cert_file")):
            if one in target and other not in target:
                yield self._problem((*way, one), f"`{one}` needs `{other}`", f"add `{other}`", key=True)
        for name in target.get("namespaces", {}):
            try:
                NamespaceName.parse(name)
            except ValueError as error:
                yield self._problem((*way, "namespaces", name), str(error), "", key=True)
        mapped = Counter(target.get("namespaces", {}).values())
        for name, to in target.get("namespaces", {}).items():
            if mapped[to] > 1:
                what = f"two namespaces would both be {to} on this target"
                yield self._problem((*way, "namespaces", name), what, "give each a name of its own")

    def _problem(self, way: Tokens, what: str, fix: str, *, key: bool = False) -> Problem:
        node = node_at(self.node, way)
        if key:
            node = key_node(node_at(self.node, way[:-1]), way[-1]) or node
        return Problem(node_place(shown(self.path), node), what, fix)


def _at(value: Any, way: Tokens) -> Any:
    """Return the value at `way`; None where there is none."""
    for part in way:
        if isinstance(value, list):
            value = value[int(part)]
        elif part in value:
            value = value[part]
        else:
            return None
    return value


def _project(path: str, value: Mapping[str, Any]) -> Project:
    folder = posixpath.dirname(path)
    pulsar = value.get("pulsar", "4.0")
    severities: Mapping[str, Any] = value.get("severities", {})
    generate = value.get("generate")
    return Project(
        folder=folder,
        path=path,
        roots=tuple(resolve(folder, root) for root in value.get("roots", ("namespaces",))),
        previous_roots=tuple(resolve(folder, root) for root in value.get("previous_roots", ())),
        approved=value.get("approved"),
        release=_nearest_release(pulsar) or Release.R4_0,
        pulsar=pulsar,
        defaults=_defaults(value.get("defaults", {}), value.get("protobuf", {}).get("checkers", ())),
        severities={rule: each for rule, each in severities.items() if not isinstance(each, dict)},
        namespace_severities={
            NamespaceName.parse(name): dict(each)
            for name, each in severities.items()
            if isinstance(each, dict)
        },
        proto_rules=value.get("protobuf", {}).get("rules"),
        waivers=resolve(folder, value["waivers"]) if "waivers" in value else None,
        targets={name: _target(folder, name, target) for name, target in value.get("targets", {}).items()},
        generate=Generate(
            generate["package"],
            resolve(folder, generate.get("out", "generated")),
            generate.get("spark", "4.1"),
            generate.get("json_defaults", False),
            generate.get("target"),
        )
        if generate
        else None,
    )


def _class_name(checker: str) -> str:
    return checker.rpartition(".")[2]


def _defaults(value: Mapping[str, Any], checkers: Sequence[str]) -> BrokerDefaults:
    known = BrokerDefaults()
    return BrokerDefaults(
        CompatibilityStrategy(
            value.get("schema_compatibility_strategy", known.schema_compatibility_strategy)
        ),
        value.get("is_allow_auto_update_schema", known.is_allow_auto_update_schema),
        value.get("schema_validation_enforced", known.schema_validation_enforced),
        tuple(map(_class_name, checkers)),
    )


def _target(folder: str, name: str, value: Mapping[str, Any]) -> Target:
    pulsar = value.get("pulsar")
    return Target(
        name=name,
        registry=value["registry"],
        release=_nearest_release(pulsar) if pulsar else None,
        pulsar=pulsar,
        namespaces={
            NamespaceName.parse(one): NamespaceName.parse(other)
            for one, other in value.get("namespaces", {}).items()
        },
        credentials={
            key: each
            for key, each in value.items()
            if key not in ("registry", "pulsar", "namespaces", "numbers")
        },
        numbers=resolve(folder, value["numbers"]) if "numbers" in value else None,
    )


def _nearest_release(text: str) -> Release | None:
    """Return the newest known release that is not newer than `text`; None: all are newer."""
    wanted = tuple(map(int, text.split(".")[:2]))
    older = [release for release in Release if tuple(map(int, release.split("."))) <= wanted]
    return older[-1] if older else None
