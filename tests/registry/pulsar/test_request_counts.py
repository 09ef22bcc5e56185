"""Commands send no more requests than they need: the counts are compared with the smallest possible numbers.

A plan needs one request for each topic, its list of versions, as no request reads several topics. Policies of topics are read only in
a namespace that has some. A first apply also creates each topic, uploads each version, and reads the versions back.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import admin_rest
import pytest
from command import process
from faulty import forward
from scratch import Scratch, record
from scripted import Request, Response, serve

NAMESPACES, TOPICS_IN_A_NAMESPACE = 2, 30
TOPICS = NAMESPACES * TOPICS_IN_A_NAMESPACE
VERSIONS = TOPICS + TOPICS // 2
"""Half of the topics have two versions."""

FOR_THE_CLUSTER = 2
"""The release and the configuration of the broker."""

FOR_A_NAMESPACE = 6
"""Its policies, its topics, its partitioned topics, whether topics have policies, and the two policies of one topic."""

NOTHING_TO_DO = FOR_THE_CLUSTER + NAMESPACES * FOR_A_NAMESPACE + TOPICS


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of `schemactl serve`."""
    with admin_rest.serve_folder() as (url, _):
        yield url


@pytest.fixture(scope="module")
def repository(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose target `live` has everything, and whose other targets have nothing."""
    scratch = Scratch(tmp_path_factory.mktemp("counts") / "shop")
    names = [f"n{number}" for number in range(NAMESPACES)]
    targets = "".join(
        f'  {target}: {{registry: "{url}", tenants: {{shop: {target}}}}}\n'
        for target in ("live", "first", "planned", "strict")
    )
    topics = [f"{name}/t{number:02}" for name in names for number in range(TOPICS_IN_A_NAMESPACE)]
    scratch.commit(
        {
            "schemactl.yaml": f"version: 1\nroots: [topics]\ntargets:\n{targets}",
            **{
                f"topics/{name}.yaml": f"namespace: shop/{name}\nschema_compatibility_strategy: BACKWARD\n"
                for name in names
            },
            **{
                f"topics/{topic}.yaml": f"topic: shop/{topic}\nschema: {{type: AVRO, definition: {topic[-3:]}.avsc}}\n"
                for topic in topics
            },
            **{f"topics/{topic}.avsc": record("id") for topic in topics},
        }
    )
    scratch.commit({f"topics/{topic}.avsc": record("id", note=0) for topic in topics[::2]})
    scratch.flush()
    process(scratch.path, "apply", "--target", "live", "--yes")
    return scratch.path


def count_requests(repository: Path, *arguments: str) -> Counter[str]:
    """Return the number of requests that a successful command sends, by method and kind of path."""
    printed = process(repository, *arguments, "--debug")
    assert printed.code == 0, printed
    requests = re.findall(r"debug: \S+ s: ([A-Z]+) http://[^/]+/admin/v2/(\S+): ", printed.err)
    return Counter(
        f"{method} {re.sub(r'(first|live|planned|strict)|[nt][0-9]+', '*', path)}" for method, path in requests
    )


@pytest.mark.parametrize(
    "arguments",
    [("plan", "--target", "live"), ("drift", "--target", "live"), ("status", "--target", "live")],
    ids=lambda arguments: arguments[0],
)
def test_nothing_to_do_takes_one_request_for_each_topic(repository: Path, arguments: tuple[str, ...]) -> None:
    requests = count_requests(repository, *arguments)
    assert requests["GET schemas/*/*/*/schemas"] == TOPICS
    assert requests.total() == NOTHING_TO_DO, requests


def test_first_apply_takes_one_request_for_each_topic_more_than_its_changes(repository: Path) -> None:
    requests = count_requests(repository, "apply", "--target", "first", "--yes")
    changes = {"PUT persistent/*/*/*": TOPICS, "POST schemas/*/*/*/schema": VERSIONS}
    reads = {"GET schemas/*/*/*/metadata": TOPICS}
    readbacks = {"GET schemas/*/*/*/schema/0": TOPICS // 2, "GET schemas/*/*/*/schemas": TOPICS // 2}
    expected = {**changes, **reads, **readbacks}
    assert {kind: requests[kind] for kind in expected} == expected
    per_topic = sum(expected.values()) / TOPICS
    assert per_topic == 4.5
    assert requests.total() - sum(expected.values()) <= 12 * NAMESPACES + 5, requests


def test_plan_file_is_applied_with_the_same_requests(repository: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    plan = count_requests(repository, "plan", "--target", "planned", "--out", path)
    assert plan["GET schemas/*/*/*/metadata"] == TOPICS
    requests = count_requests(repository, "apply", path)
    assert requests["GET schemas/*/*/*/metadata"] == TOPICS
    assert requests["POST schemas/*/*/*/schema"] == VERSIONS


@pytest.mark.parametrize(
    ("method", "policy", "value"),
    [("POST", "schemaValidationEnforced", False), ("PUT", "schemaCompatibilityStrategy", '"FULL"')],
)
def test_policies_of_topics_are_read_where_a_topic_has_some(
    repository: Path, url: str, method: str, policy: str, value: object
) -> None:
    process(repository, "apply", "--target", "strict", "--yes")
    with closing(admin_rest.Client(url)) as client:
        assert client.call(method, f"/persistent/strict/n1/t01/{policy}", value).status == 204
        requests = count_requests(repository, "drift", "--target", "strict")
        client.call("DELETE", "/persistent/strict/n1/t01")
    assert requests[f"GET persistent/*/*/*/{policy}"] == TOPICS_IN_A_NAMESPACE + 1


@pytest.mark.parametrize(("options", "parallel"), [((), 8), (("--parallel", "1"), 1), (("--parallel", "3"), 3)])
def test_requests_at_once_are_limited(url: str, tmp_path: Path, options: tuple[str, ...], parallel: int) -> None:
    lock, running, highest = threading.Lock(), 0, 0

    def respond(request: Request) -> Response:
        nonlocal running, highest
        with lock:
            running += 1
            highest = max(highest, running)
        time.sleep(0.02)
        try:
            return forward(url, request)
        finally:
            with lock:
                running -= 1

    with serve(respond) as proxy:
        scratch = Scratch(tmp_path / "shop")
        topics = {f"topics/t{n:02}.yaml": f"topic: a/b/t{n:02}\nschema: {{type: STRING}}\n" for n in range(20)}
        scratch.commit(
            {
                "schemactl.yaml": f'version: 1\nroots: [topics]\ntargets: {{live: {{registry: "{proxy.url}"}}}}\n',
                **topics,
            }
        )
        scratch.flush()
        process(scratch.path, "plan", *options)
    assert highest == parallel
