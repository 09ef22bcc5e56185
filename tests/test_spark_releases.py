"""The packages that `make spark-smoke` and `make spark-releases` install are recorded, and the package's metadata allows them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.version import Version
from test_pinned import list_needed, read_pinned

ROOT: Final = Path(__file__).parent.parent
RECIPE: Final = ROOT / "tests/spark_recipe"
MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")


def read_releases(variable: str) -> list[str]:
    """Return the releases in a variable of the Makefile, oldest first."""
    [releases] = re.findall(rf"^{variable} \?= (.+)$", MAKEFILE, re.MULTILINE)
    return sorted(releases.split(), key=Version)


def read_hashes() -> dict[str, str]:
    text = (RECIPE / "pyspark.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^pyspark==(\S+) --hash=sha256:([0-9a-f]{64})$", text, re.MULTILINE))


def test_every_release_that_is_tested_has_its_hash() -> None:
    hashes = read_hashes()
    assert {*read_releases("SPARK_SMOKE"), *read_releases("SPARK_RELEASES"), read_pinned()["pyspark"]} == hashes.keys()
    assert f"--hash=sha256:{hashes[read_pinned()['pyspark']]}" in (ROOT / "constraints.txt").read_text()


def test_the_smoke_test_runs_on_the_oldest_the_pinned_and_the_newest_release_that_the_metadata_allows() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [requirement] = [Requirement(text) for text in extras["spark"] if text.startswith("pyspark")]
    oldest, middle, newest = read_releases("SPARK_SMOKE")
    assert middle == read_pinned()["pyspark"]
    lowest, below = sorted(requirement.specifier, key=lambda specifier: Version(specifier.version))
    assert (str(lowest), str(below)) == (f">={oldest.rpartition('.')[0]}", f"<{below.version}")
    major, minor = map(int, newest.split(".")[:2])
    assert below.version == f"{major}.{minor + 1}"


def test_the_environments_have_all_packages_that_their_extras_need() -> None:
    names = {*(RECIPE / "packages.txt").read_text(encoding="utf-8").split()}
    required = (
        list_needed("pulsar-schemactl", "delta")
        | list_needed("pulsar-schemactl", "proto")
        | list_needed("pulsar-schemactl", "pulsar")
    )
    assert required - {"pulsar-schemactl", "pyspark"} <= names
    assert names <= read_pinned().keys()
