"""The price of cached input, by the documented rules of Bedrock."""

from pathlib import Path

from infra.bench.prompt_cache import CachingBedrock, Session, input_ratios, price_table

from stint.domain.inference import PromptCache

POINT = {"cachePoint": {"type": "default"}}


async def test_a_session_with_checkpoints_costs_at_most_a_quarter_and_a_single_call_no_more() -> None:
    session, single = await input_ratios()

    assert session <= 0.25
    assert single == 1.0


async def test_the_price_is_that_of_all_tokens_if_nothing_is_kept_long_enough() -> None:
    session = Session(PromptCache())
    session.bedrock.ends = {}
    await session.run(2)
    session.bedrock.now += 600
    before = session.used.cached_tokens

    await session.run(1)

    assert session.used.cached_tokens == before


def test_what_is_kept_is_found_up_to_20_blocks_before_a_checkpoint() -> None:
    bedrock, long = CachingBedrock(), [{"text": "a" * 8_000}]
    few, many = [{"text": str(number)} for number in range(20)], [{"text": str(number)} for number in range(21)]

    assert bedrock.use_cache([*long, POINT])[1] > 0
    assert bedrock.use_cache([*long, *few, POINT])[0] == 0
    assert bedrock.use_cache([*long, *few[:19], POINT])[0] > 0
    assert bedrock.use_cache([*long, POINT, *many, POINT])[0] > 0


def test_a_short_beginning_is_not_kept() -> None:
    bedrock = CachingBedrock()

    assert bedrock.use_cache([{"text": "a"}, POINT])[1] == 0
    assert bedrock.use_cache([{"text": "a"}, POINT])[0] == 0


async def test_the_example_of_the_document_is_that_of_the_command() -> None:
    document = (Path(__file__).parents[3] / "docs" / "costs.md").read_text()

    assert "`make bench CACHE=1`" in document
    assert await price_table() in document
