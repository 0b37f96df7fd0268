import asyncio

from stint.net.large_answers import acquire_for_large_answer, serialize_large_answers


async def test_one_piece_of_work_at_a_time_has_its_turn_until_it_is_over() -> None:
    lock, order = asyncio.Lock(), list[str]()

    async def work(name: str) -> None:
        with serialize_large_answers(lock):
            await asyncio.gather(acquire_for_large_answer(), acquire_for_large_answer())
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(work("a"), work("b"))

    assert order == ["a begins", "a ends", "b begins", "b ends"]


async def test_work_that_is_cancelled_passes_its_turn_on() -> None:
    lock = asyncio.Lock()

    async def work() -> None:
        with serialize_large_answers(lock):
            await acquire_for_large_answer()
            await asyncio.Event().wait()

    holding, waiting = asyncio.create_task(work()), asyncio.create_task(work())
    await asyncio.sleep(0)
    for task in (waiting, holding):
        task.cancel()
    await asyncio.gather(holding, waiting, return_exceptions=True)

    assert not lock.locked()


async def test_what_takes_no_turns_does_not_wait() -> None:
    await acquire_for_large_answer()
