"""Schemas as code for Apache Pulsar: declared in Git, checked before the merge, applied to the cluster, read by Spark.

The Python API, described in docs/reference/python-api.md:

    parse_schema(text, type)                    a definition, or InvalidSchema with the location of the problem
    compare(existing, new, strategy, release)   both verdicts on a definition after others
    judge(versions, new, strategy, release)     the same, for versions with given numbers
    explain(breakage, new=..., old=...)         a readable explanation of a breaking change
    counterexample(breakage, new=..., old=...)  a message that proves it
    identity(info)                              equal for two definitions exactly if they are the same version
    load_project(folder), check(folder)         a project, and the result of `schemactl check`

Everything is loaded on use: `import schemactl` alone costs nothing.
"""

# `python -m schemactl` looks for modules in the working directory first, which may contain foreign modules: this module and
# `__main__` import nothing before that folder is removed from the path, not even `__future__`, which is a module like others.
# The import of `typing` takes longer than the hook may take.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from schemactl.api import check, load_project, parse_schema
    from schemactl.broker.checkers import Checker
    from schemactl.checks.check_report import CheckReport
    from schemactl.comparison.compatibility import compare, judge
    from schemactl.core.errors import DeclarationError, InvalidSchema, SchemactlError, UsageError
    from schemactl.core.findings import (
        Answer,
        Breakage,
        Counterexample,
        DataState,
        Finding,
        Incompatibility,
        Outcome,
        Verdict,
    )
    from schemactl.core.policies import CompatibilityStrategy, Policies
    from schemactl.core.project import Project
    from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
    from schemactl.formats import Explanation, counterexample, explain, identity

    __version__: str

__all__ = [
    "Answer",
    "Breakage",
    "CheckReport",
    "Checker",
    "CompatibilityStrategy",
    "Counterexample",
    "DataState",
    "DeclarationError",
    "Explanation",
    "Finding",
    "Incompatibility",
    "InvalidSchema",
    "Outcome",
    "Policies",
    "Project",
    "Release",
    "SchemaInfo",
    "SchemaType",
    "SchemaVersion",
    "SchemactlError",
    "UsageError",
    "Verdict",
    "__version__",
    "check",
    "compare",
    "counterexample",
    "explain",
    "identity",
    "judge",
    "load_project",
    "parse_schema",
]

_MODULES = {
    "check": "api",
    "load_project": "api",
    "parse_schema": "api",
    "Checker": "broker.checkers",
    "CheckReport": "checks.check_report",
    "compare": "comparison.compatibility",
    "judge": "comparison.compatibility",
    "DeclarationError": "core.errors",
    "InvalidSchema": "core.errors",
    "SchemactlError": "core.errors",
    "UsageError": "core.errors",
    "Answer": "core.findings",
    "Breakage": "core.findings",
    "Counterexample": "core.findings",
    "DataState": "core.findings",
    "Finding": "core.findings",
    "Incompatibility": "core.findings",
    "Outcome": "core.findings",
    "Verdict": "core.findings",
    "CompatibilityStrategy": "core.policies",
    "Policies": "core.policies",
    "Project": "core.project",
    "Release": "core.schema",
    "SchemaInfo": "core.schema",
    "SchemaType": "core.schema",
    "SchemaVersion": "core.schema",
    "Explanation": "formats",
    "counterexample": "formats",
    "explain": "formats",
    "identity": "formats",
}
"""The module that defines a name; it is loaded on use."""


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        # The import system looks up submodules here before it loads them, also when the hook runs.
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "__version__":
        return import_module("schemactl.core.environment").get_version()
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
