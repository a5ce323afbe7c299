"""Settings of clients: they pass through, and no secret is shown."""

import pickle
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.topics.kafka.client_settings import (
    ClientSettings,
    is_secret,
    make_settings,
    mask,
    read_properties,
)

SECRET = "geheim"
FILE = f"""
# how to reach the brokers
security.protocol=SASL_SSL
! another comment
sasl.mechanism = SCRAM-SHA-512
sasl.username=me
sasl.password={SECRET}=1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    return path


def test_a_file_and_settings_together(file: Path) -> None:
    settings = make_settings({"sasl.username": "you", "client.id": 7, "debug": False}, file)
    assert settings.resolve() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "you",
        "sasl.password": f"{SECRET}=1",
        "client.id": "7",
        "debug": "false",
    }


def test_a_secret_is_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_settings({"sasl.password": "${env:KAFKA_PASSWORD}"})
    assert settings.resolve({"KAFKA_PASSWORD": SECRET}) == {"sasl.password": SECRET}
    with pytest.raises(InputError, match="variable KAFKA_PASSWORD is not set"):
        settings.resolve({})
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    assert settings.resolve() == {"sasl.password": SECRET}


def test_no_secret_leaves_the_process(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_KEY", SECRET)
    settings = make_settings({"ssl.key.pem": "${env:KAFKA_KEY}"}, file)
    shown = [repr(settings), str(settings), repr(settings.to_options()), str(mask(FILE_VALUES))]
    assert SECRET not in "".join(shown)
    assert SECRET.encode() not in pickle.dumps(settings)
    assert ClientSettings.from_options(settings.to_options()) == settings


FILE_VALUES = {"sasl.password": SECRET, "sasl.username": "me"}


def test_a_secret_in_code_is_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match=r"settings\.sasl\.password: must not stand") as caught:
        make_settings({"sasl.password": SECRET})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *("sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.jaas.config"),
    ],
)
def test_secrets_are_known(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    ["sasl.username", "ssl.ca.location", "sasl.oauthbearer.token.endpoint.url", "ssl.ca.pem"],
)
def test_other_settings_are_shown(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("isolation.level", "is set by Penstock"),
        ("bootstrap.servers", "is set by Penstock"),
        ("sasl.jaas.config", "use sasl.username and sasl.password"),
        ("ssl.truststore.location", "use ssl.ca.location"),
    ],
)
def test_settings_that_cannot_be_given(name: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=problem):
        make_settings({name: "x"})
    path = tmp_path / "p"
    path.write_text(f"{name}={SECRET}\n")
    with pytest.raises(InputError, match=problem) as caught:
        make_settings(properties=path)
    assert SECRET not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"properties: .* cannot be read: No such file"):
        make_settings(properties=tmp_path / "none")
    (tmp_path / "bad").write_text(f"a=1\n{SECRET}\n")
    with pytest.raises(InputError, match="bad: line 2: is not name=value") as caught:
        read_properties(tmp_path / "bad")
    assert SECRET not in str(caught.value)
    (tmp_path / "latin").write_bytes(b"a=\xff\n")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_properties(tmp_path / "latin")
