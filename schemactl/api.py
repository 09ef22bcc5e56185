"""The parts of the Python API that are not plain re-exports: load a project, check it, parse a definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemactl.core.deadline import DEFAULT_S, within
from schemactl.core.errors import InvalidSchema
from schemactl.core.project import Project
from schemactl.core.schema import EMPTY, Release, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.checks.check_report import CheckReport


def load_project(directory: str | Path = ".", *, config: str | None = None) -> Project:
    """Return the project that `directory` belongs to.

    Args:
        directory: a folder of the project.
        config: the project file; None: the nearest schemactl.yaml in `directory` or above, within the repository.

    Raises:
        SchemactlError: there is none.
        DeclarationError: it has problems.
    """
    from schemactl.declare import project

    return project.load_project(str(Path(directory).absolute()), config)[0]


def check(
    directory: str | Path = ".",
    *,
    staged: bool = False,
    base: str | None = None,
    topics: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    target: str | None = None,
    config: str | None = None,
    timeout_s: float = DEFAULT_S,
) -> CheckReport:
    """Compare declared files with the approved history, as `schemactl check` does.

    Args:
        directory: a folder of the project.
        staged: the index is checked, not the working tree.
        base: HEAD is checked, against this approved ref.
        topics: only these, as `--topic` takes them.
        namespaces: only these.
        target: judge for this target alone; None: for all.
        config: the project file, as in `load_project`.
        timeout_s: how long it may take.

    Raises:
        DeclarationError: the files have problems; `problems` holds all of them.
        SchemactlError: it could not be decided.
    """
    from schemactl.checks.project_check import CheckRequest, check_project

    folder = str(Path(directory).absolute())
    request = CheckRequest(
        folder, config, staged, base, topics=tuple(topics), namespaces=tuple(namespaces), target=target
    )
    return within(timeout_s, partial(check_project, request))


def parse_schema(
    definition: str | Mapping[str, Any] | Sequence[Any],
    schema_type: SchemaType = SchemaType.AVRO,
    *,
    message: str = "",
    properties: Mapping[str, str] = EMPTY,
    release: Release = Release.R5_0,
) -> SchemaInfo:
    """Return a definition as Pulsar stores it.

    Args:
        definition: the text, or the JSON itself; of PROTOBUF_NATIVE the text of a `.proto`.
        schema_type: its type.
        message: the full name of the root message in a `.proto`.
        properties: the SchemaInfo's properties; KEY_VALUE has the types of its halves there.
        release: whose rules it must follow.

    Raises:
        InvalidSchema: the definition does not parse; `pointer` says where.
    """
    from schemactl.formats import InvalidInput, described, problems

    schema = {"proto": definition, "message": message} if message else definition
    try:
        info = described({"type": schema_type.name, "schema": schema, "properties": {**properties}}, "schema")
    except InvalidInput as error:
        raise InvalidSchema(str(error)) from None
    for problem in problems(info, release):
        raise problem
    return info
