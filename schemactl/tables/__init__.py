"""What a change of a schema does to the Parquet and Delta tables that a topic feeds, told by its StructTypes; no Spark needed."""

from __future__ import annotations

from schemactl.tables.changes import Change, Effect, changes, effects
from schemactl.tables.impact import Impact, impact, pointer
from schemactl.tables.words import advice, said

__all__ = ["Change", "Effect", "Impact", "advice", "changes", "effects", "impact", "pointer", "said"]
