"""The endpoint, region and proxy that the environment selects, compared with botocore's own choice."""

import urllib.request
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from hypothesis import given
from hypothesis import strategies as st

from stint.aws.endpoints import dynamodb_endpoint, service_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import AwsConfigurationError
from stint.http1.proxies import Proxies, Proxy

REGIONS = ["us-east-1", "eu-central-1", "mx-central-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1"]
REGIONS += ["us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1"]

UNKNOWN_DUAL = {"eu-isoe-west-1", "us-isof-south-1"}
"""Regions whose dual-stack endpoints botocore has in its rules, but does not find."""


def chosen(**variables: str) -> str:
    endpoint = dynamodb_endpoint(AwsEnvironment({"AWS_REGION": "us-east-1"} | variables))
    return f"{endpoint.scheme}://{endpoint.authority}"


@pytest.mark.parametrize(
    ("region", "fips", "dual"),
    [
        (region, fips, dual)
        for region in REGIONS
        for fips in (False, True)
        for dual in (False, True)
        if not (dual and region in UNKNOWN_DUAL)
    ],
)
def test_the_endpoint_is_that_of_botocore(region: str, fips: bool, dual: bool) -> None:
    config = Config(use_fips_endpoint=fips, use_dualstack_endpoint=dual, account_id_endpoint_mode="disabled")
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    session: Any = botocore.session.get_session()
    client = session.create_client("dynamodb", region_name=region, config=config, **keys)
    sent: list[str] = []

    def answer(request: Any, **_: Any) -> Answer:
        sent.append(request.url)
        return Answer(request.url)

    client.meta.events.register("before-send", answer)
    client.list_tables()
    client.close()
    flags = {"AWS_USE_FIPS_ENDPOINT": str(fips), "AWS_USE_DUALSTACK_ENDPOINT": str(dual).lower()}

    assert [f"{chosen(AWS_REGION=region, **flags)}/"] == sent


class Answer:
    """The response of a call that botocore does not send."""

    def __init__(self, url: str) -> None:
        self.url, self.status_code, self.content = url, 200, b"{}"
        self.headers: dict[str, str] = {}


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({"AWS_ENDPOINT_URL": "http://all:1"}, "http://all:1"),
        ({"AWS_ENDPOINT_URL": "http://all:1", "AWS_ENDPOINT_URL_DYNAMODB": "https://own/"}, "https://own"),
        ({"AWS_ENDPOINT_URL_DYNAMODB": "http://[::1]:8000"}, "http://[::1]:8000"),
        ({"AWS_ENDPOINT_URL_DYNAMODB": "https://own:443"}, "https://own"),
        (
            {"AWS_ENDPOINT_URL_DYNAMODB": "http://own", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
            "https://dynamodb.us-east-1.amazonaws.com",
        ),
        ({"AWS_REGION": "local"}, "http://localhost:8000"),
        ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-west-1"}, "https://dynamodb.eu-west-1.amazonaws.com"),
    ],
)
def test_the_environment_selects_the_endpoint(variables: dict[str, str], url: str) -> None:
    assert chosen(**variables) == url


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"AWS_ENDPOINT_URL": "own:80"}, "AWS_ENDPOINT_URL is not an http or https URL with a host. Set it to http"),
        ({"AWS_ENDPOINT_URL": "http://"}, "AWS_ENDPOINT_URL is not an http or https URL with a host"),
        ({"AWS_ENDPOINT_URL": "http://own:port"}, "AWS_ENDPOINT_URL has an invalid host or port"),
        ({"AWS_ENDPOINT_URL": "http://own:65536"}, "AWS_ENDPOINT_URL has an invalid host or port"),
        ({"AWS_ENDPOINT_URL": "http://[own"}, "AWS_ENDPOINT_URL has an invalid host or port"),
        ({"AWS_ENDPOINT_URL": "http://o wn"}, "AWS_ENDPOINT_URL has an invalid host or port"),
        (
            {"AWS_ENDPOINT_URL_DYNAMODB": "http://own/s3cret", "AWS_ENDPOINT_URL": "http://all"},
            r"AWS_ENDPOINT_URL_DYNAMODB has a path, .*not supported. Set it to http\(s\)://host or http\(s\)://host:port",
        ),
        ({"AWS_ENDPOINT_URL": "http://own?key=s3cret"}, "AWS_ENDPOINT_URL has a path, query or fragment"),
        ({"AWS_ENDPOINT_URL": "http://own#s3cret"}, "AWS_ENDPOINT_URL has a path, query or fragment"),
        ({"AWS_ENDPOINT_URL": "http://own/\r\nHost: other"}, "AWS_ENDPOINT_URL has a path, query or fragment"),
        ({"AWS_ENDPOINT_URL": "http://user:s3cret@own"}, "AWS_ENDPOINT_URL has a user or password"),
        ({"AWS_ENDPOINT_URL": "http://:s3cret@own"}, "AWS_ENDPOINT_URL has a user or password"),
        ({"AWS_REGION": "us-east-1.evil.com/"}, "AWS_REGION"),
        ({"AWS_ENDPOINT_URL": "http://own", "AWS_USE_FIPS_ENDPOINT": "true"}, "AWS_USE_FIPS_ENDPOINT"),
        ({"AWS_ENDPOINT_URL": "http://own", "AWS_USE_DUALSTACK_ENDPOINT": "true"}, "AWS_USE_DUALSTACK_ENDPOINT"),
        ({"AWS_ACCOUNT_ID_ENDPOINT_MODE": "required"}, "AWS_ACCOUNT_ID_ENDPOINT_MODE"),
    ],
)
def test_another_configuration_is_refused_by_name(variables: dict[str, str], message: str) -> None:
    with pytest.raises(AwsConfigurationError, match=message) as raised:
        chosen(**variables)

    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"])
