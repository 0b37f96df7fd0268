"""Rules of the DynamoDB proxy, which act on a call before it is sent on and after it took effect."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

See = Callable[[str, str], object]
Edit = Callable[[dict[str, Any]], object]
Run = Callable[[Callable[[], Any]], Awaitable[Any]]


@dataclass
class Exchange:
    """An attempt of a call. `run` runs a function that may block in a thread."""

    headers: dict[str, str]
    body: bytes
    run: Run
    status: int = 0
    answer: bytes = b""
    answered: bool = False

    @property
    def operation(self) -> str:
        return self.headers.get("x-amz-target", "").rpartition(".")[2]

    @property
    def call_id(self) -> str:
        """Return the id that all attempts of a call have."""
        return self.headers.get("amz-sdk-invocation-id", "")

    @property
    def is_first(self) -> bool:
        """Return whether this is the first attempt of its call."""
        return self.headers.get("amz-sdk-request", "attempt=1").split(";")[0] == "attempt=1"

    def close(self) -> NoReturn:
        """Close the connection without an answer."""
        raise ConnectionAbortedError

    def answer_error(self, status: int, code: str, message: str) -> None:
        """Answer with an error in place of the engine."""
        self.status, self.answered = status, True
        self.answer = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}).encode()


Action = Callable[[Exchange], Awaitable[None]]


class Rule:
    """A rule without an effect."""

    async def before(self, exchange: Exchange) -> None:
        """Act before the attempt is sent on. An OSError closes the connection."""

    async def after(self, exchange: Exchange) -> None:
        """Act on the answer of the engine. An OSError closes the connection."""


@dataclass
class Chosen:
    """The calls that a rule applies to: the first `times` ones. Their retries are no new calls."""

    operation: str
    marker: str
    times: int
    ids: set[str] = field(default_factory=set)

    def take(self, exchange: Exchange) -> bool:
        """Return whether the rule applies to the call. It is then counted."""
        if exchange.call_id in self.ids:
            return True
        if self.operation not in ("", exchange.operation) or self.marker.encode() not in exchange.body:
            return False
        if self.times <= 0:
            return False
        self.times -= 1
        self.ids.add(exchange.call_id or str(id(exchange)))
        return True


class Failing(Rule):
    """Calls whose connection is closed, either before they take effect or, `lost`, afterwards."""

    def __init__(self, operation: str, marker: str, lost: bool, times: int) -> None:
        self._chosen = Chosen(operation, marker, times)
        self._lost = lost
        self._performed: list[Exchange] = []

    async def before(self, exchange: Exchange) -> None:
        if self._chosen.take(exchange):
            if not self._lost or not exchange.is_first:
                exchange.close()
            self._performed.append(exchange)

    async def after(self, exchange: Exchange) -> None:
        if any(exchange is each for each in self._performed):
            exchange.close()


class Replacing(Rule):
    """Calls that are answered with an error, either before they take effect or, `performed`, afterwards."""

    def __init__(self, operation: str, code: str, status: int, message: str, times: int, performed: bool) -> None:
        self._chosen = Chosen(operation, "", times)
        self._error = (status, code, message)
        self._performing = performed
        self._performed: list[Exchange] = []

    async def before(self, exchange: Exchange) -> None:
        if self._chosen.take(exchange):
            if not self._performing or not exchange.is_first:
                exchange.answer_error(*self._error)
            self._performed.append(exchange)

    async def after(self, exchange: Exchange) -> None:
        if any(exchange is each for each in self._performed):
            exchange.answer_error(*self._error)


class Losing(Rule):
    """The loss of one answer to an attempt that took effect."""

    def __init__(self, operation: str, after: int | None) -> None:
        self.statuses: list[int] = []
        self._operation, self._after = operation, after

    async def after(self, exchange: Exchange) -> None:
        if exchange.operation != self._operation:
            return
        lost = self._after not in self.statuses if self._after else not self.statuses
        self.statuses.append(exchange.status)
        if lost and self._after in (None, exchange.status):
            exchange.close()


class Raising(Rule):
    """A rule that calls a function of the test, and raises its error at the end."""

    def __init__(self) -> None:
        self._errors: list[Exception] = []

    def check(self) -> None:
        """Raise the first error of the function."""
        if self._errors:
            raise self._errors[0]

    async def call(self, exchange: Exchange, function: Callable[[], object]) -> None:
        """Call the function in a thread. If it raises an error, close the connection."""
        try:
            await exchange.run(function)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - raised by `check`
            self._errors.append(error)
            exchange.close()


class Watching(Raising):
    """A function that sees each call once, before it is sent on."""

    def __init__(self, see: See) -> None:
        super().__init__()
        self._see = see

    async def before(self, exchange: Exchange) -> None:
        if exchange.is_first:
            await self.call(exchange, lambda: self._see(exchange.operation, exchange.body.decode()))


class Editing(Raising):
    """Functions that change the JSON of requests and answers."""

    def __init__(self, operation: str, request: Edit | None, answer: Edit | None) -> None:
        super().__init__()
        self._operation, self._request, self._answer = operation, request, answer

    async def before(self, exchange: Exchange) -> None:
        if self._request is not None and self._operation in ("", exchange.operation):
            exchange.body = await self._edit(exchange, self._request, exchange.body)

    async def after(self, exchange: Exchange) -> None:
        if self._answer is not None and self._operation in ("", exchange.operation):
            exchange.answer = await self._edit(exchange, self._answer, exchange.answer)

    async def _edit(self, exchange: Exchange, edit: Edit, body: bytes) -> bytes:
        document = json.loads(body)
        await self.call(exchange, lambda: edit(document))
        return json.dumps(document).encode()


class Throttling(Rule):
    """Attempts that are throttled, if a function chooses them by their operation and body."""

    def __init__(self, chosen: Callable[[str, str], bool]) -> None:
        self._chosen = chosen

    async def before(self, exchange: Exchange) -> None:
        if self._chosen(exchange.operation, exchange.body.decode()):
            exchange.answer_error(400, "ProvisionedThroughputExceededException", "as the test asked")


class Rounds(Rule):
    """Calls that are held until all calls of their round were made."""

    def __init__(self, rounds: Sequence[Sequence[str]], loop: asyncio.AbstractEventLoop) -> None:
        self.seen: Counter[str] = Counter()
        self._expected = [Counter(operations) for operations in rounds]
        self._found = [Counter[str]() for _ in rounds]
        self._places = [number for number, operations in enumerate(rounds) for _ in operations]
        self._full = [asyncio.Event() for _ in rounds]
        self._loop = loop

    async def before(self, exchange: Exchange) -> None:
        if not exchange.is_first:
            return
        place = self.seen.total()
        self.seen[exchange.operation] += 1
        if place < len(self._places):
            number = self._places[place]
            self._found[number][exchange.operation] += 1
            if self._found[number].total() == self._expected[number].total():
                self._full[number].set()
            await self._full[number].wait()

    def release(self) -> None:
        """Let all calls go on."""
        for event in self._full:
            self._loop.call_soon_threadsafe(event.set)

    def check(self) -> None:
        """Raise AssertionError unless the calls were those of the rounds."""
        assert self._found == self._expected
