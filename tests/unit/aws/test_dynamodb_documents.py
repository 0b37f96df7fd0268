"""Documents of DynamoDB, with binary values at any depth and names that look like types."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.aws.dynamodb import decode_response, encode_request
from stint.aws.errors import DynamoDBError
from stint.http1.parser import HttpResponse

NAMES = st.one_of(st.sampled_from(["B", "BS", "S", "M", "pk"]), st.text(max_size=5))
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: {"S": text}),
    st.integers().map(lambda number: {"N": str(number)}),
    st.binary(max_size=20).map(lambda data: {"B": data}),
    st.lists(st.binary(max_size=5), max_size=3).map(lambda data: {"BS": data}),
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: {"L": values}),
        st.dictionaries(NAMES, inner, max_size=3).map(lambda values: {"M": values}),
    ),
    max_leaves=8,
)
ITEMS = st.dictionaries(NAMES, VALUES, max_size=4)


def respond(body: bytes, status: int = 200) -> HttpResponse:
    return HttpResponse(status, {}, body)


@given(items=st.lists(ITEMS, max_size=3), table=NAMES)
def test_a_document_is_read_as_it_was_written(items: list[Any], table: str) -> None:
    document = {"Items": items, "Responses": {table: items}, "Count": len(items)}

    assert decode_response(respond(encode_request(document))) == document


@given(item=ITEMS)
def test_the_record_of_an_error_is_read_as_it_was_written(item: dict[str, Any]) -> None:
    reasons = [{"Code": "ConditionalCheckFailed", "Item": item}]
    body = encode_request({"__type": "x#TransactionCanceledException", "Item": item, "CancellationReasons": reasons})

    with pytest.raises(DynamoDBError) as raised:
        decode_response(respond(body, 400))

    assert (raised.value.item, raised.value.reasons) == (item, reasons)


@given(
    value=st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner)
    )
)
def test_any_json_of_an_error_is_an_error(value: Any) -> None:
    with pytest.raises(DynamoDBError):
        decode_response(respond(json.dumps(value).encode(), 400))


@pytest.mark.parametrize("value", [bytearray(b"\x01"), memoryview(b"\x01")])
def test_buffers_are_binary_values(value: Any) -> None:
    assert json.loads(encode_request({"B": value})) == {"B": "AQ=="}
