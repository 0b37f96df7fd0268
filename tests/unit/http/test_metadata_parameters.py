from urllib.parse import quote, urlencode

import pytest

from stint.domain.errors import InvalidRequest
from stint.http.metadata_filters import MAX_KEY, read_filter


@pytest.mark.parametrize(
    ("query", "pairs"),
    [
        ("", {}),
        ("limit=3&metadatum=x&xmetadata[a]=b", {}),
        ("metadata[a]=b", {"a": "b"}),
        ("metadata%5Ba%5D=b&m%65tadata%5Bc%5d=", {"a": "b", "c": ""}),
        ("metadata[a]]=b&metadata[[]=c&metadata[a][b]=d", {"a]": "b", "[": "c", "a][b": "d"}),
        ("metadata[a+b%2B]=c%26d%3D+%00", {"a b+": "c&d= \x00"}),
        ("metadata[%C3%A9]=%F0%9F%98%80", {"é": "\U0001f600"}),
        ("metadata[A]=1&metadata[a]=2", {"A": "1", "a": "2"}),
        (urlencode({f"metadata[{n}]": n for n in range(16)}), {str(n): str(n) for n in range(16)}),
        (f"metadata[{quote('é' * 64)}]={quote('é' * 512)}", {"é" * 64: "é" * 512}),
    ],
)
def test_pairs_are_read_as_clients_write_them(query: str, pairs: dict[str, str]) -> None:
    assert read_filter(query.encode()) == pairs


@pytest.mark.parametrize(
    ("query", "param", "reason"),
    [
        ("metadata=x", "metadata", "has no key. Write metadata[key]=value."),
        ("metadata", "metadata", "has no key. Write metadata[key]=value."),
        ("metadata[]=x", "metadata[]", "has no key. Write metadata[key]=value."),
        ("metadata[=x", "metadata[", "has no key. Write metadata[key]=value."),
        ("metadata[a=x", "metadata[a", "has no key. Write metadata[key]=value."),
        ("metadata[a]b=x", "metadata[a]b", "has no key. Write metadata[key]=value."),
        ("metadata[a]=x&metadata[%61]=x", "metadata[a]", "is given twice."),
        (f"metadata[{'k' * 65}]=x", None, "has a key of 65 characters; at most 64 are allowed."),
        (f"metadata[k]={'x' * 513}", "metadata[k]", "has a value of 513 characters; at most 512 are allowed."),
        (urlencode({f"metadata[{n}]": n for n in range(17)}), "metadata", "has more than 16 pairs."),
        ("metadata[a]=%FF", "metadata[a]", "is not UTF-8."),
        ("metadata[a]=%ED%A0%80", "metadata[a]", "is not UTF-8."),
        ("metadata[%C0%80]=x", None, "is not UTF-8."),
    ],
)
def test_what_no_object_has_is_refused_by_name(query: str, param: str | None, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_filter(query.encode())

    assert refused.value.message.endswith(reason)
    assert refused.value.param is not None
    assert param in (None, refused.value.param)
    assert len(refused.value.param) <= MAX_KEY + 10


def test_a_long_query_costs_no_more_than_its_first_pairs() -> None:
    with pytest.raises(InvalidRequest, match="more than 16"):
        read_filter("&".join(f"metadata[{n}]=x" for n in range(100_000)).encode())
