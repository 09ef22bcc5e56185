"""The import of a registry's topics as declarations, version by version.

Every file is read back, as `declare` reads it, before it is written, and must have the registry's content. What cannot be
declared is left out and reported.
"""

from schemactl.declare.writer import project_text
from schemactl.importing.catalog import ImportNote, ImportResult, VersionFiles, import_catalog

__all__ = ["ImportNote", "ImportResult", "VersionFiles", "import_catalog", "project_text"]
