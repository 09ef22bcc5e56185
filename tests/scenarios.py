"""Scenarios: what is in Git and in a registry, the commands that run there, and their output, from a YAML file.

A file maps names to scenarios. A scenario has `steps`, and before them the steps of `start`, which run once for all scenarios
of one start; `project` is its `schemactl.yaml`. The repository is an `Estate`, which declares shop/sales/orders.

A step whose first key is a verb does something:

    commit: FILES             approve these files by their path; null deletes, and a list is an Avro record (see below)
    write: FILES              write them to the working tree
    git: ARGUMENTS            run git
    create: NAME              create a namespace or a topic in the registry
    upload: {TOPIC: SCHEMAS}  upload these schemas; null deletes the schema
    set: {NAME: POLICIES}     set these policies of a namespace or topic in the registry
    delete: TOPIC             delete the topic in the registry
    delete schema: TOPIC      delete the versions of the topic, which then counts from 0
    accept: OPTIONS           record version numbers and drift with `drift --accept --reason "a test"`, and approve the record
    run: COMMANDS             run a command, or each of several, with these further keys: `code` is the exit code (or a list of
                              possible ones), `out` and `err` have parts of the output, `omits` has texts that no output has,
                              `json` has values of the output as JSON: a mapping may have more keys, a list has no more items,
                              and `save` is a file to which the output is written
    lose:                     lose everything that the registry has

A step whose first key is a noun states what is there:

    versions: {TOPIC: SCHEMAS}  the registered versions, where null is a tombstone; and no apply has left the topic relaxed
    json: {PATH: VALUES}        values of files as JSON, as in the `json` of a run
    policies: {NAME: POLICIES}  these policies of schemas, and exactly these settings
    files: {PATH: TEXT}         the text of files in the working tree without comments, in which `...` is any text on a line; null if there
                                is no file

A schema is a list of fields, which is an Avro record called Order (`[id, note: 0]` has a string and an int with a default), the
name of a type without a definition, or a mapping with `type`, `definition` and `properties`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from case_tables import read_cases
from estate import PROJECT, Estate, make_order_info

from schemactl.core.names import NamespaceName, TopicName, parse_name
from schemactl.core.policies import SETTINGS, Policies
from schemactl.core.schema import SchemaInfo, SchemaType

Scenario = Mapping[str, Any]
Step = Mapping[str, Any]
Text = str | Sequence[str]


def read_scenarios(test_file: str) -> list[Any]:
    """Return the scenarios of a test file, `test_NAME.py`, as pytest's parameters: they are in `NAME.yaml` next to it."""
    path = Path(test_file).with_name(Path(test_file).stem.removeprefix("test_") + ".yaml")
    scenarios_by_name = read_cases(path, {"project", "start", "steps"})
    return [pytest.param(scenario, id=name) for name, scenario in scenarios_by_name.items()]


def run_scenario(scenario: Scenario, folder: Path) -> None:
    """Run the steps of a scenario in a new repository below `folder`."""
    project = scenario.get("project", PROJECT)
    estate = _prepare_start(project, json.dumps(scenario.get("start", []))).copy_to(folder / "shop")
    _run_steps(estate, scenario["steps"])


@cache
def _prepare_start(project: str, steps: str) -> Estate:
    """Make the repository and the registry in which scenarios of this start begin."""
    estate = Estate(Path(_make_folder().name, str(_prepare_start.cache_info().misses)), project=project)
    estate.scratch.configure_author()
    _run_steps(estate, json.loads(steps))
    return estate


@cache
def _make_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


_RUN_KEYS = {"run", "code", "out", "err", "omits", "json", "save"}


def _run_steps(estate: Estate, steps: Sequence[Step]) -> None:
    for number, step in enumerate(steps, 1):
        key, *_ = step
        assert step.keys() <= (_RUN_KEYS if key == "run" else {key}), f"unknown keys in step {number}: {step}"
        try:
            if key == "run":
                _run_commands(estate, **step)
            else:
                STEPS[key](estate, step[key])
        except AssertionError as error:
            error.add_note(f"in step {number}: {step}")
            raise


# Steps that do something


def _commit(estate: Estate, files: Mapping[str, Any]) -> None:
    estate.scratch.commit(_make_contents(files))


def _write(estate: Estate, files: Mapping[str, Any]) -> None:
    estate.scratch.write(_make_contents(files))


def _make_contents(files: Mapping[str, Any]) -> dict[str, Any]:
    return {
        path: make_schema(content).schema if isinstance(content, list) else content for path, content in files.items()
    }


def _run_git(estate: Estate, arguments: str) -> None:
    estate.scratch.git(*shlex.split(arguments))


def _create(estate: Estate, text: str) -> None:
    name = parse_name(text)
    with estate.registry() as registry:
        if isinstance(name, NamespaceName):
            registry.create_namespace(name)
        else:
            registry.create_topic(name, None)


