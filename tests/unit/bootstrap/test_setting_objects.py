"""Settings that name objects: what a process reads at its start, and what ends the start."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from tests.servers.stored_objects import StoredObjectsServer

from stint.bootstrap import setting_objects
from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import Composition, start
from stint.domain.setting_objects import MOST_BYTES, SettingObject, parse_reference
from stint.settings import SettingsError, read_settings

ROOT = Path(__file__).parents[3]
PRICES = '{"openai/gpt-9": {"input": 1, "output": 2}}'
HASH = hashlib.sha256(PRICES.encode()).hexdigest()
OBJECT = "s3://settings/prices.json?versionId=v1"
PARAMETER = "ssm:///stint/tenants?version=3"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredObjectsServer]:
    setting_objects.read_texts.cache_clear()
    with StoredObjectsServer() as server:
        for service in ("S3", "SSM"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", server.url)
        for name, value in {"REGION": "eu-west-1", "ACCESS_KEY_ID": "AKIA", "SECRET_ACCESS_KEY": "secret"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
        server.objects["/settings/prices.json", "v1"] = PRICES.encode()
        server.parameters["/stint/tenants", "3"] = '{"acme": {}}'
        yield server


def started(**variables: str) -> Composition:
    composition = AgentsComposition(lambda: read_settings({f"STINT_{name}": each for name, each in variables.items()}))
    start(composition)
    return composition


def test_settings_have_the_texts_of_the_objects_that_they_name(server: StoredObjectsServer) -> None:
    settings = started(PRICES=OBJECT, TENANTS=PARAMETER, PROVIDERS="[]", TABLE="table").settings

    assert (settings.prices, settings.tenants) == (PRICES, '{"acme": {}}')
    assert (settings.providers, settings.table) == ("[]", "table")
    assert sorted(target for _, target, _ in server.requests) == ["/", "/settings/prices.json?versionId=v1"]


def test_a_malformed_object_ends_the_start(server: StoredObjectsServer) -> None:
    server.objects["/settings/prices.json", "v1"] = b"nonsense"

    with pytest.raises(SettingsError, match="STINT_PRICES is malformed"):
        started(PRICES=OBJECT)


def test_a_process_reads_each_object_once(server: StoredObjectsServer) -> None:
    composition = started(PRICES=OBJECT)
    composition.forget()

    assert composition.settings.prices == PRICES
    assert len(server.requests) == 1


async def test_objects_are_read_in_a_running_event_loop(server: StoredObjectsServer) -> None:
    assert started(PRICES=OBJECT).settings.prices == PRICES
    assert len(server.requests) == 1


def test_a_changed_object_is_not_read_before_the_deployment_that_names_it(server: StoredObjectsServer) -> None:
    server.objects["/settings/prices.json", ""] = server.objects["/settings/prices.json", "v2"] = b"{}"

    assert started(PRICES=OBJECT).settings.prices == PRICES
    assert started(PRICES="s3://settings/prices.json?versionId=v2").settings.prices == "{}"


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("PRICES", f"s3://settings/prices.json?sha256={HASH}"),
        ("PRICES", f"s3://settings/prices.json?versionId=v1&sha256={HASH}"),
        ("REGISTRY", f"ssm:///stint/prices?sha256={HASH}"),
    ],
)
def test_a_hash_names_a_content(server: StoredObjectsServer, name: str, reference: str) -> None:
    server.objects["/settings/prices.json", ""] = PRICES.encode()
    server.parameters["/stint/prices", ""] = PRICES

    assert PRICES in started(**{name: reference}).settings.model_dump().values()


def test_another_content_than_that_of_the_hash_ends_the_start(server: StoredObjectsServer) -> None:
    server.objects["/settings/prices.json", ""] = b'{"changed": 1}'

    with pytest.raises(SettingsError, match=r"STINT_PRICES: s3://settings/prices.json\?sha256=.* has another SHA-256"):
        started(PRICES=f"s3://settings/prices.json?sha256={HASH}")


@pytest.mark.parametrize("name", ["PRICES", "TENANTS"])
def test_another_version_than_the_one_asked_for_ends_the_start(server: StoredObjectsServer, name: str) -> None:
    server.answered_version = "9"

    with pytest.raises(SettingsError, match=f"STINT_{name}: .* cannot be read: the answer is of another version"):
        started(**{name: {"PRICES": OBJECT, "TENANTS": PARAMETER}[name]})


def test_all_objects_that_cannot_be_read_are_named_with_the_reason(server: StoredObjectsServer) -> None:
    with pytest.raises(SettingsError) as caught:
        started(PRICES="s3://settings/none.json?versionId=v1", TENANTS="ssm:///none?version=1", PROVIDERS=OBJECT)

    assert "STINT_PRICES: s3://settings/none.json?versionId=v1 cannot be read: NoSuchKey (404)" in str(caught.value)
    assert "STINT_TENANTS: ssm:///none?version=1 cannot be read: ParameterNotFound (400)" in str(caught.value)
    assert "STINT_PROVIDERS" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"), [(b"x" * (MOST_BYTES + 1), f"more than {MOST_BYTES} bytes"), (b"\xff", "is not UTF-8")]
)
def test_an_object_has_a_bounded_size_and_is_text(server: StoredObjectsServer, content: bytes, reason: str) -> None:
    server.objects["/settings/prices.json", "v1"] = content

    with pytest.raises(SettingsError, match=reason):
        started(PRICES=OBJECT)
    assert server.requests[0][2]["range"] == f"bytes=0-{MOST_BYTES}"


def test_a_failure_that_passes_is_no_reason_to_end(server: StoredObjectsServer) -> None:
    server.refusals = [503, 429]

    assert started(PRICES=OBJECT).settings.prices == PRICES


def test_a_server_that_is_not_there_ends_the_start(
    server: StoredObjectsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")

    with pytest.raises(SettingsError, match=r"STINT_PRICES: .* cannot be read: there was no answer"):
        started(PRICES=OBJECT)


def test_requests_to_s3_are_signed_as_by_botocore(server: StoredObjectsServer) -> None:
    started(PRICES=OBJECT)

    [(method, target, headers)] = server.requests
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    request = AWSRequest(method, f"{server.url}{target}", {name: headers[name] for name in signed})
    request.context["timestamp"] = headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials("AKIA", "secret"), "s3", "eu-west-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert headers["authorization"].endswith(f"Signature={signer.signature(text, request)}")


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("s3://settings/prices.json", "not a reference such as"),
        ("s3://settings/prices.json?", "only versionId and sha256"),
        ("s3://settings/prices.json?versionId=", "versionId is malformed"),
        ("s3://settings/prices.json?versionId=null", "A bucket without versions needs a sha256"),
        ("s3://settings/prices.json?version=1", "only versionId and sha256"),
        ("s3://settings/prices.json?versionId=a&versionId=b", "once each"),
        ("s3://settings/prices.json?versionId=a%0d", "versionId is malformed"),
        (f"s3://settings/prices.json?sha256={HASH.upper()}", "in lower case"),
        ("s3://Settings/prices.json?versionId=a", "The name has characters"),
        ("s3://settings/pri*.json?versionId=a", "The name has characters"),
        ("s3://settings/a/../b?versionId=a", "a part . or .."),
        ("s3://settings//b?versionId=a", "empty or missing part"),
        ("s3://user@settings/b?versionId=a", "The name has characters"),
        ("s3:settings/b?versionId=a", "not a reference such as"),
        ("ssm:///stint/prices", "not a reference such as"),
        ("ssm://stint/prices?version=1", "The name has characters"),
        ("ssm:///stint/prices?version=0", "version is malformed"),
        ("ssm:///stint/prices:2?version=1", "The name has characters"),
    ],
)
def test_a_malformed_reference_is_refused_with_its_variable(reference: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=r"^Invalid environment variables\. STINT_REGISTRY: ") as caught:
        read_settings({"STINT_REGISTRY": reference})

    assert problem in str(caught.value)


def test_references_are_parsed() -> None:
    assert parse_reference(OBJECT) == SettingObject("settings", "/prices.json", "v1", "")
    assert parse_reference(f"{PARAMETER}&sha256={HASH}") == SettingObject("", "/stint/tenants", "3", HASH)


def test_keys_of_servers_that_an_object_names_are_found(server: StoredObjectsServer) -> None:
    servers = [{"id": "own", "base_url": "https://own.example/v1", "key_variable": "STINT_OWN_KEY"}]
    server.parameters["/servers", "1"] = json.dumps(servers)
    composition = started(PROVIDERS="ssm:///servers?version=1", OWN_KEY="sk-own")
    assert isinstance(composition, AgentsComposition)

    assert composition.settings.key_in("STINT_OWN_KEY") == "sk-own"
    assert [each.id for each in composition.adapters.model_servers] == ["own"]


def test_a_process_without_such_a_setting_imports_nothing_for_it() -> None:
    program = (
        "import sys; from stint.bootstrap.restore import Composition, start; from stint.settings import read_settings;"
        "start(Composition(lambda: read_settings({'STINT_PRICES': '{}'})));"
        "print([name for name in sys.modules if name.startswith('stint.aws') or name.endswith('p.setting_objects')])"
    )
    environment = {"PYTHONPATH": str(ROOT / "layers" / "core")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("function", ["turns", "worker"])
def test_a_function_does_not_start_without_its_object(server: StoredObjectsServer, function: str) -> None:
    environment = {
        "PYTHONPATH": f"{ROOT / 'functions' / function}:{ROOT / 'layers' / 'core'}",
        "STINT_PRICES": "s3://settings/none.json?versionId=v1",
        "AWS_ENDPOINT_URL_S3": server.url,
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    done = subprocess.run(
        [sys.executable, "-c", "import app"], env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "stint.settings.SettingsError: Settings cannot be read. STINT_PRICES"
    )
