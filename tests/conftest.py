"""Fixtures and settings for every test."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import brokers
import java_avro
import pytest
import scratch
import spark_java
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from schemactl.registry.pulsar.http import WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry

if TYPE_CHECKING:
    from estate import Estate

    from schemactl.registry.embedded import EmbeddedRegistry


@pytest.fixture(autouse=True)
def _no_git_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make tests independent of Git hooks, CI and the developer's Git settings."""
    for name in os.environ:
        if name.startswith("GIT_") or name == "CI":
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def waits() -> WaitTimes:
    """Return the waiting times of commands that run in the process of a test; a file or a test overrides them."""
    return brokers.NO_CLIENTS


@pytest.fixture(autouse=True)
def _pass_waits_to_commands(monkeypatch: pytest.MonkeyPatch, waits: WaitTimes) -> None:
    """Make commands open their Pulsar registries with `waits`, for which the command line has no option."""
    monkeypatch.setattr("schemactl.registry.pulsar.registry.PulsarRegistry", partial(PulsarRegistry, waits=waits))


@pytest.fixture(autouse=True, scope="session")
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the cache of the user who runs the tests out of the tests, and of the fixtures of a session."""
    _set_cache(tmp_path_factory)


@pytest.fixture(autouse=True, scope="module")
def _cache_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give each file a separate cache, because a command looks at each repository in its cache for unused files."""
    _set_cache(tmp_path_factory)


def _set_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["SCHEMACTL_CACHE"] = scratch.ENVIRONMENT["SCHEMACTL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


LONGEST = (
    *("spark", "commands", "test_hook.py", "test_example.py", "test_mixtures_on_pulsar.py", "test_timeout.py", "test_hostile_registry.py"),
    *("test_troubles.py", "test_compare_command.py", "test_rules.py", "test_avro_hostile.py", "test_pulsar_faults.py", "test_several_targets.py", "test_time_limits.py"),
    *("test_gate.py", "test_apply_record.py", "test_waived_checks.py", "pulsar", "checks", "history", "deploy"),
)  # fmt: skip
"""Files and folders of the longest tests, which start first, so that no worker idles at the end."""

NEEDED_BY_FIXTURE = {
    "spark_session": "spark",
    "spark_console": "spark",
    "broker": "broker",
    "java": "java",
    "go_program": "go",
    "url": "network",
    "cluster_url": "network",
    "store": "network",
}
"""The marker of every test that uses the fixture, directly or through another one."""

REQUIRED = "SCHEMACTL_REQUIRE"
"""The environment variable that names markers, separated by commas, of which no test may be skipped: CI sets it."""

# Hundreds of processes start here, whose Python would compile the package and the tests again without stored bytecode.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Objects of modules and of the collection of tests live as long as the process, so the garbage collector skips them.
gc.disable()

# jsonschema compiles forty grammars for formats of addresses that no test checks, if it finds this package.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# Most of Spark's code runs a few times here: compiling it well, and verifying it, takes longer than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", spark_java.list_java_options())
os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", os.environ["SPARK_SUBMIT_OPTS"])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and begin with the slowest."""
    folder = Path(__file__).parent
    for item in items:
        for name in getattr(item, "fixturenames", ()):
            if marker := NEEDED_BY_FIXTURE.get(name):
                item.add_marker(marker)
        if item.get_closest_marker("timed") or item.get_closest_marker("broker"):
            item.add_marker("live")
    places = {name: place for place, name in enumerate(LONGEST)}

    @cache
    def place(path: Path) -> int:
        return min(places.get(part, len(places)) for part in path.relative_to(folder).parts)

    items.sort(key=lambda item: place(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    gc.freeze()
    gc.enable()
    # As the command line does.
    gc.set_threshold(50_000)
    # A package of C++ that is left over at the end complains.
    atexit.register(gc.unfreeze)
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one more than there are processors, and two more if the run includes Spark: those workers mostly wait for other processes."""
    includes_spark = not any(Path(path).name == "spark" for path in config.option.ignore or ())
    return (os.cpu_count() or 1) + (2 if includes_spark else 1)


class _Scheduling(LoadFileScheduling):  # type: ignore[misc]  # without types
    """A file is a worker's, and so is each folder of Spark as a whole: its JVM starts once in a run."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return str(Path(file).parent) if "spark" in Path(file).parts else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Scheduling:
    return _Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    brokers.markers = frozenset(mark.name for mark in item.iter_markers())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped although the run requires what it needs."""
    report = yield
    required = set(filter(None, os.environ.get(REQUIRED, "").split(",")))
    missing = sorted(required.intersection(mark.name for mark in item.iter_markers()))
    if report.skipped and missing and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but {REQUIRED} names {', '.join(missing)}: {report.longrepr}"
    return report


def pytest_configure(config: pytest.Config) -> None:
    # Only now, when pytest keeps what it makes of Hypothesis's hundred modules.
    from hypothesis import settings

    # The same examples in every run, so that a change is never held up by luck; `make soak` looks for new ones.
    settings.register_profile("same", derandomize="SCHEMACTL_EXAMPLES" not in os.environ, database=None, deadline=None)
    settings.load_profile("same")
    if not hasattr(config, "workerinput"):
        brokers.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        brokers.end()


@pytest.fixture
def registry() -> Iterator[EmbeddedRegistry]:
    """An embedded registry in memory."""
    from schemactl.registry.embedded import EmbeddedRegistry

    with closing(EmbeddedRegistry(":memory:")) as opened:
        yield opened


@pytest.fixture
def estate(module_estate: Estate, tmp_path: Path) -> Estate:
    """Return a copy of `module_estate`, which the module defines, for one test."""
    return module_estate.copy_to(tmp_path / "shop")


@pytest.fixture(scope="session")
def broker() -> brokers.Broker:
    """Return a real Pulsar 4.0, which all tests share; each test works in a separate tenant."""
    return brokers.start_broker("4.0")


@pytest.fixture(scope="session")
def java() -> Iterator[java_avro.JavaAvro]:
    """Yield the Avro of PySpark in a separate JVM."""
    yield from java_avro.start_java()


@pytest.fixture(scope="session")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pulsar's Go client as a program that reads and writes for tests."""
    from language_reader_table import build_go_client

    return build_go_client(tmp_path_factory.mktemp("go"))