def test_the_endpoint_of_sts_is_refused_by_its_name(name: str) -> None:
    environment = AwsEnvironment({"AWS_REGION": "us-east-1", name: "https://own/sts"})

    with pytest.raises(AwsConfigurationError, match=f"^{name} has a path"):
        service_endpoint(environment, "sts")


def test_a_missing_region_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(AwsConfigurationError, match="AWS_REGION"):
        chosen(AWS_REGION="")


NAMES = st.sampled_from(["a.example.com", "example.com", "A.Example.com", "other.org", "127.0.0.1", "localhost"])
ENTRIES = st.one_of(
    NAMES, NAMES.map(lambda name: f".{name}"), NAMES.map(lambda name: f"{name}:8000"), st.sampled_from(["*", "", " "])
)


@given(host=NAMES, port=st.sampled_from([80, 8000]), entries=st.lists(ENTRIES, max_size=3), space=st.booleans())
def test_the_hosts_without_a_proxy_are_those_of_urllib(host: str, port: int, entries: list[str], space: bool) -> None:
    excluded = (", " if space else ",").join(entries)
    bypass: Any = getattr(urllib.request, "proxy_bypass_environment")  # noqa: B009 - the stubs do not have it

    assert Proxies({}, excluded).excludes(host, port) is bool(bypass(f"{host}:{port}", {"no": excluded}))


@pytest.mark.parametrize(
    ("variables", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:3128"}, Proxy("p", 3128)),
        ({"https_proxy": "http://p"}, Proxy("p", 80)),
        ({"HTTPS_PROXY": "http://upper", "https_proxy": "http://lower"}, Proxy("lower", 80)),
        ({"HTTPS_PROXY": "http://upper", "https_proxy": ""}, None),
        ({"HTTPS_PROXY": "p:3128"}, Proxy("p", 3128)),
        ({"HTTPS_PROXY": "//p:3128"}, Proxy("p", 3128)),
        ({"HTTPS_PROXY": "https://p"}, Proxy("p", 443, tls=True)),
        ({"HTTPS_PROXY": "http://u%40:p%3A@p:1"}, Proxy("p", 1, authorization="Basic dUA6cDo=")),
        ({"HTTP_PROXY": "http://p"}, None),
        ({"ALL_PROXY": "http://p"}, None),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "amazonaws.com"}, None),
        ({"HTTPS_PROXY": "http://p", "no_proxy": "dynamodb.eu-west-1.amazonaws.com:443"}, None),
    ],
)
def test_the_environment_selects_the_proxy(variables: dict[str, str], proxy: Proxy | None) -> None:
    assert Proxies.of(variables).choose("https", "dynamodb.eu-west-1.amazonaws.com", 443) == proxy


def test_a_header_of_a_cgi_request_is_not_a_proxy() -> None:
    assert Proxies.of({"HTTP_PROXY": "http://evil", "REQUEST_METHOD": "GET"}).choose("http", "h", 80) is None


def test_another_kind_of_proxy_is_refused_without_its_password() -> None:
    with pytest.raises(AwsConfigurationError, match="HTTPS_PROXY") as raised:
        AwsEnvironment({"HTTPS_PROXY": "socks5://user:password@p"}).proxy("https", "h", 443)

    assert "password" not in f"{raised.value}{Proxies.of({'HTTPS_PROXY': 'http://user:password@p'})!r}"
