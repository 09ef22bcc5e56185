"""Schemas as code for Apache Pulsar: declared in Git, checked before the merge, applied to the cluster, read by Spark.

The compatibility engine as a library:

    compare(existing, new, strategy, release)   both verdicts on a definition after others
    judge(versions, new, strategy, release)     the same, on versions with their own numbers
    identity(info)                              equal for two definitions exactly when they are one version

with `SchemaInfo`, `SchemaType`, `SchemaVersion`, `CompatibilityStrategy`, `Release` and `Verdict` as their words. Everything
is loaded on use: `import schemactl` alone costs nothing.
"""

# `python -m schemactl` finds its first imports in the working directory, where anybody's modules may lie: this module and
# `__main__` import nothing before that folder is left out, not even `__future__`, which is a module like others.
# `typing` takes longer to import than the hook may take.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from schemactl.compat import compare, judge
    from schemactl.errors import InvalidSchema, SchemactlError
    from schemactl.formats import identity
    from schemactl.model import CompatibilityStrategy, Release, SchemaInfo, SchemaType, SchemaVersion
    from schemactl.verdicts import Answer, Breakage, DataState, Incompatibility, Outcome, Verdict

__all__ = [
    "Answer",
    "Breakage",
    "CompatibilityStrategy",
    "DataState",
    "Incompatibility",
    "InvalidSchema",
    "Outcome",
    "Release",
    "SchemaInfo",
    "SchemaType",
    "SchemaVersion",
    "SchemactlError",
    "Verdict",
    "compare",
    "identity",
    "judge",
]

_HOMES = {
    "compare": "compat",
    "judge": "compat",
    "identity": "formats",
    "InvalidSchema": "errors",
    "SchemactlError": "errors",
    "Answer": "verdicts",
    "Breakage": "verdicts",
    "DataState": "verdicts",
    "Incompatibility": "verdicts",
    "Outcome": "verdicts",
    "Verdict": "verdicts",
}
"""Where a name lives; in `model` when it is not here."""


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'model')}"), name)


def __dir__() -> list[str]:
    return __all__
