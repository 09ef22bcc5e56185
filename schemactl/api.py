"""Functions of the Python API that no other module defines: load a project, check it, parse a definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemactl.core.deadline import DEFAULT_S, run_within
from schemactl.core.errors import InvalidSchema
from schemactl.core.project import Project
from schemactl.core.schema import EMPTY, Release, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.checks.check_report import CheckReport


def load_project(directory: str | Path = ".", *, config: str | None = None) -> Project:
    """Load the project that `directory` belongs to.

    Args:
        directory: a folder of the project.
        config: the project file; by default the nearest schemactl.yaml in `directory` or above, within the repository.

    Raises:
        SchemactlError: the project file does not exist.
        DeclarationError: the project file has problems.
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
    """Check the declared topics against the approved history, as `schemactl check` does.

    Args:
        directory: a folder of the project.
        staged: whether the index is checked instead of the working tree.
        base: the approved ref; if given, HEAD is checked instead of the working tree.
        topics: patterns as for `--topic`; by default all topics.
        namespaces: names of namespaces; by default all namespaces.
        target: the only target to check for; by default all targets.
        config: the project file, as in `load_project`.
        timeout_s: the time limit.

    Raises:
        DeclarationError: no topic could be judged because of problems in files; `problems` contains all of them. If only some topics
            could not be judged, the report has a finding NOT_DECIDED for each problem.
        SchemactlError: the check could not be completed.
    """
    from schemactl.checks.checked_files import CheckRequest
    from schemactl.checks.project_check import check_project

    folder = str(Path(directory).absolute())
    request = CheckRequest(
        folder,
        config,
        staged=staged,
        approved_ref=base,
        topics=tuple(topics),
        namespaces=tuple(namespaces),
        target=target,
    )
    return run_within(timeout_s, partial(check_project, request))


def parse_schema(
    definition: str | Mapping[str, Any] | Sequence[Any],
    schema_type: SchemaType = SchemaType.AVRO,
    *,
    message: str = "",
    properties: Mapping[str, str] = EMPTY,
    release: Release = Release.R5_0,
) -> SchemaInfo:
    """Parse a definition to a schema as Pulsar stores it.

    Args:
        definition: the text, or the parsed JSON; for PROTOBUF_NATIVE the text of a `.proto`.
        schema_type: the schema type.
        message: the full name of the root message in a `.proto`.
        properties: the properties of the SchemaInfo; for KEY_VALUE they contain the types of key and value.
        release: the Pulsar release whose rules the definition must follow.

    Raises:
        InvalidSchema: the definition does not parse; `pointer` is the location.
    """
    from schemactl.formats import find_problems
    from schemactl.formats.json_definitions import InvalidInput, read_request_definition

    schema = {"proto": definition, "message": message} if message else definition
    try:
        info = read_request_definition(
            {"type": schema_type.name, "schema": schema, "properties": {**properties}}, "schema"
        )
    except InvalidInput as error:
        raise InvalidSchema(str(error)) from None
    for problem in find_problems(info, release):
        raise problem
    return info
