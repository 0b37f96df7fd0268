"""Texts that models write for the server itself: queries, and the entities of documents."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.inference import Decoding, InferenceRequest, UserInput
from stint.loop.answer import Answer
from stint.loop.model_call import Inference
from stint.models.routing import Router
from stint.services.registry.registry import Registry

NO_DECODING = Decoding()


@dataclass(frozen=True, slots=True)
class TextModels:
    """The models of a tenant. `get_registry` is called when a model is used."""

    router: Router
    get_registry: Callable[[], Registry]

    async def check(self, model_name: str) -> None:
        """Raise a StintError if there is no such model."""
        self.router.resolve(await self.get_registry().route(model_name))

    async def ask(
        self, model_name: str, prompt: str, seconds: float, most_characters: int, decoding: Decoding = NO_DECODING
    ) -> str:
        """Return the beginning of a model's answer to a prompt. The rest is not read.

        Raises:
            InvalidRequest: there is no such model.
            ModelError: the model failed.
            DeadlineExceeded: the model was too slow.
        """
        model, model_id = self.router.resolve(await self.get_registry().route(model_name))
        request = InferenceRequest(model=model_id, messages=(UserInput(prompt),), decoding=decoding)
        model.check(request)
        inference, answer = Inference(model, request), Answer("")
        try:
            async with aclosing(inference.read(asyncio.get_running_loop().time() + seconds)) as chunks:
                async for chunk in chunks:
                    list(answer.add_chunk(chunk))
                    if sum(map(len, answer.text)) >= most_characters:
                        break
        finally:
            await asyncio.shield(inference.close())
        return text_of(answer.to_step().model_response.content)[:most_characters]
