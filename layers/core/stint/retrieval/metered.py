"""Embedders whose calls are counted, and admitted by the budgets of the run that makes them."""

from collections.abc import Sequence
from typing import Literal

from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError
from stint.domain.inference import Usage
from stint.domain.prices import is_free
from stint.domain.token_estimates import CHARACTERS_PER_TOKEN, can_be_true
from stint.metering import Meter, find_meter
from stint.request_totals import count_model_error
from stint.retrieval.port import Embedder, Embeddings
from stint.run_stop import admit_model_call, refuse_stopped

REFUSED = (InvalidRequest, ContextLengthExceeded)
"""Errors of texts that the provider, or its embedder, refuses."""


class MeteredEmbedder:
    """The embedding models of a provider. Outside of a run, nothing is counted."""

    def __init__(self, embedder: Embedder, provider: str) -> None:
        self.embedder = embedder
        self._provider = provider

    def dimension(self, model_id: str) -> int | None:
        """Return the dimension of a model's vectors; see the port."""
        return self.embedder.dimension(model_id)

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",
        dimensions: int | None = None,
    ) -> Embeddings:
        """Embed texts once the budgets of the run admit it; see the port."""
        # Before the reservation: a stopped run reserves nothing.
        await admit_model_call()
        meter = find_meter()
        try:
            if meter is None:
                found = await self.embedder.embed(model_id, texts, kind=kind, dimensions=dimensions)
            else:
                found = await self._embed_metered(meter, model_id, texts, kind, dimensions)
        except ModelError as error:
            count_model_error(error)
            raise
        # After the call as well: what was computed for a run that was stopped meanwhile is not used.
        await refuse_stopped()
        return found

    async def _embed_metered(
        self,
        meter: Meter,
        model_id: str,
        texts: Sequence[str],
        kind: Literal["document", "query"],
        dimensions: int | None,
    ) -> Embeddings:
        """Embed texts under a reservation of their estimated tokens, which a call without usable vectors costs."""
        full_id, estimated = f"{self._provider}/{model_id}", usage_of(estimate(texts))
        dollars, reservation = 0.0, None
        if meter.spending is not None:
            dollars = meter.require_price(full_id).cost_of(estimated)
            reservation = await meter.spending.admit_call(estimated.total_tokens, dollars, dollars)
        spent, cost = estimated, dollars
        try:
            found = await self.embedder.embed(model_id, texts, kind=kind, dimensions=dimensions)
            told = estimated if found.tokens is None else usage_of(found.tokens)
            # The count of a provider is used only if so many tokens are possible.
            spent = told if can_be_true(told, 4 * sum(map(len, texts)), 0) else estimated
            cost = meter.count_call(full_id, spent)
        except BaseException as error:
            # Nothing was computed. After any other error, also a cancellation, the provider may have charged for the
            # texts.
            if is_free(error) or isinstance(error, REFUSED):
                spent, cost = Usage(), 0.0
            else:
                cost = meter.count_call(full_id, spent)
            raise
        finally:
            if reservation:
                await reservation.settle(spent.total_tokens, cost)
        return found


def estimate(texts: Sequence[str]) -> int:
    """Return the probable number of tokens."""
    return sum(map(len, texts)) // CHARACTERS_PER_TOKEN + 1


def usage_of(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, total_tokens=tokens)
