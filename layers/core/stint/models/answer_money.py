"""The money of an answer while it streams.

Nobody knows how long an answer will be, so a part of it is paid for at first, and the reservation is topped up as it
grows: by 1,000 tokens, then by twice as many each time, up to 8,000. The stream goes on while a top-up is written, for
up to a quarter of its tokens.
"""

import asyncio
from contextlib import suppress
from math import floor, inf

from stint.domain.errors import StintError
from stint.domain.inference import ModelChunk
from stint.domain.prices import MILLION, ModelPrice
from stint.metering import Reservation
from stint.models.port import words_of

FIRST_TOP_UP, MOST_TOP_UP = 1_000, 8_000
"""Tokens."""
BYTES_PER_TOKEN = 4
LEAST_LIMIT = 16
"""Lowest limit of an answer that is sent: OpenAI's Responses API takes no lower one."""
MOST_LIMIT = 128_000
"""Longest answer that is limited because of money. Models end longer ones by themselves."""


class AnswerMoney:
    """The money of one answer. `paid` are the tokens that the reservation pays for, `streamed` those that came.

    A streamed token has four bytes of UTF-8, and no piece of an answer has less than one.
    """

    def __init__(self, reservation: Reservation, price: ModelPrice, input_dollars: float) -> None:
        self.reservation = reservation
        self.token_dollars = price.output / MILLION
        self.paid = self.tokens_for(reservation.dollars - input_dollars)
        self.most_tokens = self.tokens_for(reservation.most_dollars - input_dollars)
        self.bytes = 0
        self.pieces = 0
        self.step = FIRST_TOP_UP
        self.topping: asyncio.Task[float] | None = None

    def tokens_for(self, dollars: float) -> float:
        """Return the tokens that an amount pays for: a whole number, or inf."""
        tokens = dollars / self.token_dollars if self.token_dollars else inf
        return tokens if tokens == inf else max(floor(tokens + 1e-6), 0)

    def lower_limit(self, asked: int | None) -> int | None:
        """Return the tokens that are left for the answer, at least `LEAST_LIMIT`, unless it will have less anyway."""
        return lower_limit(self.most_tokens, asked)

    @property
    def streamed(self) -> int:
        return max(self.bytes // BYTES_PER_TOKEN, self.pieces)

    async def cover(self, chunk: ModelChunk) -> bool:
        """Count a piece of the answer, and return whether the answer may go on. Raises StoreUnavailable."""
        size = bytes_of(words_of(chunk))
        if not size:
            return True
        self.bytes += size
        self.pieces += 1
        while self.streamed > self.paid:
            if self.topping is None:
                # At least what has come already, since one piece of an answer may be longer than a step.
                step = max(self.step, self.streamed - int(self.paid))
                self.topping = asyncio.create_task(self.reservation.top_up(step * self.token_dollars))
            # Words that are not paid for leave while the write is under way, a quarter of a step at most.
            if not self.topping.done() and self.streamed <= self.paid + self.step // 4:
                return True
            # Shielded: a top-up that was written although the run was cancelled has to be settled with the rest.
            tokens = self.tokens_for(await asyncio.shield(self.topping))
            self.topping = None
            if not tokens:
                return False
            self.paid += tokens
            self.step = min(2 * self.step, MOST_TOP_UP)
        return True

    async def close(self) -> None:
        """Wait for a top-up that is still written, which is a part of the reservation."""
        if self.topping is not None:
            with suppress(StintError):
                await asyncio.shield(self.topping)


def lower_limit(left: float, asked: int | None) -> int | None:
    """Return the tokens that are left for an answer, at least `LEAST_LIMIT`, unless it will have less anyway."""
    longest = min(asked or inf, MOST_LIMIT)
    return int(min(max(left, LEAST_LIMIT), longest)) if left < longest else None


def bytes_of(text: str) -> int:
    """Return the bytes of a text in UTF-8, of which a token has about four in every script."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
