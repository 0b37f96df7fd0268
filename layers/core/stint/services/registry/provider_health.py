"""The health of providers, which is looked at when a caller asks for it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from stint.domain.llama_stack.registry import Provider, ProviderHealth

CheckHealth = Callable[[], Awaitable[ProviderHealth]]

logger = logging.getLogger(__name__)


class ProviderHealthChecks:
    """The checks of providers, by their id. They run concurrently, for at most `seconds` in all.

    A result is kept for `cache_seconds`. A provider without a check keeps the health that it has.
    """

    def __init__(
        self,
        checks: Mapping[str, CheckHealth],
        *,
        seconds: float = 2.0,
        cache_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._checks, self._clock = checks, clock
        self._seconds, self._cache_seconds = seconds, cache_seconds
        self._found: dict[str, tuple[float, ProviderHealth]] = {}

    async def check(self, providers: Sequence[Provider]) -> list[Provider]:
        """Return the providers with their health."""
        now = self._clock()
        due = {each.provider_id for each in providers if self._is_due(each.provider_id, now)}
        for name, health in (await self._run(due)).items():
            self._found[name] = (now + self._cache_seconds, health)
        return [self._with_health(each) for each in providers]

    def _is_due(self, name: str, now: float) -> bool:
        return name in self._checks and (name not in self._found or self._found[name][0] <= now)

    async def _run(self, names: set[str]) -> dict[str, ProviderHealth]:
        if not names:
            return {}
        tasks = {name: asyncio.create_task(self._run_one(name)) for name in names}
        _, late = await asyncio.wait(tasks.values(), timeout=self._seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)  # their connections are closed
        slow = ProviderHealth(status="Error", message=f"No answer within {self._seconds:g} s.")
        return {name: slow if task in late else task.result() for name, task in tasks.items()}

    async def _run_one(self, name: str) -> ProviderHealth:
        try:
            return await self._checks[name]()
        except Exception as error:  # the health of other providers is still an answer
            logger.exception(f"The check of provider {name!r} failed")
            return ProviderHealth(status="Error", message=f"The check failed ({type(error).__name__}).")

    def _with_health(self, provider: Provider) -> Provider:
        found = self._found.get(provider.provider_id)
        return provider if found is None else provider.model_copy(update={"health": found[1]})
