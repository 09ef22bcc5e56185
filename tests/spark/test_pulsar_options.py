"""Options, positions and offsets of the data source, without a cluster."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemactl.spark.pulsar.options import (
    MessagePosition,
    PulsarProblem,
    full_topic_name,
    offsets_from_json,
    offsets_to_json,
    parse_bound,
    parse_connection,
    parse_read_options,
    parse_send_options,
)
from schemactl.spark.pulsar.topics import Cluster

URL = {"service.url": "pulsar://broker:6650"}
TOPIC = {**URL, "topic": "t/n/orders"}
WITH_BEARER = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
TLS = "org.apache.pulsar.client.impl.auth.AuthenticationTls"
OAUTH = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"

# Small numbers meet.
NUMBERS = st.integers(0, 3) | st.integers(0, 2**62)
POSITIONS = st.builds(
    MessagePosition, NUMBERS, NUMBERS, st.integers(-1, 100), st.integers(-1, 3) | st.integers(-1, 2**20)
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "service.url is missing"),
        ({"service.url": "http://broker:8080"}, "expected pulsar://broker:6650"),
        ({**TOPIC, "startingOfsets": "earliest"}, "no option startingofsets; it has "),
        ({**TOPIC, "schema.version": "1"}, "schema.version is not an option of a batch"),
        (URL, "give one of topic, topics .* found none"),
        ({**TOPIC, "topics": "a,b"}, "found topic and topics"),
        ({**URL, "topics": "a, a"}, "names persistent://public/default/a twice"),
        ({**URL, "topics": ","}, "names no topic"),
        ({**URL, "topicsPattern": "t/n/o.*"}, "needs admin.url"),
        ({**URL, "admin.url": "http://b", "topicsPattern": "t/n/o("}, "not a regular expression"),
        ({**URL, "topic": "non-persistent://t/n/x"}, "not a name of a persistent topic"),
        ({**TOPIC, "startingOffsets": "first"}, "write earliest, latest, or JSON"),
        ({**TOPIC, "startingOffsets": '{"t/n/orders": "5"}'}, "expected earliest, latest or ledger:entry"),
        ({**TOPIC, "startingOffsets": '{"t/n/orders": [1, 2]}'}, "orders is not a message id"),
        ({**TOPIC, "startingOffsets": "earliest", "startingTime": "5"}, "not both"),
        ({**TOPIC, "endingTime": "yesterday"}, "expected milliseconds since 1970, above 0"),
        ({**TOPIC, "failOnDataLoss": "no"}, "write true or false"),
        ({**TOPIC, "key.encoding": "hex"}, "write auto, text or base64"),
        ({**TOPIC, "pulsar.client.authParams": "env:T"}, "are given together"),
        ({**TOPIC, "pulsar.client.authPluginClassName": "X", "pulsar.client.authParams": "y"}, "known are"),
        ({**TOPIC, "pulsar.client.authPluginClassName": TLS, "pulsar.client.authParams": "a:b"}, "tlsCertFile"),
        ({**TOPIC, "pulsar.client.authPluginClassName": OAUTH, "pulsar.client.authParams": "{"}, "not a JSON object"),
    ],
)
def test_a_wrong_option_is_one_clear_error(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_connection(options, "a batch"), parse_read_options(options, "a batch")


@pytest.mark.parametrize(
    ("plugin", "params"),
    [
        (WITH_BEARER, "token:s3cret"),
        (WITH_BEARER, "s3cret"),
        (OAUTH, '{"issuerUrl": "https://i", "privateKey": "data:application/json;base64,s3cret"}'),
    ],
)
def test_a_secret_in_an_option_is_rejected_and_not_repeated(plugin: str, params: str) -> None:
    options = {**TOPIC, "pulsar.client.authPluginClassName": plugin, "pulsar.client.authParams": params}
    with pytest.raises(ValueError, match="file://") as raised:
        parse_connection(options)
    assert "s3cret" not in str(raised.value)


def test_a_token_comes_from_the_driver_s_environment_or_from_a_file_and_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**TOPIC, "pulsar.client.authPluginClassName": WITH_BEARER}
    in_environment = {**options, "pulsar.client.authParams": "env:A_TOKEN"}
    with pytest.raises(ValueError, match=r"A_TOKEN.? for the token is not set"):
        parse_connection(in_environment)
    monkeypatch.setenv("A_TOKEN", "s3cret")
    read = parse_connection(in_environment)
    monkeypatch.delenv("A_TOKEN")
    assert "s3cret" not in repr(read)
    sent = pickle.loads(pickle.dumps(read))  # noqa: S301  as Spark sends it to executors
    assert sent.authentication is not None
    assert sent.authentication.read_token() == "s3cret"
    file = tmp_path / "token"
    from_file = parse_connection({**options, "pulsar.client.authParams": f"file://{file}"}).authentication
    assert from_file is not None
    with pytest.raises(PulsarProblem, match="cannot be read"):
        from_file.read_token()
    file.write_text("first\n")
    assert from_file.read_token() == "first"
    file.write_text("renewed\n")
    assert from_file.read_token() == "renewed"


def test_certificates_and_client_credentials_are_files_that_the_client_takes(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text('{"client_id": "i", "client_secret": "s3cret"}')
    credentials = f'{{"issuerUrl": "https://issuer", "privateKey": "file://{tmp_path}/credentials.json"}}'
    for plugin, params in ((TLS, "tlsCertFile:/c.pem,tlsKeyFile:/k.pem"), (OAUTH, credentials)):
        options_by_name = {
            "service.url": "pulsar+ssl://broker:6651",
            "pulsar.client.tlsTrustCertsFilePath": "/ca.pem",
            "pulsar.client.authPluginClassName": plugin,
            "pulsar.client.authParams": params,
        }
        connection = parse_connection(options_by_name)
        assert connection.authentication is not None
        Cluster(connection).client.close()


def test_a_sink_needs_the_version_it_sends_with() -> None:
    with pytest.raises(ValueError, match=r"schema.version is missing"):
        parse_send_options(TOPIC)
    sending = parse_send_options({**TOPIC, "schema.version": "3", "checkpointLocation": "c"})
    assert (sending.topic, sending.version) == ("persistent://t/n/orders", 3)


def test_topics_are_named_as_pulsar_completes_names() -> None:
    assert full_topic_name("orders") == "persistent://public/default/orders"
    assert full_topic_name("t/n/orders") == full_topic_name("persistent://t/n/orders") == TOPIC_NAME
    assert parse_read_options({**URL, "topics": "t/n/a, b"}, "a stream").topics == (
        "persistent://t/n/a",
        "persistent://public/default/b",
    )


TOPIC_NAME = "persistent://t/n/orders"


@given(st.dictionaries(st.text(min_size=1), st.none() | POSITIONS))
def test_offsets_come_back_from_json_and_may_be_given_as_a_start(offsets: dict[str, MessagePosition | None]) -> None:
    text = json.dumps(offsets_to_json(offsets))
    assert offsets_from_json(json.loads(text)) == offsets
    assert list(json.loads(text)) == sorted(offsets)


@given(POSITIONS)
def test_a_place_may_be_given_as_it_stands_in_a_checkpoint(position: MessagePosition) -> None:
    offsets_by_topic = json.dumps(offsets_to_json({TOPIC_NAME: position}))
    assert parse_bound(offsets_by_topic, name="startingOffsets") == {TOPIC_NAME: position}


@given(POSITIONS, POSITIONS)
def test_between_a_message_and_the_place_before_it_is_no_other(one: MessagePosition, other: MessagePosition) -> None:
    before = one.before()
    assert before.order < one.order
    # A whole entry is one message, or it is the messages in it.
    meet = one[:2] == other[:2] and -1 in (one.batch, other.batch)
    assert meet or not before.order < other.order < one.order


def test_offsets_of_the_connector_for_the_jvm_are_understood() -> None:
    offsets_by_topic = {"t/n/orders": [8, 3, 16, 0, 32, 4, 48, 5], "t/n/other": [8, -128, 1, 16, 1]}
    assert parse_bound(json.dumps(offsets_by_topic), name="startingOffsets") == {
        "persistent://t/n/orders": MessagePosition(3, 0, -1, 4),
        "persistent://t/n/other": MessagePosition(128, 1),
    }
