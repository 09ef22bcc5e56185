"""From a registry to declarations: what it holds, as files that declare the same, version by version.

Whatever is written has been read back first, as `declare` reads it, and has the registry's content by the identity that
makes versions. What cannot be declared so is left out and told.
"""

from schemactl.importing.catalog import ImportNote, ImportResult, Revision, import_catalog
from schemactl.importing.declarations import project_text

__all__ = ["ImportNote", "ImportResult", "Revision", "import_catalog", "project_text"]
