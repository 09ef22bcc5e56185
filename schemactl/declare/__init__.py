"""The parser of declared files: YAML and definitions in; a catalog, or all their problems, out."""

from schemactl.declare.catalog import (
    Declared,
    build,
    in_roots,
    judged,
    load,
    load_all,
    read,
    read_clients,
)
from schemactl.declare.definition import Definitions, ResolvedDefinition
from schemactl.declare.document import (
    Documents,
    NamespaceDocument,
    SchemaDeclaration,
    TopicDocument,
    read_documents,
)
from schemactl.declare.files import ChangedFiles, Files, WorktreeFiles
from schemactl.declare.overlays import NO_OVERLAYS, read_overlays
from schemactl.declare.project import (
    PROJECT_FILE,
    choose_target,
    load_project,
    place_in_project,
    read_project,
)
from schemactl.declare.validation_cache import ValidationCache
from schemactl.declare.waivers import read_waivers

__all__ = [
    "NO_OVERLAYS",
    "PROJECT_FILE",
    "ChangedFiles",
    "Declared",
    "Definitions",
    "Documents",
    "Files",
    "NamespaceDocument",
    "ResolvedDefinition",
    "SchemaDeclaration",
    "TopicDocument",
    "ValidationCache",
    "WorktreeFiles",
    "build",
    "choose_target",
    "in_roots",
    "judged",
    "load",
    "load_all",
    "load_project",
    "place_in_project",
    "read",
    "read_clients",
    "read_documents",
    "read_overlays",
    "read_project",
    "read_waivers",
]
