"""schemactl works on each supported release of PySpark, in an environment that pip makes from the wheel: `make spark-smoke`."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import brokers
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shop
from pulsar_cluster import FOREVER, Namespace

from examples.shop import messages
from schemactl.codec import Codec, Definition, Options
from schemactl.codegen.codecs import make_codec
from schemactl.core.names import TopicName

ROOT: Final = Path(__file__).parent.parent.parent
RECIPE: Final = ROOT / "tests/spark_recipe/environment.sh"
RELEASES: Final = os.environ.get("SCHEMACTL_SPARK_SMOKE", "4.0.0 4.1.1 4.3.0").split()
ENVIRONMENTS: Final = Path(os.environ.get("SCHEMACTL_SPARK_RELEASES") or ROOT / ".releases")

SESSION: Final = Path(__file__).parent / "session.py"
PARTS: Final = re.findall(r"def check_(\w+)", SESSION.read_text(encoding="utf-8"))

ORDERS: Final = "persistent://shop/sales/orders"
COUNT: Final = 600
DAMAGED: Final = (b"", b"\x01\x02")
TIME_ZONE: Final = "Asia/Kolkata"
"""The time zone of Spark: one in which no test passes by accident."""

pytestmark = [pytest.mark.smoke, pytest.mark.broker]

pulsar: Any = import_module("pulsar")


def make_environments(folder: Path) -> dict[str, Future[Path]]:
    """Start to make an environment for each release; the result is its Python."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")

    def make(release: str) -> Path:
        command = ["sh", str(RECIPE), release, str(wheel), str(ENVIRONMENTS / f"wheel-{release}")]
        environment = os.environ | {"PYTHON": sys.executable}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return Path(done.stdout.strip())

    pool = ThreadPoolExecutor(len(RELEASES))
    return {release: pool.submit(make, release) for release in RELEASES}


def make_orders(codec: Codec) -> list[tuple[int, bytes]]:
    """Return orders of all versions with their version numbers, oldest version first, and damaged messages."""
    rng = random.Random(7)  # noqa: S311  not a secret
    numbers = sorted(version.number for version in codec.versions)
    orders = []
    for number in numbers:
        for _ in range(COUNT // len(numbers)):
            payload = codec.encode_one(messages.order(rng, number), number)
            assert payload is not None
            orders.append((number, payload))
    return orders + [(numbers[0], payload) for payload in DAMAGED]


@pytest.fixture(scope="session")
def reports_by_release(
    broker: brokers.Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[str, str]]]:
    """The errors of each part, by release."""
    folder = tmp_path_factory.mktemp("smoke")
    project = shop.make(folder)
    codec = make_codec(shop.read_approved(project).topics[TopicName.parse(ORDERS)], Options())
    orders = make_orders(codec)
    (folder / "messages").mkdir()
    columns = pa.table(
        {"payload": [payload for _, payload in orders], "schema_version": [number for number, _ in orders]}
    )
    pq.write_table(columns, folder / "messages/orders.parquet")

    with closing(pulsar.Client(broker.service_url, operation_timeout_seconds=20)) as client:
        namespace = Namespace(broker, client, "shop/sales")
        namespace.call("PUT", "/tenants/shop", {"allowedClusters": ["standalone"]})
        policies = {"retention_policies": FOREVER, "schema_compatibility_strategy": "ALWAYS_COMPATIBLE"}
        namespace.call("PUT", "/namespaces/NAMESPACE", policies)
        definitions = [version.schema.text for version in codec.versions if isinstance(version.schema, Definition)]
        namespace.create("orders", *definitions)
        for version in codec.versions:
            namespace.send(
                "orders", [payload for number, payload in orders if number == version.number], version=version.number
            )
        sent_topics = {release: namespace.create(f"sent-{release}", *definitions) for release in RELEASES}
        reports = {}
        # Installations keep the machine so busy that a broker may not respond in time.
        for release, environment in make_environments(folder / "wheel").items():
            settings = {
                "service_url": broker.service_url,
                "topic": ORDERS,
                "sent": sent_topics[release],
                "rows": len(orders) - len(DAMAGED),
                "rejected": len(DAMAGED),
                "messages": str(folder / "messages/orders.parquet"),
                "shop": str(project),
                "package": str(project / "generated"),
                "readme": read_snippet(),
            }
            reports[release] = run_session(environment.result(), folder / release, settings)
        yield reports


def run_session(python: Path, folder: Path, settings: dict[str, Any]) -> dict[str, str]:
    """Run all parts with that Python, and return their errors."""
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))
    omitted = ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in shop.make_environment().items() if name not in omitted}
    subprocess.run(
        [python, "-P", SESSION, folder / "settings.json", folder / "report.json"],
        cwd=folder,
        env=environment | {"TZ": TIME_ZONE},
        check=False,
        timeout=1_800,
    )
    report: dict[str, str] = json.loads((folder / "report.json").read_text())
    return report


def read_snippet() -> str:
    """Return the lines of Python in README.md."""
    [snippet] = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return str(snippet)


@pytest.mark.parametrize("part", [*PARTS, "python"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_part_works_on_the_release(reports_by_release: dict[str, dict[str, str]], release: str, part: str) -> None:
    assert reports_by_release[release][part] == "", reports_by_release[release][part]
