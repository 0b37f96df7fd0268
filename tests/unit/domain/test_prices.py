import json

import pytest

from stint.domain.inference import Usage
from stint.domain.prices import InfrastructurePrices, ModelPrice, parse_prices, tier_to_bill

USAGE = Usage(input_tokens=1_000, output_tokens=100, total_tokens=1_100, cached_tokens=400)


def test_cached_input_has_its_own_price() -> None:
    prices = parse_prices(json.dumps({"openai/*": {"input": 2, "cached_input": 0.5, "output": 8}}))

    price = prices.find("openai/gpt-5")

    assert price is not None
    assert price.cost_of(USAGE) == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 8) / 1e6)


def test_cached_input_costs_as_much_as_other_input_if_no_price_is_given() -> None:
    price = parse_prices(json.dumps({"*": {"input": 2, "output": 8}})).find("openai/gpt-5")

    assert price is not None
    assert price.cost_of(USAGE) == pytest.approx((1_000 * 2 + 100 * 8) / 1e6)


@pytest.mark.parametrize(
    ("prices", "dollars"),
    [
        ({}, 500 * 4 + 200 * 4 + 200 * 5 + 100 * 8),
        ({"cached_input": 1, "cache_write": 6, "cache_write_1h": 7}, 500 * 4 + 200 * 1 + 200 * 6 + 100 * 7),
    ],
)
def test_input_that_is_written_to_a_cache_has_a_price_by_its_lifetime(prices: dict[str, float], dollars: float) -> None:
    price = parse_prices(json.dumps({"*": {"input": 4, "output": 8} | prices})).find("bedrock/claude")
    usage = Usage(input_tokens=1_000, cached_tokens=200, cache_write_tokens=300, cache_write_1h_tokens=100)

    assert price is not None
    assert price.cost_of(usage) == pytest.approx(dollars / 1e6)


@pytest.mark.parametrize(
    ("asked", "served", "billed"),
    [
        (None, None, "default"),
        ("default", None, "default"),
        ("priority", None, "priority"),
        ("priority", "default", "default"),
        ("flex", "flex", "flex"),
        ("flex", None, "default"),
        ("flex", "default", "default"),
        ("flex", "priority", "priority"),
        (None, "flex", "default"),
        (None, "priority", "priority"),
        (None, "fast", "fast"),
        ("priority", "ultrafast", "ultrafast"),
        ("priority", "scale", "scale"),
    ],
)
def test_the_tier_that_served_is_billed_and_a_cheap_one_only_if_it_was_asked_for(
    asked: str | None, served: str | None, billed: str
) -> None:
    assert tier_to_bill(asked, served) == billed


@pytest.mark.parametrize("served", ["on_demand", "performance", "standard", "batch", "hyper"])
@pytest.mark.parametrize(
    ("asked", "billed"), [(None, "default"), ("default", "default"), ("flex", "default"), ("priority", "priority")]
)
def test_a_tier_with_a_servers_own_name_costs_as_much_as_the_one_that_was_asked_for(
    asked: str | None, billed: str, served: str
) -> None:
    assert tier_to_bill(asked, served) == billed


@pytest.mark.parametrize(
    ("tiers", "ratios"),
    [
        ({}, [1, 0.5, 2.5, 2.5, 1, 1]),
        ({"priority": 1.75}, [1, 0.5, 1.75, 1.75, 1, 1]),
        ({"flex": 0.75, "priority": 1.75, "ultrafast": 6}, [1, 0.75, 1.75, 6, 1, 1]),
    ],
)
def test_a_tier_has_a_price_per_standard_price(tiers: dict[str, float], ratios: list[float]) -> None:
    entry = {"input": 4, "output": 8, "cached_input": 1, "image": 0.04, "tiers": tiers}
    price = parse_prices(json.dumps({"*": entry})).find("bedrock/claude")
    usage = Usage(input_tokens=1_000, output_tokens=100, cached_tokens=200, cache_write_tokens=300)

    assert price is not None
    names = ("default", "flex", "priority", "ultrafast", "scale", "reserved")
    costs = [price.in_tier(name).cost_of(usage, images=1) - 0.04 for name in names]
    assert costs == pytest.approx([price.cost_of(usage) * ratio for ratio in ratios])


@pytest.mark.parametrize("tier", ["fast", "ultrafast"])
def test_a_dearer_tier_without_a_price_costs_as_much_as_priority(tier: str) -> None:
    price = ModelPrice(input=1, output=1)

    assert price.in_tier(tier).input == price.in_tier("priority").input


def test_the_first_pattern_that_matches_applies() -> None:
    entries = {"openai/gpt-5-mini": {"input": 1, "output": 1}, "openai/*": {"input": 9, "output": 9}}
    prices = parse_prices(json.dumps(entries))

    found = [prices.find(name) for name in ("openai/gpt-5-mini", "openai/gpt-5", "bedrock/nova")]

    assert [price and price.input for price in found] == [1, 9, None]


def test_infrastructure_has_list_prices_unless_the_setting_names_others() -> None:
    prices = parse_prices(json.dumps({"infrastructure": {"write_units": 0.7}}))

    assert parse_prices("").infrastructure == InfrastructurePrices()
    assert prices.infrastructure == InfrastructurePrices(write_units=0.7)
    assert prices.models == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ('{"openai/*": {"input": 1}}', "output: Field required"),
        ('{"openai/*": {"input": -1, "output": 1}}', "greater than or equal to 0"),
        ('{"infrastructure": {"cpu": 1}}', "Extra inputs"),
        ('{"*": {"input": 1, "output": 1, "tiers": {"flexible": 1}}}', "flexible"),
        ('{"*": {"input": 1, "output": 1, "tiers": {"flex": -1}}}', "greater than or equal to 0"),
    ],
)
def test_a_malformed_setting_is_refused_with_its_name(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"STINT_PRICES is malformed.*{reason}"):
        parse_prices(text)


NAMES = ["openai/Fake-model", "openai/fake-model ", "openai/fake-model-2026-01-01", " openai/fake-model", "fake-model"]


@pytest.mark.parametrize("name", NAMES)
def test_another_spelling_of_a_name_has_no_price_but_the_default_one(name: str) -> None:
    entries = {"openai/fake-model": {"input": 1, "output": 1}}
    assert parse_prices(json.dumps(entries)).find(name) is None

    default = parse_prices(json.dumps(entries | {"*": {"input": 9, "output": 9}})).find(name)

    assert default is not None
    assert default.input == 9


def test_models_that_run_in_the_functions_are_free_unless_a_pattern_names_them() -> None:
    entries = {"hashed/*": {"input": 1, "output": 0}, "*": {"input": 9, "output": 9}}
    prices = parse_prices(json.dumps(entries))

    found = [prices.find(name) for name in ("hashed/words-384", "local/all-MiniLM-L6-v2", "scripted/demo")]

    assert [price and price.input for price in found] == [1, 0, 0]