def _upload(estate: Estate, schemas_by_topic: Mapping[str, Sequence[Any]]) -> None:
    for topic, schemas in schemas_by_topic.items():
        estate.put(*map(make_schema, schemas), topic=TopicName.parse(topic))


def make_schema(text: Any) -> Any:
    """Make the schema that a scenario writes as a list of fields, the name of a type or a mapping; None stays None."""
    if text is None:
        return None
    if isinstance(text, str):
        return SchemaInfo(SchemaType[text])
    if isinstance(text, list):
        strings = [field for field in text if isinstance(field, str)]
        defaults = {name: default for field in text if isinstance(field, dict) for name, default in field.items()}
        return make_order_info(*strings, **defaults)
    return SchemaInfo(SchemaType[text["type"]], text.get("definition", "").encode(), text.get("properties", {}))


def _set_policies(estate: Estate, policies_by_name: Mapping[str, Mapping[str, Any]]) -> None:
    with estate.registry() as registry:
        for text, values in policies_by_name.items():
            name, policies = parse_name(text), Policies.of(values)
            if isinstance(name, NamespaceName):
                registry.set_namespace_policies(name, policies)
            else:
                registry.set_topic_policies(name, policies)


def _delete(estate: Estate, topic: str) -> None:
    with estate.registry() as registry:
        registry.delete_topic(TopicName.parse(topic))


def _delete_schema(estate: Estate, topic: str) -> None:
    with estate.registry() as registry:
        registry.delete_schema(TopicName.parse(topic), force=True)


def _lose(estate: Estate, nothing: None) -> None:
    assert nothing is None
    for file in (estate.scratch.path / ".schemactl").glob("registry.db*"):
        file.unlink()


def _accept(estate: Estate, options: str | None) -> None:
    estate.accept(*shlex.split(options or ""))


def _run_commands(
    estate: Estate,
    run: Text,
    code: int | Sequence[int] = 0,
    out: Text = (),
    err: Text = (),
    omits: Text = (),
    save: str = "",
    **expected: Any,
) -> None:
    assert _make_list(run)
    for command in _make_list(run):
        printed = estate.run(*shlex.split(command), code=code)
        assert not [text for text in _make_list(out) if text not in printed.out], printed.out
        assert not [text for text in _make_list(err) if text not in printed.err], printed.err
        assert not [text for text in _make_list(omits) if text in printed.out + printed.err], printed
        if "json" in expected:
            _check_json(printed.out, expected["json"])
        if save:
            estate.scratch.write({save: printed.out})


def _make_list(text: Text) -> Sequence[str]:
    return [text] if isinstance(text, str) else text


def _check_json(text: str, expected: Any) -> None:
    assert _select_expected(json.loads(text), expected) == expected


def _select_expected(actual: Any, expected: Any) -> Any:
    """Return `actual` without the keys of mappings that are not expected."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        return {key: _select_expected(actual[key], expected[key]) for key in expected if key in actual}
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        return [_select_expected(*pair) for pair in zip(actual, expected, strict=True)]
    return actual


# Steps that state what is there


def _check_versions(estate: Estate, schemas_by_topic: Mapping[str, Sequence[Any]]) -> None:
    for topic, schemas in schemas_by_topic.items():
        name = TopicName.parse(topic)
        assert estate.read_definitions(name) == [*map(make_schema, schemas)]
        with estate.registry() as registry:
            assert registry.find_relaxed_topic(name) is None


def _check_policies(estate: Estate, policies_by_name: Mapping[str, Mapping[str, Any]]) -> None:
    with estate.registry() as registry:
        for text, values in policies_by_name.items():
            expected = Policies.of(values)
            actual = registry.read_policies(parse_name(text), {*values, *SETTINGS})
            assert actual.settings == expected.settings
            assert [actual.get(key) for key in values] == [expected.get(key) for key in values]


def _check_files(estate: Estate, text_by_path: Mapping[str, str | None]) -> None:
    for path, text in text_by_path.items():
        file = estate.scratch.path / path
        if text is None:
            assert not file.exists()
        else:
            lines = file.read_text().splitlines(keepends=True)
            actual = "".join(line for line in lines if not line.startswith("#"))
            assert re.fullmatch(".*".join(map(re.escape, text.split("..."))), actual), actual


def _check_json_files(estate: Estate, values_by_path: Mapping[str, Any]) -> None:
    for path, expected in values_by_path.items():
        _check_json((estate.scratch.path / path).read_text(), expected)


STEPS: Mapping[str, Callable[[Estate, Any], None]] = {
    "commit": _commit,
    "write": _write,
    "git": _run_git,
    "create": _create,
    "upload": _upload,
    "set": _set_policies,
    "delete": _delete,
    "delete schema": _delete_schema,
    "lose": _lose,
    "accept": _accept,
    "versions": _check_versions,
    "policies": _check_policies,
    "files": _check_files,
    "json": _check_json_files,
}
"""The functions of all steps but `run`, by their key."""
