"""The life of a topic, from its creation to its deletion, is the same on every release: the same texts but for names and times."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import brokers
import pytest
from estate import NAMESPACE, EstateOnPulsar
from scratch import record, write_declaration

pytestmark = pytest.mark.broker

ORDERS = "namespaces/orders.avsc"
RETENTION = "retention_policies: {retentionTimeInMinutes: 10080, retentionSizeInMB: -1}\n"
ALLOWED = "--allow-data-loss", "{space}:retention_policies"
_VOLATILE = [
    (r"http://127\.0\.0\.1:\d+", "URL"),
    (r"\bPulsar [45]\.[02]\b", "Pulsar RELEASE"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
    (r"sha256:[0-9a-f]{64}", "DIGEST"),
    (r"\b[0-9a-f]{9}\b", "COMMIT"),
]


class Life:
    """A topic on a release, and the texts of all commands."""

    def __init__(self, path: Path, release: str) -> None:
        self.estate = EstateOnPulsar(path, brokers.start_broker(release))
        self.space = str(self.estate.topic.namespace_name)
        self.texts: list[str] = []

    def run(self, *arguments: str, code: int = 0) -> None:
        """Run a command, and keep its text."""
        words = [argument.format(space=self.space) for argument in arguments]
        text = self.estate.run(*words, code=code).out
        text = text.replace(self.space, "SPACE").replace(self.estate.topic.tenant, "TENANT")
        for pattern, name in _VOLATILE:
            text = re.sub(pattern, name, text)
        self.texts.append(f"$ schemactl {' '.join(arguments)}\n{text}")

    def approve(self, contents: dict[str, str | None]) -> None:
        """Commit a change of the files."""
        self.estate.scratch.commit(contents)

    def apply(self, *options: str) -> None:
        """Show a change, apply it, and look for differences."""
        self.run("plan", "--detailed-exitcode", *options, code=2)
        self.run("apply", "--auto-approve", *options)
        self.run("plan", "--detailed-exitcode")
        self.run("drift", "--detailed-exitcode")

    def waive_and_merge(self) -> None:
        """Waive the findings on the current files, and merge both."""
        scratch = self.estate.scratch
        findings = json.loads(self.estate.run("check", "--format", "json", code=100).out)["findings"]
        until = (datetime.now(UTC) + timedelta(days=100)).date().isoformat()
        decision = ("--reason", "no message was written", "--owner", "team-orders", "--until", until)
        for fingerprint in sorted({finding["fingerprint"] for finding in findings if finding["severity"] == "error"}):
            # One entry may cover several findings.
            self.estate.run("waive", fingerprint, *decision, code=(0, 1))
        self.estate.run("check")
        scratch.git("add", "-A")
        scratch.git("commit", "-q", "-m", "Break orders")


def live_through(path: Path, release: str) -> Life:
    """Return the texts of a whole life."""
    life = Life(path, release)
    life.apply()
    life.approve({ORDERS: record("id", note=0)})
    life.apply()
    # A change that the strategy forbids is waived: the plan relaxes the topic.
    life.estate.scratch.write({ORDERS: record("id", "needed", note=0)})
    life.waive_and_merge()
    life.apply()
    life.approve({"namespaces/orders.yaml": write_declaration(more="generation: 2\n"), ORDERS: record("number")})
    life.apply()
    life.approve(
        {
            "namespaces/carts.yaml": write_declaration().replace("orders", "carts") + "partitions: 2\n",
            "namespaces/carts.avsc": record("id"),
        }
    )
    life.apply()
    life.approve({"namespaces/carts.yaml": write_declaration().replace("orders", "carts") + "partitions: 3\n"})
    life.apply()
    life.approve({"namespaces/sales.yaml": NAMESPACE + RETENTION + "message_ttl_in_seconds: 3600\n"})
    life.run("plan", code=100)
    life.apply("--allow-data-loss", "{space}:message_ttl_in_seconds")
    life.approve({"namespaces/sales.yaml": NAMESPACE})
    life.run("plan", code=100)
    life.apply(*ALLOWED)
    life.approve({"namespaces/orders.yaml": None, ORDERS: None})
    life.run("plan")
    life.apply("--allow-delete", "shop/sales/orders")
    life.run("status")
    return life


def test_a_topic_lives_alike_on_every_release(tmp_path: Path) -> None:
    texts = {release: live_through(tmp_path / release, release).texts for release in brokers.VERSIONS}
    assert len(texts["4.0"]) == 40
    for release, its_texts in texts.items():
        assert its_texts == texts["4.0"], release
