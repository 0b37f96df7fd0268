"""The headers of requests to a receiver of traces."""

import pytest

from stint.domain.otlp_headers import parse_headers
from stint.settings import SettingsError, check_settings

SECRET = "key-of-an-operator"


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        (" A = 1 , b=2,, ", {"a": "1", "b": "2"}),
        ("authorization=Basic%20YTpi%3D%3D", {"authorization": "Basic YTpi=="}),
        ("authorization=Basic YTpi==", {"authorization": "Basic YTpi=="}),
        ("a=x%2Cy", {"a": "x,y"}),
    ],
)
def test_headers_are_pairs_with_encoded_values(text: str, headers: dict[str, str]) -> None:
    assert parse_headers(text) == headers


@pytest.mark.parametrize(
    "text", [SECRET, f"={SECRET}", f"a b={SECRET}", f"a={SECRET}%0d%0ab: c", f"a={SECRET}\nb: c", f"a={SECRET}%c3%a9"]
)
def test_malformed_headers_are_refused_without_their_values(text: str) -> None:
    with pytest.raises(ValueError, match="entry 1 is not name=value") as refused:
        parse_headers(text)

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("name", ["Host", "content-length", "Content-Type", "transfer-encoding"])
def test_headers_of_the_request_itself_cannot_be_set(name: str) -> None:
    with pytest.raises(ValueError, match=f"entry 2 sets {name.lower()}"):
        parse_headers(f"a=1,{name}=2")


def test_malformed_headers_end_the_start_of_a_process() -> None:
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_HEADERS: ") as refused:
        check_settings({"otlp_headers": SECRET})

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, ""),
        ({"traces": "xray"}, ""),
        ({"otlp_endpoint": "http://otel:4318"}, "http://otel:4318/v1/traces"),
        ({"otlp_endpoint": "https://otel/api/"}, "https://otel/api/v1/traces"),
        ({"otlp_endpoint": "http://a", "otlp_traces_endpoint": "http://b/own"}, "http://b/own"),
    ],
)
def test_the_url_of_traces_is_that_of_their_own_variable_or_below_the_base(settings: dict[str, str], url: str) -> None:
    read = check_settings(settings)

    assert (read.traces_url, read.sends_traces) == (url, bool(settings))
