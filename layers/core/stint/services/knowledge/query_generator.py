"""The query for content: its texts, or one that a model writes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from stint.domain.content import Content, TextContentItem, items_of, text_of
from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest, UserInput
from stint.domain.llama_stack.rag import DefaultRAGQueryGeneratorConfig, LLMRAGQueryGeneratorConfig
from stint.loop.answer import Answer
from stint.loop.model_call import Inference
from stint.models.routing import Router
from stint.services.knowledge.prompt_template import fill_prompt_template
from stint.services.registry.registry import Registry

MODEL_SECONDS = 60.0
"""Maximum seconds of the model that writes a query."""

MAX_QUERY_LENGTH = 8_000
"""Maximum characters of a query. More would not fit into an embedding model."""


@dataclass(frozen=True, slots=True)
class QueryGenerator:
    """Makes the queries of a tenant. `get_registry` is called if a model writes one."""

    router: Router
    get_registry: Callable[[], Registry]

    async def generate(
        self, content: Content, config: DefaultRAGQueryGeneratorConfig | LLMRAGQueryGeneratorConfig
    ) -> str:
        """Return the query for content.

        Raises:
            InvalidRequest: there is no text, or the model or the template cannot be used.
            ModelError: the model failed.
        """
        texts = texts_of(content)
        if isinstance(config, LLMRAGQueryGeneratorConfig):
            query = await self.ask(config.model, fill_prompt_template(config.template, texts))
        else:
            query = config.separator.join(texts)
        if not query.strip():
            raise InvalidRequest("There is no text to search for.", param="content")
        return query[:MAX_QUERY_LENGTH]

    async def ask(self, model_name: str, prompt: str) -> str:
        """Return the answer of a model to a prompt."""
        model, model_id = self.router.resolve(await self.get_registry().route(model_name))
        request = InferenceRequest(model=model_id, messages=(UserInput(prompt),))
        model.check(request)
        inference, answer = Inference(model, request), Answer("")
        try:
            async for chunk in inference.read(asyncio.get_running_loop().time() + MODEL_SECONDS):
                for _ in answer.add_chunk(chunk):
                    pass
        finally:
            await asyncio.shield(inference.close())
        return text_of(answer.to_step().model_response.content)


def texts_of(content: Content) -> list[str]:
    """Return the texts of content, without images."""
    return [item.text for item in items_of(content) if isinstance(item, TextContentItem)]
