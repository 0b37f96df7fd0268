import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.conftest import Cloud

from stint.domain.ids import new_id
from stint.store import items, keys

ATTRIBUTES = st.dictionaries(
    st.sampled_from(["a", "bb", "ccc"]), st.text() | st.integers(-(10**15), 10**15) | st.binary(min_size=1)
)


@given(ATTRIBUTES)
def test_an_item_reads_back_as_it_was(item: items.Item) -> None:
    assert items.decode(items.encode(item)) == item


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"doc": "x" * 938},
        {"doc": "x" * 939},
        {"doc": "x" * 940},
        {"doc": "x" * 941},
        {"doc": "x" * 3_800},
        {"doc": "é" * 2_000},
        {"doc": b"\0" * 5_000, "expires_at": 1_790_000_000},
        {"doc": "x" * 100_000, "number": -12345, "zero": 0},
    ],
)
async def test_computed_units_are_those_that_the_engine_charges(
    cloud: Cloud, tenant: str, attributes: items.Item
) -> None:
    key = keys.agent(tenant, new_id())
    table = cloud.table
    item = key._asdict() | attributes

    await table.put(item)

    assert cloud.units["PutItem"] == items.write_units(item)
