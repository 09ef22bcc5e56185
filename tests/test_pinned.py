"""Downloads to build, to test and to run the hook are pinned as SECURITY.md states: by version and hash, or by version alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from brokers import VERSIONS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
BROKER = ROOT / "tests" / "broker_recipe" / "broker.sh"
SPARK_JARS = ROOT / "tests" / "spark_recipe" / "jars.sh"
SUMS = [*(ROOT / "tests").rglob("*.sha256")]

# A Maven that delivers what the folder $JARS holds.
MAVEN = """\
#!/bin/sh
for word; do case $word in -DoutputDirectory=*) cp "$JARS"/*.jar "${word#*=}" ;; esac; done
"""


def read_pinned() -> dict[str, str]:
    """The version of every package that constraints.txt has."""
    text = (ROOT / "constraints.txt").read_text()
    return {
        canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)
    }


def list_needed(name: str, *extras: str) -> set[str]:
    """Return the transitive dependencies of a distribution."""
    names: set[str] = set()
    waiting = [(name, extras)]
    while waiting:
        name, extras = waiting.pop()
        for requirement in map(Requirement, metadata.requires(name) or ()):
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                continue
            if (one := canonicalize_name(requirement.name)) not in names:
                names.add(one)
                waiting.append((one, tuple(requirement.extras)))
    return names


def test_the_hook_brings_all_that_it_needs_in_the_versions_that_are_tested() -> None:
    hook, *_ = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    brought = dict(requirement.split("==") for requirement in hook["additional_dependencies"])
    assert set(brought) == list_needed("pulsar-schemactl", "proto")
    assert brought == {name: read_pinned()[name] for name in brought}


def test_the_hook_is_built_by_the_version_that_is_tested() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert built == [f"hatchling=={read_pinned()['hatchling']}"]


def test_pip_is_installed_by_its_hash_before_it_installs_anything() -> None:
    lines = (ROOT / "pip.txt").read_text().split("\n")
    assert re.fullmatch(r"pip==[0-9.]+ \\", lines[1])
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines[2:-1])
    installs = [line for line in (ROOT / "Makefile").read_text().split("\n") if "pip install" in line]
    assert [("--require-hashes" in line, line.split()[-1]) for line in installs] == [
        (True, "pip.txt"),
        (True, "constraints.txt"),
        (False, "."),
    ]
    assert "--no-deps --no-build-isolation" in installs[2]


def test_every_package_has_hashes() -> None:
    text = (ROOT / "constraints.txt").read_text().replace("\\\n", " ")
    rows = [row for row in text.split("\n") if row and not row.startswith("#")]
    assert len(rows) > 50
    assert all(re.match(r"[\w.-]+(\[[\w,]+\])?==\S+ ", row) and "--hash=sha256:" in row for row in rows)


def test_the_jars_that_make_fetches_have_checksums() -> None:
    releases = {*re.findall(r"PULSAR_VERSION=(\S+)", (ROOT / "Makefile").read_text())}
    releases |= {*re.findall(r"<pulsar.version>(.*)</", BROKER.with_name("pom.xml").read_text())}
    assert releases == {*VERSIONS.values()}
    for release in releases:
        assert f"  pulsar-broker-{release}.jar" in BROKER.with_name(f"jars-{release}.sha256").read_text()
    assert f"-{read_pinned()['pyspark']}.jar" in SPARK_JARS.with_name("jars.sha256").read_text()
    for sums in SUMS:
        assert all(re.fullmatch(r"[0-9a-f]{64}  \S+\.jar", row) for row in sums.read_text().split("\n")[:-1])


def run_recipe(script: Path, *arguments: str, cache: Path, jars: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A recipe, with a Maven that delivers `jars`."""
    maven = cache.parent / "mvn"
    maven.write_text(MAVEN)
    maven.chmod(0o755)
    variables = {
        "MVN": str(maven),
        "JARS": str(jars),
        "SCHEMACTL_BROKER_CACHE": str(cache),
        "SCHEMACTL_SPARK_JARS": str(cache),
    }
    return subprocess.run(
        ["sh", str(script), *arguments],
        env={**os.environ, **variables, **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def altered_jars(tmp_path: Path) -> Path:
    """Jars that are called as they should be, with something else in them."""
    folder = tmp_path / "altered"
    folder.mkdir()
    names = [row.split()[1] for sums in SUMS for row in sums.read_text().split("\n")[:-1]]
    for name in names:
        (folder / name).write_bytes(b"not what was recorded")
    return folder


def test_an_altered_jar_of_a_broker_is_refused_and_not_kept(tmp_path: Path, altered_jars: Path) -> None:
    done = run_recipe(BROKER, "jars", cache=tmp_path / "cache", jars=altered_jars)
    assert done.returncode == 1
    assert "these jars are not the ones" in done.stderr
    assert not [*(tmp_path / "cache").rglob("*")]


def test_an_altered_jar_of_spark_s_is_refused_and_not_kept(tmp_path: Path, altered_jars: Path) -> None:
    done = run_recipe(SPARK_JARS, read_pinned()["pyspark"], cache=tmp_path / "cache", jars=altered_jars)
    assert done.returncode == 1
    assert "these jars are not the ones" in done.stderr
    assert not [*(tmp_path / "cache").rglob("*.jar")]


def test_a_jar_that_was_altered_in_the_cache_is_noticed(tmp_path: Path) -> None:
    name = f"spark-avro_2.13-{read_pinned()['pyspark']}.jar"
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / name).write_bytes(b"altered")
    done = run_recipe(SPARK_JARS, read_pinned()["pyspark"], cache=tmp_path / "cache", jars=tmp_path)
    assert done.returncode == 1
    assert name in done.stderr


def test_a_release_without_checksums_is_refused_with_the_way_to_record_them(tmp_path: Path, altered_jars: Path) -> None:
    done = run_recipe(BROKER, "jars", cache=tmp_path / "cache", jars=altered_jars, PULSAR_VERSION="9.9.9")
    assert done.returncode == 1
    assert "no checksums are recorded" in done.stderr


def test_recorded_jars_pass_and_a_missing_or_a_further_one_does_not(tmp_path: Path) -> None:
    folder, sums = tmp_path / "lib", tmp_path / "sums"
    folder.mkdir()
    contents = {"a.jar": b"one", "b c.jar": b"two"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    sums.write_text("".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in contents.items()))

    def judge_jars() -> tuple[int, str]:
        command = ["sh", str(ROOT / "tests" / "jar_sums.sh"), str(folder), str(sums)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    assert judge_jars() == (0, "")
    (folder / "further.jar").write_bytes(b"three")
    assert judge_jars()[0] == 1
    assert "further.jar" in judge_jars()[1]
    (folder / "further.jar").unlink()
    (folder / "a.jar").unlink()
    assert "a.jar (missing)" in judge_jars()[1]


LOCK_FILES = sorted((ROOT / "tests/node").glob("*/package-lock.json"))


@pytest.mark.parametrize("path", LOCK_FILES, ids=lambda path: path.parent.name)
def test_npm_packages_are_pinned_by_hash_and_name_no_host(path: Path) -> None:
    packages = json.loads(path.read_text())["packages"]
    declared = json.loads(path.with_name("package.json").read_text())["dependencies"]
    assert packages.pop("")["dependencies"] == declared
    assert all(re.fullmatch(r"[0-9.]+", version) for version in declared.values())
    assert [name for name, package in packages.items() if not package.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, package in packages.items() if "resolved" in package] == []


def test_the_makefile_installs_npm_packages_from_lock_files_alone() -> None:
    commands = re.findall(r"^\tnpm .*$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert commands
    assert all(command.startswith("\tnpm ci ") and " --ignore-scripts" in command for command in commands)
    assert [path.parent.name for path in LOCK_FILES] == ["asyncapi-parser", "axe", "graph-parsers"]
